// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package advisor lets the model of a chat ask another model for advice: the tool, what the other model is told, and
// what comes back. It calls nobody itself.
//
// The invariants that it keeps: what the advisor is told is a pure function of the prompt that the asking model had, of
// bounded size, and names no tool; how often it was asked is counted in the history alone, so that a pod that dies
// changes nothing.
package advisor

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/approval/toolpolicy"
	"parley.dev/parley/internal/tools"
)

// MaxQuestionRunes is the greatest length of a question.
const MaxQuestionRunes = 2000

// Tool is what the model calls.
type Tool struct {
	// Consult answers calls; nil: nobody does.
	Consult Consult
}

// Definition implements tools.Tool.
func (Tool) Definition() tools.Definition {
	return tools.Definition{
		Name: v1alpha1.ToolAdvisor,
		Description: "Asks another model for advice on one question and returns its answer. It sees the instructions of " +
			"this chat and the end of this conversation, and has no tools. Call it alone: with other calls in the same reply, " +
			"none of them is run.",
		InputSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"question": map[string]any{
					"type": "string", "minLength": 1, "maxLength": MaxQuestionRunes,
					"description": "What to decide or to check, with what you have found out so far and which ways you see.",
				},
			},
			"required": []string{"question"},
		},
		// An advice is worth nothing to calls that are made at the same time. The timeout of its provider ends a silent call.
		Traits: tools.Traits{EnabledFor: on, Exclusive: true, OwnsTimeout: true},
		Reference: tools.Reference{
			Offered: "chats whose `spec.advisor` is enabled, and that are no sub-chats ([advisor.md](advisor.md))",
			Result:  Result{},
			Errors: []string{
				"The question is missing or too long, or the advisor gave no answer: type is error. Then the call counts as " +
					"failed.",
				"The turn has had all its advice: type is limit_reached.",
				"The reply called other tools besides: none of its calls is run.",
			},
			Limits: []string{"`spec.advisor.maxUses` pieces of advice in a turn."},
		},
	}
}

// on reports whether the chat may ask for advice.
func on(chat *v1alpha1.Chat) bool {
	return chat.Spec.Advisor.On() && chat.Spec.ParentRef == nil &&
		toolpolicy.Allows(chat.Spec.Tools, v1alpha1.ToolAdvisor)
}

// Run asks and returns the Result as JSON; as an error if there is no advice because something failed.
func (t Tool) Run(ctx context.Context, call tools.Call) (string, error) {
	if t.Consult == nil {
		return "", errors.New("this chat has no advisor")
	}
	result := t.Consult(ctx, call)
	out, err := result.encode()
	if err == nil && result.Type == TypeError {
		return "", errors.New(out)
	}
	return out, err
}

// Consult answers a call of Tool.
type Consult func(ctx context.Context, call tools.Call) Result

// Question is the question of a call. The error tells the model what is wrong with it.
func Question(input string) (string, error) {
	var arguments struct {
		Question string `json:"question"`
	}
	if err := json.Unmarshal([]byte(input), &arguments); err != nil {
		return "", errors.New("the argument question must be a text")
	}
	question := strings.TrimSpace(arguments.Question)
	switch n := utf8.RuneCountInString(question); {
	case n == 0:
		return "", errors.New("the argument question is missing: ask one question")
	case n > MaxQuestionRunes:
		return "", fmt.Errorf("the question has %d characters, %d are the most: ask a shorter one", n, MaxQuestionRunes)
	}
	return question, nil
}
