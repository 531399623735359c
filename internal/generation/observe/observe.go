// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package observe makes the spans, metrics and recordings of attempts, and of the calls of models and of tools that are
// made for them.
//
// Invariants: what is observed goes on as if nobody looked: a model or a tool that is observed gets and gives the same,
// and trouble with a span or a recording is no trouble for it. Labels of metrics are of closed sets, whatever a model
// or a provider makes up. Spans hold content only where the tracer says so; recordings go through package debug, which
// redacts them.
package observe

import (
	"time"

	"parley.dev/parley/internal/generation/debug"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
)

// Options of an Observer. All are required but Metrics.
type Options struct {
	// Namespace of the chats.
	Namespace string
	// Recorder of model calls.
	Recorder *debug.Recorder
	// Metrics count; nil: nobody does.
	Metrics *telemetry.Generator
	// Tracer makes spans.
	Tracer *tracing.Tracer
	// Now returns the current time.
	Now func() time.Time
}

// Observer observes what one pod does. It is safe for concurrent use.
type Observer struct{ options Options }

// New returns an observer.
func New(o Options) *Observer { return &Observer{options: o} }
