// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"fmt"
	"regexp"
	"strings"
)

// callIDs makes the ids of tool calls valid for every provider and unique within the chat. Some servers invent ids that
// they use again in the next reply.
type callIDs struct {
	version int64
	used    map[string]bool
	// partial is whether there are earlier calls besides the used ones: an id can then only be unique by its version.
	partial bool
	given   map[string]string
	called  map[string]bool
}

func newCallIDs(version int64, used []string) *callIDs {
	ids := &callIDs{version: version, used: map[string]bool{}, given: map[string]string{}, called: map[string]bool{}}
	for _, id := range used {
		ids.used[id] = true
	}
	return ids
}

// maxID leaves room for what makes an id unique within the 64 characters that providers take.
const maxID = 48

// maxProviderID is the longest id of a provider that is kept.
const maxProviderID = 128

// invented are the ids that package chatcompletions gives to calls that came without one.
var invented = regexp.MustCompile(`^tool-call-\d+$`)

// ofProvider is the provider's id of a call, if it is to be kept beside the one to use: the two differ, it can be
// written back, and it is the provider's own.
func ofProvider(id, unique string) string {
	if id == unique || len(id) > maxProviderID || invented.MatchString(id) {
		return ""
	}
	for i := range len(id) {
		if id[i] <= ' ' || id[i] > '~' {
			return ""
		}
	}
	return id
}

// begin returns the id to use for a call that is about to be written. A provider's id that stands for a finished call
// stands for another one now.
func (c *callIDs) begin(id string) string {
	if c.called[id] {
		delete(c.given, id)
		delete(c.called, id)
	}
	return c.of(id)
}

// finish returns the id to use for a call that is whole.
func (c *callIDs) finish(id string) string {
	unique := c.begin(id)
	c.called[id] = true
	return unique
}

// of returns the id to use for the newest call that has the provider's id.
func (c *callIDs) of(id string) string {
	if given, ok := c.given[id]; ok {
		return given
	}
	valid := validID(id)
	unique := valid
	if len(unique) > 64 {
		unique = unique[:maxID]
	}
	for n := 0; c.used[unique] || n == 0 && c.partial; n++ {
		unique = fmt.Sprintf("%.*s-%d", maxID, valid, c.version)
		if n > 0 {
			unique = fmt.Sprintf("%.*s-%d-%d", maxID, valid, c.version, n)
		}
	}
	c.used[unique] = true
	c.given[id] = unique
	return unique
}

// validID is the id in the characters that every provider takes.
func validID(id string) string {
	if id == "" {
		return "call"
	}
	return strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, id)
}
