// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

func TestSubChatsStartBeforeNextDecision(t *testing.T) {
	chat := chattest.Generating()
	chat.Status.Internal.AgentsOf = "c-2-1"
	f := Facts{Chat: chat, Now: chattest.Now}
	todo, err := Advance(f)
	if err != nil || todo.Asks.Agents != "c-2-1" || todo.Asks.Nothing() {
		t.Fatalf("it asks for %+v, %v", todo.Asks, err)
	}
	f.AgentsOf, f.AgentsRejected = "c-2-1", []string{"exceeded quota"}
	todo, err = Advance(f)
	told := slices.ContainsFunc(todo.Notices, func(n Notice) bool {
		return n.Reason == v1beta1.EventAgentRejected && n.Note == "exceeded quota"
	})
	if err != nil || todo.Asks.Agents != "" || todo.Status.Internal.AgentsOf != "" || !told {
		t.Errorf("it asks for %+v, keeps %q, tells %+v, %v", todo.Asks, todo.Status.Internal.AgentsOf, todo.Notices, err)
	}
}
