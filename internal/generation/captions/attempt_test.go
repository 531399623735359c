// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package captions

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/budget"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/modelserver"
)

const (
	question   = "Why would a pod be stuck in ContainerCreating?"
	firstWords = "Why would a pod be stuck…"
)

// talk is a chat whose model "captioned" has titles and summaries by the model "cheap". The test itself replies.
type talk struct {
	*modeltest.World
	t          *testing.T
	chat       *v1beta1.Chat
	history    []v1beta1.ChatMessage
	config     string
	writer     *Writer
	observer   *observe.Observer
	recordings modeltest.Recordings
	created    map[string]v1beta1.ChatMessageSpec
	log        bytes.Buffer
}

func newTalk(t *testing.T, rules ...modelserver.Rule) *talk {
	t.Helper()
	c := &talk{World: modeltest.New(t, modelserver.Script{Rules: rules}), t: t, config: "captioned",
		recordings: modeltest.Recordings{}, created: map[string]v1beta1.ChatMessageSpec{}}
	cheap := &v1beta1.CaptionSettings{ModelConfigRef: &v1beta1.ModelConfigReference{Name: "cheap"}}
	c.Add("cheap", modeltest.Priced, func(s *v1beta1.ChatModelConfigSpec) { s.Model = "cheap" })
	c.Add("captioned", func(s *v1beta1.ChatModelConfigSpec) { s.Titles, s.TurnSummaries = cheap, cheap })
	c.chat = chattest.Chat("c", chattest.UID("u"))
	c.chat.Spec.Debug = &v1beta1.DebugSettings{Enabled: true}
	c.observer = observe.New(observe.Options{Recordings: c.recordings, Chats: 1, Log: slog.New(slog.DiscardHandler),
		Tracer: tracing.Off(), Now: time.Now})
	c.writer = New(Options{Pod: "pod", Models: c.Models, Observer: c.observer, Now: time.Now,
		Create: func(_ context.Context, _ *v1beta1.Chat, name string, spec v1beta1.ChatMessageSpec) error {
			c.created[name] = spec
			return nil
		}})
	return c
}

// attempt begins a turn with the message, and the attempt at it: its model is about to reply.
func (c *talk) attempt(text string) (*Attempt, *models.Target) {
	c.t.Helper()
	name, st := fmt.Sprint("u", len(c.history)), &c.chat.Status
	c.history = append(c.history, *chattest.User("c", name, chattest.Content(text), chattest.Defaulted,
		func(m *v1beta1.ChatMessage) { m.UID = types.UID(name) }))
	st.Turn = &v1beta1.TurnStatus{Message: name, Summary: "Still working", SummarySource: v1beta1.TurnSummaryFromState}
	st.History.Version, st.History.Length = st.History.Version+1, st.History.Length+1
	st.Generation = &v1beta1.GenerationStatus{Attempt: 1, Action: v1beta1.ActionGenerateAssistant, Pod: "pod"}
	if limits := c.chat.Spec.Limits; limits != nil {
		st.Internal.Budgets = budget.Effective(limits.Budget, nil, nil)
	}
	t, failure := c.Target(c.t.Context(), c.config)
	if failure != nil {
		c.t.Fatal(failure)
	}
	chat := c.chat.DeepCopy()
	a := c.writer.Attempt(chat, attempts.Of(chat.UID, &chat.Status), slog.New(slog.NewTextHandler(&c.log, nil)))
	a.SetPreamble("Be lawful.")
	context := c.history[st.History.ContextStart:]
	a.SetHistory(context, "anna")
	a.BeforeReply(c.t.Context(), t, context)
	return a, t
}

// account ends the attempt with a reply, which is committed with the title that it brings.
func (c *talk) account(a *Attempt) *v1beta1.MessageGeneration {
	m := chattest.Answer(c.chat, chattest.Says("The disk is full."))
	g := m.Spec.Generation
	a.Account(g, true)
	c.history = append(c.history, *m)
	c.chat.Status.History.Length++
	if g.Title != "" {
		c.chat.Status.Title, c.chat.Status.TitleSource = g.Title, g.TitleSource
	}
	return g
}

// title is what the reply to the message brings once the calls for titles are over.
func (c *talk) title(text string) *v1beta1.MessageGeneration {
	c.t.Helper()
	a, _ := c.attempt(text)
	c.writer.store.calls.Wait()
	return c.account(a)
}

// summary ends the turn with a reply, and waits until what it has asked for is over.
func (c *talk) summary(change ...func(*v1beta1.MessageGeneration)) {
	c.t.Helper()
	a, t := c.attempt(question)
	m := chattest.Answer(c.chat, chattest.Says("The disk is full."))
	for _, change := range change {
		change(m.Spec.Generation)
	}
	if begin := a.Summary(t, &m.Spec); begin != nil {
		begin(c.t.Context())
	}
	c.writer.store.calls.Wait()
}

// asked are the requests for captions of a kind.
func (c *talk) asked(tool string) (bodies []string) {
	for _, body := range c.Bodies("") {
		if strings.Contains(body, tool) {
			bodies = append(bodies, body)
		}
	}
	return bodies
}

// wantTitle checks the title of a reply, and whether it accounts for the call for it.
func wantTitle(t *testing.T, g *v1beta1.MessageGeneration, title string, source v1beta1.TitleSource, paid bool) {
	t.Helper()
	check.Equal(t, "title, source, paid", []any{title, source, paid}, []any{g.Title, g.TitleSource, g.TitleCall != nil})
}

func fails(status int) modelserver.Reply {
	return modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: status}}
}

// writes is a model that calls the tool for captions, for 40 and 8 tokens.
func writes(tool, input string) modelserver.Rule {
	return modelserver.Rule{Match: modelserver.Match{ToolOffered: tool}, Reply: modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Call(tool, input)}, Usage: &modelserver.Usage{Input: 40, Output: 8}}}
}

var (
	writesTitle   = writes("set_title", `{"title":"\"Stuck pods.\""}`)
	writesSummary = writes("set_summary", `{"summary":"Found a full disk."}`)
	call          = &v1beta1.CallAccount{Usage: v1beta1.TokenUsage{InputTokens: 40, OutputTokens: 8, TotalTokens: 48},
		Model: &v1beta1.ModelIdentity{Config: "cheap", Provider: "openai-compatible", Name: "cheap"},
		Cost:  &v1beta1.Cost{Currency: "EUR", MicroUnits: 56}}
)

func TestTitleComesWithTheFirstReply(t *testing.T) {
	c := newTalk(t, writesTitle)
	c.chat.Spec.SystemPrompt = "Be brief."
	g := c.title(question)
	wantTitle(t, g, "Stuck pods", v1beta1.TitleFromModel, true)
	check.Equal(t, "the call", call, g.TitleCall)
	check.Contains(t, c.LastBody(), question, `"max_tokens":77`, `"Be lawful.\n\nWrite the title`)
	check.Lacks(t, c.LastBody(), "Be brief.")
	wantTitle(t, c.title("And then?"), "", "", false)
	check.Equal(t, "calls", 1, len(c.Bodies("")))
}

func TestCallOfARefusedResultIsPaidLater(t *testing.T) {
	c := newTalk(t, writesTitle)
	a, _ := c.attempt(question)
	c.writer.store.calls.Wait()
	for range 2 {
		g := c.account(a)
		check.Equal(t, "the call", call, g.TitleCall)
		a.ReturnCall(g)
	}
}

func TestSlowTitleComesWithTheNextTurn(t *testing.T) {
	for name, start := range map[string]int64{"in the same context": 0, "in another context": 2} {
		t.Run(name, func(t *testing.T) {
			release := make(chan struct{})
			c := newTalk(t, writesTitle)
			c.HTTP = waits{c.HTTP, release}
			a, _ := c.attempt(question)
			wantTitle(t, c.account(a), firstWords, v1beta1.TitleFromFirstWords, false)
			close(release)
			c.writer.store.calls.Wait()
			c.chat.Status.History.ContextStart = start
			wantTitle(t, c.title("And then?"), "Stuck pods", v1beta1.TitleFromModel, true)
			wantTitle(t, c.title("And then?"), "", "", false)
			check.Equal(t, "calls", 1, len(c.Bodies("")))
		})
	}
}

// waits lets requests through once it may.
type waits struct {
	next http.RoundTripper
	may  <-chan struct{}
}

// RoundTrip implements http.RoundTripper.
func (w waits) RoundTrip(r *http.Request) (*http.Response, error) {
	<-w.may
	return w.next.RoundTrip(r)
}

func TestTitleIsReadOrFirstWordsStandIn(t *testing.T) {
	for name, c := range map[string]struct {
		rules []modelserver.Rule
		want  string
		paid  bool
		calls int
	}{
		"an error":          {[]modelserver.Rule{{Reply: fails(429)}}, firstWords, false, 1},
		"no title":          {[]modelserver.Rule{writes("set_title", `{}`)}, firstWords, true, 1},
		"no tool, no words": {[]modelserver.Rule{{Reply: fails(400)}}, firstWords, false, 2},
		"no tool": {[]modelserver.Rule{{Match: modelserver.Match{ToolOffered: "set_title"}, Reply: fails(400)},
			{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say(`Title: "Stuck pods"`)}}}}, "Stuck pods", true, 2},
	} {
		t.Run(name, func(t *testing.T) {
			talk := newTalk(t, c.rules...)
			source := v1beta1.TitleFromModel
			if c.want == firstWords {
				source = v1beta1.TitleFromFirstWords
			}
			wantTitle(t, talk.title(question), c.want, source, c.paid)
			check.Equal(t, "calls", c.calls, len(talk.Bodies("")))
			check.Equal(t, "the log", "", talk.log.String())
		})
	}
}

func TestTitleIsAskedForOnlyWhereWanted(t *testing.T) {
	for name, c := range map[string]struct {
		change func(*talk)
		want   string
	}{
		"the configuration has none written": {func(c *talk) { c.config = "default" }, firstWords},
		"the chat has one":                   {func(c *talk) { c.chat.Spec.Title = "Mine" }, ""},
		"it has no price for the budget": {func(c *talk) {
			c.chat.Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: "USD", Amount: "1"}}
		}, firstWords},
		"the provider has asked to wait": {func(c *talk) {
			cheap := c.Add("cheap")
			cheap.Status.RetryAfter = new(metav1.NewTime(time.Now().Add(time.Hour)))
			cheap.Status.RetryAfterGeneration = cheap.Generation
		}, firstWords},
		"the context starts later": {func(c *talk) {
			c.history = []v1beta1.ChatMessage{{}, {}}
			c.chat.Status.History.ContextStart = 2
		}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			talk := newTalk(t, writesTitle)
			c.change(talk)
			check.Equal(t, "the title", c.want, talk.title(question).Title)
			check.Equal(t, "calls", 0, len(talk.Bodies("")))
		})
	}
}

func TestRequestedTitleIsOfTheWholeConversation(t *testing.T) {
	for name, requests := range map[string][]v1beta1.HandledRequest{
		"a person asked": {{Kind: v1beta1.RequestTitle, Token: "again"}}, "it was taken back": nil,
	} {
		t.Run(name, func(t *testing.T) {
			c := newTalk(t, modelserver.Rule{Times: 1, Reply: writesTitle.Reply}, modelserver.Rule{Reply: fails(429)})
			c.title(question)
			st := &c.chat.Status
			st.Title, st.TitleSource, st.Requests = "", v1beta1.TitleOutdated, requests
			g := c.title("And where is the log?")
			check.InOrder(t, c.LastBody(), question, "The disk is full.", "And where is the log?")
			wantTitle(t, g, firstWords, v1beta1.TitleFromFirstWords, false) // They stand in for the title that was lost.
		})
	}
}

func TestTurnSummaryIsAMessageWithItsAccount(t *testing.T) {
	c := newTalk(t, writesTitle, writesSummary)
	c.chat.Status.Queue = []v1beta1.QueuedMessage{{Name: "held", HeldUntil: new(metav1.Now())}}
	c.summary()
	m, made := c.created["c-2-summary"]
	if !made {
		t.Fatalf("created are %v", c.created)
	}
	m.Generation.StartedAt, m.Generation.FinishedAt = metav1.MicroTime{}, metav1.MicroTime{}
	check.Equal(t, "the summary", v1beta1.ChatMessageSpec{
		ChatRef: v1beta1.ChatReference{Name: "c"}, Role: v1beta1.RoleAssistant, Generation: &v1beta1.MessageGeneration{
			ChatUID: "u", HistoryVersion: 2, Attempt: 1, Action: v1beta1.ActionSummarizeTurn, Pod: "pod",
			Outcome: v1beta1.OutcomeCompleted, TurnSummary: "Found a full disk", Model: call.Model, Usage: &call.Usage,
			Cost: call.Cost,
		}}, m)
	asked := c.asked("set_summary")
	check.Equal(t, "calls", 1, len(asked))
	check.Contains(t, asked[0], question, "The disk is full.", `"max_tokens":64`, "Be lawful.")
	ended, end := context.WithCancel(t.Context())
	end()
	c.observer.Run(ended)
	check.Contains(t, fmt.Sprint(c.recordings), "c-1-summarizeturn:", "c-1-writetitle:")
}

func TestNoSummaryIsAskedWhereNobodyWaits(t *testing.T) {
	for name, c := range map[string]struct {
		chat  func(*v1beta1.Chat)
		reply func(*v1beta1.MessageGeneration)
	}{
		"a message is queued": {chat: func(c *v1beta1.Chat) {
			c.Status.Queue = []v1beta1.QueuedMessage{{Name: "held", HeldUntil: new(metav1.Now())}, {Name: "next"}}
		}},
		"it has no price for the budget": {chat: func(c *v1beta1.Chat) {
			c.Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: "USD", Amount: "1"}}
		}},
		"the reply costs as much as the chat may": {
			chat: func(c *v1beta1.Chat) {
				c.Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: "EUR", Amount: "0.00002"}}
			},
			reply: func(g *v1beta1.MessageGeneration) { g.Cost = &v1beta1.Cost{Currency: "EUR", MicroUnits: 20} },
		},
		"calls are pending":   {reply: func(g *v1beta1.MessageGeneration) { g.PendingCalls = 1 }},
		"the reply failed":    {reply: func(g *v1beta1.MessageGeneration) { g.Outcome = v1beta1.OutcomeFailed }},
		"tools have run":      {reply: func(g *v1beta1.MessageGeneration) { g.Action = v1beta1.ActionExecuteTools }},
		"nobody waits for it": {},
	} {
		t.Run(name, func(t *testing.T) {
			talk := newTalk(t, writesTitle, writesSummary)
			if c.chat != nil {
				c.chat(talk.chat)
			}
			a, target := talk.attempt(question)
			if c.chat == nil && c.reply == nil {
				a.chat.Status.Turn.SummarySource = ""
			}
			m := chattest.Answer(talk.chat, chattest.Says("The disk is full."))
			if c.reply != nil {
				c.reply(m.Spec.Generation)
			}
			if begin := a.Summary(target, &m.Spec); begin != nil {
				begin(t.Context())
			}
			talk.writer.store.calls.Wait()
			check.Equal(t, "calls", 0, len(talk.asked("set_summary")))
		})
	}
}

func TestFailedSummaryIsNoFaultAndIsPaid(t *testing.T) {
	silent := writes("set_summary", `{}`)
	silent.Reply.Usage = &modelserver.Usage{}
	for name, c := range map[string]struct {
		rule  modelserver.Rule
		spent int64
	}{
		"an error":                {modelserver.Rule{Reply: fails(429)}, 0},
		"no summary and no usage": {silent, 0},
		"no summary":              {writes("set_summary", `{}`), 48},
	} {
		t.Run(name, func(t *testing.T) {
			talk := newTalk(t, writesTitle, c.rule)
			talk.summary()
			m, made := talk.created["c-2-summary"]
			if check.Equal(t, "created", c.spent > 0, made); made {
				check.Equal(t, "text, tokens, cost", []any{"", c.spent, int64(56)},
					[]any{m.Generation.TurnSummary, m.Generation.Usage.TotalTokens, m.Generation.Cost.MicroUnits})
			}
			check.Equal(t, "the log", "", talk.log.String())
		})
	}
}

func TestThinkingModelWritesACaptionWithoutThinking(t *testing.T) {
	for model, c := range map[string]struct {
		sent, not string
	}{
		"claude-sonnet-4-5": {`"max_tokens":64`, "thinking"},
		"claude-opus-5":     {`"thinking":{"type":"disabled"}`, "adaptive"},
		"claude-opus-5-5":   {`"max_tokens":2112`, "thinking"},
	} {
		t.Run(model, func(t *testing.T) {
			talk := newTalk(t, writesTitle, writesSummary)
			talk.Add("cheap", func(s *v1beta1.ChatModelConfigSpec) {
				s.Provider, s.BaseURL, s.Model = v1beta1.ProviderAnthropic, talk.URL, model
				s.ProviderOptions = &v1beta1.ProviderOptions{Anthropic: &v1beta1.AnthropicOptions{
					Thinking: &v1beta1.AnthropicThinking{BudgetTokens: 10000}}}
				s.MaxOutputTokens = new(int64(32000))
			})
			talk.summary()
			asked := talk.asked("set_summary")
			check.Equal(t, "calls", 1, len(asked))
			check.Contains(t, asked[0], c.sent)
			check.Lacks(t, asked[0], c.not)
		})
	}
}
