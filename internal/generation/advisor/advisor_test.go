// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package advisor_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/advisor"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

func TestAQuestionIsOneTextOfBoundedLength(t *testing.T) {
	for name, c := range map[string]struct{ input, want, err string }{
		"a question":     {input: `{"question":" What now? "}`, want: "What now?"},
		"as long as may": {input: `{"question":"` + strings.Repeat("é", 2000) + `"}`, want: strings.Repeat("é", 2000)},
		"longer than that": {input: `{"question":"` + strings.Repeat("é", 2001) + `"}`,
			err: "2001 characters, 2000 are the most"},
		"none":        {input: `{}`, err: "question is missing"},
		"a blank one": {input: `{"question":" \n"}`, err: "question is missing"},
		"a number":    {input: `{"question":1}`, err: "must be a text"},
	} {
		got, err := advisor.Question(c.input)
		check.Equal(t, name, []any{c.want, c.err != ""}, []any{got, err != nil})
		check.Contains(t, fmt.Sprint(err), c.err)
	}
}

func TestAResultIsJSONHoweverLongTheAdvice(t *testing.T) {
	for name, c := range map[string]struct {
		result advisor.Result
		want   string
		failed bool
	}{
		"advice": {
			result: advisor.Result{Type: advisor.TypeAdvice, Advice: "Wait.", Model: "strong", RemainingUses: 2},
			want:   `{"type":"advice","advice":"Wait.","advisor_model":"strong","remaining_uses":2}`,
		},
		"the limit": {result: advisor.Result{Type: advisor.TypeLimitReached, Error: "no more"},
			want: `{"type":"limit_reached","error":"no more","remaining_uses":0}`},
		"an error": {
			result: advisor.Result{Type: advisor.TypeError, Error: "broken", RemainingUses: 1},
			want:   `{"type":"error","error":"broken","remaining_uses":1}`, failed: true,
		},
		"much advice": {result: advisor.Result{Type: advisor.TypeAdvice, Advice: strings.Repeat("\"", tools.MaxResultBytes)}},
	} {
		t.Run(name, func(t *testing.T) {
			tool := advisor.Tool{Consult: func(context.Context, tools.Call) advisor.Result { return c.result }}
			out, err := tool.Run(t.Context(), tools.Call{ToolCall: v1beta1.ToolCall{Input: `{}`}})
			if check.Equal(t, "failed", c.failed, err != nil); err != nil {
				out = err.Error()
			}
			check.Equal(t, "result, valid, too long", []any{cmp.Or(c.want, out), true, false},
				[]any{out, json.Valid([]byte(out)), len(out) > tools.MaxResultBytes})
		})
	}
}

func TestWhereNobodyAnswersTheToolSaysSo(t *testing.T) {
	_, err := advisor.Tool{}.Run(t.Context(), tools.Call{ToolCall: v1beta1.ToolCall{Input: `{"question":"What now?"}`}})
	check.Equal(t, "the error", "this chat has no advisor", fmt.Sprint(err))
}

func TestOnlyAdviceOfThisTurnCounts(t *testing.T) {
	message := func(role v1beta1.MessageRole, results ...v1beta1.ToolResult) v1beta1.ChatMessage {
		m := v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: role, Generation: &v1beta1.MessageGeneration{}}}
		for i := range results {
			m.Spec.Parts = append(m.Spec.Parts, v1beta1.MessagePart{Type: v1beta1.PartToolResult, ToolResult: &results[i]})
		}
		return m
	}
	output := func(name, text string) v1beta1.ToolResult { return v1beta1.ToolResult{Name: name, Output: text} }
	advice := output("advisor", `{"type":"advice","advice":"Wait.","remaining_uses":1}`)
	failed := output("advisor", `{"type":"error","error":"x","remaining_uses":1}`)
	failed.IsError = true
	user, reply, advised := message(v1beta1.RoleUser), message(v1beta1.RoleAssistant), message(v1beta1.RoleTool, advice)
	ofClient := message(v1beta1.RoleTool, advice)
	ofClient.Spec.Generation = nil
	type history = []v1beta1.ChatMessage
	for name, c := range map[string]struct {
		history history
		want    int32
	}{
		"nothing": {nil, 0}, "none yet": {history{user, reply}, 0}, "one": {history{user, reply, advised, reply}, 1},
		"two":                {history{user, reply, advised, reply, advised, reply}, 2},
		"an earlier turn's":  {history{user, reply, advised, reply, user, reply}, 0},
		"before a summary":   {history{user, reply, advised, message(v1beta1.RoleSystem), reply}, 1},
		"one that failed":    {history{user, reply, message(v1beta1.RoleTool, failed), reply}, 0},
		"the limit":          {history{user, message(v1beta1.RoleTool, output("advisor", `{"type":"limit_reached"}`))}, 0},
		"another tool's":     {history{user, message(v1beta1.RoleTool, output("look", advice.Output)), reply}, 0},
		"what a client says": {history{user, reply, ofClient, reply}, 0},
		"what is no JSON":    {history{user, message(v1beta1.RoleTool, output("advisor", "advice")), reply}, 0},
	} {
		check.Equal(t, name, c.want, advisor.Used(c.history))
	}
}

func TestOneSwitchBringsToolAndGuidance(t *testing.T) {
	on := &v1beta1.ChatAdvisor{Enabled: new(true)}
	for name, spec := range map[string]v1beta1.ChatSpec{
		"nothing said": {}, "off": {Advisor: &v1beta1.ChatAdvisor{MaxUses: new(int32(2))}}, "on": {Advisor: on},
		"a sub-chat":     {Advisor: on, ParentRef: &v1beta1.ChatReference{Name: "root"}},
		"on, and denied": {Advisor: on, Tools: &v1beta1.ChatTools{Deny: []v1beta1.ToolPattern{"advisor"}}},
	} {
		chat := &v1beta1.Chat{Spec: spec}
		check.Equal(t, name, []bool{name == "on", name == "on"},
			[]bool{advisor.Tool{}.Definition().EnabledFor(chat), len(advisor.Guidance(chat)) > 0})
	}
}

func says(role fantasy.MessageRole, parts ...fantasy.MessagePart) fantasy.Message {
	return fantasy.Message{Role: role, Content: parts}
}

func user(text string) fantasy.Message {
	return says(fantasy.MessageRoleUser, fantasy.TextPart{Text: text})
}

func agent(text string) fantasy.Message {
	return says(fantasy.MessageRoleAssistant, fantasy.TextPart{Text: text})
}

func calls(id, name, input string) fantasy.MessagePart {
	return fantasy.ToolCallPart{ToolCallID: id, ToolName: name, Input: input}
}

func result(id, text string) fantasy.MessagePart {
	return fantasy.ToolResultPart{ToolCallID: id, Output: fantasy.ToolResultOutputContentText{Text: text}}
}

// conversation is what the advisor reads behind its instructions, one "role: text" each, without the question.
func conversation(t *testing.T, prompt []fantasy.Message) []string {
	t.Helper()
	var said []string
	for i, m := range prompt {
		if len(m.Content) != 1 {
			t.Fatalf("message %d has %d parts", i, len(m.Content))
		}
		text := string(m.Role) + ": " + m.Content[0].(fantasy.TextPart).Text
		if i == len(prompt)-1 {
			var ok bool
			if text, ok = strings.CutSuffix(text, "--- The agent asks you, its advisor:\n\nWhat now?"); !ok {
				t.Fatalf("the last message is %q", text)
			}
			if text = strings.TrimSuffix(text, "\n\n"); text == "user: " {
				continue
			}
		}
		if i > 0 {
			said = append(said, text)
		}
	}
	return said
}

func TestAdvisorReadsTheEndOfTheConversation(t *testing.T) {
	const hidden = "user: (The beginning of this conversation is not shown.)"
	many := []fantasy.Message{user("first")}
	var lastOfMany []string
	for i := range 20 {
		many = append(many, agent(fmt.Sprint("a", i)), user(fmt.Sprint("u", i)))
		if i >= 10 {
			lastOfMany = append(lastOfMany, fmt.Sprint("assistant: a", i), fmt.Sprint("user: u", i))
		}
	}
	cases := map[string]struct {
		outer []fantasy.Message
		want  []string
	}{
		"nothing": {nil, nil},
		"texts":   {[]fantasy.Message{user("q"), agent("a"), user("r")}, []string{"user: q", "assistant: a", "user: r"}},
		"neighbours of one role": {
			[]fantasy.Message{user("q"), user("r"), agent("a"), agent("b"), user("s")},
			[]string{"user: q\n\nr", "assistant: a\n\nb", "user: s"},
		},
		"a call and its result": {
			[]fantasy.Message{
				user("q"), says(fantasy.MessageRoleAssistant, fantasy.TextPart{Text: "Let me see."},
					calls("1", "look", `{"at":"x"}`)),
				says(fantasy.MessageRoleTool, result("1", "found")),
			},
			[]string{"user: q", "assistant: Let me see.\n\n[Called tool look with {\"at\":\"x\"}]",
				"user: [Result of tool look: found]"},
		},
		"a call that failed": {
			[]fantasy.Message{
				user("q"), says(fantasy.MessageRoleAssistant, calls("1", "look", `{}`)),
				says(fantasy.MessageRoleTool,
					fantasy.ToolResultPart{ToolCallID: "1", Output: fantasy.ToolResultOutputContentError{Error: errors.New("no x")}}),
			},
			[]string{"user: q", "assistant: [Called tool look with {}]", "user: [Tool look failed: no x]"},
		},
		"a result of no call": {
			[]fantasy.Message{user("q"), says(fantasy.MessageRoleTool, result("9", "stray")), agent("a"), user("r")},
			[]string{"user: q", "assistant: a", "user: r"},
		},
		"reasoning, which is nobody else's": {
			[]fantasy.Message{user("q"), says(fantasy.MessageRoleAssistant, fantasy.ReasoningPart{Text: "hm"}),
				says(fantasy.MessageRoleAssistant, fantasy.ReasoningPart{Text: "hm"}, fantasy.TextPart{Text: "a"})},
			[]string{"user: q", "assistant: a"},
		},
		"a file": {
			[]fantasy.Message{says(fantasy.MessageRoleUser, fantasy.TextPart{Text: "see"},
				fantasy.FilePart{Filename: "a.png", Data: []byte("PIXELS"), MediaType: "image/png"})},
			[]string{"user: see\n\n[A file, not shown: a.png image/png]"},
		},
		"a file that its provider is handed by its URL": {
			[]fantasy.Message{says(fantasy.MessageRoleUser, fantasy.TextPart{Text: "see"}, fantasy.FilePart{
				Filename: "a.png", MediaType: "image/png",
				ProviderOptions: fantasy.ProviderOptions{"parley": &prompt.FileURL{URL: "https://files.example.com/a?sig=1"}},
			})},
			[]string{"user: see\n\n[A file, not shown: a.png image/png]"},
		},
		"not more than 20 messages": {many, append([]string{hidden}, lastOfMany...)},
		"a long one is shortened": {
			[]fantasy.Message{user(strings.Repeat("x", 9000))},
			[]string{"user: " + strings.Repeat("x", 2496) + "\n[... 5256 bytes left out ...]\n" + strings.Repeat("x", 1248)},
		},
		"not more than 12000 bytes, and no result without its call": {
			[]fantasy.Message{
				user("q"), says(fantasy.MessageRoleAssistant, calls("1", "look", `{"at":"`+strings.Repeat("y", 3900)+`"}`)),
				says(fantasy.MessageRoleTool, result("1", strings.Repeat("z", 3900))), agent(strings.Repeat("a", 3900)),
				user(strings.Repeat("u", 3900)),
			},
			[]string{hidden, "assistant: " + strings.Repeat("a", 3900), "user: " + strings.Repeat("u", 3900)},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			prompt := advisor.Handoff(
				append([]fantasy.Message{says(fantasy.MessageRoleSystem, fantasy.TextPart{Text: "Be brief."})}, c.outer...),
				"What now?")
			got := conversation(t, prompt)
			check.Equal(t, "the messages", c.want, got)
			for i, m := range prompt {
				if i > 0 && m.Role == prompt[i-1].Role || i == 0 && m.Role != fantasy.MessageRoleSystem || i == 1 &&
					m.Role != fantasy.MessageRoleUser {
					t.Errorf("message %d has role %s", i, m.Role)
				}
			}
			raw, err := json.Marshal(prompt[1:])
			if err != nil || len(raw) > 12_500 { // The question, and what stands before it, come on top.
				t.Errorf("the conversation has %d bytes, %v", len(raw), err)
			}
		})
	}
}

func TestInstructionsOfTheAgentPrecedeTheAdvisors(t *testing.T) {
	outer := []fantasy.Message{says(fantasy.MessageRoleSystem, fantasy.TextPart{Text: "Be brief."}), user("q")}
	system := advisor.Handoff(outer, "What now?")[0].Content[0].(fantasy.TextPart).Text
	before, after, ok := strings.Cut(system, "Be brief.\n\n")
	check.Equal(t, "found, before, beginning", []any{true, "", true},
		[]any{ok, before, strings.HasPrefix(after, "You are the advisor")})
	alone := advisor.Handoff([]fantasy.Message{user("q")}, "What now?")[0].Content[0].(fantasy.TextPart).Text
	check.Contains(t, alone, "You are the advisor")
}

func TestHandoffIsStableAndLeavesItsPrompt(t *testing.T) {
	outer := []fantasy.Message{user("q"), says(fantasy.MessageRoleAssistant, calls("1", "look", `{}`)),
		says(fantasy.MessageRoleTool, result("1", "x"))}
	before, _ := json.Marshal(outer)
	first, _ := json.Marshal(advisor.Handoff(outer, "What now?"))
	second, _ := json.Marshal(advisor.Handoff(outer, "What now?"))
	after, _ := json.Marshal(outer)
	check.Equal(t, "handoff and prompt", []string{string(second), string(after)}, []string{string(first), string(before)})
}
