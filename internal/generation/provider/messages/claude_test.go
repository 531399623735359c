// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/messages"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

// A: adaptive, U: unforced, T: thinks by default, N: never stops.
func TestClaudesAreKnownByTheirNames(t *testing.T) {
	for name, want := range map[string]string{
		"claude-3-5-sonnet-latest":              "",
		"claude-sonnet-4-20250514":              "",
		"us.anthropic.claude-opus-4-6-v1":       "",
		"anthropic.claude-opus-4-7-v1:0":        "A",
		"claude-opus-4-10":                      "A",
		"claude-mythos-preview":                 "A",
		"claude-opus-5":                         "AT",
		"claude-opus-5-20260301":                "AT",
		"claude-sonnet-5":                       "AT",
		"claude-haiku-5-5":                      "AT",
		"claude-fable-5":                        "ATN",
		"Claude-Fable-5.1":                      "AUTN",
		"claude-opus-5-5@20260922":              "AUTN",
		"eu.anthropic.claude-sonnet-5-5-v1:0":   "AUT",
		"claude-opus-6":                         "AUTN",
		"a-model-with-the-protocol-of-claude-5": "",
	} {
		c, is := messages.ClaudeOf(name), ""
		for _, trait := range []struct {
			letter string
			has    bool
		}{{"A", c.Adaptive}, {"U", c.Unforced}, {"T", c.Thinks()}, {"N", c.AlwaysThinks()}} {
			if trait.has {
				is += trait.letter
			}
		}
		check.Equal(t, name, want, is)
	}
}

// What Claude 5 refuses is not sent.
func TestSettingsThatNewClaudesRefuse(t *testing.T) {
	tool := fantasy.FunctionTool{Name: "f", InputSchema: map[string]any{"type": "object"}}
	const adaptive, summarized = `{"type":"adaptive"}`, `{"display":"summarized","type":"adaptive"}`
	for name, c := range map[string]struct {
		model             string
		effort            v1beta1.ReasoningEffort
		budget            int64
		forced            bool
		thinking, options string
		choice, left      string
	}{
		"as it comes":          {"claude-opus-5-5", "", 0, false, summarized, "null", "null", ""},
		"an earlier one":       {"claude-opus-4-6", "", 0, false, "null", "null", "null", ""},
		"a budget":             {"claude-haiku-5-5", "", 2000, false, summarized, "null", "null", ""},
		"an effort":            {"claude-opus-4-8", "High", 0, false, summarized, `{"effort":"high"}`, "null", ""},
		"none":                 {"claude-opus-5", "None", 0, false, `{"type":"disabled"}`, "null", "null", ""},
		"none of Sonnet 5.5":   {"claude-sonnet-5-5", "None", 0, false, `{"type":"between_tools"}`, "null", "null", ""},
		"none of Opus 5.5":     {"claude-opus-5-5", "None", 0, false, "null", `{"effort":"low"}`, "null", "reasoningEffort"},
		"none of Opus 4.8":     {"claude-opus-4-8", "None", 0, false, "null", "null", "null", ""},
		"a forced Opus 5":      {"claude-opus-5", "", 0, true, "null", "null", `{"name":"f","type":"tool"}`, ""},
		"a forced, deep one":   {"claude-opus-5", "Max", 0, true, "null", `{"effort":"max"}`, `{"name":"f","type":"tool"}`, "thinking"},
		"a forced one, none":   {"claude-opus-5", "None", 0, true, `{"type":"disabled"}`, "null", `{"name":"f","type":"tool"}`, ""},
		"a forced Opus 5.5":    {"claude-opus-5-5", "", 0, true, summarized, "null", `{"type":"auto"}`, "toolChoice"},
		"a forced earlier one": {"claude-opus-4-6", "High", 0, true, "null", `{"effort":"high"}`, `{"name":"f","type":"tool"}`, "thinking"},
		"deep, an earlier one": {"claude-opus-4-6", "High", 0, false, adaptive, `{"effort":"high"}`, "null", ""},
	} {
		t.Run(name, func(t *testing.T) {
			spec := providertest.Specs["anthropic"]
			spec.Model = c.model
			settings := wire.Settings{Effort: c.effort}
			if c.budget > 0 {
				settings.Provider.Anthropic = &v1beta1.AnthropicOptions{
					Thinking: &v1beta1.AnthropicThinking{BudgetTokens: c.budget}}
			}
			sent, warnings := sentFields(t, spec, func(call *fantasy.Call) {
				call.ProviderOptions, call.Tools = settings.With(), []fantasy.Tool{tool}
				if c.forced {
					call.ToolChoice = new(fantasy.SpecificToolChoice("f"))
				}
			})
			for field, want := range map[string]string{
				"thinking": c.thinking, "output_config": c.options, "tool_choice": c.choice} {
				got, _ := json.Marshal(sent[field])
				check.Equal(t, field, want, string(got))
			}
			if left := strings.Join(warnings, "; "); !strings.HasPrefix(left, c.left) || (left == "") != (c.left == "") {
				t.Errorf("warnings: %s", left)
			}
		})
	}
}

func TestNewClaudesTakeNoSampling(t *testing.T) {
	for model, want := range map[string]string{"claude-opus-4-6": "0.5 []",
		"claude-opus-4-7": "<nil> [temperature was left out: the model takes no such setting]"} {
		spec := providertest.Specs["anthropic"]
		spec.Model = model
		sent, warnings := sentFields(t, spec, func(call *fantasy.Call) { call.Temperature = new(0.5) })
		check.Equal(t, model, want, fmt.Sprint(sent["temperature"], warnings))
	}
}

// The error is that of the documentation of Claude.
func TestThoughtsBoundToAnotherConversationAreLeftOut(t *testing.T) {
	thought := `{"type":"thinking","thinking":"Hm","signature":"s"}`
	spec := providertest.Specs["anthropic"]
	spec.Model = "claude-opus-5-5"
	first := &providertest.Scripted{Replies: blocks(thought, hi)}
	reply, err := first.Ask(t, spec, nil)
	check.OK(t, err)
	history := []v1beta1.ChatMessage{{Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleAssistant, Parts: reply.Parts}}}
	refusal := providertest.Reply{Status: http.StatusBadRequest, Body: `{"type":"error","error":{"type":` +
		"\"invalid_request_error\",\"message\":\"messages.1.content.0: Invalid `signature` in `thinking` block. " +
		`The block is bound to a different conversation."}}`}
	server := &providertest.Scripted{Replies: append([]providertest.Reply{refusal}, blocks(hi)...)}
	again, err := server.Ask(t, spec, func(call *fantasy.Call) {
		call.Prompt = prompt.Build(prompt.Input{History: history, Dialect: provider.DialectOf(&spec)})
	})
	check.OK(t, err)
	check.Equal(t, "reply", "Hi", *again.Parts[len(again.Parts)-1].Text)
	check.Equal(t, "requests", 2, len(server.Sent))
	check.Contains(t, server.Sent[0], `"signature":"s"`)
	check.Lacks(t, server.Sent[1], "signature")
	check.Contains(t, server.Sent[1], `"text":"Hi"`)
}

// Each later call has the refused thoughts, and newer ones with it.
func TestRefusedThoughtsAreRefusedOnce(t *testing.T) {
	refusal := providertest.Reply{Status: http.StatusBadRequest, Body: `{"type":"error","error":{"type":` +
		`"invalid_request_error","message":"The block is bound to a different conversation."}}`}
	server := &providertest.Scripted{Replies: append([]providertest.Reply{refusal}, blocks(hi)...)}
	spec := providertest.Specs["anthropic"]
	model, err := provider.New(&spec, providertest.Key, &http.Client{Transport: server})
	check.OK(t, err)
	thought := func(signature string) fantasy.Message {
		return fantasy.Message{Role: fantasy.MessageRoleAssistant, Content: []fantasy.MessagePart{
			fantasy.ReasoningPart{Text: "Hm", ProviderOptions: (&wire.State{Signature: signature}).With()},
			fantasy.TextPart{Text: "Hi"}}}
	}
	prompt := fantasy.Prompt{fantasy.NewUserMessage("a"), thought("old"), fantasy.NewUserMessage("b")}
	for range 2 {
		stream, err := model.Stream(t.Context(), fantasy.Call{Prompt: prompt})
		check.OK(t, err)
		for part := range stream {
			check.OK(t, part.Error)
		}
		prompt = append(prompt, thought("new"), fantasy.NewUserMessage("c"))
	}
	check.Equal(t, "requests", 3, len(server.Sent))
	check.Contains(t, server.Sent[0], `"signature":"old"`)
	check.Lacks(t, server.Sent[2], `"signature":"old"`)
	check.Contains(t, server.Sent[2], `"signature":"new"`)
}
