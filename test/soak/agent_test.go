// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func TestEachTaskHasOneSubChat(t *testing.T) {
	sub := func(name, prompt string) v1beta1.Chat {
		return v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec: v1beta1.ChatSpec{Prompt: prompt, ParentRef: &v1beta1.ChatReference{Name: "c01"}}}
	}
	other, first := sub("c01-x", "long question c01-0"), sub("c01-a", "long question c01-3")
	second := sub("c01-b", "long question c01-3")
	for name, c := range map[string]struct {
		chats    []v1beta1.Chat
		tasks    string
		problems []string
	}{
		"one":  {[]v1beta1.Chat{other, first}, "c01-a-prompt", nil},
		"none": {[]v1beta1.Chat{other}, "", []string{"message q3 has started 0 sub-chats, not 1"}},
		"two": {[]v1beta1.Chat{first, second}, "c01-a-prompt c01-b-prompt",
			[]string{"message q3 has started 2 sub-chats, not 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			s := &state{chats: c.chats, questions: []*question{{chat: "c01", number: 3, kind: agent, name: "q3"}}}
			tasks, problems := s.tasks()
			var names []string
			for _, task := range tasks {
				names = append(names, task.name)
			}
			check.Equal(t, "tasks", c.tasks, strings.Join(names, " "))
			check.Equal(t, "problems", c.problems, problems)
		})
	}
}

func TestReportIsTheAnswerOfTheSubChat(t *testing.T) {
	q := &question{chat: "c01", number: 3, kind: agent}
	for report, says := range map[string]string{
		long.answer("long question c01-3"): "",
		"":                                 `its sub-chat has reported ""`,
	} {
		result := &v1beta1.ChatMessage{}
		result.Spec.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartToolResult,
			ToolResult: &v1beta1.ToolResult{Output: `{"report":"` + report + `"}`}}}
		got := ""
		if err := q.checkResult([]*v1beta1.ChatMessage{{}, result, {}}, nil); err != nil {
			got = err.Error()
		}
		check.Equal(t, "problem", says, got)
	}
}
