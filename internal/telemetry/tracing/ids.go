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
	// Began is when. A turn that goes on after it had failed begins a second time.
	Began time.Time
	// Traceparent that the turn belongs under, as in Chat.status.turn; empty for a trace of its own.
	Traceparent string
}

func (t Turn) ids() given {
	began := t.Began.UnixMicro() // A status holds no more of it.
	g := given{span: trace.SpanID(digest[[8]byte]("turn", t.ChatUID, t.HistoryVersion, began))}
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

// given are the ids that the next span is to have.
type given struct {
	trace trace.TraceID
	span  trace.SpanID
}

// givenKey is how ids reach the generator of ids, which OpenTelemetry gives nothing but the context of a span that
// begins.
type givenKey struct{}

func (g given) in(ctx context.Context) context.Context { return context.WithValue(ctx, givenKey{}, g) }

// ids makes random ids where none are given.
type ids struct{}

// NewIDs implements sdktrace.IDGenerator.
func (ids) NewIDs(ctx context.Context) (trace.TraceID, trace.SpanID) {
	if g, ok := ctx.Value(givenKey{}).(given); ok {
		return g.trace, g.span
	}
	var id trace.TraceID
	fill(id[:])
	return id, ids{}.NewSpanID(ctx, id)
}

// NewSpanID implements sdktrace.IDGenerator.
func (ids) NewSpanID(ctx context.Context, _ trace.TraceID) trace.SpanID {
	if g, ok := ctx.Value(givenKey{}).(given); ok {
		return g.span
	}
	var id trace.SpanID
	fill(id[:])
	return id
}

// fill never fails: the program would end first.
func fill(id []byte) { _, _ = rand.Read(id) }
