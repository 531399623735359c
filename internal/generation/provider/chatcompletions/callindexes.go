// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions

import (
	"bytes"
	"encoding/json"
	"strconv"
)

// callIndexes tells the calls of a reply apart that have one index and different ids, by giving the later ones indexes
// of their own.
type callIndexes struct {
	// now are the newest calls by the index that the server gives them.
	now map[int64]indexedCall
	// used are the indexes that calls have, next is greater than all of them.
	used map[int64]bool
	next int64
	// moved is true once an index was changed.
	moved bool
}

type indexedCall struct {
	id    string
	index int64
}

// line changes the indexes of the calls in a line where they have to be.
func (c *callIndexes) line(line []byte) []byte {
	if !c.moved && !bytes.Contains(line, []byte(`"name"`)) {
		return line // No call begins here.
	}
	return amend(line, func(chunk object) bool {
		changed := false
		for _, call := range listIn(deltaOf(chunk), "tool_calls") {
			index := c.index(call)
			if given, _ := strconv.ParseInt(numberIn(call), 10, 64); given != index {
				call["index"], changed, c.moved = index, true, true
			}
		}
		return changed
	})
}

// index is the index of the call that a piece belongs to. A new call says its name and an id of its own.
func (c *callIndexes) index(piece object) int64 {
	given, _ := strconv.ParseInt(numberIn(piece), 10, 64)
	id, _ := piece["id"].(string)
	function, _ := piece["function"].(object)
	name, _ := function["name"].(string)
	known, ok := c.now[given]
	if ok && (id == "" || name == "" || known.id == "" || id == known.id) {
		return known.index
	}
	call := indexedCall{id, given}
	if c.used[given] {
		call.index = c.next
	}
	if c.now == nil {
		c.now, c.used = map[int64]indexedCall{}, map[int64]bool{}
	}
	c.now[given], c.used[call.index], c.next = call, true, max(c.next, call.index+1)
	return call.index
}

func numberIn(piece object) string {
	number, _ := piece["index"].(json.Number)
	return number.String()
}
