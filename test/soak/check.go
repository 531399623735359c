// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
)

// broken lists what does not hold of the end.
func (s *state) broken() []string {
	tasks, out := s.tasks()
	asked := map[string][]*question{}
	for _, q := range append(tasks, s.questions...) {
		asked[q.chat] = append(asked[q.chat], q)
	}
	for i := range s.chats {
		if c := &s.chats[i]; c.Status.Phase != v1beta1.ChatWaiting {
			out = append(out, fmt.Sprintf("chat %s is %s, %s", c.Name, c.Status.Phase, readyOf(c.Status.Conditions)))
		}
		chain, err := s.walk(&s.chats[i])
		if err != nil {
			out = append(out, fmt.Sprintf("the history of chat %s is not whole: %v", s.chats[i].Name, err))
			continue
		}
		out = append(out, s.brokenTurns(chain, asked[s.chats[i].Name])...)
		delete(asked, s.chats[i].Name)
	}
	for chat, questions := range asked {
		if s.find(chat) == nil {
			out = append(out, fmt.Sprintf("chat %s with %d questions does not exist", chat, len(questions)))
		}
	}
	return append(out, s.brokenCalls()...)
}

func (s *state) find(chat string) *v1beta1.Chat {
	for i := range s.chats {
		if s.chats[i].Name == chat {
			return &s.chats[i]
		}
	}
	return nil
}

// walk is the messages of a chat's history from its head to index 0, oldest first. It goes by what generated messages
// say.
func (s *state) walk(chat *v1beta1.Chat) ([]*v1beta1.ChatMessage, error) {
	byName := map[string]*v1beta1.ChatMessage{}
	for i := range s.messages {
		if s.messages[i].Spec.ChatRef.Name == chat.Name {
			byName[s.messages[i].Name] = &s.messages[i]
		}
	}
	nodes, err := history.Walk(history.Ref{Head: chat.Status.History.Head, Length: chat.Status.History.Length},
		func(name string) (history.Node, bool) {
			m := byName[name]
			if m == nil {
				return history.Node{}, false
			}
			return history.NodeOf(m), true
		}, nil)
	if err != nil {
		return nil, fmt.Errorf("walking from %s: %w", chat.Status.History.Head, err)
	}
	chain := make([]*v1beta1.ChatMessage, len(nodes))
	for i, n := range nodes {
		chain[i] = byName[n.Name]
	}
	return chain, nil
}

// chain is the names of a chat's messages; none if its history is not whole.
func (s *state) chain(name string) []string {
	chat := s.find(name)
	if chat == nil {
		return nil
	}
	chain, err := s.walk(chat)
	if err != nil {
		return nil
	}
	names := make([]string, len(chain))
	for i, m := range chain {
		names[i] = m.Name
	}
	return names
}

// brokenTurns holds that the chain is exactly the questions in their order, each followed by its own answer.
func (s *state) brokenTurns(chain []*v1beta1.ChatMessage, questions []*question) []string {
	var out []string
	byName := map[string]*question{}
	for _, q := range questions {
		byName[q.name] = q
	}
	next := 0
	for len(chain) > 0 {
		m := chain[0]
		end := slices.IndexFunc(chain[1:], func(m *v1beta1.ChatMessage) bool { return m.Spec.Generation == nil }) + 1
		if end == 0 {
			end = len(chain)
		}
		turn := chain[1:end]
		chain = chain[end:]
		q := byName[m.Name]
		if q == nil {
			out = append(out, fmt.Sprintf("message %s is in the history a second time, or nobody asked it", m.Name))
			continue
		}
		delete(byName, m.Name)
		if q.number != next {
			out = append(out, fmt.Sprintf("message %s is answered as number %d", m.Name, next))
		}
		next++
		err := answers(q, m, turn)
		if err == nil {
			err = q.checkResult(turn, questions)
		}
		if err != nil {
			out = append(out, fmt.Sprintf("message %s: %v", m.Name, err))
		}
	}
	for name := range byName {
		out = append(out, fmt.Sprintf("message %s is not in the history", name))
	}
	return out
}

// answers says why the turn is not the answer to the question, or nil.
func answers(q *question, m *v1beta1.ChatMessage, turn []*v1beta1.ChatMessage) error {
	ready := meta.FindStatusCondition(m.Status.Conditions, v1beta1.ConditionReady)
	switch {
	case m.Spec.Content != q.text():
		return fmt.Errorf("it says %q, not %q", m.Spec.Content, q.text())
	case m.Status.State != v1beta1.MessageCommitted:
		return fmt.Errorf("its state is %s", m.Status.State)
	case ready == nil || ready.Status != "True" || v1beta1.ReasonOf(ready) != v1beta1.ReasonAnswered:
		return errors.New("its condition is " + readyOf(m.Status.Conditions))
	case len(turn) != q.kind.steps():
		return fmt.Errorf("%d messages answer it, not %d", len(turn), q.kind.steps())
	}
	for i, step := range turn {
		role := v1beta1.RoleAssistant
		if i%2 == 1 {
			role = v1beta1.RoleTool
		}
		if g := step.Spec.Generation; step.Spec.Role != role || g.Outcome != v1beta1.OutcomeCompleted {
			return fmt.Errorf("step %s is of %s, %s", step.Name, step.Spec.Role, g.Outcome)
		}
	}
	last := turn[len(turn)-1]
	if got := text(last.Spec.Content, last.Spec.Parts); got != q.kind.answer(q.text()) {
		return fmt.Errorf("%s answers it with %q", last.Name, got)
	}
	return nil
}

// brokenCalls holds that the model refused nothing, and was asked at most once for each step and each lost attempt.
func (s *state) brokenCalls() []string {
	var out []string
	for _, c := range s.calls {
		// A call whose caller was killed before the model said anything has no status.
		if c.Status != 200 && (c.Status != 0 || !c.Aborted) {
			out = append(out, fmt.Sprintf("the model refused a request with %d, at %s", c.Status,
				c.Arrived.UTC().Format("15:04:05")))
		}
	}
	if needed, lost := s.cost(); len(s.calls) > needed+lost {
		out = append(out, fmt.Sprintf("the model was called %d times, for %d steps and %d lost attempts", len(s.calls),
			needed, lost))
	} else if len(s.calls) < needed {
		out = append(out, fmt.Sprintf("the model was called %d times, and there are %d replies", len(s.calls), needed))
	}
	return out
}

// cost is how many calls of the model the histories needed, and how many attempts were lost on the way: those that came
// before the one that succeeded.
func (s *state) cost() (needed, lost int) {
	for i := range s.messages {
		g := s.messages[i].Spec.Generation
		if g == nil || g.Outcome != v1beta1.OutcomeCompleted {
			continue
		}
		if s.messages[i].Spec.Role == v1beta1.RoleAssistant {
			needed++
		}
		lost += int(g.Attempt) - 1
	}
	return needed, lost
}
