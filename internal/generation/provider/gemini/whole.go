// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini

import "encoding/json"

// Events implements intercept.Interceptor: the document is the only chunk, or a list of them.
func (i *interceptor) Events(document []byte) [][]byte {
	var list []json.RawMessage
	if json.Unmarshal(document, &list) != nil {
		return [][]byte{document}
	}
	events := make([][]byte, 0, len(list))
	for _, chunk := range list {
		events = append(events, chunk)
	}
	return events
}
