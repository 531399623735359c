// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/generation/observe/redact"
)

// maxAttempts is what the resource takes.
const maxAttempts = 32

// recording is a model call while it is recorded. Only its step leaves the process, which is redacted.
type recording struct {
	recorder    *recorder
	call        *ModelCall
	number      int32
	expireAfter time.Duration
	// waiting is whether it is in the queue of the recorder.
	waiting atomic.Bool
	// written is whether the store has it. It belongs to the goroutine that writes.
	written bool

	mu sync.Mutex
	// ended is whether the call has ended: before, all that it gets while it runs belongs to it alone.
	ended     bool
	exchanges []*exchange
}

// recordingKey is where the recording of a call is in the context of its HTTP requests. A transport, which all calls
// share, sees nothing else of a call.
type recordingKey struct{}

// withRecording returns the context of a call, whose HTTP requests are part of the recording.
func withRecording(ctx context.Context, r *recording) context.Context {
	if r == nil {
		return ctx
	}
	return context.WithValue(ctx, recordingKey{}, r)
}

// end lets the whole call be written. A nil recording has no end.
func (r *recording) end() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.recorder.submit(r)
}

// name follows from what is asked, so that every attempt at it finds the same recording.
func (r *recording) name() string {
	chat := r.call.caller.chat
	name := fmt.Sprintf("%s-%d-%s", chat.Name, chat.Status.History.Version,
		strings.ToLower(string(r.call.caller.action)))
	if r.number > 1 {
		name += fmt.Sprintf("-%d", r.number)
	}
	return name
}

// step is a recording without an attempt.
func (r *recording) step() *v1alpha1.ChatDebugStep {
	chat, expires := r.call.caller.chat, r.recorder.options.Now().Add(r.expireAfter)
	owner := metav1.NewControllerRef(chat, v1alpha1.GroupVersion.WithKind("Chat"))
	owner.BlockOwnerDeletion = nil // To set it takes a right to the chat where the API server enforces such.
	return &v1alpha1.ChatDebugStep{
		ObjectMeta: metav1.ObjectMeta{
			Name: r.name(), Namespace: r.recorder.options.Namespace, OwnerReferences: []metav1.OwnerReference{*owner},
			Annotations: map[string]string{v1alpha1.AnnotationExpiresAt: expires.UTC().Format(time.RFC3339)},
		},
		DebugRecording: v1alpha1.DebugRecording{
			ChatRef: v1alpha1.ChatReference{Name: chat.Name}, ChatUID: string(chat.UID),
			HistoryVersion: chat.Status.History.Version, Action: r.call.caller.action, Call: r.number,
			Turn: r.turn(), Head: chat.Status.History.Head, StartedAt: metav1.NewMicroTime(r.call.StartedAt),
		},
	}
}

// turn is the one that the call is part of.
func (r *recording) turn() *v1alpha1.DebugTurn {
	t := r.call.caller.chat.Status.Turn
	if t == nil {
		return nil
	}
	return &v1alpha1.DebugTurn{Message: t.Message, Version: t.HistoryVersion,
		CreatedBy: bound(r.call.caller.author, 1024)}
}

// addTo adds the attempt to a recording, or brings it up to date there. The newest attempt is what the recording as a
// whole says; those before it that have no end were broken off.
func (r *recording) addTo(step *v1alpha1.ChatDebugStep) {
	rec, redactor := &step.DebugRecording, redact.New(r.call.Target.Key)
	attempt := r.attempt(redactor)
	rec.Pod = attempt.Pod
	same := func(a v1alpha1.DebugAttempt) bool { return a.Number == attempt.Number }
	rec.Attempts = append(slices.DeleteFunc(rec.Attempts, same), attempt)
	slices.SortFunc(rec.Attempts, func(a, b v1alpha1.DebugAttempt) int { return int(a.Number) - int(b.Number) })
	rec.Attempts = rec.Attempts[max(0, len(rec.Attempts)-maxAttempts):]
	for i := range rec.Attempts[:len(rec.Attempts)-1] {
		if a := &rec.Attempts[i]; a.State == v1alpha1.DebugInProgress {
			a.State = v1alpha1.DebugInterrupted
		}
	}
	if attempt.Number >= rec.Attempt {
		rec.Attempt, rec.State, rec.Error = attempt.Number, attempt.State, attempt.Error
		rec.FinishedAt, rec.Model = attempt.FinishedAt, attempt.Model
		rec.Request, rec.Response, rec.Cost = recordRequest(&r.call.Request, redactor), nil, nil
		if attempt.FinishedAt != nil && len(r.call.partCounts) > 0 {
			rec.Response = recordReply(r.call, redactor)
			rec.Cost = cost.Of(r.call.Target.Config.Spec.Pricing, rec.Response.Usage)
		}
		r.annotate(step)
	}
	fit(rec)
}

// attempt is the call as it stands.
func (r *recording) attempt(redactor redact.Redactor) v1alpha1.DebugAttempt {
	a := v1alpha1.DebugAttempt{
		Number: r.call.caller.chat.Status.Generation.Attempt, Pod: r.recorder.options.Pod,
		Model: *r.call.Target.Identity(), State: v1alpha1.DebugInProgress,
		StartedAt: metav1.NewMicroTime(r.call.StartedAt),
	}
	exchanges, ended := r.copy()
	for i := range exchanges {
		a.Exchanges = append(a.Exchanges, exchanges[i].record(redactor))
	}
	if !ended {
		return a
	}
	a.FinishedAt = new(metav1.NewMicroTime(r.call.FinishedAt))
	switch r.call.Outcome {
	case v1alpha1.OutcomeCompleted:
		a.State = v1alpha1.DebugCompleted
	case v1alpha1.OutcomeFailed:
		f := r.call.Failure
		a.State = v1alpha1.DebugError
		a.Error = &v1alpha1.DebugFault{Reason: f.Reason, StatusCode: f.StatusCode, Retryable: f.Retryable}
	default:
		a.State = v1alpha1.DebugInterrupted
	}
	return a
}

// copy is what is known of the exchanges, and whether the call has ended. Redaction takes its time, in which nobody
// waits for the copy.
func (r *recording) copy() (exchanges []exchange, ended bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, e := range r.exchanges {
		exchanges = append(exchanges, *e)
	}
	return exchanges, r.ended
}

// annotate says in the metadata what the operator needs to know, which reads no more.
func (r *recording) annotate(step *v1alpha1.ChatDebugStep) {
	if step.Annotations == nil {
		step.Annotations = map[string]string{}
	}
	history := &r.call.caller.chat.Status.History
	step.Annotations[v1alpha1.AnnotationHistory] = fmt.Sprintf("%d/%d", history.Version, history.Length)
	if step.State == v1alpha1.DebugInProgress {
		step.Annotations[v1alpha1.AnnotationInProgress] = fmt.Sprintf("%s %d %s", step.Pod, step.Attempt,
			r.recorder.options.Now().UTC().Format(time.RFC3339))
	} else {
		delete(step.Annotations, v1alpha1.AnnotationInProgress)
	}
}
