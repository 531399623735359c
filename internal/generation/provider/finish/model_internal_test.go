// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package finish

import (
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/test/kit/check"
)

func TestCallIsHeldUnlessItsProviderRunsIt(t *testing.T) {
	call := fantasy.StreamPart{Type: fantasy.StreamPartTypeToolCall, ID: "ours", ToolCallInput: "{}"}
	search := fantasy.StreamPart{Type: fantasy.StreamPartTypeToolCall, ID: "its own", ToolCallInput: "{}",
		ProviderExecuted: true}
	var calls reply
	var got []string
	take := func(p fantasy.StreamPart) bool {
		got = append(got, p.ID)
		return true
	}
	calls.pass(call, take)
	if len(got) > 0 {
		t.Errorf("%v is handed on though it may be cut off", got)
	}
	calls.pass(search, take)
	check.Equal(t, "a search is under way", got, []string{"ours", "its own"})
}
