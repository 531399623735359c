// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"cmp"
	"fmt"
	"regexp"

	"parley.dev/parley/internal/generation/prompt"
)

// callIDs makes the ids of tool calls valid for every provider and unique in the chat. Some servers reuse ids in the
// next reply.
type callIDs struct {
	version int64
	used    map[string]bool
	// partial is true if there are other earlier calls: then only the version makes an id unique.
	partial bool
	// unique are the ids to use, by the provider's ids.
	unique   map[string]string
	finished map[string]bool
}

func newCallIDs(version int64, used []string) *callIDs {
	ids := &callIDs{version: version, used: map[string]bool{}, unique: map[string]string{}, finished: map[string]bool{}}
	for _, id := range used {
		ids.used[id] = true
	}
	return ids
}

// maxID leaves room for a unique suffix within the 64 characters that providers take.
const maxID = 48

var (
	// writable are the ids that can be sent back to their provider.
	writable = regexp.MustCompile(`^[!-~]{1,128}$`)
	// invented are the ids of package chatcompletions for calls without one.
	invented = regexp.MustCompile(`^tool-call-\d+$`)
)

// ofProvider is the provider's id of a call, if it is kept in addition to the unique one.
func ofProvider(id, unique string) string {
	if id == unique || invented.MatchString(id) || !writable.MatchString(id) {
		return ""
	}
	return id
}

// begin returns the id for a new call, also if the provider has used its id for a finished call.
func (c *callIDs) begin(id string) string {
	if c.finished[id] {
		delete(c.unique, id)
		delete(c.finished, id)
	}
	return c.current(id)
}

// finish returns the id for a call that is complete.
func (c *callIDs) finish(id string) string {
	unique := c.begin(id)
	c.finished[id] = true
	return unique
}

// current returns the id for the newest call with the provider's id.
func (c *callIDs) current(id string) string {
	if unique, ok := c.unique[id]; ok {
		return unique
	}
	valid := cmp.Or(prompt.ValidName(id, len(id)), "call")
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
	c.unique[id] = unique
	return unique
}
