// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/binary"
	"hash/crc32"
)

// frameEnds is the length of what a frame has around headers and payload: two lengths, their checksum, and that of all.
const frameEnds = 16

// headerOfString is the type of a header whose value is a string.
const headerOfString = 7

// chunk is the payload of a frame that carries one event.
type chunk struct {
	Bytes []byte `json:"bytes"`
	// Padding keeps the length of a frame from telling what it says.
	Padding string `json:"p"`
}

// chunkFrame is an event as application/vnd.amazon.eventstream carries it.
func chunkFrame(event []byte) []byte {
	return frame(encode(chunk{Bytes: event, Padding: "abcdefghij"}),
		":event-type", "chunk", ":content-type", "application/json", ":message-type", "event")
}

// frame encodes one message of that format. Headers are names and values by turns.
func frame(payload []byte, headers ...string) []byte {
	var head []byte
	for i := 0; i < len(headers); i += 2 {
		name, value := headers[i], headers[i+1]
		head = append(append(head, byte(len(name))), name...)
		head = append(binary.BigEndian.AppendUint16(append(head, headerOfString), uint16(len(value))), value...)
	}
	out := binary.BigEndian.AppendUint32(nil, uint32(len(head)+len(payload)+frameEnds))
	out = binary.BigEndian.AppendUint32(out, uint32(len(head)))
	out = binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
	out = append(append(out, head...), payload...)
	return binary.BigEndian.AppendUint32(out, crc32.ChecksumIEEE(out))
}
