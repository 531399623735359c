// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package planning has the tools with which a model asks people and proposes plans to them.
package planning

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// Tools are all of them.
func Tools() []tools.Tool { return []tools.Tool{askUserQuestion{}, proposePlan{}} }

const (
	// maxQuestions is how many questions a call asks, maxOptions how many answers it offers to one.
	maxQuestions, minOptions, maxOptions = 4, 2, 4
	// maxHeader, maxQuestion, maxLabel and maxAbout are characters. Together they fit into v1alpha1.MaxInputRequests.
	maxHeader, maxQuestion, maxLabel, maxAbout = 32, 500, 60, 200
)

// askUserQuestion asks people something. The call ends without a result, and is made again with their answer.
type askUserQuestion struct{}

// plans reports whether the chat is in mode Plan: there, people are at hand. No one is asked in mode Explore, where
// agents look for others.
func plans(chat *v1alpha1.Chat) bool { return chat.ModeInForce() == v1alpha1.ModePlan }

type option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

type question struct {
	Header   string   `json:"header"`
	Question string   `json:"question"`
	Options  []option `json:"options"`
}

type answered struct {
	Question string `json:"question" doc:"The question."`
	Answer   string `json:"answer,omitempty" doc:"What people say; missing if they do not say."`
}

type questionResult struct {
	Answers  []answered `json:"answers" doc:"The answers, one for each question."`
	Declined bool       `json:"declined,omitempty" doc:"Whether people gave no answer."`
	Comment  string     `json:"comment,omitempty" doc:"What they say besides."`
}

func (askUserQuestion) Definition() tools.Definition {
	option := arguments.Object(map[string]any{
		"label":       arguments.Text(1, maxLabel, "The answer, in a few words."),
		"description": arguments.Text(1, maxAbout, "What follows from it."),
	}, "label")
	question := arguments.Object(map[string]any{
		"header":   arguments.Text(1, maxHeader, "What it is about, in a word or two."),
		"question": arguments.Text(1, maxQuestion, "The question."),
		"options": map[string]any{"type": "array", "minItems": minOptions, "maxItems": maxOptions, "items": option,
			"description": "Answers that people can choose from."},
	}, "question")
	return tools.Definition{
		Name: string(v1alpha1.BuiltInAskUserQuestion),
		Description: "Asks people what only they can decide, and waits for their answer. Offer the answers that you would " +
			"expect; they can also say something else. Ask all that you have to know at once.",
		InputSchema: arguments.Object(map[string]any{
			"questions": map[string]any{"type": "array", "minItems": 1, "maxItems": maxQuestions, "items": question,
				"description": "The questions."},
		}, "questions"),
		Traits: tools.Traits{Plan: tools.Free, UsefulTo: plans, Repeatable: true},
		Reference: tools.Reference{
			Offered: "chats whose `spec.mode` is Plan, and those that name it in `spec.tools.allow`", Result: questionResult{},
			Errors: []string{
				fmt.Sprintf("More than %d calls of one reply ask people, or the questions have more than %d KiB together.",
					v1alpha1.MaxToolQuestions, v1alpha1.MaxInputRequests>>10),
			},
			Limits: []string{
				"A call waits in `status.requiresAction` until a ToolApproval answers it ([modes.md](modes.md#answer-questions)).",
			},
		},
	}
}

// Run asks, or tells the answer.
func (t askUserQuestion) Run(_ context.Context, call tools.Call) (string, error) {
	var given struct {
		Questions []question `json:"questions"`
	}
	if err := arguments.Decode(t.Definition().InputSchema, call.Input, &given); err != nil {
		return "", err
	}
	if call.Answer != nil {
		return told(given.Questions, call.Answer)
	}
	requests, err := form(given.Questions)
	switch {
	case err != nil:
		return "", err
	case !call.Ask(tools.Question{Requests: requests}):
		return "", fmt.Errorf("no one was asked: at most %d calls of a reply ask people, with %d KiB of questions each; ask "+
			"less at once", v1alpha1.MaxToolQuestions, v1alpha1.MaxInputRequests>>10)
	}
	return "", tools.ErrAsks
}

// field is the member of the answer that is for the question of that number.
func field(i, of int) string {
	if of == 1 {
		return "answer"
	}
	return fmt.Sprintf("answer%d", i+1)
}

// form is a request for input of the Model Context Protocol. Its choices are proposals: people may say something else.
func form(questions []question) (string, error) {
	properties, required := map[string]any{}, make([]string, 0, len(questions))
	for i, q := range questions {
		name := field(i, len(questions))
		properties[name], required = q.member(), append(required, name)
	}
	request := map[string]any{"questions": map[string]any{"method": "elicitation/create", "params": map[string]any{
		"mode": "form", "message": "The model asks:",
		"requestedSchema": map[string]any{"type": "object", "properties": properties, "required": required},
	}}}
	raw, err := json.Marshal(request)
	if err != nil {
		return "", fmt.Errorf("writing the questions: %w", err)
	}
	return string(raw), nil
}

// member is the part of the form for the question.
func (q *question) member() map[string]any {
	var about strings.Builder
	about.WriteString(q.Question)
	labels := make([]string, len(q.Options))
	for i, o := range q.Options {
		labels[i] = o.Label
		about.WriteString("\n- " + o.Label)
		if o.Description != "" {
			about.WriteString(": " + o.Description)
		}
	}
	member := map[string]any{"type": "string", "description": about.String()}
	if q.Header != "" {
		member["title"] = q.Header
	}
	if len(labels) > 0 {
		member["examples"] = labels
	}
	return member
}

// told is what the model reads of the answer.
func told(questions []question, given *tools.Answer) (string, error) {
	result := questionResult{Declined: !given.Given, Comment: given.Comment}
	var said map[string]any
	if given.Given && given.Content != "" && json.Unmarshal([]byte(given.Content), &said) != nil {
		return "", errors.New("people have answered, but not by a JSON object: " + given.Content)
	}
	for i, q := range questions {
		result.Answers = append(result.Answers, answered{Question: q.Question, Answer: text(said[field(i, len(questions))])})
	}
	return tools.Encode(result)
}

// text is the answer in words: people may give a number, or several texts.
func text(said any) string {
	switch said := said.(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(said)
	}
	raw, err := json.Marshal(said)
	if err != nil {
		return ""
	}
	return string(raw)
}
