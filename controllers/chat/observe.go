// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/text/printable"
)

// observer tells what writes did that have gone through, so that of two managers only the one tells it that did it.
type observer struct {
	recorder events.EventRecorder
	metrics  *telemetry.Manager
	tracer   *tracing.Tracer
	waits    *reportedWaits
	now      func() time.Time
}

// observe logs and counts what the write of the chat did, makes the spans of the turns that it ended,
// and records Events.
func (o *observer) observe(ctx context.Context, s *scope, chat *v1beta1.Chat, todo *plan.Plan) {
	logWrite(ctx, chat, todo)
	for i := range todo.Transitions {
		o.observeTransition(ctx, s, &todo.Transitions[i])
	}
	if todo.CapacityWait != nil {
		o.metrics.CapacityCame(*todo.CapacityWait)
	}
	for _, notice := range todo.Notices {
		o.recorder.Eventf(chat, nil, corev1.EventTypeWarning, string(notice.Reason),
			string(notice.Action), "%s", notice.Note)
	}
}

// observeWait makes an Event of a wait that is worth one, once.
func (o *observer) observeWait(chat *v1beta1.Chat, todo *plan.Plan) {
	if wait := todo.LongWait; o.waits.report(keyOf(chat), wait) {
		o.recorder.Eventf(chat, nil, corev1.EventTypeNormal, string(v1beta1.EventWaiting),
			string(v1beta1.EventActionWait), "%s: %s", wait.Reason, printable.Line(wait.Message))
	}
}

func (o *observer) observeTransition(ctx context.Context, s *scope, t *plan.Transition) {
	if t.Began != nil {
		if created := plan.CreatedOf(&s.facts, t.Began.Message); !created.IsZero() {
			o.metrics.TurnBegan(s.facts.Now.Sub(created))
		}
	}
	if t.Attempt != nil {
		o.observeAttempt(t.Attempt, s.facts.Now)
	}
	if t.Ended != nil {
		o.endTurn(ctx, s, t.Ended)
	}
	if c := t.ClientCalls; c != nil && c.Answered {
		o.metrics.ClientCalls(telemetry.CallSucceeded, c.Number)
	} else if c != nil {
		o.metrics.ClientCalls(telemetry.CallCancelled, c.Number)
	}
}

func (o *observer) observeAttempt(a *plan.AttemptEnd, now time.Time) {
	outcome := string(a.Outcome)
	if outcome == "" {
		outcome = telemetry.OutcomeAbandoned
	}
	o.metrics.AttemptEnded(string(a.Action), outcome, string(a.Reason))
	if a.Retried {
		o.metrics.Retried(a.Provider, string(a.Reason))
	}
	if a.Action == v1beta1.ActionCompact && !a.Retried && a.Outcome != v1beta1.OutcomeLost {
		o.metrics.Compacted(a.Provider, a.Model, compacted(a), string(a.Reason))
	}
	if a.Committed {
		o.metrics.StepCommitted(string(a.Action), now.Sub(a.Assigned), now.Sub(a.Finished))
	}
}

// compacted is how a compaction ended.
func compacted(a *plan.AttemptEnd) string {
	switch {
	case a.Committed:
		return telemetry.CompactionSucceeded
	case a.Reason != "":
		return telemetry.CompactionFailed
	}
	return telemetry.CompactionCancelled
}

func (o *observer) endTurn(ctx context.Context, s *scope, ended *plan.TurnEnd) {
	chat, t, result, lasted := s.facts.Chat, ended.Turn, string(ended.Turn.Result), time.Duration(0)
	if result == "" {
		result = telemetry.TurnSuperseded
	}
	if t.StartedAt != nil {
		lasted = s.facts.Now.Sub(t.StartedAt.Time)
	}
	o.metrics.TurnEnded(result, string(ended.Reason), lasted)
	if o.tracer == nil || t.StartedAt == nil {
		return
	}
	end := tracing.TurnEnd{
		Turn: tracing.Turn{ChatUID: string(chat.UID), HistoryVersion: t.HistoryVersion, Began: t.StartedAt.Time,
			Traceparent: t.Traceparent},
		Ended: s.facts.Now, Namespace: chat.Namespace, Chat: chat.Name, Message: t.Message,
		Result: result, ErrorType: string(ended.Reason), Steps: t.Steps,
	}
	end.Provider, end.Model = s.model()
	o.tracer.EndTurn(ctx, end)
}

// model is the one that was asked last, or would be.
func (s *scope) model() (provider, name string) {
	config := ""
	if g := s.facts.Chat.Status.Generation; g != nil {
		config = g.ModelConfig
	} else if s.facts.Model != nil {
		config = s.facts.Model.Config
	}
	for i := range s.configs {
		if s.configs[i].Name == config {
			return string(s.configs[i].Spec.Provider), s.configs[i].Spec.Model
		}
	}
	return "", ""
}

// countChats keeps the number of chats in each phase, and of those that wait, as the cache sees it.
func (o *observer) countChats(mgr ctrl.Manager) error {
	if o.metrics == nil {
		return nil
	}
	informer, err := mgr.GetCache().GetInformer(context.Background(), &v1beta1.Chat{}, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	count := func(object any, n int) {
		if last, ok := object.(cache.DeletedFinalStateUnknown); ok {
			object = last.Obj
		}
		chat, ok := object.(*v1beta1.Chat)
		if !ok {
			return
		}
		o.metrics.Chats(string(chat.Status.Phase), n)
		switch wait := chat.Status.Wait; {
		case wait == nil:
		case n > 0:
			o.metrics.WaitBegan(string(wait.For), string(chat.UID), wait.Since.Time)
		default:
			o.metrics.WaitEnded(string(wait.For), string(chat.UID))
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(added any) { count(added, 1) },
		UpdateFunc: func(before, after any) { count(before, -1); count(after, 1) },
		DeleteFunc: func(last any) { count(last, -1) },
	})
	return err
}
