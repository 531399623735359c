// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package advisor_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/advisor"
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
		t.Run(name, func(t *testing.T) {
			got, err := advisor.Question(c.input)
			check.Equal(t, "question, failed", []any{c.want, c.err != ""}, []any{got, err != nil})
			check.Contains(t, fmt.Sprint(err), c.err)
		})
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
			out, err := tool.Run(t.Context(), tools.Call{ToolCall: v1alpha1.ToolCall{Input: `{}`}})
			if (err != nil) != c.failed {
				t.Fatalf("got %q, %v", out, err)
			}
			if err != nil {
				out = err.Error()
			}
			if c.want != "" && out != c.want || !json.Valid([]byte(out)) || len(out) > tools.MaxResultBytes {
				t.Errorf("got %d bytes, %.200s", len(out), out)
			}
		})
	}
}

func TestWhereNobodyAnswersTheToolSaysSo(t *testing.T) {
	if out, err := (advisor.Tool{}).Run(t.Context(), tools.Call{ToolCall: v1alpha1.ToolCall{Input: `{"question":"What now?"}`}}); out != "" ||
		err == nil {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestOnlyAdviceOfThisTurnCounts(t *testing.T) {
	message := func(role v1alpha1.MessageRole, results ...v1alpha1.ToolResult) v1alpha1.ChatMessage {
		m := v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: role, Generation: &v1alpha1.MessageGeneration{}}}
		for i := range results {
			m.Spec.Parts = append(m.Spec.Parts, v1alpha1.MessagePart{Type: v1alpha1.PartToolResult, ToolResult: &results[i]})
		}
		return m
	}
	output := func(name, text string) v1alpha1.ToolResult { return v1alpha1.ToolResult{Name: name, Output: text} }
	advice := output("advisor", `{"type":"advice","advice":"Wait.","remaining_uses":1}`)
	failed := output("advisor", `{"type":"error","error":"x","remaining_uses":1}`)
	failed.IsError = true
	user, reply := message(v1alpha1.RoleUser), message(v1alpha1.RoleAssistant)
	ofClient := message(v1alpha1.RoleTool, advice)
	ofClient.Spec.Generation = nil
	for name, c := range map[string]struct {
		history []v1alpha1.ChatMessage
		want    int32
	}{
		"nothing":  {nil, 0},
		"none yet": {[]v1alpha1.ChatMessage{user, reply}, 0},
		"one":      {[]v1alpha1.ChatMessage{user, reply, message(v1alpha1.RoleTool, advice), reply}, 1},
		"two": {[]v1alpha1.ChatMessage{user, reply, message(v1alpha1.RoleTool, advice), reply,
			message(v1alpha1.RoleTool, advice), reply}, 2},
		"an earlier turn's": {[]v1alpha1.ChatMessage{user, reply, message(v1alpha1.RoleTool, advice), reply, user, reply},
			0},
		"before a summary": {[]v1alpha1.ChatMessage{user, reply, message(v1alpha1.RoleTool, advice),
			message(v1alpha1.RoleSystem), reply}, 1},
		"one that failed": {[]v1alpha1.ChatMessage{user, reply, message(v1alpha1.RoleTool, failed), reply}, 0},
		"the limit": {[]v1alpha1.ChatMessage{user, reply,
			message(v1alpha1.RoleTool, output("advisor", `{"type":"limit_reached"}`)), reply}, 0},
		"another tool's": {[]v1alpha1.ChatMessage{user, reply, message(v1alpha1.RoleTool, output("look", advice.Output)),
			reply}, 0},
		"what a client says": {[]v1alpha1.ChatMessage{user, reply, ofClient, reply}, 0},
		"what is no JSON": {[]v1alpha1.ChatMessage{user, reply, message(v1alpha1.RoleTool, output("advisor", "advice")),
			reply}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			check.Equal(t, "uses", c.want, advisor.Used(c.history))
		})
	}
}

func TestOneSwitchBringsToolAndGuidance(t *testing.T) {
	for name, c := range map[string]struct {
		spec v1alpha1.ChatSpec
		want bool
	}{
		"nothing said": {v1alpha1.ChatSpec{}, false},
		"off":          {v1alpha1.ChatSpec{Advisor: &v1alpha1.ChatAdvisor{MaxUses: new(int32(2))}}, false},
		"on":           {v1alpha1.ChatSpec{Advisor: &v1alpha1.ChatAdvisor{Enabled: new(true)}}, true},
		"a sub-chat": {v1alpha1.ChatSpec{Advisor: &v1alpha1.ChatAdvisor{Enabled: new(true)},
			ParentRef: &v1alpha1.ChatReference{Name: "root"}}, false},
		"on, and denied": {v1alpha1.ChatSpec{Advisor: &v1alpha1.ChatAdvisor{Enabled: new(true)},
			Tools: &v1alpha1.ChatTools{Deny: []v1alpha1.ToolPattern{"advisor"}}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &v1alpha1.Chat{Spec: c.spec}
			tool, told := advisor.Tool{}.Definition().EnabledFor(chat), len(advisor.Guidance(chat)) > 0
			check.Equal(t, "the tool", []any{c.want, c.want}, []any{tool, told})
		})
	}
}
