// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/modelserver"
)

// agentRules make the model start a sub-chat with a long question, and wait for its answer.
func agentRules() []modelserver.Rule {
	// The task has the number of the question without its kind.
	task := fmt.Sprintf("%s question {{slice .LastUserText %d}}", long, len(agent)+len(" question "))
	return []modelserver.Rule{
		callRule(agent, 0, "spawn_agent", fmt.Sprintf(`{"type":"general","prompt":%q}`, task)),
		callRule(agent, 1, "wait_agent",
			`{"chat":"{{field "chat" (index .ToolResults 0).Text}}","timeout_seconds":600}`),
	}
}

// task is the question to the sub-chat that an answer needs.
func (q *question) task(chat string) *question {
	return &question{chat: chat, kind: long, name: chat + "-prompt",
		content: fmt.Sprintf("%s question %s-%d", long, q.chat, q.number)}
}

// tasks are the questions to the sub-chats, and what is wrong with these: each is there once.
func (s *state) tasks() (all []*question, problems []string) {
	for _, q := range s.questions {
		if q.kind != agent {
			continue
		}
		found := 0
		for i := range s.chats {
			if c := &s.chats[i]; c.Spec.ParentRef != nil && c.Spec.ParentRef.Name == q.chat {
				if task := q.task(c.Name); c.Spec.Prompt == task.text() {
					all, found = append(all, task), found+1
				}
			}
		}
		if found != 1 {
			problems = append(problems, fmt.Sprintf("message %s has started %d sub-chats, not 1", q.name, found))
		}
	}
	return all, problems
}

// checkReport returns an error if the model did not get the answer of the sub-chat.
func (q *question) checkReport(turn []*v1beta1.ChatMessage) error {
	var result struct{ Report string }
	if err := decodeResult(turn, &result); err != nil {
		return err
	}
	if task := q.task(""); result.Report != task.kind.answer(task.text()) {
		return fmt.Errorf("its sub-chat has reported %q", result.Report)
	}
	return nil
}
