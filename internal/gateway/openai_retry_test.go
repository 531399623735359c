// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// sends makes a request that does not wait for its answer, and returns the name of the message that is answered.
func (c *compatible) sends(path, body string, headers ...string) string {
	c.in.t.Helper()
	got := c.does("POST", c.base()+path, body, headers...)
	if got.status != 200 {
		c.in.t.Fatalf("%d %s", got.status, got.body)
	}
	return got.header.Get("X-Parley-Message")
}

// retries are the headers with which the clients of OpenAI and Anthropic repeat a request.
func retries(more ...string) []string { return append(more, "X-Stainless-Retry-Count", "1") }

func (in *installation) message(name string) *v1beta1.ChatMessage {
	in.t.Helper()
	m := &v1beta1.ChatMessage{ObjectMeta: in.meta(name)}
	check.OK(in.t, cluster.Client.Get(in.t.Context(), client.ObjectKeyFromObject(m), m))
	return m
}

// ended writes that the turn of a message ended at a time.
func (in *installation) ended(message string, status metav1.ConditionStatus, reason v1beta1.TurnResult, at time.Time) {
	in.t.Helper()
	m := in.message(message)
	m.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageCommitted, ObservedGeneration: m.Generation,
		Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Status: status, Reason: string(reason),
			ObservedGeneration: m.Generation, LastTransitionTime: metav1.NewTime(at)}}}
	check.OK(in.t, cluster.Client.Status().Update(in.t.Context(), m))
}

func TestRetriedResultsWithTextAreFoundByText(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c, anna := in.converse("c"), in.user("anna")
	c.chat.Status.Phase = v1beta1.ChatRequiresAction
	c.chat.Status.RequiresAction = &v1beta1.RequiresActionStatus{Deadline: metav1.NewTime(time.Now().Add(time.Hour)),
		ToolCalls: []v1beta1.PendingToolCall{
			{ID: "call_1", Name: "weather", Kind: v1beta1.RequiresClient}}}
	c.commit()
	const ask = `{"conversation": "c", "background": true, "input": [{"role": "user", "content": "And tomorrow?"},
		{"type": "function_call_output", "call_id": "call_1_c", "output": "rain"}]}`
	text := anna.sends("/responses", ask)
	check.Equal(t, "the role", v1beta1.RoleUser, in.message(text).Spec.Role)
	check.Equal(t, "the message that is found", text, anna.sends("/responses", ask, retries()...))
	check.OK(t, cluster.Client.Delete(t.Context(), in.message(text)))
	check.Equal(t, "the message of a text that was not sent", text, anna.sends("/responses", ask, retries()...))
	check.Equal(t, "its role", v1beta1.RoleUser, in.message(text).Spec.Role)
}

func TestRetryWithAnotherKeyIsAnotherRequest(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.converse("c")
	anna := in.user("anna")
	const ask = `{"input": "Hi.", "background": true, "conversation": "c"}`
	first := anna.sends("/responses", ask, "Idempotency-Key", "first")
	second := anna.sends("/responses", ask, retries("Idempotency-Key", "second")...)
	if first == second {
		t.Error("a retry gets the answer to another key")
	}
	check.Equal(t, "the message of the key", second,
		anna.sends("/responses", ask, retries("Idempotency-Key", "second")...))
}

func TestRetryFindsOnlyMessageOfRecentTurn(t *testing.T) {
	t.Parallel()
	var ahead atomic.Int64
	in := install(t, func(g *Gateway) {
		g.config.Now = func() time.Time { return time.Now().Add(time.Duration(ahead.Load())) }
	})
	in.converse("c")
	anna := in.user("anna")
	const ask = `{"input": "Yes.", "background": true, "conversation": "c"}`
	first := anna.sends("/responses", ask)
	ahead.Store(int64(20 * time.Minute))
	check.Equal(t, "the message of a turn that runs for long", first, anna.sends("/responses", ask, retries()...))
	in.ended(first, metav1.ConditionTrue, v1beta1.TurnAnswered, time.Now().Add(19*time.Minute))
	check.Equal(t, "the message of a turn that has just ended", first, anna.sends("/responses", ask, retries()...))
	ahead.Store(int64(22 * time.Minute))
	if second := anna.sends("/responses", ask, retries()...); second == first {
		t.Error("a retry is taken for what was said and answered before")
	}
}

func TestResentConversationWithResultsBeginsOnce(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c, anna := in.converse("c"), in.user("anna")
	const ask = `{"conversation": "c", "background": true, "input": [{"role": "user", "content": "Hi."},
		{"type": "function_call", "call_id": "call_1_x", "name": "weather", "arguments": "{}"},
		{"type": "function_call_output", "call_id": "call_1_x", "output": "rain"}, {"role": "user", "content": "And?"}]}`
	first := anna.sends("/responses", ask)
	c.takeUp(1)
	c.commit()
	check.Equal(t, "the message that is found", first, anna.sends("/responses", ask))
}

func TestRequestWhoseTurnFailedBeginsAnother(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c, anna := in.converse("c"), in.user("anna")
	asks := func(headers ...string) string {
		return anna.sends("/responses", background, append(headers, "Thread-Id", "t")...)
	}
	first := asks()
	check.Equal(t, "the message of a turn that runs", first, asks())
	in.ended(first, metav1.ConditionFalse, v1beta1.TurnInterrupted, time.Now())
	second := asks()
	check.Equal(t, "the message of the second turn", second, asks())
	in.ended(second, metav1.ConditionFalse, v1beta1.TurnFailed, time.Now())
	third := asks()
	c.chat.Status.Turn = &v1beta1.TurnStatus{Message: third, Result: v1beta1.TurnFailed} // The message will say so.
	c.chat.Status.Internal.Turn.MessageUID = string(in.message(third).UID)
	c.commit()
	fourth := asks()
	in.ended(fourth, metav1.ConditionTrue, v1beta1.TurnAnswered, time.Now())
	check.Equal(t, "the message of a turn that was answered", fourth, asks())
	if first == second || second == third || third == fourth {
		t.Errorf("the messages are %s, %s, %s and %s", first, second, third, fourth)
	}
	check.OK(t, cluster.Client.Delete(t.Context(), in.message(third)))
	check.Equal(t, "the message in place of a deleted one", third, asks())
	keyed := asks("Idempotency-Key", "k")
	in.ended(keyed, metav1.ConditionFalse, v1beta1.TurnInterrupted, time.Now())
	check.Equal(t, "the message of the key", keyed, asks("Idempotency-Key", "k"))
}

func TestInterruptedTurnWithoutAnswerIsAnError(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c, anna := in.converse("c"), in.user("anna")
	asks := func(path, stream string) answered {
		return anna.does("POST", anna.base()+path, strings.Replace(hello, "true", stream, 1),
			anna.asAnthropics("X-Parley-Chat", "c", "Idempotency-Key", "k")...)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		c.takeUp(1)
		c.chat.Status.Turn.Result = v1beta1.TurnInterrupted
		c.commit()
	}()
	for _, path := range []string{"/chat/completions", "/messages"} {
		whole, streamed := asks(path, "false"), asks(path, "true")
		if whole.status != 409 || whole.header.Get("X-Should-Retry") != "false" {
			t.Errorf("%s: %d %v %s", path, whole.status, whole.header, whole.body)
		}
		check.Contains(t, whole.body, "interrupted the turn before it had an answer")
		check.Contains(t, streamed.body, "interrupted the turn before it had an answer")
	}
	<-ended
	id := anna.does("POST", anna.base()+"/responses", `{"input": "Hello", "conversation": "c"}`, "Idempotency-Key", "k")
	if id.status != 200 || !strings.Contains(id.body, `"status":"cancelled"`) {
		t.Errorf("%d %s", id.status, id.body)
	}
}
