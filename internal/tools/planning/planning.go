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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
)

// Tools returns all tools of the package.
func Tools() []tools.Tool { return []tools.Tool{askUserQuestion(), proposePlan()} }

const (
	// maxQuestions bounds the questions of a call, maxOptions the answers that it offers to one.
	maxQuestions, minOptions, maxOptions = 4, 2, 4
	// maxHeader, maxQuestion, maxLabel and maxAbout are characters. Together they fit into v1beta1.MaxInputRequests.
	maxHeader, maxQuestion, maxLabel, maxAbout = 32, 500, 60, 200
)

// isPlanning reports whether the chat is in mode Plan: people are at hand there. Agents in mode Explore ask no one.
func isPlanning(chat *v1beta1.Chat) bool { return chat.EffectiveMode() == v1beta1.ModePlan }

type option struct {
	Label       string `json:"label"`
	Description string `json:"description"`
}

type question struct {
	Header   string   `json:"header"`
	Question string   `json:"question"`
	Options  []option `json:"options"`
}

type answer struct {
	Question string `json:"question" doc:"The question."`
	Answer   string `json:"answer,omitempty" doc:"What people say; missing if they do not say."`
}

type questionResult struct {
	Answers  []answer `json:"answers" doc:"The answers, one for each question."`
	Declined bool     `json:"declined,omitempty" doc:"Whether people gave no answer."`
	Comment  string   `json:"comment,omitempty" doc:"What they say besides."`
}

// askUserQuestion asks people something. The call ends without a result, and is made again with their answer.
func askUserQuestion() tools.Tool {
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
	return tools.New(tools.Definition{
		Name: string(v1beta1.BuiltInAskUserQuestion),
		Description: "Asks people what only they can decide, and waits for their answer. Offer the answers that you would " +
			"expect; they can also say something else. Ask all that you have to know at once.",
		InputSchema: arguments.Object(map[string]any{
			"questions": map[string]any{"type": "array", "minItems": 1, "maxItems": maxQuestions, "items": question,
				"description": "The questions."},
		}, "questions"),
		Traits: tools.Traits{Plan: tools.Free, UsefulTo: isPlanning, Repeatable: true},
		Reference: tools.Reference{
			Offered: "chats whose `spec.mode` is Plan, and those that name it in `spec.tools.allow`", Result: questionResult{},
			Errors: []string{
				fmt.Sprintf("More than %d calls of one reply ask people, or the questions have more than %d KiB together.",
					v1beta1.MaxToolQuestions, v1beta1.MaxInputRequests>>10),
			},
			Limits: []string{
				"A call waits in `status.requiresAction` until a ToolApproval answers it " +
					"([modes.md](../how-to/modes.md#answer-questions)).",
			},
		},
	}, ask)
}

type askArguments struct {
	Questions []question `json:"questions"`
}

// ask asks people, or returns their answer.
func ask(_ context.Context, call tools.Call, args askArguments) (string, error) {
	if call.Answer != nil {
		return encodeAnswer(args.Questions, call.Answer)
	}
	requests, err := form(args.Questions)
	switch {
	case err != nil:
		return "", err
	case !call.Ask(tools.Question{Requests: requests}):
		return "", fmt.Errorf("no one was asked: at most %d calls of a reply ask people, with %d KiB of questions each; ask "+
			"less at once", v1beta1.MaxToolQuestions, v1beta1.MaxInputRequests>>10)
	}
	return "", tools.ErrAsks
}

// field is the name of the answer to question i of a form.
func field(i, of int) string {
	if of == 1 {
		return "answer"
	}
	return fmt.Sprintf("answer%d", i+1)
}

// form is a request for input of the Model Context Protocol. Its choices are examples: people may answer otherwise.
func form(questions []question) (string, error) {
	properties, required := map[string]any{}, make([]string, 0, len(questions))
	for i, q := range questions {
		name := field(i, len(questions))
		properties[name], required = q.property(), append(required, name)
	}
	request := map[string]any{"questions": map[string]any{"method": "elicitation/create", "params": map[string]any{
		"mode": "form", "message": "The model asks:",
		"requestedSchema": map[string]any{"type": "object", "properties": properties, "required": required},
	}}}
	return tools.Encode(request)
}

// property is the schema of the answer to the question.
func (q *question) property() map[string]any {
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
	property := map[string]any{"type": "string", "description": about.String()}
	if q.Header != "" {
		property["title"] = q.Header
	}
	if len(labels) > 0 {
		property["examples"] = labels
	}
	return property
}

// encodeAnswer is the result with the answer to the questions.
func encodeAnswer(questions []question, reply *tools.Answer) (string, error) {
	result := questionResult{Declined: !reply.Given, Comment: reply.Comment}
	var members map[string]any
	if reply.Given && reply.Content != "" && json.Unmarshal([]byte(reply.Content), &members) != nil {
		return "", errors.New("people have answered, but not by a JSON object: " + reply.Content)
	}
	for i, q := range questions {
		result.Answers = append(result.Answers, answer{Question: q.Question, Answer: text(members[field(i, len(questions))])})
	}
	return tools.Encode(result)
}

// text is an answer as text: people may send a number, or a list.
func text(value any) string {
	switch value := value.(type) {
	case nil:
		return ""
	case string:
		return strings.TrimSpace(value)
	}
	encoded, _ := tools.Encode(value) // It was decoded from JSON.
	return encoded
}

type planArguments struct {
	Plan string `json:"plan"`
}

type planResult struct {
	Approved bool   `json:"approved" doc:"true."`
	Note     string `json:"note" doc:"What is next."`
}

// proposePlan has people approve a plan. A call runs after they have approved it.
func proposePlan() tools.Tool {
	return tools.New(tools.Definition{
		Name: string(v1beta1.BuiltInProposePlan),
		Description: "Proposes a plan to people: what you will do, step by step, and what that changes. Call it alone, " +
			"once you know enough. If they approve, you have all your tools and carry it out; if not, you read why.",
		InputSchema: arguments.Object(map[string]any{
			"plan": arguments.Text(1, v1beta1.MaxPlan, "The plan, as Markdown. It must say all that people need to decide."),
		}, "plan"),
		Traits: tools.Traits{Plan: tools.Free, EnabledFor: isPlanning, Exclusive: true, Repeatable: true, ProposesPlan: true},
		Reference: tools.Reference{
			Offered: "chats whose `spec.mode` is Plan, until a plan is approved in the turn", Result: planResult{},
			Errors: []string{
				"People did not approve the plan: the model reads what they say.",
				"It was not called alone.",
			},
			Limits: []string{"A call waits for a ToolApproval, whatever `spec.tools.approval` says."},
		},
	}, func(_ context.Context, _ tools.Call, args planArguments) (string, error) {
		if strings.TrimSpace(args.Plan) == "" {
			return "", errors.New("plan is blank: there is nothing to approve")
		}
		return tools.Encode(planResult{
			Approved: true, Note: "The plan was approved. You have all your tools now: carry it out."})
	})
}
