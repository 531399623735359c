// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package intercept

import (
	"bytes"
	"encoding/json"
	"io"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// messageBody is a body of AWS event stream messages, such as Bedrock's. It shows the interceptor the events within
// them, and hands the body on unchanged.
type messageBody struct {
	io.ReadCloser
	interceptor Interceptor
	decoder     eventstream.Decoder
	out         bytes.Buffer
	// broken is whether something came that is no message: who reads the body reports that.
	broken bool
}

// Read implements io.Reader.
func (b *messageBody) Read(p []byte) (int, error) {
	for b.out.Len() == 0 && !b.broken {
		b.next()
	}
	if b.out.Len() > 0 {
		return b.out.Read(p)
	}
	return b.ReadCloser.Read(p)
}

// next reads a message.
func (b *messageBody) next() {
	message, err := b.decoder.Decode(io.TeeReader(b.ReadCloser, &b.out), nil)
	if err != nil {
		b.broken = true
		return
	}
	var chunk struct {
		Bytes []byte `json:"bytes"`
	}
	if json.Unmarshal(message.Payload, &chunk) == nil && len(chunk.Bytes) > 0 {
		b.interceptor.Line(append([]byte("data: "), chunk.Bytes...))
	}
}
