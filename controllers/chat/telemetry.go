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
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/turn"
)

// observe counts what the write did that has just gone through, and makes the spans of the turns that it ended.
func (r *Reconciler) observe(ctx context.Context, s *seen, plan *turn.Plan) {
	a, f := accountOf(&s.facts, plan), &s.facts
	for _, t := range a.began {
		if created := createdOf(f, t.Message); !created.IsZero() {
			r.Metrics.TurnBegan(f.Now.Sub(created))
		}
	}
	for _, t := range a.ended {
		r.endTurn(ctx, s, t)
	}
	if a.outcome != "" {
		r.Metrics.AttemptEnded(string(a.action), a.outcome, a.reason)
	}
	if a.retried {
		r.Metrics.Retried(a.provider, a.reason)
	}
	if a.compaction != "" {
		r.Metrics.Compacted(a.provider, a.model, a.compaction, a.reason)
	}
	if a.committed {
		r.Metrics.StepCommitted(string(a.action), a.assigned, a.finished)
	}
	if a.capacityWait != nil {
		r.Metrics.CapacityCame(*a.capacityWait)
	}
	r.Metrics.ClientCalls(a.clientOutcome, a.clientCalls)
}

func (r *Reconciler) endTurn(ctx context.Context, s *seen, t endedTurn) {
	chat, lasted := s.facts.Chat, time.Duration(0)
	if t.StartedAt != nil {
		lasted = s.facts.Now.Sub(t.StartedAt.Time)
	}
	r.Metrics.TurnEnded(t.result, t.reason, lasted)
	if r.Tracer == nil || t.StartedAt == nil {
		return
	}
	end := tracing.TurnEnd{
		Turn:  tracing.Turn{ChatUID: string(chat.UID), HistoryVersion: t.HistoryVersion, Began: t.StartedAt.Time, Traceparent: t.Traceparent},
		Ended: s.facts.Now, Namespace: chat.Namespace, Chat: chat.Name, Message: t.Message,
		Result: t.result, ErrorType: t.reason, Steps: t.Steps,
	}
	end.Provider, end.Model = s.model()
	r.Tracer.EndTurn(ctx, end)
}

// model is the one that was asked last, or would be.
func (s *seen) model() (provider, name string) {
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

// createdOf is when the message was created. An edited one has not waited since then.
func createdOf(f *turn.Facts, name string) (created time.Time) {
	for _, messages := range [][]turn.Message{f.Open, f.Queued} {
		for i := range messages {
			if messages[i].Name == name {
				return messages[i].Created
			}
		}
	}
	return created
}

// traceparentOf is the trace context that an object names, if that is one.
func traceparentOf(m *v1alpha1.ChatMessage) string {
	parent := m.Annotations[v1alpha1.AnnotationTraceparent]
	if _, ok := telemetry.ParseTraceparent(parent); !ok {
		return ""
	}
	return parent
}

// tracedLike makes the chat's prompt part of the trace that the chat names.
func tracedLike(chat *v1alpha1.Chat) map[string]string {
	if parent := chat.Annotations[v1alpha1.AnnotationTraceparent]; parent != "" {
		return map[string]string{v1alpha1.AnnotationTraceparent: parent}
	}
	return nil
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
