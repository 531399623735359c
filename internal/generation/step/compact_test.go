// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"io"
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/modelserver"
)

// summarises is a model that answers every request for a summary with these steps, and everything else with "Fine.".
func summarises(steps ...modelserver.Step) modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "Write a summary"}, Reply: said(steps...)},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Fine.")},
			Usage: &modelserver.Usage{Input: 700, Cached: 100, Output: 5}}},
	}}
}

func TestSummaryTakesThePlaceOfTheContext(t *testing.T) {
	c := newTalk(t, summarises(modelserver.Think("hm"), modelserver.Say("They spoke ", "about apples.")), debugged)
	c.chat.Spec.SystemPrompt = "Be brief."
	first := c.ask("tell me about apples").Spec.Generation.Context
	check.Equal(t, "the context", &v1beta1.ContextStatus{Tokens: 700, Replies: 1}, first)
	c.say("and pears")
	c.shown.all = nil
	summary := c.compact(v1beta1.CompactionManual)
	check.Equal(t, "the summary", `Completed: Text "They spoke about apples."; Complete`, outline(summary))
	check.Equal(t, "the account",
		&v1beta1.CompactionAccount{Source: v1beta1.CompactionManual, Messages: 2, ContextStart: 2},
		summary.Spec.Generation.Compaction)
	check.Contains(t, c.LastBody(), "Be brief.", "tell me about apples", "Fine.", "Write a summary")
	check.Lacks(t, c.LastBody(), "and pears")
	check.Equal(t, "what is shown", "hmThey spoke about apples.", c.shown.text())
	reply := c.reply().Spec.Generation.Context
	check.Equal(t, "the context", &v1beta1.ContextStatus{Tokens: 700, Replies: 1, Compacted: true}, reply)
	check.Lacks(t, c.LastBody(), "tell me about apples", "Write a summary")
	check.InOrder(t, c.LastBody(), "They spoke about apples.", "and pears")
	recorded := c.recorded()["c-3-compact"]
	check.Equal(t, "recorded", "They spoke about apples.", recorded.Response.Parts[1].Text)
}

func TestSummaryThatFailsKeepsNothing(t *testing.T) {
	empty := summarises(modelserver.Think("hm"))
	empty.Rules[0].Reply.Usage = &modelserver.Usage{Input: 900, Output: 10}
	half := summarises(modelserver.Say("They ", "spoke"))
	half.Rules[0].Reply.Fault = &modelserver.Fault{Kind: modelserver.FaultHang, After: one}
	for name, script := range map[string]modelserver.Script{
		"Failed: EmptyReply 0, again": empty, "Interrupted: ": half,
		"Failed: ProviderError 0": summarises(modelserver.Call("current_time", `{}`)),
	} {
		t.Run(name, func(t *testing.T) {
			c := newTalk(t, script)
			c.ask("hello")
			c.say("again")
			c.shown.all = nil
			m := c.interrupted(v1beta1.ActionCompact, func() bool { return c.shown.text() == "They " })
			check.Equal(t, "the outcome", name, outline(m))
			if used := m.Spec.Generation.Usage; strings.Contains(name, "EmptyReply") && used.TotalTokens != 910 {
				t.Errorf("it used up %+v", used)
			}
		})
	}
}

func TestSummaryCutAtItsLimitSaysSo(t *testing.T) {
	cut := summarises(modelserver.Say("They spoke about"))
	cut.Rules[0].Reply.Finish = modelserver.FinishLength
	c := newTalk(t, cut)
	c.ask("tell me about apples")
	c.say("and pears")
	summary := c.compact(v1beta1.CompactionManual)
	check.Equal(t, "outcome", v1beta1.ReplyMaxTokensReached, summary.Spec.Generation.ReplyOutcome)
	c.reply()
	check.InOrder(t, c.LastBody(), "They spoke about", "reached its limit of tokens", "and pears")
}

func TestImportedConversationIsSummarisedInParts(t *testing.T) {
	c := newTalk(t, summarises(modelserver.Say("Short.")))
	var history []v1beta1.PriorMessage
	for _, name := range []string{"first", "second", "third", "fourth"} {
		history = append(history, v1beta1.PriorMessage{Role: v1beta1.RoleUser, Content: strings.Repeat(name+" ", 2000)},
			v1beta1.PriorMessage{Role: v1beta1.RoleAssistant, Content: "Fine, " + name + "."})
	}
	c.put(chattest.In(modeltest.Namespace, chattest.User("c", "import", chattest.Defaulted,
		func(m *v1beta1.ChatMessage) { m.Spec.Content, m.Spec.History = "", history })))
	c.say("again")
	summary := c.compact(v1beta1.CompactionContextTooLong)
	check.Equal(t, "the outcome", `Completed: Text "Short."; Complete`, outline(summary))
	check.Equal(t, "messages", 1, summary.Spec.Generation.Compaction.Messages)
	check.InOrder(t, c.LastBody(), "first ", "left out", "Fine, first.", "third", "fourth ", "Fine, fourth.",
		"Write a summary")
}

// shortContext refuses requests with more bytes, as a provider does whose tokens are shorter than expected.
type shortContext struct {
	next           http.RoundTripper
	bytes, refused int
}

// RoundTrip implements http.RoundTripper.
func (s *shortContext) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	if r.Body = io.NopCloser(bytes.NewReader(body)); len(body) <= s.bytes {
		return s.next.RoundTrip(r)
	}
	s.refused++
	return &http.Response{
		StatusCode: http.StatusBadRequest, Header: http.Header{"Content-Type": {"application/json"}}, Request: r,
		Body: io.NopCloser(strings.NewReader(`{"error":{"message":"too long","code":"context_length_exceeded"}}`)),
	}, nil
}

func TestSummaryThatDoesNotFitIsOfLess(t *testing.T) {
	for name, c := range map[string]struct {
		source         v1beta1.CompactionSource
		bytes, refused int
		want           string
	}{
		"the model refused it before": {v1beta1.CompactionContextTooLong, 1 << 20, 0, `Completed: Text "Short."; Complete`},
		"the half fits":               {v1beta1.CompactionThreshold, 12_000, 1, `Completed: Text "Short."; Complete`},
		"nor the half":                {v1beta1.CompactionThreshold, 2_000, 2, "Failed: ContextTooLong 400"},
	} {
		t.Run(name, func(t *testing.T) {
			talk := newTalk(t, summarises(modelserver.Say("Short.")))
			for _, name := range []string{"first", "second", "third"} {
				talk.ask(strings.Repeat(name+" ", 1000))
			}
			short := &shortContext{next: talk.HTTP, bytes: c.bytes}
			talk.HTTP = short
			check.Equal(t, "the outcome", c.want, outline(talk.compact(c.source)))
			check.Equal(t, "refusals", c.refused, short.refused)
			if c.refused < 2 {
				check.Contains(t, talk.LastBody(), "first", "second", "third", "left out")
			}
		})
	}
}
