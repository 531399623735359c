// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package debug records the model calls of chats that are being debugged, one ChatDebugStep per call.
//
// Invariants: recording never fails or delays a call. A call only appends to memory, up to the bounds of the resource;
// one goroutine redacts and writes, off the call's path and whatever becomes of the call, and a write that does not
// succeed in time is given up with a line in the log. What is written went through package redact. While debugging is
// off nothing is kept and nothing is written.
//
// The HTTP requests of a call are found by their context, because HTTP clients are shared by all chats of a pod.
package debug

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

const (
	// writeTimeout bounds the writing of one recording, and of all that are left when the process ends.
	writeTimeout = 5 * time.Second
	// queued is how many recordings may wait to be written for each chat at work: of an attempt's call and of the one
	// after a tool, of a title and of a summary.
	queued = 4
	// refusedFor is how long nothing is recorded after the API server has refused a recording for want of rights, which it
	// does where they are disabled.
	refusedFor = time.Minute
)

// Store keeps recordings: ChatDebugSteps of one namespace.
type Store interface {
	Get(ctx context.Context, name string) (*v1alpha1.ChatDebugStep, error)
	Create(ctx context.Context, step *v1alpha1.ChatDebugStep) (*v1alpha1.ChatDebugStep, error)
	Update(ctx context.Context, step *v1alpha1.ChatDebugStep) (*v1alpha1.ChatDebugStep, error)
}

// Options of a Recorder; all are required.
type Options struct {
	// Store keeps the recordings.
	Store Store
	// Namespace and Pod that this is.
	Namespace, Pod string
	// Chats is how many chats may be at work at once.
	Chats int
	// Off keeps every recording from being made.
	Off bool
	// Log is told of recordings that were lost; never content.
	Log *slog.Logger
	// Lost counts recordings that were lost, by reason; nil: nobody does.
	Lost func(reason string)
	// Now returns the current time.
	Now func() time.Time
}

// Recorder writes recordings while Run runs.
type Recorder struct {
	options Options
	queue   *queue
	// refusedUntil is the time, in Unix nanoseconds, until which nothing is recorded.
	refusedUntil atomic.Int64
}

// New returns a recorder.
func New(o Options) *Recorder {
	return &Recorder{options: o, queue: newQueue(queued * max(1, o.Chats))}
}

// off reports whether a call that begins now is not to be recorded. One that the API server would refuse counts as
// lost; the log says no more of it than of the refusal.
func (r *Recorder) off() bool {
	if r.options.Off {
		return true
	}
	refused := r.options.Now().UnixNano() < r.refusedUntil.Load()
	if refused && r.options.Lost != nil {
		r.options.Lost(string(metav1.StatusReasonForbidden))
	}
	return refused
}

// Run writes recordings until ctx is done, and then those that are left, for at most 5 seconds.
func (r *Recorder) Run(ctx context.Context) {
	for ctx.Err() == nil {
		if s, ok := r.queue.take(); ok {
			r.write(context.WithoutCancel(ctx), s)
			continue
		}
		select {
		case <-r.queue.filled:
		case <-ctx.Done():
		}
	}
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	for {
		s, ok := r.queue.take()
		if !ok {
			return
		}
		r.write(rest, s)
	}
}

// submit hands a snapshot over to be written. It does not wait: where too many do, the newest is lost.
func (r *Recorder) submit(s snapshot) {
	if !r.queue.put(s) {
		r.lost(s, "QueueFull")
	}
}

func (r *Recorder) lost(s snapshot, reason string) {
	r.options.Log.Warn("a recording of a model call was lost", slog.String("step", s.name()),
		slog.String("reason", reason))
	if r.options.Lost != nil {
		r.options.Lost(reason)
	}
}

// errForeign means that the name is taken by a recording of a deleted chat of the same name, which is about to go too.
var errForeign = errors.New("the recording of another chat has this name")

func (r *Recorder) write(ctx context.Context, s snapshot) {
	defer func() {
		// Redaction reads whatever a provider sends; a fault in it must not take the pod's chats along.
		if fault := recover(); fault != nil {
			r.lost(s, "Fault")
		}
	}()
	writing, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := r.save(writing, s); err != nil {
		if apierrors.IsForbidden(err) {
			r.refusedUntil.Store(r.options.Now().Add(refusedFor).UnixNano())
		}
		// The error itself can quote the object.
		r.lost(s, reasonOf(err))
	}
}

func reasonOf(err error) string {
	switch {
	case errors.Is(err, errForeign):
		return "NameTaken"
	case errors.Is(err, context.DeadlineExceeded):
		return "Timeout"
	}
	return string(apierrors.ReasonForError(err))
}

// save creates the recording or updates what an earlier attempt, or the beginning of this one, has left there. It tries
// again as long as others write the same object.
func (r *Recorder) save(ctx context.Context, s snapshot) error {
	for {
		err := r.saveOnce(ctx, s)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) || ctx.Err() != nil {
			return err
		}
	}
}

func (r *Recorder) saveOnce(ctx context.Context, s snapshot) error {
	there, err := r.options.Store.Get(ctx, s.name())
	switch {
	case apierrors.IsNotFound(err) && s.written.Load(): // It was deleted meanwhile, and stays so.
		return nil
	case apierrors.IsNotFound(err):
		if _, err = r.options.Store.Create(ctx, s.object(r.options.Namespace, r.options.Pod, r.options.Now())); err == nil {
			s.written.Store(true)
		}
		return err
	case err != nil:
		return err
	case there.ChatUID != s.chatUID:
		return errForeign
	}
	s.written.Store(true)
	s.addTo(there, r.options.Pod, r.options.Now())
	_, err = r.options.Store.Update(ctx, there)
	return err
}
