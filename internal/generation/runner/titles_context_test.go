// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"testing"

	"parley.dev/parley/api/v1alpha1"
)

// askAnew begins a turn in a context that starts with its message.
func (c *conversation) askAnew(name, text string) {
	c.t.Helper()
	c.say(name, text)
	c.write(func(s *v1alpha1.ChatStatus) {
		n := s.History.Length
		s.Turn = &v1alpha1.TurnStatus{Message: name, Parent: s.History.Head, Index: n}
		s.Internal.Turn.ContentHash = hashOf(text)
		s.History = v1alpha1.HistoryStatus{Version: s.History.Version + 1, Head: name, Length: n + 1, ContextStart: n}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
}

func TestATitleIsOfTheFirstMessageAlsoIfTheModelSeesItNoLonger(t *testing.T) {
	t.Parallel()
	o := &order{release: make(chan struct{})}
	p := titling(t, entitles(titleOfPods), o)
	c := p.newTitledChat("c", nil)
	c.ask("one", longQuestion)
	c.accept(c.result())
	close(o.release)
	<-o.read
	c.askAnew("two", "And then?")
	m := c.result()
	c.wantTitle(m, "Stuck pods", v1alpha1.TitleFromModel, true)

	untitled := p.newChat("untitled", nil)
	untitled.ask("three", longQuestion)
	untitled.commit(untitled.result(), "")
	untitled.config = "titled"
	untitled.askAnew("four", "And then?")
	untitled.wantTitle(untitled.result(), "", "", false)
	if n := len(p.titleRequests()); n != 1 {
		t.Errorf("%d titles were asked for", n)
	}
}
