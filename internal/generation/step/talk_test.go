// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"testing"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/budget"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/generation/sources"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/builtin"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/kit/waiting"
	"parley.dev/parley/test/modelserver"
)

// patience is how long a test waits for what must happen.
const patience = 30 * time.Second

// talk is a chat whose steps are performed one after the other: with real models over HTTP, but without an API server.
type talk struct {
	*modeltest.World
	t       *testing.T
	chat    *v1beta1.Chat
	history []v1beta1.ChatMessage
	// options of the steps.
	options    Options
	recordings modeltest.Recordings
	observer   *observe.Observer
	steps      *Steps
	shown      *published
	log        bytes.Buffer
}

// newTalk is a chat of the spec whose models follow the script.
func newTalk(t *testing.T, script modelserver.Script, change ...func(*v1beta1.ChatSpec)) *talk {
	t.Helper()
	c := &talk{World: modeltest.New(t, script), t: t, recordings: modeltest.Recordings{}, shown: &published{}}
	c.chat = chattest.In(modeltest.Namespace, chattest.Chat("c", chattest.UID(chatUID)))
	for _, change := range change {
		change(&c.chat.Spec)
	}
	c.observer = observe.New(observe.Options{Namespace: modeltest.Namespace, Recordings: c.recordings, Chats: 1,
		Log: slog.New(slog.NewJSONHandler(&c.log, nil)), Tracer: tracing.Off(), Now: time.Now})
	c.options = Options{
		Namespace: modeltest.Namespace, Models: c.Models, Now: time.Now, PromptMemory: DefaultPromptMemory,
		Sources: sources.New(sources.Options{Client: c.API, HTTP: http.DefaultClient, Now: time.Now, Forbidden: time.Minute}),
		Message: func(context.Context, string) *v1beta1.ChatMessage { return nil },
		Tools:   tools.NewRegistry(builtin.CurrentTime{Now: func() time.Time { return time.Unix(0, 0) }}),
		Expect:  func(context.Context) func() { return func() {} },
	}
	return c
}

// with gives the chat other tools.
func (c *talk) with(all ...tools.Tool) *talk {
	c.options.Tools = tools.NewRegistry(all...)
	return c
}

// say begins a turn with the message.
func (c *talk) say(text string) {
	c.put(chattest.In(modeltest.Namespace,
		chattest.User("c", fmt.Sprint("u", len(c.history)), chattest.Content(text), chattest.Defaulted)))
}

// put begins a turn with a message of people.
func (c *talk) put(m *v1beta1.ChatMessage) {
	c.chat.Status.Turn = &v1beta1.TurnStatus{Message: m.Name, Parent: c.chat.Status.History.Head,
		Index: c.chat.Status.History.Length}
	c.commit(m)
}

func (c *talk) commit(m *v1beta1.ChatMessage) {
	st := &c.chat.Status.History
	c.history = append(c.history, *m)
	st.Version, st.Head, st.Length = st.Version+1, m.Name, st.Length+1
}

// ask begins a turn with the message, and returns the reply to it.
func (c *talk) ask(text string) *v1beta1.ChatMessage {
	c.t.Helper()
	c.say(text)
	return c.reply()
}

// reply lets the model reply.
func (c *talk) reply() *v1beta1.ChatMessage {
	c.t.Helper()
	return c.perform(c.t.Context(), v1beta1.ActionGenerateAssistant)
}

// execute runs the calls of the newest reply.
func (c *talk) execute() *v1beta1.ChatMessage {
	c.t.Helper()
	return c.perform(c.t.Context(), v1beta1.ActionExecuteTools)
}

// result is the result of the only call.
func (c *talk) result() *v1beta1.ToolResult {
	c.t.Helper()
	m := c.execute()
	if len(m.Spec.Parts) != 1 || m.Spec.Parts[0].ToolResult == nil {
		c.t.Fatalf("the step is %+v with %+v", m.Spec, m.Spec.Generation.Error)
	}
	return m.Spec.Parts[0].ToolResult
}

// compact asks for a summary, and lets it take the place of what it stands for.
func (c *talk) compact(source v1beta1.CompactionSource) *v1beta1.ChatMessage {
	c.t.Helper()
	c.chat.Status.Internal.Compaction = source
	m := c.perform(c.t.Context(), v1beta1.ActionCompact)
	if account := m.Spec.Generation.Compaction; account != nil {
		c.chat.Status.History.ContextStart = account.ContextStart
	}
	return m
}

// perform performs the step that the chat's status asks for, commits what is completed, and returns the message that
// the pod would create.
func (c *talk) perform(ctx context.Context, action v1beta1.GenerationAction) *v1beta1.ChatMessage {
	c.t.Helper()
	st := &c.chat.Status
	config, attempt := "default", int32(1)
	if g := st.Generation; g != nil {
		config, attempt = g.ModelConfig, max(1, g.Attempt)
	}
	st.Generation = &v1beta1.GenerationStatus{Attempt: attempt, Action: action, Pod: "pod", ModelConfig: config}
	if limits := c.chat.Spec.Limits; limits != nil {
		st.Internal.Budgets = budget.Effective(limits.Budget, nil, nil)
	}
	if c.steps == nil {
		c.steps = New(c.options)
	}
	chat, of := c.steps.Settle(c.chat.DeepCopy()), attempts.Of(c.chat.UID, st)
	ctx, observed := c.observer.Begin(ctx, chat, of)
	p := c.steps.Performer(Task{Chat: chat, Fence: of, Observed: observed, Log: slog.New(slog.DiscardHandler),
		BeforeReply: func(*models.Target, []v1beta1.ChatMessage) {}})
	p.Prepare(ctx)
	o := p.Perform(ctx, c.history[st.History.ContextStart:], c.shown)
	m, g := chattest.Answer(chat), p.Account(o)
	was := m.Spec.Generation
	g.ChatUID, g.HistoryVersion, g.Attempt, g.Action, g.Pod = was.ChatUID, was.HistoryVersion, was.Attempt, action, "pod"
	m.Spec.Parts, m.Spec.Generation, g.Outcome, g.Error = o.Content.Parts, g, o.Kind, o.Err
	if o.Kind == v1beta1.OutcomeCompleted {
		c.commit(m)
	}
	st.Generation.Attempt = 1
	return m
}

// interrupted performs the step, and interrupts it once the condition holds.
func (c *talk) interrupted(action v1beta1.GenerationAction, once func() bool) *v1beta1.ChatMessage {
	c.t.Helper()
	ctx, interrupt := context.WithCancelCause(c.t.Context())
	defer interrupt(nil)
	go func() {
		for !once() && ctx.Err() == nil {
			<-time.After(time.Millisecond)
		}
		interrupt(ErrInterrupted)
	}()
	return c.perform(ctx, action)
}

// on lets the configuration answer from now on.
func (c *talk) on(config string) *talk {
	c.chat.Status.Generation = &v1beta1.GenerationStatus{ModelConfig: config}
	return c
}

// attempt makes the next step the n-th attempt at it.
func (c *talk) attempt(n int32) { c.chat.Status.Generation.Attempt = n }

// decide is a person's decision about a call of the turn.
func (c *talk) decide(call *v1beta1.ToolCall, decision v1beta1.ApprovalDecision) {
	c.chat.Status.Internal.Turn.Decisions = []v1beta1.ToolDecision{{ID: call.ID, Decision: decision, Approval: "a",
		By: "anna", Digest: approval.Of(call).Digest}}
}

func (c *talk) eventually(what string, condition func() bool) {
	c.t.Helper()
	waiting.Until(c.t, patience, what, condition)
}

// recorded are the recordings of the chat's calls, by name.
func (c *talk) recorded() modeltest.Recordings {
	ended, end := context.WithCancel(c.t.Context())
	end()
	c.observer.Run(ended) // It writes what is left.
	return c.recordings
}

func debugged(s *v1beta1.ChatSpec) { s.Debug = &v1beta1.DebugSettings{Enabled: true} }

// published are the parts that steps publish.
type published struct {
	mu  sync.Mutex
	all []parts.Part
}

// Publish implements Publisher.
func (p *published) Publish(_ string, part parts.Part) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.all = append(p.all, part)
}

// parts are those that were published so far.
func (p *published) parts() []parts.Part {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.all)
}

// text is what was published so far.
func (p *published) text() (text string) {
	for _, part := range p.parts() {
		text += part.Text
	}
	return text
}

// replies is a model that answers each request with these steps.
func replies(steps ...modelserver.Step) modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: steps}}}}
}

// readsBack is a model that makes the calls, and then says what the results are.
func readsBack(calls ...modelserver.ToolCall) modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{ToolResults: new(0)},
			Reply: modelserver.Reply{Steps: []modelserver.Step{{ToolCalls: calls}}}},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{{
			Text: &modelserver.Text{Value: "I read: {{.ToolResultsText}}"},
		}}}},
	}}
}

func call(name, input string) modelserver.ToolCall {
	return modelserver.ToolCall{Name: name, Arguments: json.RawMessage(input)}
}

// usesClock calls current_time and a tool that does not exist.
var usesClock = readsBack(call("current_time", `{"timezone":"Asia/Tokyo"}`), call("launch", `{}`))

// doing is a tool that does what it says.
type doing struct {
	name string
	run  func(ctx context.Context, call tools.Call) (string, error)
	tools.Traits
}

func (d doing) Definition() tools.Definition {
	return tools.Definition{Name: d.name, InputSchema: map[string]any{"type": "object"}, Traits: d.Traits}
}

func (d doing) Run(ctx context.Context, call tools.Call) (string, error) {
	if d.run == nil {
		return "done", nil
	}
	return d.run(ctx, call)
}

// toolCall is the n-th part of the message.
func toolCall(m *v1beta1.ChatMessage, n int) *v1beta1.ToolCall { return m.Spec.Parts[n].ToolCall }

// offered are the names of the tools in a request of OpenAI's protocol, in order.
func offered(t *testing.T, body string) (names []string) {
	t.Helper()
	var sent struct {
		Tools []struct{ Function struct{ Name string } }
	}
	check.OK(t, json.Unmarshal([]byte(body), &sent))
	for _, tool := range sent.Tools {
		names = append(names, tool.Function.Name)
	}
	slices.Sort(names)
	return names
}
