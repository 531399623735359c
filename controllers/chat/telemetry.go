// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"time"

	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
)

// observe counts what the write did that has just gone through, and makes the spans of the turns that it ended.
func (r *Reconciler) observe(ctx context.Context, s *scope, todo *plan.Plan) {
	for i := range todo.Transitions {
		r.observeTransition(ctx, s, &todo.Transitions[i])
	}
	if todo.CapacityWait != nil {
		r.Metrics.CapacityCame(*todo.CapacityWait)
	}
}

func (r *Reconciler) observeTransition(ctx context.Context, s *scope, t *plan.Transition) {
	if t.Began != nil {
		if created := plan.CreatedOf(&s.facts, t.Began.Message); !created.IsZero() {
			r.Metrics.TurnBegan(s.facts.Now.Sub(created))
		}
	}
	if t.Attempt != nil {
		r.observeAttempt(t.Attempt, s.facts.Now)
	}
	if t.Ended != nil {
		r.endTurn(ctx, s, t.Ended)
	}
	if c := t.ClientCalls; c != nil && c.Answered {
		r.Metrics.ClientCalls(telemetry.CallSucceeded, c.Number)
	} else if c != nil {
		r.Metrics.ClientCalls(telemetry.CallCancelled, c.Number)
	}
}

func (r *Reconciler) observeAttempt(a *plan.AttemptEnd, now time.Time) {
	outcome := string(a.Outcome)
	if outcome == "" {
		outcome = telemetry.OutcomeAbandoned
	}
	r.Metrics.AttemptEnded(string(a.Action), outcome, string(a.Reason))
	if a.Retried {
		r.Metrics.Retried(a.Provider, string(a.Reason))
	}
	if a.Action == v1alpha1.ActionCompact && !a.Retried && a.Outcome != v1alpha1.OutcomeLost {
		r.Metrics.Compacted(a.Provider, a.Model, compacted(a), string(a.Reason))
	}
	if a.Committed {
		r.Metrics.StepCommitted(string(a.Action), now.Sub(a.Assigned), now.Sub(a.Finished))
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

func (r *Reconciler) endTurn(ctx context.Context, s *scope, ended *plan.TurnEnd) {
	chat, t, result, lasted := s.facts.Chat, ended.Turn, string(ended.Turn.Result), time.Duration(0)
	if result == "" {
		result = telemetry.TurnSuperseded
	}
	if t.StartedAt != nil {
		lasted = s.facts.Now.Sub(t.StartedAt.Time)
	}
	r.Metrics.TurnEnded(result, string(ended.Reason), lasted)
	if r.Tracer == nil || t.StartedAt == nil {
		return
	}
	end := tracing.TurnEnd{
		Turn: tracing.Turn{ChatUID: string(chat.UID), HistoryVersion: t.HistoryVersion, Began: t.StartedAt.Time,
			Traceparent: t.Traceparent},
		Ended: s.facts.Now, Namespace: chat.Namespace, Chat: chat.Name, Message: t.Message,
		Result: result, ErrorType: string(ended.Reason), Steps: t.Steps,
	}
	end.Provider, end.Model = s.model()
	r.Tracer.EndTurn(ctx, end)
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

// countPhases keeps the number of chats in each phase as the cache sees it.
func (r *Reconciler) countPhases(mgr ctrl.Manager) error {
	if r.Metrics == nil {
		return nil
	}
	informer, err := mgr.GetCache().GetInformer(context.Background(), &v1alpha1.Chat{}, ctrlcache.BlockUntilSynced(false))
	if err != nil {
		return err
	}
	count := func(o any, n int) {
		if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		if chat, ok := o.(*v1alpha1.Chat); ok {
			r.Metrics.Chats(string(chat.Status.Phase), n)
		}
	}
	_, err = informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(o any) { count(o, 1) },
		UpdateFunc: func(before, after any) { count(before, -1); count(after, 1) },
		DeleteFunc: func(o any) { count(o, -1) },
	})
	return err
}
