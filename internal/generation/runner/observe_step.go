// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
)

// observedStep is the span of an attempt, and the count of those under way.
type observedStep struct {
	span  tracing.Span
	ended func()
}

// startStep begins the span of the attempt. What is done in the returned context is a part of it.
func (a *attempt) startStep(ctx context.Context) context.Context {
	a.observed.ended = a.Metrics.AttemptBegan()
	fence := tracing.Fence{ChatUID: a.fence.ChatUID, HistoryVersion: a.fence.HistoryVersion, Attempt: a.fence.Attempt}
	s := tracing.Step{Fence: fence, Namespace: a.Namespace, Chat: a.chat.Name, Action: string(a.chat.Status.Generation.Action)}
	if t := a.chat.Status.Turn; t != nil {
		s.Turn = tracing.Turn{ChatUID: a.fence.ChatUID, HistoryVersion: t.HistoryVersion, Traceparent: t.Traceparent}
		if t.StartedAt != nil {
			s.Turn.Began = t.StartedAt.Time
		}
	}
	ctx, a.observed.span = a.Tracer.StartStep(ctx, s)
	return ctx
}

// endStep ends the span with what became of the attempt. Only the first end counts.
func (a *attempt) endStep(o outcome) {
	if a.observed.ended == nil {
		return
	}
	errorType := ""
	switch {
	case o.err != nil:
		errorType = string(o.err.Reason)
	case o.kind == v1alpha1.OutcomeLost:
		errorType = string(o.kind)
	}
	a.observed.span.Set(tracing.Outcome(string(o.kind)))
	a.observed.span.End(errorType)
	a.forgetStep()
}

// foundStep ends the span of an attempt whose result exists already. If a former life of this process began the attempt, its
// result may be the former life's, which has made this span: then it is left alone.
func (a *attempt) foundStep(o outcome) {
	if o.kind == v1alpha1.OutcomeLost {
		a.forgetStep()
	}
	a.endStep(o)
}

// abandonStep ends the span of an attempt that has no result.
func (a *attempt) abandonStep() { a.endStep(outcome{kind: telemetry.OutcomeAbandoned}) }

// forgetStep leaves the span without an end, so that it is not exported.
func (a *attempt) forgetStep() {
	if a.observed.ended != nil {
		a.observed.ended()
		a.observed.ended = nil
	}
}

// countDropped counts the parts of the episode that did not reach the relay.
func (a *attempt) countDropped(episode Episode) {
	if counting, ok := episode.(interface{ Dropped() int64 }); ok {
		a.Metrics.PartsDropped(counting.Dropped())
	}
}
