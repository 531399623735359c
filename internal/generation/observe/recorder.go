// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

const (
	// writeTimeout bounds the writing of one recording, and of all that are left when the process ends.
	writeTimeout = 5 * time.Second
	// queued is how many recordings of each chat may wait to be written: of two steps, a title and a summary.
	queued = 4
	// refusedFor is how long nothing is recorded after the API server has forbidden a recording, as it does where
	// recordings are disabled.
	refusedFor = time.Minute
	// maxCalls is how many model calls of one action are recorded.
	maxCalls = 1000
)

// Store stores recordings: ChatDebugSteps of one namespace.
type Store interface {
	Get(ctx context.Context, name string) (*v1beta1.ChatDebugStep, error)
	Create(ctx context.Context, step *v1beta1.ChatDebugStep) (*v1beta1.ChatDebugStep, error)
	Update(ctx context.Context, step *v1beta1.ChatDebugStep) (*v1beta1.ChatDebugStep, error)
}

// recorder writes recordings while run runs.
type recorder struct {
	options Options
	queue   chan *recording // holds each recording at most once
	// refusedUntil is the time, in Unix nanoseconds, until which nothing is recorded.
	refusedUntil atomic.Int64
}

func newRecorder(o Options) *recorder {
	return &recorder{options: o, queue: make(chan *recording, queued*max(1, o.Chats))}
}

// begin begins to record a call; nil if neither the chat nor the configuration enables it.
func (r *recorder) begin(c *ModelCall) *recording {
	settings := c.Target.Config.Spec.Debug
	if c.caller.chat.Spec.Debug.On() {
		settings = c.caller.chat.Spec.Debug
	}
	if !settings.On() || r.options.Recordings == nil || r.isRefused() {
		return nil
	}
	number := c.caller.recorded.Add(1)
	if number > maxCalls {
		return nil
	}
	rec := &recording{recorder: r, call: c, number: number, expireAfter: settings.ExpireAfter()}
	r.submit(rec)
	return rec
}

// isRefused reports whether the API server has just refused recordings. This one then counts as lost, but only the
// first is logged.
func (r *recorder) isRefused() bool {
	refused := r.options.Now().UnixNano() < r.refusedUntil.Load()
	if refused {
		r.options.Metrics.RecordingLost(string(metav1.StatusReasonForbidden))
	}
	return refused
}

func (r *recorder) run(ctx context.Context) {
	for ctx.Err() == nil {
		select {
		case rec := <-r.queue:
			r.write(context.WithoutCancel(ctx), rec)
		case <-ctx.Done():
		}
	}
	rest, cancel := context.WithTimeout(context.WithoutCancel(ctx), writeTimeout)
	defer cancel()
	for {
		select {
		case rec := <-r.queue:
			r.write(rest, rec)
		default:
			return
		}
	}
}

// submit queues a recording to be written. It does not wait: if the queue is full, the recording is lost.
func (r *recorder) submit(rec *recording) {
	if rec.isQueued.Swap(true) {
		return
	}
	select {
	case r.queue <- rec:
	default:
		rec.isQueued.Store(false)
		r.lost(rec, "QueueFull")
	}
}

func (r *recorder) lost(rec *recording, reason string) {
	r.options.Log.Warn("a recording of a model call was lost", slog.String("step", rec.name()),
		slog.String("reason", reason))
	r.options.Metrics.RecordingLost(reason)
}

// errForeign means that a recording of a deleted chat of the same name still exists.
var errForeign = errors.New("the recording of another chat has this name")

func (r *recorder) write(ctx context.Context, rec *recording) {
	defer func() {
		// Redaction parses untrusted input: a panic in it must not end the pod's chats.
		if fault := recover(); fault != nil {
			r.lost(rec, "Fault")
		}
	}()
	rec.isQueued.Store(false)
	writing, cancel := context.WithTimeout(ctx, writeTimeout)
	defer cancel()
	if err := r.save(writing, rec); err != nil {
		if apierrors.IsForbidden(err) {
			r.refusedUntil.Store(r.options.Now().Add(refusedFor).UnixNano())
		}
		// The error itself can quote the object.
		r.lost(rec, reasonOf(err))
	}
}

func reasonOf(err error) string {
	switch {
	case errors.Is(err, errForeign):
		return "NameConflict"
	case errors.Is(err, context.DeadlineExceeded):
		return "Timeout"
	}
	return string(apierrors.ReasonForError(err))
}

// save creates or updates the recording. It retries on conflicts.
func (r *recorder) save(ctx context.Context, rec *recording) error {
	for {
		err := r.saveOnce(ctx, rec)
		if !apierrors.IsConflict(err) && !apierrors.IsAlreadyExists(err) || ctx.Err() != nil {
			return err
		}
	}
}

func (r *recorder) saveOnce(ctx context.Context, rec *recording) error {
	step, err := r.options.Recordings.Get(ctx, rec.name())
	save := r.options.Recordings.Update
	switch {
	case apierrors.IsNotFound(err) && rec.isWritten: // It was deleted meanwhile.
		return nil
	case apierrors.IsNotFound(err):
		step, save = rec.step(), r.options.Recordings.Create
	case err != nil:
		return err
	case step.ChatUID != string(rec.call.caller.chat.UID):
		return errForeign
	default:
		rec.isWritten = true
	}
	rec.addTo(step)
	_, err = save(ctx, step)
	rec.isWritten = rec.isWritten || err == nil
	return err
}
