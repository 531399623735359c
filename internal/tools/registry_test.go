// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

// fake is a tool whose calls a function runs. By default they return their input.
type fake struct {
	name string
	tools.Traits
	run func(ctx context.Context, call tools.Call) (string, error)
}

func (f fake) Definition() tools.Definition { return tools.Definition{Name: f.name, Traits: f.Traits} }

func (f fake) Run(ctx context.Context, call tools.Call) (string, error) {
	if f.run == nil {
		return call.Input, nil
	}
	return f.run(ctx, call)
}

var (
	// alone are the traits of a tool that must be called alone, and that a chat turns on with its system prompt.
	alone = tools.Traits{Exclusive: true,
		EnabledFor: func(chat *v1beta1.Chat) bool { return chat.Spec.SystemPrompt == "on" }}
	// waits are the traits of a tool that waits a minute for the chat in its input, and is useful to chats with sub-chats.
	waits = tools.Traits{Plan: tools.Free, Explore: tools.Free,
		WaitsFor: func(input string) (chat string, seconds int32) { return input, int32(60 * min(1, len(input))) },
		UsefulTo: func(chat *v1beta1.Chat) bool { return chat.Status.Internal.Attempt.HasSubChats }}
)

// allowing is a chat that allows the tools between the blanks, or all.
func allowing(patterns string) *v1beta1.Chat {
	chat := &v1beta1.Chat{}
	chat.Spec.Tools = &v1beta1.ChatTools{}
	for p := range strings.FieldsSeq(patterns) {
		chat.Spec.Tools.Allow = append(chat.Spec.Tools.Allow, v1beta1.ToolPattern(p))
	}
	return chat
}

// callsOf are calls of the tools between the blanks, which are also their ids.
func callsOf(names string) (calls []v1beta1.ToolCall) {
	for name := range strings.FieldsSeq(names) {
		calls = append(calls, v1beta1.ToolCall{ID: name, Name: name, Input: "{}"})
	}
	return calls
}

// execute runs the calls of a batch for the chat.
func execute(t *testing.T, r *tools.Registry, chat *v1beta1.Chat, calls ...v1beta1.ToolCall) []v1beta1.ToolResult {
	t.Helper()
	return r.Execute(t.Context(), &tools.Batch{Chat: chat, Calls: calls}, nil)
}

// Security (a model in mode Plan or Explore): cannot call a tool that does not declare itself read-only, nor a
// client's, nor one that its provider runs, except web_search. Also TestModeForbidsClientToolsAndActingProviderTools of
// internal/tools.
func TestSuitedToolsDependOnPolicyUseAndMode(t *testing.T) {
	registry := tools.NewRegistry(fake{name: "write"}, fake{name: "wait", Traits: waits},
		fake{name: "alone", Traits: alone},
		fake{name: "clock", Traits: tools.Traits{Plan: tools.Free, Explore: tools.Free}},
		fake{name: "execute", Traits: tools.Traits{Plan: tools.WithApproval}},
		fake{name: "spawn", Traits: tools.Traits{Plan: tools.Free}})
	const all, plan, explore = "clock execute spawn write", v1beta1.ModePlan, v1beta1.ModeExplore
	for name, c := range map[string]struct {
		allow, deny        string
		on, subs, approved bool
		mode               v1beta1.ChatMode
		want               string
	}{
		"all allowed":                    {want: all},
		"some":                           {allow: "write clock", want: "clock write"},
		"none":                           {deny: "*"},
		"one that is not here":           {allow: "z execute", want: "execute"},
		"turned on":                      {on: true, want: "alone " + all},
		"turned on, another allowed":     {on: true, allow: "write", want: "write"},
		"turned on, and named":           {on: true, allow: "alone", want: "alone"},
		"turned on, and denied":          {on: true, deny: "*"},
		"turned off, and named":          {allow: "alone"},
		"useful":                         {subs: true, want: "clock execute spawn wait write"},
		"useless, but named":             {allow: "wait", want: "wait"},
		"useful, another allowed":        {subs: true, allow: "clock", want: "clock"},
		"a chat that plans":              {mode: plan, want: "clock execute spawn"},
		"one whose plan was approved":    {mode: plan, approved: true, want: all},
		"one that may read and act":      {mode: plan, allow: "clo* wri*", want: "clock"},
		"a chat that explores":           {mode: explore, want: "clock"},
		"one that has approved nothing":  {mode: explore, approved: true, want: "clock"},
		"a chat that may only act":       {mode: explore, allow: "wri*"},
		"one that names what it may not": {mode: explore, allow: "execute"},
	} {
		t.Run(name, func(t *testing.T) {
			chat := allowing(c.allow)
			if c.deny != "" {
				chat.Spec.Tools.Deny = []v1beta1.ToolPattern{v1beta1.ToolPattern(c.deny)}
			}
			if c.on {
				chat.Spec.SystemPrompt = "on"
			}
			chat.Status.Internal.Attempt.HasSubChats = c.subs
			chat.Spec.Mode, chat.Status.Turn = c.mode, &v1beta1.TurnStatus{PlanApproved: c.approved}
			before := chat.DeepCopy()
			var got []string
			for _, tool := range registry.Suited(registry.InMode(chat)) {
				got = append(got, tool.Name)
			}
			check.Equal(t, "tools", c.want, strings.Join(got, " "))
			check.Equal(t, "chat", before, chat)
		})
	}
	check.Equal(t, "tools of a chat without a policy", 4, len(registry.Suited(&v1beta1.Chat{})))
}

func TestModeForbidsClientToolsAndActingProviderTools(t *testing.T) {
	chat := allowing("")
	chat.Spec.Mode = v1beta1.ModePlan
	chat.Spec.Tools.Client = []v1beta1.ClientTool{{Name: "open_ticket"}}
	chat.Spec.Tools.Provider = []v1beta1.ProviderTool{v1beta1.ProviderWebSearch, "CodeExecution"}
	within := tools.NewRegistry().InMode(chat).Spec.Tools
	check.Equal(t, "client tools", nil, tools.OfClient(within))
	check.Equal(t, "provider tools", []v1beta1.ProviderTool{v1beta1.ProviderWebSearch}, within.Provider)
	check.Equal(t, "required action", "", tools.RequiresAction(within, "open_ticket"))
}

func TestUnknownToolErrorNamesOfferedTools(t *testing.T) {
	registry := tools.NewRegistry(fake{name: "clock"}, fake{name: "wait", Traits: waits},
		fake{name: "alone", Traits: alone})
	chat := &v1beta1.Chat{Spec: v1beta1.ChatSpec{Tools: &v1beta1.ChatTools{
		Client:     []v1beta1.ClientTool{{Name: "open_ticket"}, {Name: "denied"}},
		ToolPolicy: v1beta1.ToolPolicy{Deny: []v1beta1.ToolPattern{"denied"}}}}}
	for subs, want := range map[bool]string{false: "clock, open_ticket", true: "clock, wait, open_ticket"} {
		chat.Status.Internal.Attempt.HasSubChats = subs
		got := execute(t, registry, chat, callsOf("weather")...)[0].Output
		check.Equal(t, subs, `tool "weather" does not exist; the tools on offer are: `+want, got)
	}
}

func TestAddedToolsAreCalledLikeBuiltInTools(t *testing.T) {
	builtIn := tools.NewRegistry(fake{name: "built_in"})
	both := builtIn.Plus([]tools.Tool{fake{name: "s__a"}, fake{name: "built_in"}}, func(name string) error {
		if name == "t__b" {
			return errors.New("its server cannot be used")
		}
		return nil
	})
	check.Equal(t, "results", []v1beta1.ToolResult{{ID: "s__a", Name: "s__a", Output: "{}"},
		{ID: "t__b", Name: "t__b", Output: "its server cannot be used", IsError: true},
		{ID: "u__c", Name: "u__c", Output: `tool "u__c" does not exist; the tools on offer are: built_in, s__a`,
			IsError: true},
	}, execute(t, both, &v1beta1.Chat{}, callsOf("s__a t__b u__c")...))
	if both.Has("s__a") || !both.Has("built_in") || len(builtIn.Suited(&v1beta1.Chat{})) != 1 {
		t.Error("the added tool counts as built in")
	}
}

func TestWithReplacesOnlyRegisteredToolOfSameName(t *testing.T) {
	registry := tools.NewRegistry(fake{name: "who"})
	with := registry.With(fake{name: "who", run: func(_ context.Context, call tools.Call) (string, error) {
		return call.Chat.Name, nil
	}})
	chat := &v1beta1.Chat{}
	chat.Name = "c"
	for want, r := range map[string]*tools.Registry{"c": with, "{}": registry} {
		check.Equal(t, "output", want, execute(t, r, chat, callsOf("who")...)[0].Output)
	}
	if got := registry.With(fake{name: "other"}); got.Has("other") || !got.Has("who") {
		t.Error("an unknown tool was added")
	}
}

func TestTwoToolsOfOneNamePanic(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("nothing happened")
		}
	}()
	tools.NewRegistry(fake{name: "a"}, fake{name: "a"})
}

func TestRefusedCallsWaitForNothing(t *testing.T) {
	registry := tools.NewRegistry(fake{name: "run", Traits: tools.Traits{NeedsWorkspace: true}},
		fake{name: "wait", Traits: waits})
	check.Equal(t, "tools of the workspace", []string{"run"}, registry.InWorkspace())
	calls := callsOf("run wait")
	for _, refusal := range []v1beta1.CallRefusal{"", v1beta1.RefusalInputInvalid} {
		calls[0].Refusal, calls[1].Refusal = refusal, refusal
		needs, waiting := registry.NeedWorkspace(&v1beta1.Chat{}, calls), registry.WaitingCalls(nil, calls)
		if runs := refusal == ""; needs != runs || len(waiting) > 0 != runs {
			t.Errorf("refused by %q, they need a workspace: %t, and wait for %v", refusal, needs, waiting)
		}
	}
}

func TestCallsWaitForSubChatsUpToLimit(t *testing.T) {
	registry := tools.NewRegistry(fake{name: "clock"}, fake{name: "wait", Traits: waits})
	calls := []v1beta1.ToolCall{
		{ID: "1", Name: "clock", Input: "x"}, {ID: "2", Name: "wait", Input: "x"}, {ID: "3", Name: "wait"},
		{ID: "4", Name: "unknown", Input: "x"},
		{ID: "5", Name: "wait", Input: "y", RequiresAction: v1beta1.RequiresApproval},
	}
	check.Equal(t, "waits", []v1beta1.WaitingCall{
		{ID: "2", Chat: "x", TimeoutSeconds: 60},
		{ID: "5", Chat: "y", TimeoutSeconds: 60, RequiresAction: v1beta1.RequiresApproval},
	}, registry.WaitingCalls(nil, calls))
	check.Equal(t, "waits of a forbidden tool", nil, registry.WaitingCalls(allowing("clock").Spec.Tools, calls))
	many := slices.Repeat(calls[1:2], v1beta1.MaxWaitingCalls+1)
	check.Equal(t, "number of waits", v1beta1.MaxWaitingCalls, len(registry.WaitingCalls(nil, many)))
}
