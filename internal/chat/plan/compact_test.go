// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/test/kit/chattest"
)

func limit(tokens int64, percent int32) func(*Facts) {
	return limitBy(v1beta1.ContextLimitConfigured, tokens, percent)
}

func limitBy(source v1beta1.ContextLimitSource, tokens int64, percent int32) func(*Facts) {
	return func(f *Facts) {
		f.Model.ContextLimit, f.Model.ContextLimitConfig = modelconfig.Limit{Tokens: tokens, Source: source}, f.Model.Config
		f.Model.ThresholdPercent = percent
	}
}

func (w *world) contextStart(want int64) *world {
	w.t.Helper()
	if got := w.chat.Status.History.ContextStart; got != want {
		w.t.Errorf("the context starts at %d, want %d", got, want)
	}
	return w
}

func TestFullContextIsCompactedBeforeTheNextCall(t *testing.T) {
	for name, c := range map[string]struct {
		tokens int64
		facts  func(*Facts)
		want   string
	}{
		"below the threshold":  {699, limit(1000, 70), "Running v3 b/3 1:GenerateAssistant []"},
		"at the threshold":     {700, limit(1000, 70), "Running v3 b/3 1:Compact []"},
		"no limit is known":    {700, limit(0, 70), "Running v3 b/3 1:GenerateAssistant []"},
		"the threshold is off": {2000, limit(1000, 100), "Running v3 b/3 1:GenerateAssistant []"},
		"somebody else summarises": {700,
			func(f *Facts) { limit(1000, 70)(f); f.Model.Summarizer = &Alternative{Config: "s", Name: "s"} },
			"Running v3 b/3 1:Compact []"},
		"the turn ends with a full": {700, limit(1000, 70), "Running v3 b/3 1:Compact []"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.facts = c.facts
			w.say("a").answer(chattest.Says("hi"), chattest.Fills(c.tokens, 1)).want("Waiting v2 c-1-1/2 - []").say("b").
				want(c.want)
			if g := w.chat.Status.Generation; w.f.Model.Summarizer != nil && g.ModelConfig != "s" {
				t.Errorf("%s writes the summary", g.ModelConfig)
			}
		})
	}
}

func TestSummaryBeginsANewContext(t *testing.T) {
	w := newWorld(t)
	w.facts = limit(1000, 70)
	w.say("a").answer(chattest.Says("hi"), chattest.Fills(900, 1)).say("b").want("Running v3 b/3 1:Compact []")
	w.answer(chattest.Compacts("They spoke.", chattest.From(2))).want("Running v4 c-3-1/4 1:GenerateAssistant []").
		contextStart(2)
	w.answer(chattest.Says("hi"), chattest.Fills(100, 1), chattest.Compacted()).want("Waiting v5 c-4-1/5 - []")
	if got := w.chat.Status.Turn; got.Result != v1beta1.TurnAnswered || got.Steps != 1 || got.Message != "b" {
		t.Errorf("the turn is %+v", got)
	}
}

func TestTurnIsCompactedBetweenItsSteps(t *testing.T) {
	w := newWorld(t)
	w.facts = limit(1000, 70)
	w.say("a").answer(chattest.Calls("1"), chattest.Fills(900, 1)).answer(chattest.Results("1")).
		want("Running v3 c-2-1/3 1:Compact []")
	w.answer(chattest.Compacts("They spoke.", chattest.From(3))).want("Running v4 c-3-1/4 1:GenerateAssistant []").
		contextStart(3)
	w.answer(chattest.Says("hi")).want("Waiting v5 c-4-1/5 - []")
}

func TestAdviceIsCountedPerTurn(t *testing.T) {
	advised := func(m *v1beta1.ChatMessage) { m.Spec.Generation.Advice = 1 }
	w := newWorld(t).say("a").answer(chattest.Calls("1")).answer(chattest.Results("1"), advised)
	if n := w.chat.Status.Turn.Advice; n != 1 {
		t.Fatalf("after the first there are %d", n)
	}
	w.answer(chattest.Calls("1")).answer(chattest.Results("1"), advised).answer(chattest.Says("hi"))
	if n := w.chat.Status.Turn.Advice; n != 2 {
		t.Errorf("after the second there are %d", n)
	}
	user := question("a")
	user.Status.Index = new(int64(0))
	call := chattest.Generated("call", v1beta1.RoleAssistant, chattest.Calls("1"))
	tool := chattest.Generated("tool", v1beta1.RoleTool, chattest.Results("1"), advised)
	if n := rest([]*v1beta1.ChatMessage{user, call, tool}).Turn.Advice; n != 1 {
		t.Errorf("of what is left there are %d", n)
	}
	if n := w.say("b").chat.Status.Turn.Advice; n != 0 {
		t.Errorf("the next turn begins with %d", n)
	}
}

func TestContextThatStaysFullEndsTheTurn(t *testing.T) {
	w := newWorld(t)
	w.facts = limit(1000, 70)
	w.say("a").answer(chattest.Says("hi"), chattest.Fills(900, 1)).say("b").
		answer(chattest.Compacts("They spoke.", chattest.From(2)))
	w.answer(chattest.Calls("1"), chattest.Fills(800, 1), chattest.Compacted()).answer(chattest.Results("1")).
		want("Error v6 c-5-1/6 - []")
	if e := w.chat.Status.LastError; e == nil || e.Reason != v1beta1.ErrorContextTooLong {
		t.Errorf("last error is %+v", e)
	}
	w = newWorld(t)
	w.facts = limit(1000, 70)
	w.say("a").answer(chattest.Says("hi"), chattest.Fills(900, 1)).say("b").
		answer(chattest.Compacts("They spoke.", chattest.From(2))).answer(chattest.Calls("1"), chattest.Fills(600, 1),
		chattest.Compacted()).
		answer(chattest.Results("1"))
	w.answer(chattest.Calls("1"), chattest.Fills(800, 2), chattest.Compacted()).answer(chattest.Results("1")).
		want("Running v8 c-7-1/8 1:Compact []")
}

func TestUnconfiguredLimitLetsTheModelBeAsked(t *testing.T) {
	for _, source := range []v1beta1.ContextLimitSource{v1beta1.ContextLimitKnownModel, v1beta1.ContextLimitRefusal} {
		w := newWorld(t)
		w.facts = limitBy(source, 1000, 70)
		w.say("a").answer(chattest.Says("hi"), chattest.Fills(900, 1)).say("b").want("Running v3 b/3 1:Compact []").
			answer(chattest.Compacts("They spoke.", chattest.From(2)))
		w.answer(chattest.Calls("1"), chattest.Fills(800, 1), chattest.Compacted()).answer(chattest.Results("1")).
			want("Running v6 c-5-1/6 1:GenerateAssistant []")
		w.answer(chattest.Fails(v1beta1.ErrorContextTooLong)).want("Running v7 c-5-1/6 1:Compact []")
	}
}

func TestTheAdviceNamesTheConfigurationWhoseLimitCounts(t *testing.T) {
	for config, want := range map[string]string{
		"m": "Raise contextLimit or compaction.thresholdPercent of ChatModelConfig m, name",
		"s": "Raise contextLimit of ChatModelConfig s, which writes the summaries, or compaction.thresholdPercent of " +
			"ChatModelConfig m, name",
	} {
		w := newWorld(t)
		w.facts = func(f *Facts) {
			f.Model.Config = "m"
			limit(1000, 70)(f)
			f.Model.ContextLimitConfig = config
		}
		w.say("a").answer(chattest.Says("hi"), chattest.Fills(900, 1)).say("b").
			answer(chattest.Compacts("They spoke.", chattest.From(2))).answer(chattest.Calls("1"), chattest.Fills(800, 1),
			chattest.Compacted()).
			answer(chattest.Results("1"))
		if e := w.chat.Status.LastError; e == nil || !strings.HasPrefix(e.Advice, want) {
			t.Errorf("%s: last error is %+v", config, e)
		}
	}
}

func TestTheAdviceNamesTheThresholdOfTheChat(t *testing.T) {
	w := newWorld(t)
	w.chat.Spec.Compaction = &v1beta1.CompactionPolicy{ThresholdPercent: new(int32(70))}
	w.facts = func(f *Facts) { f.Model.Config = "m"; limit(1000, 70)(f) }
	w.say("a").answer(chattest.Says("hi"), chattest.Fills(900, 1)).say("b").
		answer(chattest.Compacts("They spoke.", chattest.From(2))).answer(chattest.Calls("1"), chattest.Fills(800, 1),
		chattest.Compacted()).
		answer(chattest.Results("1"))
	const want = "Raise contextLimit of ChatModelConfig m, or spec.compaction.thresholdPercent of the chat or its " +
		"ChatClass"
	if e := w.chat.Status.LastError; e == nil || !strings.HasPrefix(e.Advice, want) {
		t.Errorf("last error is %+v", e)
	}
}

func TestChatCompactionSettingsOverrideModelConfig(t *testing.T) {
	ref := func(name string) *v1beta1.ModelConfigReference { return &v1beta1.ModelConfigReference{Name: name} }
	config := func(name string) v1beta1.ChatModelConfig {
		return v1beta1.ChatModelConfig{ObjectMeta: metav1.ObjectMeta{Name: name}}
	}
	main := config("main")
	main.Spec.Compaction = &v1beta1.CompactionPolicy{ThresholdPercent: new(int32(60)), ModelConfigRef: ref("cheap")}
	off := config("off")
	off.Spec.Disabled = true
	configs := []v1beta1.ChatModelConfig{main, config("cheap"), config("other"), off}
	for name, c := range map[string]struct {
		says       *v1beta1.CompactionPolicy
		threshold  int32
		summarizer string
		missing    string
	}{
		"nothing":               {nil, 60, "cheap", ""},
		"when":                  {&v1beta1.CompactionPolicy{ThresholdPercent: new(int32(90))}, 90, "cheap", ""},
		"by what":               {&v1beta1.CompactionPolicy{ModelConfigRef: ref("other")}, 60, "other", ""},
		"by what is disabled":   {&v1beta1.CompactionPolicy{ModelConfigRef: ref("off")}, 60, "", "off"},
		"by what is not there":  {&v1beta1.CompactionPolicy{ModelConfigRef: ref("gone")}, 60, "", "gone"},
		"by the one that talks": {&v1beta1.CompactionPolicy{ModelConfigRef: ref("main")}, 60, "main", ""},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &v1beta1.Chat{}
			chat.Spec.Compaction = c.says
			m := ModelOf(configs, &main, chat)
			summarizer := ""
			if m.Summarizer != nil {
				summarizer = m.Summarizer.Config
			}
			if m.ThresholdPercent != c.threshold || summarizer != c.summarizer || m.SummarizerMissing != c.missing {
				t.Errorf("at %d by %q, missing is %q", m.ThresholdPercent, summarizer, m.SummarizerMissing)
			}
		})
	}
}

func TestMissingSummarizerIsReportedOnce(t *testing.T) {
	w := newWorld(t)
	w.facts = func(f *Facts) { limit(1000, 70)(f); f.Model.SummarizerMissing = "gone" }
	w.say("a").answer(chattest.Says("hi"), chattest.Fills(900, 1)).say("b").want("Running v3 b/3 1:Compact []")
	told := func(n Notice) bool { return n.Reason == v1beta1.EventSummarizerUnavailable }
	if at := slices.IndexFunc(w.last.Notices, told); at < 0 ||
		!strings.HasPrefix(w.last.Notices[at].Note, "ChatModelConfig gone, which compaction.modelConfigRef names, ") {
		t.Errorf("the notices are %+v", w.last.Notices)
	}
	w.answer(chattest.Fails(v1beta1.ErrorProviderUnavailable, chattest.ForNow)).later(time.Hour)
	w.want("Running v3 b/3 2:Compact []")
	if slices.ContainsFunc(w.last.Notices, told) {
		t.Errorf("the second attempt tells it again: %+v", w.last.Notices)
	}
}

func TestContextTooLongIsCompactedOnce(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi"), chattest.Fills(0, 1)).say("b").
		want("Running v3 b/3 1:GenerateAssistant []")
	w.answer(chattest.Fails(v1beta1.ErrorContextTooLong)).want("Running v4 b/3 1:Compact []")
	w.answer(chattest.Compacts("They spoke.", chattest.From(2))).want("Running v5 c-4-1/4 1:GenerateAssistant []")
	w.answer(chattest.Fails(v1beta1.ErrorContextTooLong)).want("Error v5 c-4-1/4 - []")
	newWorld(t).say("a").answer(chattest.Fails(v1beta1.ErrorContextTooLong)).want("Error v1 a/1 - []")
}

func TestRequestedCompactionKeepsTheTurnsEnd(t *testing.T) {
	for name, c := range map[string]struct {
		end    func(*world)
		want   string
		result v1beta1.TurnResult
	}{
		"answered": {func(*world) {}, "Waiting v4 c-3-1/3 - []", v1beta1.TurnAnswered},
		"interrupted": {func(w *world) { w.answer(chattest.Says("Half a"), chattest.Interrupted()) },
			"Waiting v6 c-5-1/5 - []", v1beta1.TurnInterrupted},
		"nothing was said when it was interrupted": {func(w *world) { w.answer(chattest.Interrupted()) },
			"Waiting v6 c-5-1/4 - []",
			v1beta1.TurnInterrupted},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a").answer(chattest.Says("hi"), chattest.Fills(1, 1))
			if name != "answered" {
				w.say("b").ask(v1beta1.RequestInterrupt)
				w.chat.Status.Requests = nil
			}
			c.end(w)
			w.ask(v1beta1.RequestCompact).requested(v1beta1.RequestDone)
			if w.chat.Status.Generation.Action != v1beta1.ActionCompact ||
				w.chat.Status.Internal.Compaction != v1beta1.CompactionManual {
				t.Errorf("status is %+v", w.chat.Status)
			}
			w.answer(chattest.Compacts("They spoke.", chattest.From(w.chat.Status.History.Length))).want(c.want)
			if st := w.chat.Status; st.Turn.Result != c.result || st.Internal.Compaction != "" {
				t.Errorf("the turn ended as %s, asked is %q", st.Turn.Result, st.Internal.Compaction)
			}
		})
	}
}

func TestDeletedQueuedMessageKeepsTheCompaction(t *testing.T) {
	for name, c := range map[string]struct {
		hold func(*Facts)
		end  string
	}{
		"while the compaction waits": {func(f *Facts) { f.Suspended = true }, "Waiting v4 c-3-1/3 - []"},
		"while it is tried again":    {func(f *Facts) { f.PodLost = true }, "Waiting v4 c-3-3/3 - []"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t).say("a").answer(chattest.Says("hi"))
			w.pass(func(f *Facts) { c.hold(f); f.Requests = []Request{{Kind: v1beta1.RequestCompact, Token: "1"}} })
			w.pass(func(f *Facts) { c.hold(f); f.Open = messages(false, "b") })
			w.pass(func(f *Facts) { c.hold(f); f.Queued = nil })
			if st := w.chat.Status; st.Phase != v1beta1.ChatRunning || st.Internal.Compaction != v1beta1.CompactionManual ||
				len(st.Queue) != 0 {
				t.Errorf("the status is %+v", st)
			}
			w.later(time.Hour).answer(chattest.Compacts("They spoke.", chattest.From(2))).want(c.end)
		})
	}
}

func TestFailedTurnContinuesAfterCompaction(t *testing.T) {
	w := newWorld(t).say("a").answer(chattest.Says("hi"), chattest.Fills(1, 1)).say("b").
		answer(chattest.Fails(v1beta1.ErrorRequestRejected)).
		want("Error v3 b/3 - []")
	w.ask(v1beta1.RequestCompact).want("Running v4 b/3 1:Compact []")
	if got := recordOf(&w.chat.Status); got.Result != "" || got.HistoryVersion != 3 || got.Internal.ResumedVersion != 4 {
		t.Errorf("its message is not told that it is being answered again: %+v", got)
	}
	w.answer(chattest.Compacts("They spoke.", chattest.From(2))).want("Running v5 c-4-1/4 1:GenerateAssistant []")
	w.answer(chattest.Says("hi")).want("Waiting v6 c-5-1/5 - []")
	if got := w.chat.Status.Turn.Result; got != v1beta1.TurnAnswered {
		t.Errorf("the turn ended as %s", got)
	}
}

func TestACompactionThatNothingNeedsIsRefused(t *testing.T) {
	newWorld(t).pass(nil).ask(v1beta1.RequestCompact).requested(v1beta1.RequestRefused)
	newWorld(t).say("a").ask(v1beta1.RequestCompact).requested(v1beta1.RequestRefused).
		want("Running v1 a/1 1:GenerateAssistant []")
	w := newWorld(t).say("a").answer(chattest.Says("hi"), chattest.Fills(1, 1)).ask(v1beta1.RequestCompact).
		answer(chattest.Compacts("They spoke.", chattest.From(2)))
	w.chat.Status.Requests = nil
	w.ask(v1beta1.RequestCompact).requested(v1beta1.RequestRefused).want("Waiting v4 c-3-1/3 - []")
}

func TestInterruptedOrFailedCompactionKeepsTurnResult(t *testing.T) {
	compacting := func() *world {
		w := newWorld(t).say("a").answer(chattest.Says("hi"), chattest.Fills(1, 1)).ask(v1beta1.RequestCompact).
			want("Running v3 c-1-1/2 1:Compact []")
		w.chat.Status.Requests = nil
		return w
	}
	w := compacting().ask(v1beta1.RequestInterrupt).want("Interrupting v3 c-1-1/2 1:Compact []").
		answer(chattest.Interrupted()).
		want("Waiting v4 c-1-1/2 - []")
	if got := w.chat.Status.Turn.Result; got != v1beta1.TurnAnswered {
		t.Errorf("the turn ended as %s", got)
	}
	w = compacting().answer(chattest.Fails(v1beta1.ErrorRequestRejected)).want("Error v3 c-1-1/2 - []")
	if got := w.chat.Status.Turn.Result; got != v1beta1.TurnAnswered {
		t.Errorf("the turn ended as %s", got)
	}
	w.say("b").want("Running v4 b/3 1:GenerateAssistant []").contextStart(0)
}

func TestEditRestoresTheContextOfItsMessage(t *testing.T) {
	// a reply | b (summary) reply | clear | c reply
	history := func() *world {
		w := newWorld(t).say("a").answer(chattest.Says("hi"), chattest.Fills(1, 1)).say("b").
			answer(chattest.Fails(v1beta1.ErrorContextTooLong)).
			answer(chattest.Compacts("They spoke.", chattest.From(2))).answer(chattest.Says("hi"))
		return w.contextStart(2).ask(v1beta1.RequestClear).contextStart(5).say("c").answer(chattest.Says("hi")).
			contextStart(5)
	}
	for _, c := range []struct {
		name, parent string
		index, want  int64
	}{{"c", "c-5-1", 5, 5}, {"b", "c-1-1", 2, 0}, {"a", "", 0, 0}} {
		w := history().pass(func(f *Facts) {
			f.Edited = &Edited{Message: Message{Name: c.name, ContentHash: "new"},
				Commit: v1beta1.CommittedMessage{Parent: c.parent, Position: c.index}}
		})
		w.contextStart(c.want)
		if w.chat.Status.Context != nil {
			t.Errorf("%s: the context is said to be %+v", c.name, w.chat.Status.Context)
		}
	}
	w := history().pass(func(f *Facts) {
		f.Truncated = &Truncated{Head: "c-4-1", Length: 4, Unanswered: true,
			Turn: TurnRecord{TurnStatus: &v1beta1.TurnStatus{Message: "b", Index: 2}}}
	})
	w.contextStart(2)
}

func TestInterruptedCallsHoldNoCompactionUp(t *testing.T) {
	user := question("a")
	user.Status.Index, user.Status.HistoryVersion = new(int64(0)), 1
	calling := chattest.Answer(newWorld(t).say("a").chat, chattest.Calls("1"),
		chattest.CallsRequiring(v1beta1.RequiresClient, "2"), chattest.Interrupted())
	rest := rest([]*v1beta1.ChatMessage{user, calling})
	if got := rest.Turn; got.Result != v1beta1.TurnInterrupted || got.Internal.PendingCalls != 0 ||
		got.Internal.CallsRequiringAction != 0 {
		t.Fatalf("the turn is %+v", got)
	}
	w := newWorld(t).say("a").answer(chattest.Says("hi")).say("b")
	w.pass(func(f *Facts) { f.Truncated = rest }).ask(v1beta1.RequestCompact)
	if g := w.chat.Status.Generation; g == nil || g.Action != v1beta1.ActionCompact {
		t.Errorf("the chat is %s with %+v", w.chat.Status.Phase, g)
	}
}

func TestFailedSummariserFallsBackToTheChatsModels(t *testing.T) {
	for _, reason := range fallbackReasons {
		w := newWorld(t)
		w.facts = func(f *Facts) {
			limit(1000, 70)(f)
			f.Model.Summarizer = &Alternative{Config: "s", Name: "s-model"}
			f.Model.Fallbacks = []Alternative{{Config: "f", Name: "f-model"}, {Config: "s", Name: "s-model"}}
		}
		w.say("a").answer(chattest.Says("hi"), chattest.Fills(900, 1)).say("b")
		own := w.f.Model.Config
		for _, asked := range []string{"s", own, "f"} {
			if g := w.chat.Status.Generation; g == nil || g.Action != v1beta1.ActionCompact || g.ModelConfig != asked {
				t.Fatalf("%s: %+v is asked, not %s", reason, g, asked)
			}
			w.answer(chattest.Fails(reason))
			if noticed := slices.ContainsFunc(w.last.Notices,
				func(n Notice) bool { return n.Reason == "SummarizerUnavailable" }); noticed != (asked == "s") {
				t.Errorf("%s: after %s the notices are %+v", reason, asked, w.last.Notices)
			}
		}
		if e := w.chat.Status.LastError; e == nil || e.Reason != reason || w.chat.Status.Phase != v1beta1.ChatError {
			t.Errorf("%s: in the end there is %+v", reason, e)
		}
	}
}

func TestChatsOwnModelSummarisesForAFailedSummariser(t *testing.T) {
	w := newWorld(t)
	w.facts = func(f *Facts) {
		limit(1000, 70)(f)
		f.Model.Summarizer = &Alternative{Config: "s", Name: "s-model"}
	}
	w.say("a").answer(chattest.Says("hi"), chattest.Fills(900, 1)).say("b").want("Running v3 b/3 1:Compact []")
	w.answer(chattest.Fails(v1beta1.ErrorAPIKeyMissing)).
		want("Running v3 b/3 2:Compact []")
	w.answer(chattest.Compacts("They spoke.", chattest.From(2))).want("Running v4 c-3-2/4 1:GenerateAssistant []").
		contextStart(2)
	w.answer(chattest.Says("hi"), chattest.Fills(100, 1), chattest.Compacted()).want("Waiting v5 c-4-1/5 - []")
}

func TestACompactionSaysHowFullTheContextWas(t *testing.T) {
	w := newWorld(t)
	w.facts = limit(1000, 70)
	w.say("a").answer(chattest.Says("hi"), chattest.Fills(905, 1)).say("b")
	want := v1beta1.CompactionCause{ThresholdPercent: 70, UsagePercent: 90, ContextTokens: 905, ContextLimit: 1000}
	if got := w.chat.Status.Internal.Attempt.Compaction; got == nil || *got != want {
		t.Errorf("got %+v", got)
	}
	if got := w.answer(chattest.Compacts("They spoke.", chattest.From(2))).
		chat.Status.Internal.Attempt.Compaction; got != nil {
		t.Errorf("the reply after it says %+v", got)
	}
}

func TestARefusalThatNamesTheLimitIsRemembered(t *testing.T) {
	w := newWorld(t)
	w.say("a").answer(chattest.Says("hi"), chattest.Fills(900, 1)).say("b")
	w.answer(chattest.Fails(v1beta1.ErrorContextTooLong, func(e *v1beta1.GenerationError) { e.ContextLimit = 8192 }))
	w.want("Running v4 b/3 1:Compact []")
	want := v1beta1.LearnedContextLimit{ModelConfig: w.f.Model.Config, Model: w.f.Model.Name, Tokens: 8192}
	if got := w.chat.Status.Internal.LearnedContextLimit; got == nil || *got != want {
		t.Errorf("got %+v", got)
	}
	if got := w.answer(chattest.Compacts("They spoke.", chattest.From(2))).
		answer(chattest.Says("hi"), chattest.Fills(10, 1), chattest.Compacted()).
		chat.Status.Internal.LearnedContextLimit; got == nil || *got != want {
		t.Errorf("after the compaction there is %+v", got)
	}
}
