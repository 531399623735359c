// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe watches the attempts of a generation pod and the models and tools that they call. It calls the models
// itself, and fills one ModelCall for each call. When the call has ended, it hands the ModelCall to the span, to the
// metrics and, while debugging is on, to the recorder, which writes a ChatDebugStep.
//
// Invariants: to observe a call neither changes, delays nor fails it. Labels of metrics are of closed sets, whatever a
// model or a provider invents. Spans hold content only if the tracer captures it. Logs and metrics hold none.
//
// A recorded call only appends to memory, up to the bounds of the resource. One goroutine redacts (package redact) and
// writes; a write that does not succeed in time is canceled with a line in the log. While debugging is off nothing is
// kept. Chats of a pod share HTTP clients, so the HTTP requests of a call are found by their context.
package observe

import (
	"context"
	"log/slog"
	"sync/atomic"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
)

// Options of an Observer. Tracer and Now are required.
type Options struct {
	// Namespace of the chats, and Pod that this is.
	Namespace, Pod string
	// Recordings stores the recordings of model calls; nil: no call is recorded, whatever its chat says.
	Recordings Store
	// Chats is how many chats may be at work at once. It bounds how many recordings wait to be written.
	Chats int
	// Log reports lost recordings; never content. Required with Recordings.
	Log *slog.Logger
	// Metrics count; nil: nothing is counted.
	Metrics *telemetry.Generator
	// Tracer makes spans.
	Tracer *tracing.Tracer
	// Now returns the current time.
	Now func() time.Time
}

// Observer observes what one pod does. It is safe for concurrent use.
type Observer struct {
	options  Options
	recorder *recorder
}

// New returns an observer. It writes recordings while Run runs.
func New(o Options) *Observer { return &Observer{options: o, recorder: newRecorder(o)} }

// Run writes recordings until ctx is done, and then those that are left, for at most 5 seconds.
func (o *Observer) Run(ctx context.Context) { o.recorder.run(ctx) }

// Caller calls models for one action at a chat.
type Caller struct {
	observer *Observer
	chat     *v1alpha1.Chat
	action   v1alpha1.GenerationAction
	// aside is true for an action next to the attempt, such as a title.
	aside bool
	// author created the message of the turn; empty if that is not known.
	author string
	// recorded counts the calls that are recorded.
	recorded atomic.Int32
}

// SideCaller returns what calls models for an action next to the attempt that the chat's status holds, such as a title.
// Their recordings and spans are named after the action. The author created the message of the turn.
func (o *Observer) SideCaller(chat *v1alpha1.Chat, action v1alpha1.GenerationAction, author string) *Caller {
	return &Caller{observer: o, chat: chat, action: action, aside: true, author: author}
}

// Call calls the model until its reply ends, or until the reply has no more room, and fills in the call.
func (c *Caller) Call(ctx context.Context, call *ModelCall) {
	o := &c.observer.options
	call.caller, call.StartedAt = c, o.Now()
	// This holds if a fault ends the call.
	call.Outcome, call.Failure = v1alpha1.OutcomeFailed, &v1alpha1.GenerationError{Reason: v1alpha1.ErrorInternal}
	ctx, call.span = o.Tracer.StartModelCall(ctx, call.Target.Config.Spec.Model, call.attributes)
	call.recording = c.observer.recorder.begin(call)
	defer func() {
		call.FinishedAt = o.Now()
		call.count(o.Metrics)
		call.endSpan()
		call.recording.end()
	}()
	call.end(ctx, call.stream(withRecording(ctx, call.recording)))
}
