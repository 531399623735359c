// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

// plain is a tool that knows no modes.
type plain string

func (t plain) Definition() tools.Definition                  { return tools.Definition{Name: string(t)} }
func (plain) Run(context.Context, tools.Call) (string, error) { return "", nil }

// modal is one that does.
func modal(name string, plan, explore tools.Use) tools.Tool {
	return with{tools.Traits{Plan: plan, Explore: explore}, plain(name)}
}

func TestAModeBoundsTheToolsOfAChat(t *testing.T) {
	registry := tools.NewRegistry(plain("write_file"), modal("read_file", tools.Free, tools.Free),
		modal("execute", tools.WithApproval, tools.Forbidden), modal("spawn_agent", tools.Free, tools.Forbidden))
	all := []string{"execute", "read_file", "spawn_agent", "write_file"}
	for name, c := range map[string]struct {
		mode     v1alpha1.ChatMode
		approved bool
		allow    []v1alpha1.ToolPattern
		want     []string
	}{
		"no mode":                        {"", false, nil, all},
		"a chat that plans":              {v1alpha1.ModePlan, false, nil, []string{"execute", "read_file", "spawn_agent"}},
		"one whose plan was approved":    {v1alpha1.ModePlan, true, nil, all},
		"a chat that explores":           {v1alpha1.ModeExplore, false, nil, []string{"read_file"}},
		"one that has approved nothing":  {v1alpha1.ModeExplore, true, nil, []string{"read_file"}},
		"a chat that may only act":       {v1alpha1.ModeExplore, false, []v1alpha1.ToolPattern{"write_*"}, nil},
		"one that may read and act":      {v1alpha1.ModePlan, false, []v1alpha1.ToolPattern{"read_*", "write_*"}, []string{"read_file"}},
		"one that names what it may not": {v1alpha1.ModeExplore, false, []v1alpha1.ToolPattern{"execute"}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &v1alpha1.Chat{}
			chat.Spec.Mode, chat.Status.Turn = c.mode, &v1alpha1.TurnStatus{PlanApproved: c.approved}
			chat.Spec.Tools = &v1alpha1.ChatTools{Allow: c.allow}
			var got []string
			for _, tool := range registry.Suited(registry.InMode(chat)) {
				got = append(got, tool.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("the tools are %v, want %v", got, c.want)
			}
			if len(chat.Spec.Tools.Deny) > 0 {
				t.Errorf("the chat itself was changed: %v", chat.Spec.Tools)
			}
		})
	}
}

func TestModeDoesNotOfferUnsuitableTools(t *testing.T) {
	chat := &v1alpha1.Chat{}
	chat.Spec.Mode = v1alpha1.ModeExplore
	registry := tools.NewRegistry(with{tools.Traits{Plan: tools.Free, Explore: tools.Free,
		UsefulTo: func(*v1alpha1.Chat) bool { return false }}, plain("wait_agent")})
	within := registry.InMode(chat)
	if offered := registry.Suited(within); len(offered) > 0 {
		t.Errorf("offered %v, for which the chat has no use", offered)
	}
}

func TestModeForbidsClientToolsAndActingProviderTools(t *testing.T) {
	chat := &v1alpha1.Chat{}
	chat.Spec.Mode = v1alpha1.ModePlan
	chat.Spec.Tools = &v1alpha1.ChatTools{
		Client:   []v1alpha1.ClientTool{{Name: "open_ticket"}},
		Provider: []v1alpha1.ProviderTool{v1alpha1.ProviderWebSearch, "CodeExecution"},
	}
	within := tools.NewRegistry().InMode(chat)
	if clients := tools.OfClient(within.Spec.Tools); len(clients) > 0 {
		t.Errorf("the model may call the client's %v", clients)
	}
	if want := []v1alpha1.ProviderTool{v1alpha1.ProviderWebSearch}; !slices.Equal(within.Spec.Tools.Provider, want) {
		t.Errorf("the provider may run %v, want %v", within.Spec.Tools.Provider, want)
	}
	if action := tools.RequiresAction(within.Spec.Tools, "open_ticket"); action != "" {
		t.Errorf("a call of the client's tool requires %s", action)
	}
}

func TestRefusedCallStaysRefusedAfterToolIsAllowed(t *testing.T) {
	registry := tools.NewRegistry(plain("write_file"))
	batch := &tools.Batch{Chat: &v1alpha1.Chat{}, Calls: []v1alpha1.ToolCall{
		{ID: "1", Name: "write_file", Input: "{}", Refusal: v1alpha1.RefusalNotAllowed},
		{ID: "2", Name: "write_file", Input: "{}"}}}
	results := registry.Execute(context.Background(), batch, nil)
	if !results[0].IsError || !strings.Contains(results[0].Output, "was not active in this chat when it was called") ||
		results[1].IsError {
		t.Errorf("the results are %+v", results)
	}
}
