// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// conversation plays the reconciler for one chat: it alone writes the chat's status.
type conversation struct {
	*pod
	chat *v1beta1.Chat
	// config is the name of the ChatModelConfig that attempts use.
	config string
}

func (p *pod) newChat(name string, change func(*v1beta1.ChatSpec)) *conversation {
	p.t.Helper()
	chat := chattest.In(p.ns, chattest.Chat(name))
	if change != nil {
		change(&chat.Spec)
	}
	create(p.t, chat)
	return &conversation{p, chat, "default"}
}

// write changes the chat's status.
func (c *conversation) write(change func(*v1beta1.ChatStatus)) {
	c.t.Helper()
	err := retry.RetryOnConflict(retry.DefaultRetry, func() error {
		if err := cluster.Client.Get(c.t.Context(), client.ObjectKeyFromObject(c.chat), c.chat); err != nil {
			return err
		}
		change(&c.chat.Status)
		return cluster.Client.Status().Update(c.t.Context(), c.chat)
	})
	if err != nil {
		c.t.Fatalf("writing the status of chat %s: %v", c.chat.Name, err)
	}
}

// has gives the chat a class of that name, as the operator would decide.
func (c *conversation) has(name string, change func(*v1beta1.ChatClassSpec)) *v1beta1.ChatClass {
	c.t.Helper()
	class := chattest.In(c.ns, chattest.Class(name, change))
	create(c.t, class)
	c.write(func(s *v1beta1.ChatStatus) {
		s.ChatClass = &v1beta1.AppliedChatClass{Name: name, UID: string(class.UID), Generation: class.Generation}
	})
	return class
}

// say creates a User message without assigning the chat.
func (c *conversation) say(name, text string) *v1beta1.ChatMessage {
	c.t.Helper()
	m := chattest.In(c.ns, chattest.User(c.chat.Name, name, chattest.Content(text)))
	create(c.t, m)
	// The pod reads a message once more if the API server's own cache is late, and tests count requests.
	fromCache := &client.GetOptions{Raw: &metav1.GetOptions{ResourceVersion: "0"}}
	c.eventually("the API server's cache has the message", func() bool {
		cached := &v1beta1.ChatMessage{}
		err := cluster.Client.Get(c.t.Context(), client.ObjectKeyFromObject(m), cached, fromCache)
		return err == nil && cached.UID == m.UID
	})
	return m
}

// ask creates a User message, begins a turn with it and assigns the chat, changing its status in the same write. The
// message's own status stays unwritten.
func (c *conversation) ask(name, text string, change ...func(*v1beta1.ChatStatus)) {
	c.t.Helper()
	m := c.say(name, text)
	c.write(func(s *v1beta1.ChatStatus) {
		commit := v1beta1.CommittedMessage{Message: name, UID: string(m.UID), Parent: s.History.Head,
			Position: s.History.Length, HistoryVersion: s.History.Version + 1, ContentHash: hashOf(text)}
		s.Turn = &v1beta1.TurnStatus{Message: name, Parent: commit.Parent, Index: commit.Position,
			HistoryVersion: commit.HistoryVersion}
		s.Internal.Turn.ContentHash, s.Internal.Turn.MessageUID = commit.ContentHash, commit.UID
		s.Internal.Tail = append(s.Internal.Tail, commit)
		s.History = v1beta1.HistoryStatus{Version: s.History.Version + 1, Head: name, Length: s.History.Length + 1}
		s.Generation = c.assignment(v1beta1.ActionGenerateAssistant, 1)
		for _, change := range change {
			change(s)
		}
	})
}

// hashOf is the hash of a message that says the text.
func hashOf(text string) string { return content.Hash(&v1beta1.ChatMessageSpec{Content: text}) }

func (c *conversation) assignment(action v1beta1.GenerationAction, attempt int32) *v1beta1.GenerationStatus {
	return &v1beta1.GenerationStatus{Attempt: attempt, Action: action, Pod: c.name, ModelConfig: c.config,
		StartedAt: metav1.NowMicro()}
}

// commit makes the message the head, with an action to follow or none.
func (c *conversation) commit(m *v1beta1.ChatMessage, next v1beta1.GenerationAction) {
	c.t.Helper()
	c.write(func(s *v1beta1.ChatStatus) {
		s.History = v1beta1.HistoryStatus{Version: s.History.Version + 1, Head: m.Name, Length: s.History.Length + 1}
		s.Generation, s.Internal.Tail = nil, nil
		if next != "" {
			s.Generation = c.assignment(next, 1)
		}
	})
}

// fence is that of the attempt under way.
func (c *conversation) fence() fence.Fence {
	return attempts.Of(c.chat.UID, &c.chat.Status)
}

// resultName is the name of the result of the attempt under way.
func (c *conversation) resultName() string {
	return c.fence().ResultName(c.chat.Name)
}

// message reads a message; nil if it does not exist.
func (p *pod) message(name string) *v1beta1.ChatMessage {
	p.t.Helper()
	if m := chattest.In(p.ns, &v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: name}}); p.read(m) {
		return m
	}
	return nil
}

// read reads the object, and reports whether it exists.
func (p *pod) read(o client.Object) bool {
	p.t.Helper()
	err := cluster.Client.Get(p.t.Context(), client.ObjectKeyFromObject(o), o)
	if err != nil && !apierrors.IsNotFound(err) {
		p.t.Fatalf("reading %s: %v", o.GetName(), err)
	}
	return err == nil
}

// result waits for the result of the attempt under way.
func (c *conversation) result() *v1beta1.ChatMessage {
	c.t.Helper()
	var m *v1beta1.ChatMessage
	c.eventually("message "+c.resultName()+" exists", func() bool {
		m = c.message(c.resultName())
		return m != nil && m.Spec.Generation.ChatUID == string(c.chat.UID)
	})
	return m
}

// ended waits for the result, and checks its outline.
func (c *conversation) ended(want string) *v1beta1.ChatMessage {
	c.t.Helper()
	m := c.result()
	g := m.Spec.Generation
	got := string(g.Outcome)
	if g.Error != nil {
		got += " " + string(g.Error.Reason)
	}
	if len(m.Spec.Parts) > 0 {
		got += ": " + m.Spec.Text()
	}
	check.Equal(c.t, "how "+m.Name+" ended", want, got)
	return m
}

// label edits a label of the chat, so that the watch reports it once more.
func (c *conversation) label(value string) {
	c.t.Helper()
	patch := client.RawPatch("application/merge-patch+json", fmt.Appendf(nil, `{"metadata":{"labels":{"edited":%q}}}`,
		value))
	check.OK(c.t, cluster.Client.Patch(c.t.Context(), c.chat, patch))
}

// settled asks a chat of its own for an answer: what the pod was told before has been looked at by then.
func (p *pod) settled() {
	p.t.Helper()
	c := p.newChat("settled-"+fmt.Sprint(time.Now().UnixNano()), nil)
	c.ask(c.chat.Name+"-u", "settled?")
	c.result()
}

// lastBody is the newest request that the model got.
func (p *pod) lastBody() string {
	requests := p.models.Requests()
	return string(requests[len(requests)-1].Body)
}

func interrupt(s *v1beta1.ChatStatus) { s.Phase = v1beta1.ChatInterrupting }

// Security (an author of messages): cannot omit the namespace's text for all its chats.
func TestClassesOfTheChatShapeTheCall(t *testing.T) {
	t.Parallel()
	p := startPod(t, usesTool, nil)
	c := p.newChat("classed", func(s *v1beta1.ChatSpec) { s.SystemPrompt = "Be brief." })
	c.has("coder", func(s *v1beta1.ChatClassSpec) {
		s.Preamble = "Be safe."
		s.Defaults.Debug = &v1beta1.DebugSettings{Enabled: true}
		s.Restrictions = &v1beta1.ChatRestrictions{Tools: &v1beta1.ToolPolicy{
			Allow: []v1beta1.ToolPattern{"current_*"}, Approval: []v1beta1.ToolPattern{"current_time"},
		}}
	})
	everybody := chattest.In(c.ns, chattest.Class("everybody", func(s *v1beta1.ChatClassSpec) {
		s.Default, s.NamespacePreamble, s.Preamble = true, "Be lawful.", "Of another class."
	}))
	create(t, everybody)
	c.config = "captioned"
	c.ask("classed-1", "What time is it?", func(s *v1beta1.ChatStatus) {
		s.NamespaceClass = &v1beta1.AppliedChatClass{Name: everybody.Name, UID: string(everybody.UID),
			Generation: everybody.Generation}
	})
	reply := c.result()
	check.Equal(t, "the action", v1beta1.RequiresApproval, reply.Spec.Parts[0].ToolCall.RequiresAction)
	p.eventually("both calls were made", func() bool { return len(p.models.Requests()) == 2 })
	bodies := string(p.models.Requests()[0].Body) + string(p.models.Requests()[1].Body)
	check.Contains(t, bodies, `"Be lawful.\n\nBe safe.\n\nBe brief.`, `"Be lawful.\n\nWrite the title`, `"name":"current_time"`)
	check.Lacks(t, bodies, `"name":"wait_agent"`, "Of another class")
	p.eventually("the call is recorded", func() bool {
		return p.read(chattest.In(p.ns, &v1beta1.ChatDebugStep{
			ObjectMeta: metav1.ObjectMeta{Name: "classed-1-generateassistant"}}))
	})
}

func TestNothingIsDoneWithoutTheChatsClass(t *testing.T) {
	t.Parallel()
	var asked atomic.Int32
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		asked.Add(1)
		w.WriteHeader(http.StatusTeapot)
	}))
	t.Cleanup(server.Close)
	p := startPod(t, modelserver.Script{}, func(_ *pod, o *runner.Options) {
		o.MCP = mcp.New(mcp.Options{HTTP: httpguard.Settings{Loopback: true}.Client, Log: o.Log, Now: o.Now})
	})
	c := p.newChat("orphaned", func(s *v1beta1.ChatSpec) {
		s.MCPServers = []v1beta1.MCPServer{{Name: "s", URL: server.URL}}
	})
	class := c.has("gone", func(*v1beta1.ChatClassSpec) {})
	check.OK(t, cluster.Client.Delete(t.Context(), class, client.Preconditions{UID: &class.UID}))
	c.write(func(s *v1beta1.ChatStatus) { s.ChatClass.Generation++ }) // Also where the watch has not told yet.
	c.ask("orphaned-1", "hello")
	e := c.ended("Failed ChatClassNotFound").Spec.Generation.Error
	check.Equal(t, "the error", []any{"ChatClass gone no longer exists", true}, []any{e.Message, e.Retryable})
	check.Equal(t, "calls of models and servers", []int{0, 0}, []int{len(p.models.Requests()), int(asked.Load())})
}

// doing is a tool of that name that does nothing.
type doing struct {
	name string
	tools.Traits
}

func (d doing) Definition() tools.Definition {
	return tools.Definition{Name: d.name, InputSchema: map[string]any{"type": "object"}, Traits: d.Traits}
}

func (doing) Run(context.Context, tools.Call) (string, error) { return "done", nil }

func TestSubChatKeepsTheRulesOfTheWorkspace(t *testing.T) {
	t.Parallel()
	var root *conversation
	p := startPod(t, reply(modelserver.Call("execute", `{}`)), func(_ *pod, o *runner.Options) {
		o.Tools = tools.NewRegistry(doing{"execute", tools.Traits{NeedsWorkspace: true}}, doing{name: "look"})
		o.WorkspaceOwner = func(context.Context, *v1beta1.Chat) (*v1beta1.Chat, error) { return root.chat, nil }
		o.AdvisorUses = new(int32(0))
	})
	root = p.newChat("root", nil)
	root.has("coder", func(s *v1beta1.ChatClassSpec) {
		s.Restrictions = &v1beta1.ChatRestrictions{Tools: &v1beta1.ToolPolicy{Deny: []v1beta1.ToolPattern{"execute"}}}
	})
	sub := p.newChat("sub", func(s *v1beta1.ChatSpec) { s.ParentRef = &v1beta1.ChatReference{Name: "root"} })
	sub.ask("sub-1", "Run it.", func(s *v1beta1.ChatStatus) { s.Internal.Attempt.HasWorkspace = true })
	reply := sub.result()
	check.Equal(t, "the refusal", v1beta1.RefusalNotAllowed, reply.Spec.Parts[0].ToolCall.Refusal)
	check.Lacks(t, p.lastBody(), `"name":"execute"`)
	check.Contains(t, p.lastBody(), `"name":"look"`)
	sub.commit(reply, v1beta1.ActionExecuteTools)
	check.Equal(t, "the call failed", true, sub.result().Spec.Parts[0].ToolResult.IsError)
}
