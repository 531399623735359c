// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"slices"
	"time"

	"k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	ctrlcache "sigs.k8s.io/controller-runtime/pkg/cache"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/turn"
)

// account is what a status write did, as far as it is measured. It follows from the status before and after it, so that
// exactly one manager counts it: the one whose write went through.
type account struct {
	began []*v1alpha1.TurnStatus
	ended []endedTurn
	// attempt that ended; empty outcome if none did.
	action          v1alpha1.GenerationAction
	outcome, reason string
	// assigned and finished are how long before the write its attempt was assigned and had ended, if a step was committed.
	committed          bool
	assigned, finished time.Duration
	// capacityWait is how long the step that was begun had to wait for a place; nil if it had not.
	capacityWait *time.Duration
	// clientOutcome is what became of clientCalls.
	clientOutcome string
	clientCalls   int
}

type endedTurn struct {
	*v1alpha1.TurnStatus
	result, reason string
}

func accountOf(f *turn.Facts, plan *turn.Plan) account {
	var a account
	before, after := &f.Chat.Status, &plan.Status
	a.turns(f, before, slices.Concat(plan.Ended, []*v1alpha1.TurnStatus{after.Turn}), after)
	a.attempt(f, before, after, plan.Ended)
	if since := before.WaitingSince; since != nil && after.WaitingSince == nil && after.Generation != nil {
		a.capacityWait = new(f.Now.Sub(since.Time))
	}
	a.clients(before, plan)
	return a
}

// turns finds the turns that began and ended. One that is gone without an end was cut off by an edit or a deletion; one that
// comes back because what followed it was deleted neither begins nor ends.
func (a *account) turns(f *turn.Facts, before *v1alpha1.ChatStatus, turns []*v1alpha1.TurnStatus, after *v1alpha1.ChatStatus) {
	left := before.Turn
	for _, t := range turns {
		if t == nil {
			continue
		}
		goesOn := sameTurn(before.Turn, t)
		began := !goesOn && t.StartedAt != nil && t.StartedAt.Time.Equal(f.Now)
		if goesOn {
			left = nil
		}
		if began {
			a.began = append(a.began, t)
		}
		if t.Result != "" && (began || goesOn && before.Turn.Result == "") {
			a.ended = append(a.ended, endedTurn{t, string(t.Result), failureOf(t, after)})
		}
	}
	if left != nil && left.Result == "" {
		a.ended = append(a.ended, endedTurn{left, telemetry.TurnSuperseded, ""})
	}
}

func sameTurn(a, b *v1alpha1.TurnStatus) bool {
	return a != nil && b != nil && a.Message == b.Message && a.HistoryVersion == b.HistoryVersion
}

// failureOf is why the turn failed. Only of the newest turn the status still says it.
func failureOf(t *v1alpha1.TurnStatus, after *v1alpha1.ChatStatus) string {
	switch {
	case t.Result != v1alpha1.TurnFailed:
		return ""
	case t == after.Turn && after.LastError != nil:
		return string(after.LastError.Reason)
	}
	return telemetry.Other
}

// attempt finds out how the attempt under way ended, if it did.
func (a *account) attempt(f *turn.Facts, before, after *v1alpha1.ChatStatus, ended []*v1alpha1.TurnStatus) {
	g := before.Generation
	if g == nil || after.Generation != nil && after.Generation.Attempt == g.Attempt && after.History.Version == before.History.Version {
		return
	}
	a.action, a.outcome = g.Action, telemetry.OutcomeAbandoned
	result := resultOf(f.Chat, f.Result)
	switch {
	case result == nil && f.PodLost:
		a.outcome = string(v1alpha1.OutcomeLost)
	case result == nil:
	case !succeeded(result):
		a.outcome = string(result.Outcome)
		if result.Error != nil {
			a.reason = string(result.Error.Reason)
		}
	case isIn(f.Result.Name, after, ended):
		a.outcome, a.committed = string(result.Outcome), true
		a.assigned, a.finished = f.Now.Sub(g.StartedAt.Time), f.Now.Sub(result.FinishedAt.Time)
	}
}

// resultOf is what the message says of the chat's attempt, if it is its result.
func resultOf(chat *v1alpha1.Chat, m *v1alpha1.ChatMessage) *v1alpha1.MessageGeneration {
	if m == nil || m.Spec.Generation == nil || m.Spec.Generation.ChatUID != string(chat.UID) || m.Spec.Generation.Pod != chat.Status.Generation.Pod {
		return nil
	}
	return m.Spec.Generation
}

func succeeded(g *v1alpha1.MessageGeneration) bool {
	return g.Outcome == v1alpha1.OutcomeCompleted || g.Outcome == v1alpha1.OutcomeInterrupted
}

// isIn tells whether the result has become part of the history: it is the head, or the next turn follows it.
func isIn(result string, after *v1alpha1.ChatStatus, ended []*v1alpha1.TurnStatus) bool {
	follows := func(t *v1alpha1.TurnStatus) bool { return t != nil && t.Parent == result }
	return after.History.Head == result || follows(after.Turn) || slices.ContainsFunc(ended, follows)
}

// clients counts the calls for a client that waited, if that is over.
func (a *account) clients(before *v1alpha1.ChatStatus, plan *turn.Plan) {
	if before.RequiresAction == nil || plan.Status.RequiresAction != nil {
		return
	}
	for i := range before.RequiresAction.ToolCalls {
		if before.RequiresAction.ToolCalls[i].Kind == v1alpha1.AwaitsClient {
			a.clientCalls++
		}
	}
	a.clientOutcome = telemetry.CallCancelled
	if t := plan.Status.Turn; t != nil && t.Results != nil && slices.Contains(plan.Taken, t.Results.Message) {
		a.clientOutcome = telemetry.CallSucceeded
	}
}

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
		Turn:  tracing.Turn{ChatUID: string(chat.UID), HistoryVersion: t.HistoryVersion, Traceparent: t.Traceparent},
		Began: t.StartedAt.Time, Ended: s.facts.Now, Namespace: chat.Namespace, Chat: chat.Name, Message: t.Message,
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
