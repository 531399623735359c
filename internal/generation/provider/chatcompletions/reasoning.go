// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions

import "bytes"

// firstReasoning copies the text of the first piece of a reasoning to where fantasy looks for it.
type firstReasoning struct{ within bool }

var reasoningDetails = []byte(`"reasoning_details":[{`)

func (f *firstReasoning) line(line, data []byte) []byte {
	within := f.within
	if f.within = bytes.Contains(data, reasoningDetails); within || !f.within {
		return line
	}
	return amend(line, func(chunk object) bool {
		details := listIn(deltaOf(chunk), "reasoning_details")
		if len(details) == 0 || details[0]["type"] != "reasoning.text" || details[0]["summary"] != nil {
			return false
		}
		details[0]["summary"] = details[0]["text"]
		return true
	})
}
