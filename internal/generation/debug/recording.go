// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/debug/redact"
)

// maxCalls is how many model calls of one attempt are recorded.
const maxCalls = 1000

// Recording is that of one attempt, or of something that is done beside one:
// of the model calls that are made through its Model.
type Recording struct {
	recorder *Recorder
	chat     *v1alpha1.Chat
	action   v1alpha1.GenerationAction

	mu     sync.Mutex
	author string
	calls  []*call
}

// By says who created the message whose turn this is, for the calls that are still to be made.
func (rec *Recording) By(author string) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	rec.author = author
}

// CreatedBy is who created that message; empty if nobody has said so.
func (rec *Recording) CreatedBy() string {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	return rec.author
}

// Begin begins to record the attempt that the chat's status holds, or an action beside it. Whether there is anything to
// record shows when a model is called.
func (r *Recorder) Begin(chat *v1alpha1.Chat, action v1alpha1.GenerationAction) *Recording {
	return &Recording{recorder: r, chat: chat, action: action}
}

// End says how the attempt ended, for the calls that have not ended by themselves, and hands all to be written.
func (rec *Recording) End(state v1alpha1.DebugState, err *v1alpha1.GenerationError) {
	rec.mu.Lock()
	defer rec.mu.Unlock()
	for _, c := range rec.calls {
		c.end(state, faultOf(err))
		rec.recorder.submit(c.snapshot())
	}
}

func faultOf(err *v1alpha1.GenerationError) *v1alpha1.DebugFault {
	if err == nil {
		return nil
	}
	return &v1alpha1.DebugFault{Reason: err.Reason, StatusCode: err.StatusCode, Retryable: err.Retryable}
}

// begin begins to record a call, if the chat or the configuration wants it; else nil.
func (rec *Recording) begin(of *Subject, request request) *call {
	settings := of.Config.Spec.Debug
	if rec.chat.Spec.Debug.On() {
		settings = rec.chat.Spec.Debug
	}
	if !settings.On() || rec.recorder.off() {
		return nil
	}
	c := &call{
		rec: rec, subject: of, request: request, expireAfter: settings.ExpireAfter(),
		state: v1alpha1.DebugInProgress, startedAt: rec.recorder.options.Now(), author: rec.CreatedBy(),
		written: new(atomic.Bool),
	}
	rec.mu.Lock()
	if len(rec.calls) == maxCalls {
		rec.mu.Unlock()
		return nil
	}
	rec.calls = append(rec.calls, c)
	c.number = int32(len(rec.calls))
	rec.mu.Unlock()
	rec.recorder.submit(c.snapshot())
	return c
}

// call is a model call while it is recorded.
type call struct {
	rec         *Recording
	subject     *Subject
	request     request
	number      int32
	expireAfter time.Duration
	startedAt   time.Time
	author      string
	// written is true once the store has the recording.
	written *atomic.Bool

	mu         sync.Mutex
	state      v1alpha1.DebugState
	fault      *v1alpha1.DebugFault
	finishedAt time.Time
	reply      reply
	exchanges  []*exchange
}

// callKey is where a call is in the context of its HTTP requests. A transport, which all calls share, sees nothing else
// of a call.
type callKey struct{}

// context makes the HTTP requests of the call known as its own.
func (c *call) context(ctx context.Context) context.Context {
	return context.WithValue(ctx, callKey{}, c)
}

func callOf(ctx context.Context) *call {
	c, _ := ctx.Value(callKey{}).(*call)
	return c
}

// end ends the call, unless it has ended.
func (c *call) end(state v1alpha1.DebugState, fault *v1alpha1.DebugFault) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.endLocked(state, fault)
}

func (c *call) endLocked(state v1alpha1.DebugState, fault *v1alpha1.DebugFault) {
	if c.state == v1alpha1.DebugInProgress {
		c.state, c.finishedAt = state, c.rec.recorder.options.Now()
		if state == v1alpha1.DebugError {
			c.fault = fault
		}
	}
}

// failed ends the call with an error of the client. If it was given up, who did that knows why.
func (c *call) failed(ctx context.Context, err error) {
	if ctx.Err() == nil {
		c.end(v1alpha1.DebugError, faultOf(c.subject.Classify(err)))
	}
}

// turn is the one that the call is part of.
func (c *call) turn() *v1alpha1.DebugTurn {
	t := c.rec.chat.Status.Turn
	if t == nil {
		return nil
	}
	return &v1alpha1.DebugTurn{Message: t.Message, Version: t.HistoryVersion, CreatedBy: bound(c.author, 1024)}
}

// snapshot is the call as it stands.
func (c *call) snapshot() snapshot {
	c.mu.Lock()
	defer c.mu.Unlock()
	chat := c.rec.chat
	s := snapshot{
		turn: c.turn(), head: chat.Status.History.Head, length: chat.Status.History.Length, written: c.written,
		pricing: c.subject.Config.Spec.Pricing,
		chat:    v1alpha1.ChatReference{Name: chat.Name}, chatUID: string(chat.UID),
		historyVersion: chat.Status.History.Version,
		attempt:        chat.Status.Generation.Attempt, action: c.rec.action, call: c.number,
		model: c.subject.identity(), request: c.request, expireAfter: c.expireAfter,
		redactor: redact.New(c.subject.Key), startedAt: c.startedAt, finishedAt: c.finishedAt, state: c.state,
		fault: c.fault,
		reply: c.reply.copy(),
	}
	for _, e := range c.exchanges {
		s.exchanges = append(s.exchanges, e.exchangeFacts)
	}
	return s
}
