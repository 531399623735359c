// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe measures and traces the attempts of a generation pod and their calls of models and tools. It calls
// the models itself, and fills one ModelCall for each call. A finished ModelCall goes to the span, to the metrics and,
// while debugging is on, to the recorder, which writes a ChatDebugStep.
//
// Invariants: observing a call neither changes, delays nor fails it. Metrics have closed sets of labels. Spans hold
// content only if the tracer captures it; logs and metrics hold none.
//
// A recorded call only appends to memory, up to the limits of the resource. One goroutine redacts (package redact) and
// writes. A recording that it cannot write in time is dropped with a line in the log.
package observe

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/tools"
)

// Options of an Observer. Tracer and Now are required.
type Options struct {
	Namespace, Pod string
	// Recordings stores the recordings of model calls; nil: no call is recorded, whatever its chat says.
	Recordings Store
	// Chats is the pod's limit of chats. It limits how many recordings wait to be written.
	Chats int
	// Log reports lost recordings; never content. Required with Recordings.
	Log     *slog.Logger
	Metrics *telemetry.Generator
	Tracer  *tracing.Tracer
	Now     func() time.Time
}

// Observer observes the calls of one pod. It is safe for concurrent use.
type Observer struct {
	options  Options
	recorder *recorder
}

// New returns an observer, which writes recordings in Run.
func New(o Options) *Observer { return &Observer{options: o, recorder: newRecorder(o)} }

// Run writes recordings until ctx is done, and then the queued ones, for at most 5 seconds.
func (o *Observer) Run(ctx context.Context) { o.recorder.run(ctx) }

// Caller calls models for one action at a chat.
type Caller struct {
	observer *Observer
	chat     *v1beta1.Chat
	action   v1beta1.GenerationAction
	// isSideCall is true for an action next to the attempt, such as a title.
	isSideCall bool
	// author created the message of the turn; empty if unknown.
	author string
	// recorded counts the recorded calls.
	recorded atomic.Int32
}

// SideCaller calls models for an action next to the attempt, such as a title, which names its recordings and spans.
func (o *Observer) SideCaller(chat *v1beta1.Chat, action v1beta1.GenerationAction, author string) *Caller {
	return &Caller{observer: o, chat: chat, action: action, isSideCall: true, author: author}
}

// Call calls the model until its reply ends or is full, and fills in the call.
func (c *Caller) Call(ctx context.Context, call *ModelCall) {
	o := &c.observer.options
	call.caller, call.StartedAt = c, o.Now()
	// These remain if a panic ends the call.
	call.Outcome, call.Failure = v1beta1.OutcomeFailed, &v1beta1.GenerationError{Reason: v1beta1.ErrorInternal}
	ctx, call.span = o.Tracer.StartModelCall(ctx, call.Target.Config.Spec.Model, call.attributes)
	call.recording = c.observer.recorder.begin(call)
	defer func() {
		call.FinishedAt = o.Now()
		call.count(o.Metrics)
		call.endSpan()
		call.recording.end()
	}()
	call.setOutcome(ctx, call.stream(context.WithValue(ctx, recordingKey{}, call.recording)))
}

// ModelCall is one call of a model. The caller sets the first group of fields, and Caller.Call the others.
type ModelCall struct {
	Target  *models.Target
	Request fantasy.Call
	Reply   *collect.Accumulator
	// Show receives the parts of the reply that are shown; nil: none is.
	Show func(parts.Part)
	// Classify explains an error of the call, unless the call was interrupted.
	Classify func(error) *v1beta1.GenerationError

	StartedAt, FinishedAt time.Time
	// Content is the reply as far as it came, and its usage.
	Content collect.Step
	// Outcome can also be telemetry.OutcomeAbandoned.
	Outcome v1beta1.GenerationOutcome
	// Err is nil if the call completed, and Failure also if it was interrupted.
	Err     error
	Failure *v1beta1.GenerationError

	caller    *Caller
	span      tracing.Span
	recording *recording // nil if the call is not recorded
	// firstPart is the time to the first part; 0 if none came.
	firstPart  time.Duration
	partCounts map[fantasy.StreamPartType]int32
	warnings   []fantasy.CallWarning
}

// stream calls the model and collects its reply.
func (c *ModelCall) stream(ctx context.Context) error {
	defer func() { c.Content = c.Reply.Finish() }()
	stream, err := c.Target.Model.Stream(ctx, c.Request)
	if err != nil {
		return err
	}
	c.partCounts = map[fantasy.StreamPartType]int32{}
	finished := false
	for part := range stream {
		c.countPart(&part)
		shown, ok := c.Reply.Add(&part)
		if ok && c.Show != nil {
			c.Show(shown)
		}
		if part.Type == fantasy.StreamPartTypeError {
			return part.Error
		}
		finished = finished || part.Type == fantasy.StreamPartTypeFinish
		if c.Reply.Full() {
			return nil
		}
	}
	if !finished {
		return fantasy.NewIncompleteStreamError()
	}
	return nil
}

// countPart keeps what the content lacks of a part.
func (c *ModelCall) countPart(p *fantasy.StreamPart) {
	c.partCounts[p.Type]++
	switch p.Type {
	case fantasy.StreamPartTypeError:
	case fantasy.StreamPartTypeWarnings:
		c.warnings = append(c.warnings, p.Warnings...)
	default:
		if c.firstPart == 0 {
			c.firstPart = max(c.caller.observer.options.Now().Sub(c.StartedAt), 1)
			// Not at the end of the call, which may be late, or never if the pod is killed.
			c.caller.observer.options.Metrics.FirstPart(string(c.Target.Config.Spec.Provider), c.firstPart)
		}
	}
}

// setOutcome sets how the call ended, which was made in ctx.
func (c *ModelCall) setOutcome(ctx context.Context, err error) {
	c.Err, c.Failure = err, nil
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		c.Outcome = v1beta1.OutcomeCompleted
		return
	case tools.Interrupted(ctx):
		c.Outcome = v1beta1.OutcomeInterrupted
		return
	// The deadline of a side call is its own: a provider that exceeds it has failed.
	case cause != nil && !errors.Is(cause, models.ErrSilent) && !errors.Is(cause, context.DeadlineExceeded):
		c.Outcome = telemetry.OutcomeAbandoned
	}
	c.Failure = c.Classify(err)
}

// count counts the call in the metrics.
func (c *ModelCall) count(m *telemetry.Generator) {
	provider, u := string(c.Target.Config.Spec.Provider), &c.Content.Usage
	m.CallEnded(provider, string(c.Outcome), string(c.Content.ReplyOutcome), c.FinishedAt.Sub(c.StartedAt))
	for kind, n := range map[string]int64{
		telemetry.TokensInput: u.InputTokens, telemetry.TokensOutput: u.OutputTokens,
		telemetry.TokensReasoning: u.ReasoningTokens,
		telemetry.TokensCacheRead: u.CacheReadTokens, telemetry.TokensCacheWrite: u.CacheWriteTokens,
	} {
		m.Tokens(provider, kind, n)
	}
}
