// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/pods/modellimits"
)

// modelCalls keeps the limits of ChatModelConfigs, and the waits that providers ask for. It is a source of the
// controller: no chat is reconciled before WaitForSync has reported the calls under way, and the chats that can begin
// a call later are requeued.
type modelCalls struct {
	gate   *modellimits.Gate
	client client.Client
	now    func() time.Time
}

// Start requeues chats that may begin a call, until the context is done.
func (m *modelCalls) Start(ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	go requeueAdmitted(ctx, queue, m.gate.Requeue)
	return nil
}

// WaitForSync reports the calls under way. Which chats wait, their own passes report.
func (m *modelCalls) WaitForSync(ctx context.Context) error {
	var list v1beta1.ChatList
	if err := m.client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		if errors.Is(ctx.Err(), context.Canceled) { // The process ends.
			return nil
		}
		return fmt.Errorf("listing chats: %w", err)
	}
	for i := range list.Items {
		if chat := &list.Items[i]; chat.DeletionTimestamp.IsZero() && callsModel(&chat.Status) {
			m.gate.Hold(callOf(chat, &chat.Status), m.now())
		}
	}
	return nil
}

// String names the source in logs.
func (m *modelCalls) String() string { return "calls of models" }

// configHandler follows the limits of ChatModelConfigs. The gate requeues the chats that a change lets in.
func (m *modelCalls) configHandler() handler.EventHandler {
	type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]
	set := func(o client.Object) {
		if config, ok := o.(*v1beta1.ChatModelConfig); ok {
			m.setConfig(config)
		}
	}
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ queue) { set(e.Object) },
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ queue) {
			if e.ObjectOld.GetGeneration() != e.ObjectNew.GetGeneration() {
				m.gate.ForgetRetryAfter(client.ObjectKeyFromObject(e.ObjectNew), m.now())
			}
			set(e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) {
			m.gate.ForgetConfig(client.ObjectKeyFromObject(e.Object))
		},
	}
}

func (m *modelCalls) setConfig(config *v1beta1.ChatModelConfig) {
	m.gate.SetConfig(client.ObjectKeyFromObject(config), limitsOf(config), config.RetryAfter(), m.now())
}

func limitsOf(config *v1beta1.ChatModelConfig) (limits modellimits.Limits) {
	set := config.Spec.Limits
	if set == nil {
		return limits
	}
	if n := set.ConcurrentCalls; n != nil {
		limits.ConcurrentCalls = *n
	}
	if n := set.RequestsPerMinute; n != nil {
		limits.RequestsPerMinute = *n
	}
	if n := set.TokensPerMinute; n != nil {
		limits.TokensPerMinute = *n
	}
	return limits
}

// take reports that the attempt under way has ended, if it has: what it used, and that its provider asks to wait. That
// comes before any other chat can get the place of the call.
func (m *modelCalls) take(ctx context.Context, s *scope) error {
	chat, result := s.facts.Chat, s.facts.Result
	if !attempts.AnswersCurrentAttempt(chat, &chat.Status, result) || !callsModel(&chat.Status) {
		return nil
	}
	g := result.Spec.Generation
	if g.Error != nil && g.Error.RetryAfter() > 0 {
		until := metav1.NewTime(g.FinishedAt.Add(g.Error.RetryAfter() + time.Second - 1).Truncate(time.Second))
		if err := m.askedToWait(ctx, s, chat.Status.Generation.ModelConfig, until); err != nil {
			return err
		}
	}
	tokens := int64(0)
	if g.Usage != nil {
		tokens = g.Usage.TotalTokens
	}
	m.gate.Leave(keyOf(chat), tokens, s.facts.Now)
	return nil
}

// askedToWait records that the provider of a ChatModelConfig asked not to be called before a time: in the status, from
// where generation pods and the next manager have it, and in the gate. One call of many that fail at once writes it.
func (m *modelCalls) askedToWait(ctx context.Context, s *scope, name string, until metav1.Time) error {
	key := types.NamespacedName{Namespace: s.facts.Chat.Namespace, Name: name}
	if !until.After(s.facts.Now) || !until.After(m.gate.RetryAfter(key)) {
		return nil
	}
	status := map[string]any{"retryAfter": until}
	if config := modelconfig.Find(s.configs, name); config != nil {
		status["retryAfterGeneration"] = config.Generation
	}
	patch, err := json.Marshal(map[string]any{"status": status})
	if err != nil {
		return fmt.Errorf("encoding until when ChatModelConfig %s is not called: %w", key, err)
	}
	config := &v1beta1.ChatModelConfig{ObjectMeta: metav1.ObjectMeta{Namespace: key.Namespace, Name: key.Name}}
	err = m.client.Status().Patch(ctx, config, client.RawPatch(types.MergePatchType, patch))
	if client.IgnoreNotFound(err) != nil {
		return fmt.Errorf("recording until when ChatModelConfig %s is not called: %w", key, err)
	}
	m.gate.SetRetryAfter(key, until.Time, s.facts.Now)
	return nil
}

// enter takes a place for the call that the plan begins. If there is none, the facts say why.
func (m *modelCalls) enter(s *scope, todo *plan.Plan) (entered bool) {
	if !callsModel(&todo.Status) {
		return true
	}
	call := callOf(s.facts.Chat, &todo.Status)
	if wait := s.facts.Chat.Status.Wait; wait != nil && wait.For == v1beta1.WaitForModel {
		call.Since = wait.Since.Time
	}
	if config := modelconfig.Find(s.configs, call.Config.Name); config != nil { // The watch may not have shown it yet.
		m.setConfig(config)
	}
	s.modelCall = &call
	held := m.gate.Enter(call, s.facts.Now)
	if held == nil {
		return true
	}
	s.facts.ModelLimit = &plan.ModelLimit{Message: held.String(), Until: held.RetryAfter}
	if !held.Until.IsZero() {
		s.lookAgain = plan.Sooner(s.lookAgain, max(held.Until.Sub(s.facts.Now), time.Millisecond))
	}
	return false
}

// settle reports what became of the chat. One that has a place with its model, and waits for a slot, keeps that place:
// else each chat behind it would find out, one after the other, that there is no slot.
func (m *modelCalls) settle(s *scope, st *v1beta1.ChatStatus) {
	switch {
	case callsModel(st):
		m.gate.Hold(callOf(s.facts.Chat, st), s.facts.Now)
	case s.modelCall != nil && (st.WaitingSince != nil || st.Wait != nil && st.Wait.For == v1beta1.WaitForModel):
		if s.modelCall.Since.IsZero() {
			s.modelCall.Since = s.facts.Now
		}
		s.modelCall.Blocked = st.WaitingSince != nil
		m.gate.Wait(*s.modelCall, s.facts.Now)
	default:
		m.leave(keyOf(s.facts.Chat))
	}
}

// giveUp is for a reconcile that has failed: a chat that cannot begin keeps no place from others.
func (m *modelCalls) giveUp(chat *v1beta1.Chat) {
	if !callsModel(&chat.Status) {
		m.leave(keyOf(chat))
	}
}

// leave is for a chat that neither calls a model nor waits for one.
func (m *modelCalls) leave(key types.NamespacedName) { m.gate.Leave(key, 0, m.now()) }

// callsModel reports whether an attempt is under way that calls a model.
func callsModel(st *v1beta1.ChatStatus) bool {
	return st.Generation != nil && st.Generation.Action != v1beta1.ActionExecuteTools
}

// callOf is the call of the attempt under way. As long as it lasts it counts with the size of the context.
func callOf(chat *v1beta1.Chat, st *v1beta1.ChatStatus) modellimits.Call {
	call := modellimits.Call{Chat: keyOf(chat), Sub: chat.Spec.ParentRef != nil}
	if st.Context != nil {
		call.Tokens = st.Context.Tokens
	}
	if g := st.Generation; g != nil {
		call.Config = types.NamespacedName{Namespace: chat.Namespace, Name: g.ModelConfig}
		call.Started = g.StartedAt.Truncate(time.Microsecond) // As the API server returns it.
	}
	return call
}
