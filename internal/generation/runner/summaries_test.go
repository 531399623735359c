// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/modelserver"
)

// summarizes is a model that answers at once and says what became of the turn with the reply.
func summarizes(summary modelserver.Reply) modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{
		{Name: "title", Match: modelserver.Match{LastUserText: "<message>"}, Reply: summary},
		{Name: "reply", Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("The disk is full.")},
			Usage: &modelserver.Usage{Input: 10, Output: 5}}},
	}}
}

var summaryOfDisk = modelserver.Reply{
	Steps: []modelserver.Step{modelserver.Call("set_summary", `{"summary":"Found a full disk."}`)},
	Usage: &modelserver.Usage{Input: 40, Output: 8},
}

// summing starts a pod with a ChatModelConfig "summing" whose summaries the configuration "cheap" writes.
func summing(t *testing.T, script modelserver.Script) *pod {
	t.Helper()
	p := startPod(t, script, nil)
	p.configureTitles()
	var config v1alpha1.ChatModelConfig
	if err := cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: p.ns, Name: "titled"}, &config); err != nil {
		t.Fatal(err)
	}
	with := modelConfig(p.ns, "summing", config.Spec.BaseURL)
	with.Spec.TurnSummaries = config.Spec.Titles
	create(t, with)
	return p
}

// askSummed begins a turn whose chat waits for a summary, and returns its result.
func (p *pod) askSummed(name string, change func(*v1alpha1.ChatSpec), status func(*v1alpha1.ChatStatus)) (*conversation,
	*v1alpha1.ChatMessage) {
	p.t.Helper()
	c := p.newChat(name, change)
	c.config = "summing"
	c.say(name+"-u", longQuestion)
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: name + "-u", Summary: "Still working",
			SummarySource: v1alpha1.TurnSummaryFromState}
		s.History = v1alpha1.HistoryStatus{Version: 1, Head: name + "-u", Length: 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
		if status != nil {
			status(s)
		}
	})
	return c, c.result()
}

func TestAModelSaysWhatBecameOfATurnAfterItsLastReply(t *testing.T) {
	t.Parallel()
	p := summing(t, summarizes(summaryOfDisk))
	c, reply := p.askSummed("c", debugged, nil)
	var m *v1alpha1.ChatMessage
	c.eventually("there is a summary", func() bool { m = c.message("c-2-summary"); return m != nil })
	g := m.Spec.Generation
	if g.TurnSummary != "Found a full disk" || g.ChatUID != string(c.chat.UID) || g.HistoryVersion != 2 ||
		g.Pod != p.name || g.Action != v1alpha1.ActionSummarizeTurn ||
		len(m.Spec.Parts) != 0 || m.Spec.Index != nil || m.Spec.Parent != "" {
		t.Errorf("the summary is %+v", m.Spec)
	}
	if want := (v1alpha1.TokenUsage{InputTokens: 40, OutputTokens: 8, TotalTokens: 48}); *g.Usage != want ||
		g.Model.Config != "cheap" || *g.Cost != (v1alpha1.Cost{Currency: "EUR", MicroUnits: 56}) {
		t.Errorf("it used up %+v of %+v for %+v", g.Usage, g.Model, g.Cost)
	}
	if reply.Spec.Generation.Usage.TotalTokens != 15 || textOf(t, reply) != "The disk is full." {
		t.Errorf("the reply is %+v", reply.Spec.Generation)
	}
	if asked := p.titleRequests(); len(asked) != 1 || !strings.Contains(asked[0], longQuestion) ||
		!strings.Contains(asked[0], "The disk is full.") || !strings.Contains(asked[0], `"max_tokens":64`) {
		t.Errorf("the model was asked %q", asked)
	}
	c.eventually("both calls are recorded", func() bool {
		all := p.recordings()
		return len(all) == 2 && all[0].Name == "c-1-generateassistant" && all[1].Name == "c-1-summarizeturn" &&
			all[1].State == v1alpha1.DebugCompleted
	})
}

func TestNoSummaryIsAskedForWhereTheTurnGoesOnOrNobodyWaitsForOne(t *testing.T) {
	t.Parallel()
	script := summarizes(summaryOfDisk)
	calls := modelserver.Rule{Match: modelserver.Match{LastUserText: "calls"},
		Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Call("current_time", `{}`)}}}
	script.Rules = append([]modelserver.Rule{calls}, script.Rules...)
	p := summing(t, script)
	p.askSummed("queued", nil, func(s *v1alpha1.ChatStatus) { s.Queue = []v1alpha1.QueuedMessage{{Name: "next"}} })
	p.askSummed("off", nil, func(s *v1alpha1.ChatStatus) { s.Turn.Summary, s.Turn.SummarySource = "", "" })
	p.askSummed("budget", func(s *v1alpha1.ChatSpec) {
		s.Limits = &v1alpha1.ChatLimits{Budget: &v1alpha1.Budget{Currency: "USD", Amount: "1"}}
	}, nil)
	t.Log("The reply alone costs as much as the chat may.")
	p.derive("summing", "priced", func(s *v1alpha1.ChatModelConfigSpec) {
		s.Pricing = &v1alpha1.Pricing{Currency: "EUR", InputPerMillion: "1", OutputPerMillion: "2"}
	})
	p.askSummed("spent", func(s *v1alpha1.ChatSpec) {
		s.Limits = &v1alpha1.ChatLimits{Budget: &v1alpha1.Budget{Currency: "EUR", Amount: "0.00002"}}
	}, askedOf("priced"))
	c := p.newChat("tools", nil)
	c.config = "summing"
	c.say("tools-u", "calls")
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: "tools-u", SummarySource: v1alpha1.TurnSummaryFromState}
		s.History = v1alpha1.HistoryStatus{Version: 1, Head: "tools-u", Length: 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
	c.result()
	wanted, _ := p.askSummed("wanted", nil, nil)
	p.eventually("a summary that is wanted is there", func() bool { return wanted.message("wanted-2-summary") != nil })
	if asked := p.titleRequests(); len(asked) != 1 {
		t.Errorf("the model was asked %q", asked)
	}
}

func TestASummaryThatFailsIsNoFault(t *testing.T) {
	t.Parallel()
	for name, reply := range map[string]modelserver.Reply{
		"an error": {Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429}},
		"no summary and no usage": {Steps: []modelserver.Step{modelserver.Call("set_summary", `{}`)},
			Usage: &modelserver.Usage{}},
	} {
		t.Run(name, func(t *testing.T) {
			p := summing(t, summarizes(reply))
			c, _ := p.askSummed("c", nil, nil)
			p.eventually("the model was asked", func() bool { return len(p.titleRequests()) == 1 && p.models.InFlight() == 0 })
			p.settled()
			if c.message("c-2-summary") != nil || p.log.String() != "" {
				t.Errorf("there is a summary, or it was logged: %s", p.log)
			}
		})
	}
}

func TestAModelThatHasNoWordsForATurnIsPaidAllTheSame(t *testing.T) {
	t.Parallel()
	p := summing(t,
		summarizes(modelserver.Reply{Steps: []modelserver.Step{modelserver.Call("set_summary", `{}`)},
			Usage: &modelserver.Usage{Input: 40, Output: 64}}))
	c, _ := p.askSummed("c", nil, nil)
	var m *v1alpha1.ChatMessage
	c.eventually("there is an account", func() bool { m = c.message("c-2-summary"); return m != nil })
	if g := m.Spec.Generation; g.TurnSummary != "" || g.Usage == nil || g.Usage.TotalTokens != 104 || g.Cost == nil ||
		g.Cost.MicroUnits != 168 {
		t.Errorf("the account is %+v", g)
	}
}

func TestASummaryIsGivenUpWhenTheChatGoesOnAndDoesNotHoldUpADrain(t *testing.T) {
	t.Parallel()
	p := summing(t, summarizes(modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultHang}}))
	c, reply := p.askSummed("c", nil, nil)
	p.eventually("the model is asked", func() bool { return p.models.InFlight() == 1 })
	c.commit(reply, "")
	c.ask("again", "And then?")
	c.result()
	p.eventually("nothing is asked any more", func() bool { return p.models.InFlight() == 0 })

	p.askSummed("other", nil, nil)
	p.eventually("the model is asked again", func() bool { return p.models.InFlight() == 1 })
	p.drain()
	select {
	case <-p.ended:
	case <-time.After(patience / 2): // The call itself may take as long as patience.
		t.Error("the pod waits for the summary")
	}
}

func TestAnotherTitleIsWrittenFromTheWholeConversation(t *testing.T) {
	t.Parallel()
	p := titling(t, entitles(titleOfPods), &order{titleFirst: true})
	c := p.newTitledChat("c", nil)
	c.ask("one", longQuestion)
	c.accept(c.result())
	c.say("two", "And where is the log?")
	c.write(func(s *v1alpha1.ChatStatus) {
		s.TitleSource = v1alpha1.TitleOutdated
		s.Requests = []v1alpha1.HandledRequest{{Kind: v1alpha1.RequestTitle, Token: "again", Outcome: v1alpha1.RequestDone,
			Time: metav1.Now()}}
		s.Turn = &v1alpha1.TurnStatus{Message: "two", Parent: s.History.Head, Index: s.History.Length}
		s.Internal.Turn.ContentHash = hashOf("And where is the log?")
		s.History = v1alpha1.HistoryStatus{Version: s.History.Version + 1, Head: "two", Length: s.History.Length + 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
	c.result()
	p.eventually("another title was asked for", func() bool { return len(p.titleRequests()) == 2 })
	asked := p.titleRequests()[1]
	for _, text := range []string{longQuestion, "Fine.", "And where is the log?"} {
		if !strings.Contains(asked, text) {
			t.Errorf("%q is not in %s", text, asked)
		}
	}
}

func TestTheFirstWordsStandInForATitleThatAChatHasLost(t *testing.T) {
	t.Parallel()
	p := titling(t, entitles(modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429}}),
		nil)
	c := p.newTitledChat("c", nil)
	c.ask("one", longQuestion)
	c.commit(c.result(), "")
	c.say("two", "And where is the log?")
	c.write(func(s *v1alpha1.ChatStatus) {
		s.TitleSource = v1alpha1.TitleOutdated
		s.Turn = &v1alpha1.TurnStatus{Message: "two", Parent: s.History.Head, Index: s.History.Length}
		s.Internal.Turn.ContentHash = hashOf("And where is the log?")
		s.History = v1alpha1.HistoryStatus{Version: s.History.Version + 1, Head: "two", Length: s.History.Length + 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
	c.wantTitle(c.result(), "Why would a pod be stuck…", v1alpha1.TitleFromFirstWords, false)
}

func TestAModelThatIsToldToThinkIsNotWhenItWritesACaption(t *testing.T) {
	t.Parallel()
	p := summing(t, summarizes(summaryOfDisk))
	p.derive("cheap", "claude", func(s *v1alpha1.ChatModelConfigSpec) {
		s.Provider, s.BaseURL, s.Model = v1alpha1.ProviderAnthropic, strings.TrimSuffix(s.BaseURL, "/v1"), "claude-sonnet-4-5"
		s.ProviderOptions = &v1alpha1.ProviderOptions{Anthropic: &v1alpha1.AnthropicOptions{
			Thinking: &v1alpha1.AnthropicThinking{BudgetTokens: 10000}}}
		s.MaxOutputTokens = new(int64(32000))
	})
	p.derive("summing", "by-claude",
		func(s *v1alpha1.ChatModelConfigSpec) { s.TurnSummaries.ModelConfigRef.Name = "claude" })
	c, _ := p.askSummed("c", nil, askedOf("by-claude"))
	c.eventually("there is a summary", func() bool { return c.message("c-2-summary") != nil })
	asked := p.titleRequests()
	if len(asked) != 1 || strings.Contains(asked[0], "thinking") || !strings.Contains(asked[0], `"max_tokens":64`) {
		t.Errorf("the model was asked %q", asked)
	}
}

// derive creates a ChatModelConfig like another one, but for the change.
func (p *pod) derive(from, name string, change func(*v1alpha1.ChatModelConfigSpec)) {
	p.t.Helper()
	var config v1alpha1.ChatModelConfig
	if err := cluster.Client.Get(p.t.Context(), client.ObjectKey{Namespace: p.ns, Name: from}, &config); err != nil {
		p.t.Fatal(err)
	}
	derived := &v1alpha1.ChatModelConfig{ObjectMeta: metav1.ObjectMeta{Namespace: p.ns, Name: name}, Spec: config.Spec}
	change(&derived.Spec)
	create(p.t, derived)
}

// askedOf lets the configuration answer.
func askedOf(config string) func(*v1alpha1.ChatStatus) {
	return func(s *v1alpha1.ChatStatus) { s.Generation.ModelConfig = config }
}
