// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package planning_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/planning"
	"parley.dev/parley/test/kit/check"
)

const which = `{"questions":[{"header":"Store","question":"Which store?","options":[{"label":"Postgres",` +
	`"description":"A service."},{"label":"SQLite"}]}]}`

// run runs a call of the chat that plans. asked is the question that it asks.
func run(t *testing.T, tool, input string, room bool, answer *tools.Answer) (
	asked tools.Question, output string, err error,
) {
	t.Helper()
	chat := &v1beta1.Chat{}
	chat.Spec.Mode = v1beta1.ModePlan
	for _, one := range planning.Tools() {
		if one.Definition().Name == tool {
			output, err = one.Run(context.Background(), tools.Call{
				ToolCall: v1beta1.ToolCall{ID: "1", Input: input}, Chat: chat, Answer: answer,
				Ask: func(q tools.Question) bool {
					asked = q
					return room
				}})
		}
	}
	return asked, output, err
}

func TestQuestionsAreARequestForInput(t *testing.T) {
	asked, _, err := run(t, "ask_user_question", which, true, nil)
	if !errors.Is(err, tools.ErrAsks) {
		t.Fatal(err)
	}
	want := `{"questions":{"method":"elicitation/create","params":{"message":"The model asks:","mode":"form",` +
		`"requestedSchema":{"properties":{"answer":{"description":"Which store?\n- Postgres: A service.\n- SQLite",` +
		`"examples":["Postgres","SQLite"],"title":"Store","type":"string"}},"required":["answer"],"type":"object"}}}}`
	check.Equal(t, "requests", want, asked.Requests)
}

func TestTheLongestQuestionsFit(t *testing.T) {
	option := `{"label":"` + strings.Repeat("l", 60) + `","description":"` + strings.Repeat("d", 200) + `"}`
	question := `{"header":"` + strings.Repeat("h", 32) + `","question":"` + strings.Repeat("q", 500) + `","options":[` +
		strings.Repeat(option+",", 3) + option + `]}`
	asked, _, err := run(t, "ask_user_question", `{"questions":[`+strings.Repeat(question+",", 3)+question+`]}`, true, nil)
	if !errors.Is(err, tools.ErrAsks) || len(asked.Requests) > v1beta1.MaxInputRequests {
		t.Errorf("%v, with %d bytes", err, len(asked.Requests))
	}
}

func TestAnswersOfPeopleAreTheResult(t *testing.T) {
	two := `{"questions":[{"question":"Which?"},{"question":"When?"}]}`
	for name, c := range map[string]struct {
		input  string
		answer tools.Answer
		want   string
	}{
		"an answer": {which, tools.Answer{Given: true, Content: `{"answer":" Postgres "}`},
			`{"answers":[{"question":"Which store?","answer":"Postgres"}]}`},
		"no text": {which, tools.Answer{Given: true, Content: `{"answer":["SQLite",2]}`},
			`{"answers":[{"question":"Which store?","answer":"[\"SQLite\",2]"}]}`},
		"one of two": {two, tools.Answer{Given: true, Content: `{"answer2":"now"}`},
			`{"answers":[{"question":"Which?"},{"question":"When?","answer":"now"}]}`},
		"none": {two, tools.Answer{Comment: "Decide yourself."},
			`{"answers":[{"question":"Which?"},{"question":"When?"}],"declined":true,"comment":"Decide yourself."}`},
	} {
		t.Run(name, func(t *testing.T) {
			_, got, err := run(t, "ask_user_question", c.input, false, &c.answer)
			check.OK(t, err)
			check.Equal(t, "result", c.want, got)
		})
	}
}

func TestInvalidQuestionOrPlanReturnsReason(t *testing.T) {
	for name, c := range map[string]struct {
		tool, input string
		answer      *tools.Answer
		want        string
	}{
		"no question":              {"ask_user_question", `{"questions":[]}`, nil, "questions"},
		"one option":               {"ask_user_question", `{"questions":[{"question":"x","options":[{"label":"y"}]}]}`, nil, "options"},
		"no room":                  {"ask_user_question", which, nil, "no one was asked"},
		"an answer that is cut":    {"ask_user_question", which, &tools.Answer{Given: true, Content: `{"answer":}`}, `{"answer":}`},
		"no plan":                  {"propose_plan", `{}`, nil, "plan"},
		"a plan that says nothing": {"propose_plan", `{"plan":" \n"}`, nil, "plan is blank"},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := run(t, c.tool, c.input, false, c.answer)
			check.Contains(t, fmt.Sprint(err), c.want)
		})
	}
}

func TestApprovedPlanReturnsNextStep(t *testing.T) {
	_, got, err := run(t, "propose_plan", `{"plan":"1. Scale it."}`, false, nil)
	check.OK(t, err)
	check.Contains(t, got, `"approved":true`)
}

func TestPlanningToolsAreOfferedByModeOrName(t *testing.T) {
	registry := tools.NewRegistry(planning.Tools()...)
	for name, c := range map[string]struct {
		mode     v1beta1.ChatMode
		approved bool
		allow    []v1beta1.ToolPattern
		want     string
	}{
		"no mode":            {"", false, nil, ""},
		"named":              {"", false, []v1beta1.ToolPattern{"ask_user_question", "propose_plan"}, "ask_user_question "},
		"planning":           {v1beta1.ModePlan, false, nil, "ask_user_question propose_plan "},
		"carrying it out":    {v1beta1.ModePlan, true, nil, ""},
		"exploring":          {v1beta1.ModeExplore, false, nil, ""},
		"exploring, named":   {v1beta1.ModeExplore, false, []v1beta1.ToolPattern{"ask_user_question"}, ""},
		"planning, not this": {v1beta1.ModePlan, false, []v1beta1.ToolPattern{"propose_plan"}, "propose_plan "},
	} {
		chat := &v1beta1.Chat{}
		chat.Spec.Mode, chat.Status.Turn = c.mode, &v1beta1.TurnStatus{PlanApproved: c.approved}
		chat.Spec.Tools = &v1beta1.ChatTools{Allow: c.allow}
		names := ""
		for _, tool := range registry.Suited(registry.InMode(chat)) {
			names += tool.Name + " "
		}
		check.Equal(t, name, c.want, names)
	}
}
