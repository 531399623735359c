// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/tools"
)

// ModelCall is one call of a model. Who makes it fills in the first part, Caller.Call the rest. While the call runs, it
// belongs to the goroutine that makes it.
type ModelCall struct {
	// Target is the model, and Request what it is asked.
	Target  *models.Target
	Request fantasy.Call
	// Reply collects what the model says.
	Reply *collect.Accumulator
	// Show is handed what of the reply is worth showing; nil: nothing is shown.
	Show func(parts.Part)
	// Classify says what an error of the call means. It is not asked about a call that was interrupted.
	Classify func(error) *v1alpha1.GenerationError

	// StartedAt and FinishedAt are when the call began and ended.
	StartedAt, FinishedAt time.Time
	// Content is the reply, or what came of it before the call ended, and its usage.
	Content collect.Step
	// Outcome is how the call ended: telemetry.OutcomeAbandoned if no one waits for it.
	Outcome v1alpha1.GenerationOutcome
	// Err is why the call failed, and Failure what that means; nil if it completed. An interrupted call has no Failure.
	Err     error
	Failure *v1alpha1.GenerationError

	caller *Caller
	span   tracing.Span
	// recording is nil if the call is not recorded.
	recording *recording
	// firstPart is how long the first part took; 0 if none came.
	firstPart time.Duration
	// partCounts are how many parts of each type came, and warnings those of the stream.
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
		c.note(&part)
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

// note notes what the content does not say of a part.
func (c *ModelCall) note(p *fantasy.StreamPart) {
	c.partCounts[p.Type]++
	switch p.Type {
	case fantasy.StreamPartTypeError:
	case fantasy.StreamPartTypeWarnings:
		c.warnings = append(c.warnings, p.Warnings...)
	default:
		if c.firstPart == 0 {
			c.firstPart = max(c.caller.observer.options.Now().Sub(c.StartedAt), 1)
			// At once: a long reply would be counted late, and one whose pod is killed not at all.
			c.caller.observer.options.Metrics.FirstPart(string(c.Target.Config.Spec.Provider), c.firstPart)
		}
	}
}

// end says how the call ended, which was made in ctx.
func (c *ModelCall) end(ctx context.Context, err error) {
	c.Err, c.Failure = err, nil
	cause := context.Cause(ctx)
	switch {
	case err == nil:
		c.Outcome = v1alpha1.OutcomeCompleted
		return
	case tools.Interrupted(ctx):
		c.Outcome = v1alpha1.OutcomeInterrupted
		return
	// Nothing waits for a call that is made next to the attempt, so its deadline is the provider's fault.
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
