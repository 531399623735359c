// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions_test

import (
	"testing"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

func TestCallsWithOneIndexAndDifferentIDsAreDifferentCalls(t *testing.T) {
	call := func(index, id, name, arguments string) string {
		return providertest.Chunk(`{"tool_calls":[{"index":`+index+`,"id":`+id+`,"type":"function","function":{"name":`+name+
			`,"arguments":`+arguments+`}}]}`, "null")
	}
	for name, c := range map[string]struct{ events, want []string }{
		"whole calls": {
			[]string{call("0", `"a"`, `"f"`, `"{}"`), call("0", `"b"`, `"g"`, `"{\"x\":\"<1>\"}"`),
				call("0", `"c"`, `"f"`, `"{}"`)},
			[]string{`a f {}`, `b g {"x":"<1>"}`, `c f {}`},
		},
		"in pieces": {
			[]string{
				call("0", `"a"`, `"f"`, `"{\"x\":"`), call("0", `""`, `""`, `"1}"`), call("0", `"b"`, `"g"`, `"{\"x\""`),
				call("0", "null", "null", `":2}"`),
				call("1", `"c"`, `"h"`, `"{}"`),
			},
			[]string{`a f {"x":1}`, `b g {"x":2}`, `c h {}`},
		},
		"the id in each piece": {
			[]string{call("0", `"a"`, `"f"`, `"{\"x\":"`), call("0", `"a"`, `"f"`, `"1}"`), call("1", `"b"`, `"f"`, `"{}"`)},
			[]string{`a f {"x":1}`, `b f {}`},
		},
		"another id in each piece": {
			[]string{call("0", `"a"`, `"f"`, `"{\"x\":"`), call("0", `"z"`, `""`, `"1}"`)},
			[]string{`a f {"x":1}`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			server := &providertest.Scripted{Replies: providertest.Events(append(c.events,
				providertest.Chunk("{}", `"tool_calls"`), "[DONE]")...)}
			got, err := server.Ask(t, providertest.Specs["openai-compatible"], nil)
			check.Equal(t, "error, calls", []any{nil, c.want}, []any{err, providertest.Calls(got)})
		})
	}
}
