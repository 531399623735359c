// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"strings"
)

// callIDs makes the ids of tool calls valid for every provider and unique within the chat. Some servers invent ids that
// they use again in the next reply.
type callIDs struct {
	version int64
	used    map[string]bool
	given   map[string]string
}

func newCallIDs(version int64, used []string) *callIDs {
	ids := &callIDs{version: version, used: map[string]bool{}, given: map[string]string{}}
	for _, id := range used {
		ids.used[id] = true
	}
	return ids
}

// maxID leaves room for what makes an id unique within the 64 characters that providers take.
const maxID = 48

// of returns the id to use for the provider's.
func (c *callIDs) of(id string) string {
	if given, ok := c.given[id]; ok {
		return given
	}
	valid := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, id)
	if valid == "" {
		valid = "call"
	}
	unique := valid
	if len(unique) > 64 {
		unique = unique[:maxID]
	}
	for n := 0; c.used[unique]; n++ {
		unique = fmt.Sprintf("%.*s-%d", maxID, valid, c.version)
		if n > 0 {
			unique = fmt.Sprintf("%.*s-%d-%d", maxID, valid, c.version, n)
		}
	}
	c.used[unique] = true
	c.given[id] = unique
	return unique
}
