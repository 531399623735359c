// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"context"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

// alone are the traits of a tool that must be called alone, and that a chat turns on with its system prompt.
var alone = tools.Traits{Exclusive: true,
	EnabledFor: func(chat *v1alpha1.Chat) bool { return chat.Spec.SystemPrompt == "on" }}

func named(calls string) []string {
	return strings.FieldsFunc(calls, func(c rune) bool { return c == ',' })
}

func TestExclusiveToolMixedWithOtherCallsRunsNothing(t *testing.T) {
	const (
		ran      = "ran"
		alonePls = `tool "alone" must be called alone`
		skipped  = "this call was skipped"
		inactive = `tool "alone" is not active in this chat; the tools on offer are: other`
		unknown  = `tool "unknown" does not exist; the tools on offer are: alone, other`
	)
	cases := map[string]struct {
		off   bool
		calls string
		want  []string
	}{
		"alone":                             {calls: "alone", want: []string{ran}},
		"others without it":                 {calls: "other,other", want: []string{ran, ran}},
		"first of two":                      {calls: "alone,other", want: []string{alonePls, skipped}},
		"last of three":                     {calls: "other,unknown,alone", want: []string{skipped, skipped, alonePls}},
		"twice":                             {calls: "alone,alone", want: []string{alonePls, alonePls}},
		"alone where it is off":             {off: true, calls: "alone", want: []string{inactive}},
		"with another where it is off":      {off: true, calls: "alone,other", want: []string{inactive, skipped}},
		"a call of no tool, without others": {calls: "unknown", want: []string{unknown}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			run := func(context.Context, string) (string, error) { return ran, nil }
			registry := tools.NewRegistry(with{alone, tool{"alone", run}}, tool{"other", run})
			chat := allowing(only("other", "alone"))
			if !c.off {
				chat.Spec.SystemPrompt = "on"
			}
			var calls []v1alpha1.ToolCall
			for i, name := range named(c.calls) {
				calls = append(calls, v1alpha1.ToolCall{ID: string(rune('a' + i)), Name: name})
			}
			results := registry.Execute(t.Context(), &tools.Batch{Chat: chat, Calls: calls}, nil)
			if len(results) != len(c.want) {
				t.Fatalf("got %d results", len(results))
			}
			for i, r := range results {
				if r.ID != calls[i].ID || r.Name != calls[i].Name || !strings.Contains(r.Output, c.want[i]) ||
					r.IsError != (c.want[i] != ran) {
					t.Errorf("result %d: got %+v, want %q", i, r, c.want[i])
				}
			}
		})
	}
}

func TestCallConflictDependsOnlyOnToolNames(t *testing.T) {
	registry := tools.NewRegistry(with{alone, tool{"alone", echo}}, tool{"other", echo})
	cases := map[string]struct {
		calls, want string
	}{
		"none":                {"", ""},
		"one":                 {"alone", ""},
		"others":              {"other,client,other", ""},
		"with one of Parley":  {"other,alone", "alone"},
		"with one elsewhere":  {"alone,client", "alone"},
		"twice the exclusive": {"alone,alone", "alone"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var calls []v1alpha1.ToolCall
			for _, name := range named(c.calls) {
				calls = append(calls, v1alpha1.ToolCall{Name: name})
			}
			if got := registry.Conflict(calls); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

func TestSwitchableToolIsOfferedWhenEnabledAndAllowed(t *testing.T) {
	registry := tools.NewRegistry(with{alone, tool{"alone", echo}}, tool{"other", echo})
	for name, c := range map[string]struct {
		spec *v1alpha1.ChatTools
		on   string
		want string
	}{
		"on, all allowed":     {nil, "on", "alone other"},
		"off, all allowed":    {nil, "", "other"},
		"on, another allowed": {only("other"), "on", "other"},
		"on, and named":       {only("alone"), "on", "alone"},
		"on, and denied":      {none(), "on", ""},
		"off, and named":      {only("alone"), "", ""},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{Tools: c.spec, SystemPrompt: c.on}}
			var got []string
			for _, offered := range registry.Suited(chat) {
				got = append(got, offered.Name)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}
