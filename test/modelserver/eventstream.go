// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"bytes"
	"fmt"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"
)

// chunk is the payload of a frame that carries one event.
type chunk struct {
	Bytes []byte `json:"bytes"`
	// Padding hides the length of the event.
	Padding string `json:"p"`
}

// chunkFrame is an event as application/vnd.amazon.eventstream carries it.
func chunkFrame(event []byte) []byte {
	return frame(encode(chunk{Bytes: event, Padding: "abcdefghij"}),
		":event-type", "chunk", ":content-type", "application/json", ":message-type", "event")
}

// frame encodes one message of that format. Headers are names and values by turns.
func frame(payload []byte, headers ...string) []byte {
	message := eventstream.Message{Payload: payload}
	for i := 0; i < len(headers); i += 2 {
		message.Headers.Set(headers[i], eventstream.StringValue(headers[i+1]))
	}
	var out bytes.Buffer
	if err := eventstream.NewEncoder().Encode(&out, message); err != nil {
		panic(fmt.Sprintf("encode a frame: %v", err))
	}
	return out.Bytes()
}
