// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
)

// maxPods is how many generation pods a run may leave behind. A crash between the creation of a pod and the status that
// says so leaves one over, and so does a pod that a corrected key must be newer than.
const maxPods = 4

// broken lists what does not hold of what a run has left behind.
func broken(s *snapshot, course []moment) []string {
	var out []string
	chain, err := s.chain()
	if err != nil {
		out = append(out, fmt.Sprintf("the history is not whole: %v", err))
	}
	for _, name := range s.strays(chain) {
		out = append(out, "a generated message is left over: "+name)
	}
	out = append(out, brokenMessages(s, chain)...)
	out = append(out, brokenUsage(s, chain)...)
	out = append(out, brokenCourse(course)...)
	if s.sub != nil {
		out = append(out, broken(s.sub, nil)...)
	}
	if n := len(s.pods); n > maxPods {
		out = append(out, fmt.Sprintf("%d generation pods were created", n))
	}
	if s.chat != nil && s.chat.Status.ObservedGeneration != s.chat.Generation {
		out = append(out, "the chat's newest spec was not observed")
	}
	return out
}

// brokenMessages holds that each User message that says it is part of the history is there, once, and the others not.
func brokenMessages(s *snapshot, chain []history.Node) []string {
	var out []string
	for i := range s.messages {
		m := &s.messages[i]
		if m.Spec.Generation != nil {
			continue
		}
		times := 0
		for _, n := range chain {
			if n.Name == m.Name {
				times++
			}
		}
		switch committed := m.Status.State == v1beta1.MessageCommitted; {
		case committed && times != 1:
			out = append(out, fmt.Sprintf("message %s is committed, and is in the history %d times", m.Name, times))
		case !committed && times != 0:
			out = append(out, fmt.Sprintf("message %s is %s, and is in the history", m.Name, m.Status.State))
		case committed && ready(m.Status.Conditions).Status == metav1.ConditionTrue && m.Status.StoppedBy == "" &&
			!answered(s, chain, m.Name):
			out = append(out, fmt.Sprintf("message %s says that it is answered, and is not", m.Name))
		}
	}
	return out
}

// answered reports whether a reply follows the message, before the next question.
func answered(s *snapshot, chain []history.Node, name string) bool {
	at := slices.IndexFunc(chain, func(n history.Node) bool { return n.Name == name })
	return at >= 0 && at+1 < len(chain) && s.message(chain[at+1].Name).Spec.Role == v1beta1.RoleAssistant
}

// brokenUsage holds that no step was committed without being added to the chat's sums. That none was added twice shows
// in the end state; what has been cut off since was paid for, too.
func brokenUsage(s *snapshot, chain []history.Node) []string {
	if s.chat == nil {
		return nil
	}
	var sum v1beta1.TokenUsage
	for _, n := range chain {
		if g := s.message(n.Name).Spec.Generation; g != nil && g.Usage != nil {
			sum = sum.Add(*g.Usage)
		}
	}
	if got := s.chat.Status.Usage; got.TotalTokens < sum.TotalTokens {
		return []string{fmt.Sprintf("the chat's usage is %+v, that of its messages %+v", got, sum)}
	}
	return nil
}

// brokenCourse holds that no chat ever went back: its version only grows, each version is one history, and attempts are
// counted up within it.
func brokenCourse(course []moment) []string {
	var out []string
	last := map[string]moment{}
	for _, now := range course {
		before, known := last[string(now.chat)]
		last[string(now.chat)] = now
		if !known {
			continue
		}
		switch {
		case now.version < before.version:
			out = append(out, fmt.Sprintf("the history went back from version %d to %d", before.version, now.version))
		case now.version == before.version && (now.head != before.head || now.length != before.length):
			out = append(out, fmt.Sprintf("version %d is both of %s and of %s", now.version, before.head, now.head))
		case now.version == before.version && now.attempt != 0 && now.attempt < before.attempt:
			out = append(out, fmt.Sprintf("attempt %d came after attempt %d of version %d", now.attempt, before.attempt,
				now.version))
		}
	}
	return out
}
