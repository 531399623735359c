// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/generation/observe/redact"
)

// maxAttempts is a limit of the resource.
const maxAttempts = 32

// recording is a model call while it is recorded.
type recording struct {
	recorder    *recorder
	call        *ModelCall
	number      int32
	expireAfter time.Duration
	isQueued    atomic.Bool
	// isWritten belongs to the goroutine that writes.
	isWritten bool

	mu sync.Mutex
	// ended is true once the result of the call may be read: until then it belongs to the call's goroutine.
	ended     bool
	exchanges []*exchange
}

// recordingKey finds the recording of a call in the context of its HTTP requests, whose transport all calls share.
type recordingKey struct{}

// end submits the whole call. r may be nil.
func (r *recording) end() {
	if r == nil {
		return
	}
	r.mu.Lock()
	r.ended = true
	r.mu.Unlock()
	r.recorder.submit(r)
}

// name follows from the step and not from the attempt, so that each attempt finds the same recording.
func (r *recording) name() string {
	chat := r.call.caller.chat
	name := fmt.Sprintf("%s-%d-%s", chat.Name, chat.Status.History.Version,
		strings.ToLower(string(r.call.caller.action)))
	if r.number > 1 {
		name += fmt.Sprintf("-%d", r.number)
	}
	return name
}

// step returns a recording without an attempt.
func (r *recording) step() *v1beta1.ChatDebugStep {
	chat, expires := r.call.caller.chat, r.recorder.options.Now().Add(r.expireAfter)
	owner := metav1.NewControllerRef(chat, v1beta1.GroupVersion.WithKind("Chat"))
	owner.BlockOwnerDeletion = nil // It can require the right to update the chat.
	return &v1beta1.ChatDebugStep{
		ObjectMeta: metav1.ObjectMeta{
			Name: r.name(), Namespace: r.recorder.options.Namespace, OwnerReferences: []metav1.OwnerReference{*owner},
			Annotations: map[string]string{v1beta1.AnnotationExpiresAt: expires.UTC().Format(time.RFC3339)},
		},
		DebugRecording: v1beta1.DebugRecording{
			ChatRef: v1beta1.ChatReference{Name: chat.Name}, ChatUID: string(chat.UID),
			HistoryVersion: chat.Status.History.Version, Action: r.call.caller.action, Call: r.number,
			Turn: r.turn(), Head: chat.Status.History.Head, StartedAt: metav1.NewMicroTime(r.call.StartedAt),
		},
	}
}

// turn is the one that the call is part of.
func (r *recording) turn() *v1beta1.DebugTurn {
	t := r.call.caller.chat.Status.Turn
	if t == nil {
		return nil
	}
	return &v1beta1.DebugTurn{Message: t.Message, Version: t.HistoryVersion,
		CreatedBy: bound(r.call.caller.author, 1024)}
}

// addTo adds the attempt to a recording, or updates it there. The recording as a whole describes its newest attempt;
// earlier ones without an end were interrupted.
func (r *recording) addTo(step *v1beta1.ChatDebugStep) {
	rec, redactor := &step.DebugRecording, redact.New(r.call.Target.Key)
	attempt := r.attempt(redactor)
	rec.Pod = attempt.Pod
	same := func(a v1beta1.DebugAttempt) bool { return a.Number == attempt.Number }
	rec.Attempts = append(slices.DeleteFunc(rec.Attempts, same), attempt)
	slices.SortFunc(rec.Attempts, func(a, b v1beta1.DebugAttempt) int { return int(a.Number) - int(b.Number) })
	rec.Attempts = rec.Attempts[max(0, len(rec.Attempts)-maxAttempts):]
	for i := range rec.Attempts[:len(rec.Attempts)-1] {
		if a := &rec.Attempts[i]; a.State == v1beta1.DebugInProgress {
			a.State = v1beta1.DebugInterrupted
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

// attempt returns the present state of the call.
func (r *recording) attempt(redactor redact.Redactor) v1beta1.DebugAttempt {
	a := v1beta1.DebugAttempt{
		Number: r.call.caller.chat.Status.Generation.Attempt, Pod: r.recorder.options.Pod,
		Model: *r.call.Target.Identity(), State: v1beta1.DebugInProgress,
		StartedAt: metav1.NewMicroTime(r.call.StartedAt),
	}
	r.mu.Lock()
	ended := r.ended
	var exchanges []exchange // Redaction is slow, and needs no lock for copies.
	for _, e := range r.exchanges {
		exchanges = append(exchanges, *e)
	}
	r.mu.Unlock()
	for i := range exchanges {
		a.Exchanges = append(a.Exchanges, exchanges[i].record(redactor))
	}
	if !ended {
		return a
	}
	a.FinishedAt = new(metav1.NewMicroTime(r.call.FinishedAt))
	switch r.call.Outcome {
	case v1beta1.OutcomeCompleted:
		a.State = v1beta1.DebugCompleted
	case v1beta1.OutcomeFailed:
		f := r.call.Failure
		a.State = v1beta1.DebugError
		a.Error = &v1beta1.DebugFault{Reason: f.Reason, StatusCode: f.StatusCode, Retryable: f.Retryable}
	default:
		a.State = v1beta1.DebugInterrupted
	}
	return a
}

// annotate sets the annotations that the operator reads, which sees the metadata only.
func (r *recording) annotate(step *v1beta1.ChatDebugStep) {
	history := &r.call.caller.chat.Status.History
	metav1.SetMetaDataAnnotation(&step.ObjectMeta, v1beta1.AnnotationHistory,
		fmt.Sprintf("%d/%d", history.Version, history.Length))
	delete(step.Annotations, v1beta1.AnnotationInProgress)
	if step.State == v1beta1.DebugInProgress {
		step.Annotations[v1beta1.AnnotationInProgress] = fmt.Sprintf("%s %d %s", step.Pod, step.Attempt,
			r.recorder.options.Now().UTC().Format(time.RFC3339))
	}
}

const omittedForSize = "[left out: the recording would be too large]"

// fit reduces a recording to the size limit. It omits the least useful content first; after the last reduction every
// recording fits.
func fit(rec *v1beta1.DebugRecording) {
	for _, reduce := range reductions(rec) {
		if len(toJSON(rec)) <= v1beta1.MaxDebugStepBytes {
			return
		}
		reduce()
	}
}

func reductions(rec *v1beta1.DebugRecording) []func() {
	r, newest := &rec.Request, len(rec.Attempts)-1
	return []func(){
		func() { omitBodies(rec.Attempts[:newest]) },
		func() { omitBodies(rec.Attempts[newest:]) },
		func() { shortenTexts(r.Messages) },
		func() {
			r.OmittedMessages += int32(len(r.Messages))
			r.Messages = nil
		},
		func() { r.Tools, r.Options = nil, omittedForSize },
		func() { rec.Attempts = rec.Attempts[len(rec.Attempts)-1:] },
		func() {
			for i := range rec.Attempts[0].Exchanges {
				e := &rec.Attempts[0].Exchanges[i]
				e.RequestHeaders, e.ResponseHeaders = nil, nil
			}
		},
		func() {
			if rec.Response != nil {
				rec.Response.Parts, rec.Response.Warnings = nil, nil
			}
		},
	}
}

func omitBodies(attempts []v1beta1.DebugAttempt) {
	for i := range attempts {
		for j := range attempts[i].Exchanges {
			e := &attempts[i].Exchanges[j]
			for _, body := range []*string{&e.RequestBody, &e.ResponseBody} {
				if len(*body) > len(omittedForSize) {
					*body = omittedForSize
				}
			}
		}
	}
}

func shortenTexts(messages []v1beta1.DebugMessage) {
	for i := range messages {
		for j := range messages[i].Parts {
			messages[i].Parts[j].Text = shorten(messages[i].Parts[j].Text, oldTextRunes)
		}
	}
}
