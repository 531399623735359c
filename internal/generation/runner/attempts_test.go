// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"unicode/utf8"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/test/modelserver"
)

func reply(steps ...modelserver.Step) modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: steps}}}}
}

func TestAStepIsOneMessageThatAccountsForItself(t *testing.T) {
	t.Parallel()
	script := reply(modelserver.Think("It is ", "a capital."), modelserver.Say("\n", "Paris", ".\nOf course."))
	script.Rules[0].Reply.Usage = &modelserver.Usage{Input: 100, Output: 50, Cached: 40, Reasoning: 20}
	p := startPod(t, script, nil)
	c := p.newChat("capital", func(s *v1alpha1.ChatSpec) { s.SystemPrompt = "Be brief." })
	c.ask("capital-prompt", "What is the capital of France?")
	m := c.result()

	if m.Name != "capital-1-1" || m.Spec.ChatRef.Name != "capital" || m.Spec.Role != v1alpha1.RoleAssistant ||
		m.Spec.Parent != "capital-prompt" || m.Spec.Index == nil || *m.Spec.Index != 1 {
		t.Errorf("got %s: %+v", m.Name, m.Spec)
	}
	owner := m.OwnerReferences
	if len(owner) != 1 || owner[0].UID != c.chat.UID || owner[0].Kind != "Chat" ||
		owner[0].APIVersion != "parley.dev/v1alpha1" ||
		owner[0].Controller == nil || !*owner[0].Controller || owner[0].BlockOwnerDeletion != nil {
		t.Errorf("the owner is %+v", owner)
	}
	if len(m.Spec.Parts) != 2 || *m.Spec.Parts[0].Text != "It is a capital." ||
		*m.Spec.Parts[1].Text != "\nParis.\nOf course." {
		t.Errorf("the parts are %+v", m.Spec.Parts)
	}
	g := m.Spec.Generation
	if g.HistoryVersion != 1 || g.Attempt != 1 || g.Action != v1alpha1.ActionGenerateAssistant || g.Pod != p.name ||
		g.Outcome != v1alpha1.OutcomeCompleted || g.Truncated || g.FinishReason != "stop" || g.PendingCalls != 0 ||
		g.Preview != "Paris." {
		t.Errorf("the account is %+v", g)
	}
	if *g.Model != (v1alpha1.ModelIdentity{Config: "default", Provider: "openai-compatible", Name: "scripted"}) {
		t.Errorf("the model is %+v", g.Model)
	}
	if *g.Usage != (v1alpha1.TokenUsage{InputTokens: 60, OutputTokens: 50, ReasoningTokens: 20, CacheReadTokens: 40,
		TotalTokens: 150}) {
		t.Errorf("the usage is %+v", g.Usage)
	}
	if g.StartedAt.IsZero() || g.FinishedAt.Before(&g.StartedAt) {
		t.Errorf("it took from %s to %s", g.StartedAt, g.FinishedAt)
	}
	text, types := p.relay.heard(c.fence())
	if text != "It is a capital.\nParis.\nOf course." || types[0] != parts.Reasoning {
		t.Errorf("the relay heard %q in %v", text, types)
	}
	c.eventually("the episode is closed", func() bool { return p.relay.isClosed(c.fence()) })
	body := string(p.models.Requests()[0].Body)
	for _, want := range []string{"Be brief.", "capital of France", `"current_time"`, `77`} {
		if !strings.Contains(body, want) {
			t.Errorf("the request has no %s: %s", want, body)
		}
	}
	if p.log.String() != "" {
		t.Errorf("an attempt in which nothing is wrong logged %s", p.log)
	}
}

func TestChatsAreWatchedOnceTheRelayTakesParts(t *testing.T) {
	t.Parallel()
	watched := -1
	startPod(t, reply(modelserver.Say("Paris.")), func(p *pod, o *runner.Options) {
		o.AwaitRelay = func(context.Context) {
			p.wire.mu.Lock()
			defer p.wire.mu.Unlock()
			watched = p.wire.count["get chats"]
		}
	})
	if watched != 0 {
		t.Errorf("chats had been asked for %d times when the relay was waited for; -1: it was not", watched)
	}
}

func TestVerboseLogsSayHowAttemptsWentButNotWhatWasSaid(t *testing.T) {
	t.Parallel()
	p := startPod(t, reply(modelserver.Say("Paris.")), func(p *pod, o *runner.Options) {
		o.Log = slog.New(slog.NewJSONHandler(p.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	})
	c := p.newChat("verbose", nil)
	c.ask("verbose-prompt", "What is the capital of France?")
	c.result()
	p.eventually("the end is logged", func() bool { return strings.Contains(p.log.String(), "Attempt ended") })
	for _, want := range []string{
		`"msg":"Attempt started","attempt":{"chat":"verbose","historyVersion":1,"number":1},"action":"GenerateAssistant",` +
			`"modelConfig":"default"`,
		`"outcome":"Completed"`,
	} {
		if !strings.Contains(p.log.String(), want) {
			t.Errorf("%s is not in %s", want, p.log)
		}
	}
	for _, content := range []string{"capital of", "Paris"} {
		if strings.Contains(p.log.String(), content) {
			t.Errorf("%q is in %s", content, p.log)
		}
	}
}

// usesTool is a model that calls current_time and then says what it got.
var usesTool = modelserver.Script{Rules: []modelserver.Rule{
	{Match: modelserver.Match{ToolOffered: "current_time", ToolResults: new(0)},
		Reply: modelserver.Reply{Steps: []modelserver.Step{
			{ToolCalls: []modelserver.ToolCall{
				{Name: "current_time", Arguments: []byte(`{"timezone":"Asia/Tokyo"}`)}, {Name: "launch", Arguments: []byte(`{}`)},
			}},
		}}},
	{Reply: modelserver.Reply{
		Steps: []modelserver.Step{{Text: &modelserver.Text{Value: "I read: {{.ToolResultsText}}"}}}}},
}}

func TestToolsAreAnsweredAndTheHistoryIsKeptAtHand(t *testing.T) {
	t.Parallel()
	p := startPod(t, usesTool, nil)
	c := p.newChat("clock", nil)
	c.ask("clock-prompt", "What time is it?")
	calls := c.result()
	if calls.Spec.Generation.PendingCalls != 2 || calls.Spec.Generation.ReplyOutcome != v1alpha1.ReplyToolCalls ||
		len(calls.Spec.Parts) != 2 {
		t.Fatalf("got %+v, %+v", calls.Spec.Generation, calls.Spec.Parts)
	}
	if n := p.wire.requests("get chatmessages"); n != 1 {
		t.Errorf("the first step read %d messages, want 1", n)
	}

	c.commit(calls, v1alpha1.ActionExecuteTools)
	results := c.result()
	if results.Spec.Role != v1alpha1.RoleTool || results.Spec.Parent != calls.Name || *results.Spec.Index != 2 ||
		len(results.Spec.Parts) != 2 ||
		results.Spec.Generation.Model != nil || results.Spec.Generation.Action != v1alpha1.ActionExecuteTools {
		t.Fatalf("got %+v", results.Spec)
	}
	clock, launch := results.Spec.Parts[0].ToolResult, results.Spec.Parts[1].ToolResult
	if clock.ID != calls.Spec.Parts[0].ToolCall.ID || clock.IsError ||
		!strings.Contains(clock.Output, "1970-01-01T09:00:00+09:00") {
		t.Errorf("the first result is %+v", clock)
	}
	if launch.ID != calls.Spec.Parts[1].ToolCall.ID || !launch.IsError ||
		!strings.Contains(launch.Output, "current_time") {
		t.Errorf("the second result is %+v", launch)
	}
	_, types := p.relay.heard(c.fence())
	slices.Sort(types) // The two calls run at the same time.
	if !slices.Equal(types, []parts.Type{parts.ToolResult, parts.ToolResult, parts.ToolStart, parts.ToolStart}) {
		t.Errorf("the relay heard %v", types)
	}
	c.eventually("the episode is closed", func() bool { return p.relay.isClosed(c.fence()) })

	c.commit(results, v1alpha1.ActionGenerateAssistant)
	answer := c.result()
	if got := textOf(t, answer); !strings.Contains(got, "1970-01-01T09:00:00+09:00") {
		t.Errorf("the model answered %q", got)
	}
	c.commit(answer, "")
	if n := p.wire.requests("get chatmessages"); n != 0 {
		t.Errorf("the later steps read %d messages, want none", n)
	}

	c.ask("clock-more", "And now?")
	c.result()
	if gets, lists := p.wire.requests("get chatmessages"), p.wire.requests("list chatmessages"); gets != 1 || lists != 0 {
		t.Errorf("the next turn read %d messages and %d lists, want 1 and none", gets, lists)
	}
}

func TestAColdPodListsALongHistoryOnce(t *testing.T) {
	t.Parallel()
	p := startPod(t, modelserver.Script{}, nil)
	c := p.newChat("long", nil)
	for i := range 6 {
		name := fmt.Sprint("long-u", i)
		c.ask(name, fmt.Sprint("question ", i))
		c.commit(c.result(), "")
		// The reconciler has written the message's status before it begins another turn.
		m := p.message(name)
		m.Status.State, m.Status.Parent, m.Status.Index = v1alpha1.MessageCommitted, c.chat.Status.Turn.Parent,
			&c.chat.Status.Turn.Index
		if err := cluster.Client.Status().Update(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}
	p.stop()
	p.launch(nil)
	c.ask("long-last", "the last question")
	c.result()
	if gets, lists := p.wire.requests("get chatmessages"), p.wire.requests("list chatmessages"); gets > 4 || lists != 1 {
		t.Errorf("read %d messages and %d lists, want at most 4 and 1", gets, lists)
	}
	requests := p.models.Requests()
	body := string(requests[len(requests)-1].Body)
	at := -1
	for _, want := range []string{"question 0", "question 1", "question 2", "question 3", "question 4", "question 5",
		"the last question"} {
		i := strings.LastIndex(body, want)
		if i <= at {
			t.Errorf("%q is missing or out of order in %s", want, body)
		}
		at = i
	}
}

func TestAMessageThatWasReadBeforeItsStatusWasWrittenKeepsItsPlace(t *testing.T) {
	t.Parallel()
	p := startPod(t, modelserver.Script{Rules: []modelserver.Rule{
		{Times: 1, Reply: modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: 503}}},
	}}, nil)
	c := p.newChat("twice", nil)
	c.ask("twice-one", "first") // Its status is not written yet.
	c.failure(v1alpha1.ErrorOverloaded)
	m := p.message("twice-one")
	// The reconciler has written it before it begins another turn.
	m.Status.State, m.Status.Parent, m.Status.Index = v1alpha1.MessageCommitted, c.chat.Status.Turn.Parent,
		&c.chat.Status.Turn.Index
	if err := cluster.Client.Status().Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	c.ask("twice-two", "second")
	if m = c.result(); m.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted {
		t.Errorf("got %+v", m.Spec.Generation.Error)
	}
}

func TestAReplyThatIsTooLargeIsCutAndTheCallIsEnded(t *testing.T) {
	t.Parallel()
	script := reply(modelserver.Step{Text: &modelserver.Text{
		Repeat: &modelserver.Repeat{Text: "größer <b>\"so\"</b> \n", Bytes: 8 << 20}, PieceBytes: 4000,
	}})
	p := startPod(t, script, nil)
	ended := make(chan struct{})
	release := sync.OnceFunc(func() { close(ended) })
	t.Cleanup(release)
	p.wire.onCreate(func(*http.Request, http.RoundTripper) (*http.Response, error) {
		<-ended // The call is over before its result is there, however long that takes.
		return nil, nil
	})
	c := p.newChat("huge", nil)
	c.ask("huge-u", "Go on for ever.")
	p.eventually("the request is over", func() bool { return len(p.models.Requests()) > 0 && p.models.InFlight() == 0 })
	release()
	m := c.result()
	if g := m.Spec.Generation; g.Outcome != v1alpha1.OutcomeCompleted || !g.Truncated {
		t.Fatalf("got outcome %s, truncated %v, error %+v", g.Outcome, g.Truncated, g.Error)
	}
	if text := textOf(t, m); len(text) < v1alpha1.MaxContentBytes/3 || !utf8.ValidString(text) {
		t.Errorf("kept %d bytes", len(text))
	}
	if !p.models.Requests()[0].Aborted {
		t.Error("the model was heard to the end")
	}
}
