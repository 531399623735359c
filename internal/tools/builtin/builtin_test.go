// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/builtin"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestCurrentTimeReturnsTimeInZone(t *testing.T) {
	// Near midnight, so that the weekday depends on the zone, too.
	now := func() time.Time { return time.Date(2025, time.March, 2, 23, 30, 0, 0, time.UTC) }
	for name, c := range map[string]struct{ input, want, err string }{
		"without a zone":           {input: `{}`, want: `{"time":"2025-03-02T23:30:00Z","timezone":"UTC","weekday":"Sunday"}`},
		"with UTC":                 {input: `{"timezone":"UTC"}`, want: `{"time":"2025-03-02T23:30:00Z","timezone":"UTC","weekday":"Sunday"}`},
		"with a zone to the east":  {input: `{"timezone":"Europe/Berlin"}`, want: `{"time":"2025-03-03T00:30:00+01:00","timezone":"Europe/Berlin","weekday":"Monday"}`},
		"with half hours":          {input: `{"timezone":"Asia/Kolkata"}`, want: `{"time":"2025-03-03T05:00:00+05:30","timezone":"Asia/Kolkata","weekday":"Monday"}`},
		"with an unknown argument": {input: `{"city":"Rome"}`, want: `{"time":"2025-03-02T23:30:00Z","timezone":"UTC","weekday":"Sunday"}`},
		"with an unknown zone":     {input: `{"timezone":"Mars/Olympus"}`, err: "use an IANA name"},
		"with a path":              {input: `{"timezone":"../../etc/passwd"}`, err: "use an IANA name"},
		"with a number":            {input: `{"timezone":5}`, err: "reading the arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := builtin.CurrentTime{Now: now}.Run(t.Context(), tools.Call{ToolCall: v1beta1.ToolCall{Input: c.input}})
			check.Equal(t, "time", c.want, got)
			check.Contains(t, fmt.Sprint(err), cmp.Or(c.err, "<nil>"))
		})
	}
}

// namespace is what the tool can read.
type namespace struct {
	chats    map[string]*v1beta1.Chat
	messages map[string]*v1beta1.ChatMessage
	broken   bool
}

func get[T any](n *namespace, objects map[string]*T, name string) (*T, error) {
	if n.broken {
		return nil, errors.New("dial tcp 10.0.0.1:443: no route to host")
	}
	if o := objects[name]; o != nil {
		return o, nil
	}
	return nil, apierrors.NewNotFound(schema.GroupResource{}, name)
}

func (n *namespace) tool() builtin.WaitAgent {
	return builtin.WaitAgent{
		Chat:    func(_ context.Context, name string) (*v1beta1.Chat, error) { return get(n, n.chats, name) },
		Message: func(_ context.Context, name string) (*v1beta1.ChatMessage, error) { return get(n, n.messages, name) },
	}
}

// call is one of the chat root.
func (n *namespace) call(input string) tools.Call {
	return tools.Call{ToolCall: v1beta1.ToolCall{Input: input}, Chat: n.chats["root"]}
}

func aChat(name, parent string, phase v1beta1.ChatPhase, ready metav1.ConditionStatus, reason string) *v1beta1.Chat {
	chat := chattest.Chat(name)
	if parent != "" {
		chattest.ChildOf(parent)(chat)
	}
	chat.Status = v1beta1.ChatStatus{
		Phase: phase, History: v1beta1.HistoryStatus{Head: name + "-2-1"},
		Turn: &v1beta1.TurnStatus{Result: v1beta1.TurnAnswered},
		Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Status: ready, Reason: reason,
			Message: "message of " + reason}},
	}
	return chat
}

func aMessage(role v1beta1.MessageRole, parent string, texts ...string) *v1beta1.ChatMessage {
	m := chattest.Generated("", role)
	m.Spec.Parent = parent
	for _, text := range texts {
		chattest.Says(text)(m)
	}
	return m
}

func theFamily() *namespace {
	done, idle := metav1.ConditionTrue, v1beta1.ChatWaiting
	n := &namespace{chats: map[string]*v1beta1.Chat{
		"root":    aChat("root", "", v1beta1.ChatRunning, metav1.ConditionUnknown, "ExecutingTools"),
		"done":    aChat("done", "root", idle, done, "Answered"),
		"deep":    aChat("deep", "done", idle, done, "Answered"),
		"stopped": aChat("stopped", "root", idle, done, "MaxStepsReached"),
		"busy":    aChat("busy", "root", v1beta1.ChatRequiresAction, metav1.ConditionUnknown, "RequiresAction"),
		"failed":  aChat("failed", "root", v1beta1.ChatError, metav1.ConditionFalse, "ContextTooLong"),
		"silent":  aChat("silent", "root", idle, done, "Answered"),
		"other":   aChat("other", "", idle, done, "Answered"),
	}, messages: map[string]*v1beta1.ChatMessage{
		"done-2-1":    aMessage(v1beta1.RoleAssistant, "u", "It is ", "the CNI."),
		"deep-2-1":    aMessage(v1beta1.RoleAssistant, "u", strings.Repeat("\n", 2*tools.MaxResultBytes)),
		"stopped-2-1": aMessage(v1beta1.RoleTool, "stopped-1-1"),
		"stopped-1-1": aMessage(v1beta1.RoleAssistant, "u", "Let me look."),
		"silent-2-1":  aMessage(v1beta1.RoleAssistant, "u"),
		"u":           {Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleUser, Content: "a question"}},
	}}
	n.chats["stopped"].Status.Turn.Result = v1beta1.TurnMaxStepsReached
	return n
}

// Security (a hostile sub-chat): can output any text to its parent, including instructions and false reports; the
// resulting calls wait for approval like others. Also TestOnlyApprovedCallsRun of internal/tools.
func TestWaitAgentReturnsStateOfSubChat(t *testing.T) {
	n := theFamily()
	for name, c := range map[string]struct{ input, want, err string }{
		"one that is done": {input: `{"chat":"done"}`,
			want: `{"chat":"done","phase":"Waiting","turn":"Answered","report":"It is the CNI."}`},
		"one that was cut short": {input: `{"chat":"stopped"}`,
			want: `{"chat":"stopped","phase":"Waiting","turn":"MaxStepsReached","report":"Let me look."}`},
		"one that said nothing": {input: `{"chat":"silent"}`,
			want: `{"chat":"silent","phase":"Waiting","turn":"Answered"}`},
		"one that is at work": {input: `{"chat":"busy"}`,
			want: `{"chat":"busy","phase":"RequiresAction","timed_out":true,"reason":"RequiresAction"}`},
		"one that has failed": {input: `{"chat":"failed"}`,
			want: `{"chat":"failed","phase":"Error","error":"message of ContextTooLong","reason":"ContextTooLong"}`},
		"one that does not exist": {input: `{"chat":"none"}`, err: "only sub-chats can be waited for"},
		"one of another root":     {input: `{"chat":"other"}`, err: "only sub-chats can be waited for"},
		"the chat itself":         {input: `{"chat":"root"}`, err: "only sub-chats can be waited for"},
		"no name":                 {input: `{}`, err: "must be the name"},
		"a number":                {input: `{"chat":5}`, err: "reading the arguments"},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := n.tool().Run(t.Context(), n.call(c.input))
			check.Equal(t, "result", c.want, got)
			check.Contains(t, fmt.Sprint(err), cmp.Or(c.err, "<nil>"))
		})
	}
}

// Security (a hostile sub-chat): cannot fill the prompt of its parent, or break the form of the result, by a long
// report.
func TestLongReportIsTruncatedWithinValidJSON(t *testing.T) {
	n := theFamily()
	got, err := n.tool().Run(t.Context(), n.call(`{"chat":"deep"}`))
	var result struct{ Report string }
	if err != nil || len(got) > tools.MaxResultBytes || json.Unmarshal([]byte(got), &result) != nil ||
		!strings.Contains(result.Report, "bytes left out") {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}

func TestReadErrorHasNoAddress(t *testing.T) {
	n := theFamily()
	n.broken = true
	_, err := n.tool().Run(t.Context(), n.call(`{"chat":"done"}`))
	check.Equal(t, "error", "sub-chat done cannot be read at the moment; try again", fmt.Sprint(err))
	n = theFamily()
	delete(n.messages, "done-2-1")
	got, err := n.tool().Run(t.Context(), n.call(`{"chat":"done"}`))
	check.OK(t, err)
	check.Lacks(t, got, "report")
}

func TestWaitAgentWaitsForSubChatWithinBounds(t *testing.T) {
	for input, want := range map[string]struct {
		chat    string
		seconds int32
	}{
		`{"chat":"x"}`:                             {"x", 300},
		`{"chat":"x","timeout_seconds":10}`:        {"x", 10},
		`{"chat":"x","timeout_seconds":1e9}`:       {"x", 3600},
		`{"chat":"x","timeout_seconds":0}`:         {"x", 0},
		`{"chat":"x","timeout_seconds":-5}`:        {"x", 0},
		`{"chat":"x","timeout_seconds":"an hour"}`: {"", 0},
		`{}`: {"", 0},
		``:   {"", 0},
		`{"chat":"` + strings.Repeat("x", 254) + `"}`: {"", 0},
	} {
		chat, seconds := builtin.WaitAgent{}.Definition().WaitsFor(input)
		if chat != want.chat || seconds != want.seconds {
			t.Errorf("%.60s: waits for %q for %d s", input, chat, seconds)
		}
	}
}

func TestWaitAgentIsUsefulToParents(t *testing.T) {
	chat, useful := &v1beta1.Chat{}, builtin.WaitAgent{}.Definition().UsefulTo
	if useful(chat) {
		t.Error("a chat without an attempt has a use for it")
	}
	chat.Status.Internal.Attempt.HasSubChats = true
	if !useful(chat) {
		t.Error("a parent has no use for it")
	}
}
