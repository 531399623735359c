// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"context"
	"fmt"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

// waits are the traits of a tool that waits a minute for the chat that its input names, and is useful to chats that
// have sub-chats.
var waits = tools.Traits{
	WaitsFor: func(input string) (chat string, seconds int32) {
		if input == "" {
			return "", 0
		}
		return input, 60
	},
	UsefulTo: func(chat *v1alpha1.Chat) bool { return chat.Status.Internal.Attempt.HasSubChats },
}

func TestToolIsOfferedWhenUsefulOrNamed(t *testing.T) {
	registry := tools.NewRegistry(tool{"clock", echo}, with{waits, tool{"wait", echo}})
	for name, c := range map[string]struct {
		spec *v1alpha1.ChatTools
		subs bool
		want string
	}{
		"a plain chat":                        {nil, false, "[clock]"},
		"a chat with sub-chats":               {nil, true, "[clock wait]"},
		"a chat that names it":                {only("wait"), false, "[wait]"},
		"a chat with sub-chats that does not": {only("clock"), true, "[clock]"},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{Tools: c.spec}}
			chat.Status.Internal.Attempt.HasSubChats = c.subs
			names := []string{}
			for _, offered := range registry.Suited(chat) {
				names = append(names, offered.Name)
			}
			if fmt.Sprint(names) != c.want {
				t.Errorf("offered are %v, want %s", names, c.want)
			}
		})
	}
}

func TestRefusedCallsWaitForNothing(t *testing.T) {
	registry := tools.NewRegistry(with{tools.Traits{NeedsWorkspace: true}, tool{"run", echo}},
		with{waits, tool{"wait", echo}})
	calls := []v1alpha1.ToolCall{{ID: "1", Name: "run", Input: "x"}, {ID: "2", Name: "wait", Input: "x"}}
	for _, refusal := range []v1alpha1.CallRefusal{"", v1alpha1.RefusalInputInvalid} {
		calls[0].Refusal, calls[1].Refusal = refusal, refusal
		needs, waiting := registry.NeedWorkspace(&v1alpha1.Chat{}, calls), registry.WaitingCalls(nil, calls)
		if run := refusal == ""; needs != run || len(waiting) > 0 != run {
			t.Errorf("refused by %q, they need a workspace: %t, and wait for %v", refusal, needs, waiting)
		}
	}
}

func TestTheWaitsOfCallsAreNoted(t *testing.T) {
	registry := tools.NewRegistry(tool{"clock", echo}, with{waits, tool{"wait", echo}})
	calls := []v1alpha1.ToolCall{
		{ID: "1", Name: "clock", Input: "x"}, {ID: "2", Name: "wait", Input: "x"}, {ID: "3", Name: "wait"},
		{ID: "4", Name: "unknown", Input: "x"},
		{ID: "5", Name: "wait", Input: "y", RequiresAction: v1alpha1.RequiresApproval},
	}
	want := []v1alpha1.WaitingCall{
		{ID: "2", Chat: "x", TimeoutSeconds: 60},
		{ID: "5", Chat: "y", TimeoutSeconds: 60, RequiresAction: v1alpha1.RequiresApproval},
	}
	if got := registry.WaitingCalls(nil, calls); fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %+v", got)
	}
	if got := registry.WaitingCalls(only("clock"), calls); got != nil {
		t.Errorf("a chat that does not allow the tool waits: %+v", got)
	}
	var many []v1alpha1.ToolCall
	for i := range v1alpha1.MaxWaitingCalls + 1 {
		many = append(many, v1alpha1.ToolCall{ID: fmt.Sprint(i), Name: "wait", Input: "x"})
	}
	if got := registry.WaitingCalls(nil, many); len(got) != v1alpha1.MaxWaitingCalls {
		t.Errorf("got %d waits", len(got))
	}
}

// asking is a tool that answers with the name of the chat for which it runs.
type asking struct{ tool }

func (asking) Run(_ context.Context, call tools.Call) (string, error) { return call.Chat.Name, nil }

func TestAToolKnowsForWhichChatItRuns(t *testing.T) {
	registry := tools.NewRegistry(asking{tool{"who", echo}})
	chat := &v1alpha1.Chat{}
	chat.Name = "c"
	batch := &tools.Batch{Chat: chat, Calls: []v1alpha1.ToolCall{{ID: "1", Name: "who"}}}
	if got := registry.Execute(t.Context(), batch, nil); got[0].Output != "c" {
		t.Errorf("got %+v", got)
	}
}

func TestWithReplacesOnlyRegisteredToolOfSameName(t *testing.T) {
	registry := tools.NewRegistry(tool{"who", echo})
	chat := &v1alpha1.Chat{}
	chat.Name = "c"
	batch := &tools.Batch{Chat: chat, Calls: []v1alpha1.ToolCall{{ID: "1", Name: "who", Input: "{}"}}}
	if got := registry.With(asking{tool{"who", echo}}).Execute(t.Context(), batch, nil); got[0].Output != "c" {
		t.Errorf("got %+v", got)
	}
	if got := registry.Execute(t.Context(), batch, nil); got[0].Output != "{}" {
		t.Errorf("the registry itself was changed: got %+v", got)
	}
	if got := registry.With(tool{"other", echo}); got.Has("other") || !got.Has("who") {
		t.Error("a tool that was not there came to be")
	}
}
