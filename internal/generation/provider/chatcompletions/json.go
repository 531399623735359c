// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions

import (
	"bytes"
	"encoding/json"

	"parley.dev/parley/internal/generation/provider/intercept"
	"parley.dev/parley/internal/generation/provider/rewrite"
)

// object is a JSON object.
type object = map[string]any

// amend decodes the data of a line, and encodes it again if change changes it.
func amend(line []byte, change func(chunk object) bool) []byte {
	data, _ := intercept.EventData(line)
	chunk, ok := decoded(data)
	if !ok || !change(chunk) {
		return line
	}
	encoded, err := rewrite.Encode(chunk)
	if err != nil {
		return line
	}
	return append([]byte("data: "), encoded...)
}

// decoded is a JSON object with its numbers as they are.
func decoded(data []byte) (object, bool) {
	chunk := object{}
	in := json.NewDecoder(bytes.NewReader(data))
	in.UseNumber()
	return chunk, in.Decode(&chunk) == nil
}

// listIn is a list of objects within an object; the rest of the list is left out.
func listIn(in object, name string) (all []object) {
	list, _ := in[name].([]any)
	for _, each := range list {
		if o, ok := each.(object); ok {
			all = append(all, o)
		}
	}
	return all
}

// deltaOf is what the first choice of a chunk adds.
func deltaOf(chunk object) object {
	choices := listIn(chunk, "choices")
	if len(choices) == 0 {
		return nil
	}
	delta, _ := choices[0]["delta"].(object)
	return delta
}
