// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"time"

	"go.opentelemetry.io/otel/trace"

	"parley.dev/parley/internal/telemetry/traceparent"
)

// Turn names a turn.
type Turn struct {
	// ChatUID of its chat.
	ChatUID string
	// HistoryVersion that its beginning made.
	HistoryVersion int64
	// Began is when. A turn that continues after a failure begins again.
	Began time.Time
	// Traceparent that the turn belongs under, as in Chat.status.turn; empty for a trace of its own.
	Traceparent string
}

func (t Turn) ids() presetIDs {
	began := t.Began.UnixMicro() // A status holds no more of it.
	g := presetIDs{span: trace.SpanID(digest[[8]byte]("turn", t.ChatUID, t.HistoryVersion, began))}
	if parent, ok := traceparent.Parse(t.Traceparent); ok {
		g.trace = parent.TraceID
		return g
	}
	g.trace = trace.TraceID(digest[[16]byte]("trace", t.ChatUID, t.HistoryVersion, began))
	return g
}

// under is the context of whoever began the turn's trace.
func (t Turn) under(ctx context.Context) context.Context {
	parent, ok := traceparent.Parse(t.Traceparent)
	if !ok {
		return trace.ContextWithSpanContext(ctx, trace.SpanContext{})
	}
	var flags trace.TraceFlags
	return trace.ContextWithRemoteSpanContext(ctx, trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: parent.TraceID, SpanID: parent.SpanID, TraceFlags: flags.WithSampled(parent.Sampled), Remote: true,
	}))
}

// Fence names an attempt: its step's span is named by it.
type Fence struct {
	ChatUID        string
	HistoryVersion int64
	Attempt        int32
}

func (f Fence) span() trace.SpanID {
	return trace.SpanID(digest[[8]byte]("step", f.ChatUID, f.HistoryVersion, f.Attempt))
}

// digest makes an id of what it is to name. That it is none but zeros is as likely as for a random one.
func digest[ID [8]byte | [16]byte](of ...any) (id ID) {
	sum := sha256.Sum256(fmt.Appendln(nil, of...))
	return ID(sum[:len(id)])
}

// presetIDs are the ids of the next span.
type presetIDs struct {
	trace trace.TraceID
	span  trace.SpanID
}

// presetKey is how ids reach the generator of ids, which gets only the context of a span that begins.
type presetKey struct{}

func (g presetIDs) in(ctx context.Context) context.Context {
	return context.WithValue(ctx, presetKey{}, g)
}

// ids makes random ids if the context has none.
type ids struct{}

// NewIDs implements sdktrace.IDGenerator.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if g, ok := ctx.Value(presetKey{}).(presetIDs); ok {
		return g.trace, g.span
	}
	var id trace.TraceID
	fill(id[:])
	return id, ids{}.NewSpanID(ctx, id)
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if g, ok := ctx.Value(presetKey{}).(presetIDs); ok {
		return g.span
	}
	var id trace.SpanID
	fill(id[:])
	return id
}

// fill never fails: the program would end first.
func fill(id []byte) { _, _ = rand.Read(id) }
