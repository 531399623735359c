// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"strconv"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/internal/chat/fence"
)

// appendPart appends the data of a part's event as encoding/json writes a stream.MessagePart, which begins with the
// attempt and continues as the frame does.
func appendPart(b []byte, attempt fence.Fence, frame *parts.Frame) []byte {
	b = strconv.AppendInt(append(b, `{"historyVersion":`...), attempt.HistoryVersion, 10)
	b = strconv.AppendInt(append(b, `,"attempt":`...), int64(attempt.Attempt), 10)
	at := len(b)
	b = frame.AppendJSON(b)
	b[at] = ',' // in place of the brace that begins the frame
	return b
}
