// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/test/modelserver"
)

// summarises is a model that answers every request for a summary with these steps, and everything else with "Fine.".
func summarises(steps ...modelserver.Step) modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "Write a summary"}, Reply: modelserver.Reply{Steps: steps}},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Fine.")},
			Usage: &modelserver.Usage{Input: 700, Cached: 100, Output: 5}}},
	}}
}

// lastBody is the newest request that the model got.
func (p *pod) lastBody() string {
	requests := p.models.Requests()
	return string(requests[len(requests)-1].Body)
}

// compact tells the pod to compact what was said so far.
func (c *conversation) compact(source v1alpha1.CompactionSource) *v1alpha1.ChatMessage {
	c.t.Helper()
	c.write(func(s *v1alpha1.ChatStatus) {
		s.History.Version++
		s.Internal.Compaction = source
		s.Generation = c.assignment(v1alpha1.ActionCompact, 1)
	})
	return c.result()
}

// goOn lets the model answer after the summary.
func (c *conversation) goOn(summary *v1alpha1.ChatMessage) *v1alpha1.ChatMessage {
	c.t.Helper()
	c.write(func(s *v1alpha1.ChatStatus) {
		s.History.Version++
		s.History.Head, s.History.Length = summary.Name, s.History.Length+1
		s.History.ContextStart = summary.Spec.Generation.Compaction.ContextStart
		s.Internal.Compaction = ""
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
	return c.result()
}

func TestASummaryTakesThePlaceOfWhatWasSaid(t *testing.T) {
	t.Parallel()
	p := startPod(t, summarises(modelserver.Think("hm"), modelserver.Say("They spoke ", "about apples.")), nil)
	c := p.newChat("long", func(s *v1alpha1.ChatSpec) { s.SystemPrompt = "Be brief." })
	c.ask("long-1", "tell me about apples")
	reply := c.result()
	if got := reply.Spec.Generation.Context; got == nil || got.Tokens != 700 || got.Replies != 1 || got.Compacted {
		t.Errorf("the context of the reply is %+v", got)
	}
	c.commit(reply, "")
	c.ask("long-2", "and pears")
	summary := c.compact(v1alpha1.CompactionManual)

	if m := summary.Spec; m.Role != v1alpha1.RoleSystem || m.Visibility != v1alpha1.VisibleToModel || len(m.Parts) != 1 ||
		*m.Parts[0].Text != "They spoke about apples." {
		t.Errorf("the summary is %+v", m)
	}
	if got, want := *summary.Spec.Generation.Compaction,
		(v1alpha1.CompactionAccount{Source: v1alpha1.CompactionManual, Messages: 2, ContextStart: 2}); got != want {
		t.Errorf("the account is %+v", got)
	}
	for _, text := range []string{"Be brief.", "tell me about apples", "Fine.", "Write a summary"} {
		if !strings.Contains(p.lastBody(), text) {
			t.Errorf("what was to be summarised lacks %q", text)
		}
	}
	if strings.Contains(p.lastBody(), "and pears") {
		t.Error("a message that nobody had answered was summarised")
	}
	if text, _ := p.relay.heard(c.fence()); text != "hmThey spoke about apples." {
		t.Errorf("those who watch saw %q", text)
	}
	c.eventually("the episode is closed", func() bool { return p.relay.isClosed(c.fence()) })

	reply = c.goOn(summary)
	if got := reply.Spec.Generation.Context; got == nil || got.Replies != 1 || !got.Compacted {
		t.Errorf("the context of the reply is %+v", got)
	}
	body := p.lastBody()
	if strings.Contains(body, "tell me about apples") || strings.Contains(body, "Write a summary") {
		t.Errorf("the model was sent what the summary stands for: %s", body)
	}
	if about, pears := strings.Index(body, "They spoke about apples."), strings.Index(body, "and pears"); about < 0 ||
		pears < about {
		t.Errorf("the model was sent %s", body)
	}
}

func TestASummaryThatSaysNothingIsAnError(t *testing.T) {
	t.Parallel()
	script := summarises(modelserver.Think("hm"))
	script.Rules[0].Reply.Usage = &modelserver.Usage{Input: 900, Output: 10}
	p := startPod(t, script, nil)
	c := p.newChat("empty", nil)
	c.ask("empty-1", "hello")
	c.commit(c.result(), "")
	m := c.compact(v1alpha1.CompactionThreshold)
	if g := m.Spec.Generation; g.Outcome != v1alpha1.OutcomeFailed || g.Error.Reason != v1alpha1.ErrorEmptyReply {
		t.Errorf("got %+v", g)
	} else if g.Usage == nil || g.Usage.TotalTokens != 910 {
		t.Errorf("it used up %+v", g.Usage)
	}
}

func TestHalfASummaryIsNotKept(t *testing.T) {
	t.Parallel()
	script := summarises(modelserver.Say("They ", "spoke"))
	script.Rules[0].Reply.Fault = &modelserver.Fault{Kind: modelserver.FaultHang, After: new(1)}
	p := startPod(t, script, nil)
	c := p.newChat("half", nil)
	c.ask("half-1", "hello")
	c.commit(c.result(), "")
	c.write(func(s *v1alpha1.ChatStatus) {
		s.History.Version++
		s.Generation = c.assignment(v1alpha1.ActionCompact, 1)
	})
	c.eventually("the summary has begun", func() bool { text, _ := p.relay.heard(c.fence()); return text != "" })
	c.write(interrupt)
	if m := c.result(); m.Spec.Generation.Outcome != v1alpha1.OutcomeInterrupted || len(m.Spec.Parts) != 0 {
		t.Errorf("got %+v", m.Spec)
	}
}

func TestAContextThatTheModelRefusedIsCutToHalfForItsSummary(t *testing.T) {
	t.Parallel()
	p := startPod(t, summarises(modelserver.Say("Short.")), nil)
	c := p.newChat("cut", nil)
	for _, name := range []string{"cut-1", "cut-2", "cut-3"} {
		c.ask(name, strings.Repeat(name+" ", 1000))
		c.commit(c.result(), "")
	}
	c.compact(v1alpha1.CompactionContextTooLong)
	if body := p.lastBody(); strings.Contains(body, "cut-1") || strings.Contains(body, "cut-2") ||
		!strings.Contains(body, "cut-3") || !strings.Contains(body, "left out") {
		t.Errorf("%d bytes were sent", len(body))
	}
}

// shortContext refuses requests with more bytes, as a provider does whose tokens are shorter than expected.
type shortContext struct {
	next    http.RoundTripper
	bytes   int
	refused atomic.Int32
}

func (s *shortContext) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.Body = io.NopCloser(bytes.NewReader(body)); len(body) <= s.bytes {
		return s.next.RoundTrip(r)
	}
	s.refused.Add(1)
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"error":{"message":"too long","code":"context_length_exceeded"}}`)),
	}, nil
}

func TestASummaryThatDoesNotFitIsMadeOfLessOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		bytes   int
		outcome v1alpha1.GenerationOutcome
	}{
		"the half fits": {12_000, v1alpha1.OutcomeCompleted},
		"nor the half":  {5_000, v1alpha1.OutcomeFailed},
	} {
		t.Run(name, func(t *testing.T) {
			short := &shortContext{bytes: 1 << 20}
			p := startPod(t, summarises(modelserver.Say("Short.")), func(_ *pod, o *runner.Options) {
				short.next = o.HTTP.Transport
				o.HTTP = &http.Client{Transport: short}
			})
			chat := p.newChat("dense", nil)
			for _, name := range []string{"dense-1", "dense-2", "dense-3"} {
				chat.ask(name, strings.Repeat(name+" ", 800))
				chat.commit(chat.result(), "")
			}
			short.bytes = c.bytes
			m := chat.compact(v1alpha1.CompactionThreshold)
			if g := m.Spec.Generation; g.Outcome != c.outcome || g.Outcome == v1alpha1.OutcomeFailed &&
				(g.Error.Reason != v1alpha1.ErrorContextTooLong || short.refused.Load() != 2) {
				t.Errorf("got %+v after %d refusals", g, short.refused.Load())
			}
		})
	}
}
