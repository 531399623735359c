// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/modelserver"
)

func interrupt(s *v1alpha1.ChatStatus) { s.Phase = v1alpha1.ChatInterrupting }

func TestAnInterruptedAttemptHandsOverWhatItHas(t *testing.T) {
	t.Parallel()
	c := hanging(t, nil)
	c.write(interrupt)
	m := c.result()
	if g := m.Spec.Generation; g.Outcome != v1alpha1.OutcomeInterrupted || g.Preview != "Well" {
		t.Errorf("got %+v", g)
	}
	if len(m.Spec.Parts) != 1 || *m.Spec.Parts[0].Text != "Well" {
		t.Errorf("parts are %+v", m.Spec.Parts)
	}
	c.aborted()
}

func TestAnAttemptThatIsInterruptedBeforeItBeginsCallsNobody(t *testing.T) {
	t.Parallel()
	p := startPod(t, hangs(), nil)
	c := p.newChat("early", nil)
	c.say("early-u", "hello")
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: "early-u"}
		s.History = v1alpha1.HistoryStatus{Version: 1, Head: "early-u", Length: 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
		interrupt(s)
	})
	if m := c.result(); m.Spec.Generation.Outcome != v1alpha1.OutcomeInterrupted || len(m.Spec.Parts) != 0 {
		t.Errorf("got %+v", m.Spec)
	}
	if got := p.models.Requests(); len(got) != 0 {
		t.Errorf("%d requests were made", len(got))
	}
}

func TestAnEditedMessageIsReadAnew(t *testing.T) {
	t.Parallel()
	p := startPod(t,
		modelserver.Script{
			Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Fine.")}}}}}, nil)
	c := p.newChat("edited", nil)
	c.ask("edited-u", "the old words")
	c.result()
	m := c.message("edited-u")
	m.Spec.Content = "the new words"
	if err := cluster.Client.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn.HistoryVersion = 2
		s.Internal.Turn.ContentHash = hashOf("the new words")
		s.History.Version = 2
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
	c.result()
	requests := p.models.Requests()
	if body := string(requests[len(requests)-1].Body); !strings.Contains(body, "the new words") ||
		strings.Contains(body, "the old words") {
		t.Errorf("the model was asked %s", body)
	}
}

func TestTheModelSeesOnlyTheContext(t *testing.T) {
	t.Parallel()
	p := startPod(t,
		modelserver.Script{
			Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Fine.")}}}}}, nil)
	c := p.newChat("cleared", nil)
	c.ask("cleared-1", "the first words")
	c.commit(c.result(), "")
	c.say("cleared-2", "the second words")
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: "cleared-2", Parent: s.History.Head, Index: 2}
		s.Internal.Turn.ContentHash = hashOf("the second words")
		s.History = v1alpha1.HistoryStatus{Version: 3, Head: "cleared-2", Length: 3, ContextStart: 2}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
	c.result()
	requests := p.models.Requests()
	if body := string(requests[len(requests)-1].Body); !strings.Contains(body, "the second words") ||
		strings.Contains(body, "the first words") {
		t.Errorf("the model was asked %s", body)
	}
}
