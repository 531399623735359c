// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
)

// Attempt is the span of one attempt, its place among those under way, and what calls models for it.
type Attempt struct {
	Caller
	fence fence.Fence
	span  tracing.Span
	// ended takes it from those under way; nil once that is done.
	ended func()
}

// Begin begins to observe an attempt. What is done in the returned context is a part of its span.
func (o *Observer) Begin(ctx context.Context, chat *v1alpha1.Chat, of fence.Fence) (context.Context, *Attempt) {
	action := chat.Status.Generation.Action
	a := &Attempt{
		Caller: Caller{observer: o, chat: chat, action: action}, fence: of, ended: o.options.Metrics.AttemptBegan(),
	}
	s := tracing.Step{
		Fence:     tracing.Fence{ChatUID: of.ChatUID, HistoryVersion: of.HistoryVersion, Attempt: of.Attempt},
		Namespace: o.options.Namespace, Chat: chat.Name, Action: string(action),
	}
	if t := chat.Status.Turn; t != nil {
		s.Turn = tracing.Turn{ChatUID: of.ChatUID, HistoryVersion: t.HistoryVersion, Traceparent: t.Traceparent}
		if t.StartedAt != nil {
			s.Turn.Began = t.StartedAt.Time
		}
	}
	ctx, a.span = o.options.Tracer.StartStep(ctx, s)
	return ctx, a
}

// SetAuthor notes who created the message of the turn, for the recordings of the calls that follow.
func (a *Attempt) SetAuthor(author string) { a.author = author }

// End ends the span with what became of the attempt. Only the first end counts.
func (a *Attempt) End(kind v1alpha1.GenerationOutcome, err *v1alpha1.GenerationError) {
	if a.ended == nil {
		return
	}
	errorType := ""
	switch {
	case err != nil:
		errorType = string(err.Reason)
	case kind == v1alpha1.OutcomeLost:
		errorType = string(kind)
	}
	a.span.Set(tracing.Outcome(string(kind)))
	a.span.End(errorType)
	a.forget()
}

// Found ends the span of an attempt whose result exists already. If a former life of this process began the attempt,
// its result may be the former life's, which has made this span: then it is left alone.
func (a *Attempt) Found(kind v1alpha1.GenerationOutcome, err *v1alpha1.GenerationError) {
	if kind == v1alpha1.OutcomeLost {
		a.forget()
	}
	a.End(kind, err)
}

// Abandon ends the span of an attempt that has no result.
func (a *Attempt) Abandon() { a.End(telemetry.OutcomeAbandoned, nil) }

// forget leaves the span without an end, so that it is not exported.
func (a *Attempt) forget() {
	if a.ended != nil {
		a.ended()
		a.ended = nil
	}
}

// ResultRefused counts a result that the API server does not take.
func (a *Attempt) ResultRefused(reason string) { a.observer.options.Metrics.ResultRefused(reason) }

// PartsDropped counts parts that did not reach the relay.
func (a *Attempt) PartsDropped(n int64) { a.observer.options.Metrics.PartsDropped(n) }
