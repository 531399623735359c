// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
)

// asAnthropics are the headers that Anthropic's clients send: the token is a key.
func (c *compatible) asAnthropics(more ...string) []string {
	return append([]string{"Authorization", "", "X-Api-Key", c.token, "Anthropic-Version", "2023-06-01"}, more...)
}

func TestAnthropicClientStreamsAnswer(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c, anna := in.converse("c"), in.user("anna")
	defer c.answers()()
	got := anna.does("POST", anna.base()+"/messages",
		`{"model": "", "stream": true, "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}`,
		anna.asAnthropics("X-Parley-Chat", "c")...)
	if got.status != 200 || got.header.Get("X-Parley-Chat") != "c" {
		t.Fatalf("%d %v %s", got.status, got.header, got.body)
	}
	var events []string
	for line := range strings.Lines(got.body) {
		if name, ok := strings.CutPrefix(line, "event: "); ok {
			events = append(events, strings.TrimSpace(name))
		}
	}
	want := []string{"message_start", "content_block_start", "content_block_delta", "content_block_stop",
		"message_delta", "message_stop"}
	// What has not come yet when the reply is committed comes with it, in one piece.
	check.Equal(t, "events", want, slices.Compact(events))
}

func TestClientsOfAnthropicAreRefusedInItsForm(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	anna := in.user("anna")
	stranger := &compatible{in, in.tokenOf("stranger")}
	nobody := &compatible{in, "none"}
	const ask = `{"model": "", "max_tokens": 9, "messages": [{"role": "user", "content": "Hello"}]}`
	none := strings.Replace(ask, `"model": ""`, `"model": "claude"`, 1)
	for name, c := range map[string]struct {
		by                 *compatible
		method, path, body string
		status             int
		kind               string
	}{
		"no token":            {nobody, "POST", "/messages", ask, 401, "authentication_error"},
		"a stranger":          {stranger, "POST", "/messages", ask, 403, "permission_error"},
		"a stranger's list":   {stranger, "GET", "/models", "", 403, "permission_error"},
		"no such model":       {anna, "POST", "/messages", none, 404, "not_found_error"},
		"a body too large":    {anna, "POST", "/messages", strings.Repeat(" ", 17<<20), 413, "request_too_large"},
		"nothing that is new": {anna, "POST", "/messages", `{"messages": []}`, 400, "invalid_request_error"},
		"counting":            {anna, "POST", "/messages/count_tokens", ask, 404, "not_found_error"},
	} {
		t.Run(name, func(t *testing.T) {
			got := c.by.does(c.method, c.by.base()+c.path, c.body, c.by.asAnthropics()...)
			var body struct {
				Type  string
				Error struct{ Type, Message string }
			}
			if err := json.Unmarshal([]byte(got.body), &body); err != nil || got.status != c.status || body.Type != "error" ||
				body.Error.Type != c.kind || body.Error.Message == "" {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
}
