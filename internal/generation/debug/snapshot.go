// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cost"
	"parley.dev/parley/internal/generation/debug/redact"
)

const (
	// maxAttempts and maxHeaders are what the resource takes; bodyRoom is what redaction may make of a body.
	maxAttempts, maxHeaders, bodyRoom = 32, 64, 100000
)

// snapshot is an attempt of a call as it stood once, with the secrets that are in it: it never leaves the process.
type snapshot struct {
	chat                  v1alpha1.ChatReference
	chatUID               string
	historyVersion        int64
	attempt, call         int32
	action                v1alpha1.GenerationAction
	model                 v1alpha1.ModelIdentity
	request               request
	reply                 reply
	redactor              redact.Redactor
	pricing               *v1alpha1.Pricing
	turn                  *v1alpha1.DebugTurn
	head                  string
	length                int64
	written               *atomic.Bool
	expireAfter           time.Duration
	startedAt, finishedAt time.Time
	state                 v1alpha1.DebugState
	fault                 *v1alpha1.DebugFault
	exchanges             []exchangeFacts
}

// name follows from what is asked, so that every attempt at it finds the same recording.
func (s *snapshot) name() string {
	name := fmt.Sprintf("%s-%d-%s", s.chat.Name, s.historyVersion, strings.ToLower(string(s.action)))
	if s.call > 1 {
		name += fmt.Sprintf("-%d", s.call)
	}
	return name
}

// object is a recording with this attempt alone.
func (s *snapshot) object(namespace, pod string, now time.Time) *v1alpha1.ChatDebugStep {
	step := &v1alpha1.ChatDebugStep{
		ObjectMeta: metav1.ObjectMeta{
			Name: s.name(), Namespace: namespace,
			Annotations: map[string]string{v1alpha1.AnnotationExpiresAt: now.Add(s.expireAfter).UTC().Format(time.RFC3339)},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: v1alpha1.GroupVersion.String(), Kind: "Chat", Name: s.chat.Name, UID: types.UID(s.chatUID),
				Controller: new(true),
			}},
		},
		DebugRecording: v1alpha1.DebugRecording{
			ChatRef: s.chat, ChatUID: s.chatUID, HistoryVersion: s.historyVersion, Action: s.action, Call: s.call,
			Turn: s.turn, Head: s.head, StartedAt: metav1.NewMicroTime(s.startedAt),
		},
	}
	s.addTo(step, pod, now)
	return step
}

// addTo adds the attempt to a recording, or brings it up to date there. The newest attempt is what the recording as a
// whole says; those before it that nobody has ended were broken off.
func (s *snapshot) addTo(step *v1alpha1.ChatDebugStep, pod string, now time.Time) {
	rec := &step.DebugRecording
	rec.Pod = pod
	rec.Attempts = slices.DeleteFunc(rec.Attempts, func(a v1alpha1.DebugAttempt) bool { return a.Number == s.attempt })
	rec.Attempts = append(rec.Attempts, s.record(pod))
	slices.SortFunc(rec.Attempts, func(a, b v1alpha1.DebugAttempt) int { return int(a.Number) - int(b.Number) })
	rec.Attempts = rec.Attempts[max(0, len(rec.Attempts)-maxAttempts):]
	for i := range rec.Attempts[:len(rec.Attempts)-1] {
		if a := &rec.Attempts[i]; a.State == v1alpha1.DebugInProgress {
			a.State = v1alpha1.DebugInterrupted
		}
	}
	if s.attempt >= rec.Attempt {
		rec.Attempt, rec.State, rec.Error, rec.FinishedAt = s.attempt, s.state, s.fault, microTime(s.finishedAt)
		rec.Model = s.model
		rec.Request = s.request.record(s.redactor)
		rec.Response = s.reply.response(v1alpha1.ModelProvider(s.model.Provider), s.redactor)
		rec.Cost = nil
		if rec.Response != nil {
			rec.Cost = cost.Of(s.pricing, rec.Response.Usage)
		}
		s.annotate(step, pod, now)
	}
	fit(rec)
}

// annotate says in the metadata what the operator needs to know, which reads no more.
func (s *snapshot) annotate(step *v1alpha1.ChatDebugStep, pod string, now time.Time) {
	if step.Annotations == nil {
		step.Annotations = map[string]string{}
	}
	step.Annotations[v1alpha1.AnnotationHistory] = fmt.Sprintf("%d/%d", s.historyVersion, s.length)
	if s.state == v1alpha1.DebugInProgress {
		step.Annotations[v1alpha1.AnnotationInProgress] = fmt.Sprintf("%s %d %s", pod, s.attempt,
			now.UTC().Format(time.RFC3339))
	} else {
		delete(step.Annotations, v1alpha1.AnnotationInProgress)
	}
}

func (s *snapshot) record(pod string) v1alpha1.DebugAttempt {
	a := v1alpha1.DebugAttempt{
		Number: s.attempt, Pod: pod, Model: s.model, State: s.state, Error: s.fault,
		StartedAt: metav1.NewMicroTime(s.startedAt), FinishedAt: microTime(s.finishedAt),
	}
	for i := range s.exchanges {
		a.Exchanges = append(a.Exchanges, s.exchanges[i].record(s.redactor))
	}
	return a
}

func (e *exchangeFacts) record(redactor redact.Redactor) v1alpha1.DebugExchange {
	return v1alpha1.DebugExchange{
		Number: e.number, Method: bound(e.method, 16), URL: bound(redactor.URL(e.url), 4096),
		RequestHeaders: headers(e.requestHeader, redactor), RequestBody: body(e.requestBody, redactor),
		StatusCode: int32(e.statusCode), ResponseHeaders: headers(e.responseHeader, redactor),
		ResponseBody: body(e.responseBody, redactor),
		Failure:      e.failure, StartedAt: metav1.NewMicroTime(e.startedAt),
		HeadersMilliseconds: since(e.startedAt, e.headersAt), DurationMilliseconds: since(e.startedAt, e.endedAt),
	}
}

func body(b redact.Body, redactor redact.Redactor) string {
	return strings.ToValidUTF8(redactor.Body(b, bodyRoom), "\uFFFD")
}

func headers(from http.Header, redactor redact.Redactor) []v1alpha1.DebugHeader {
	var out []v1alpha1.DebugHeader
	for name, values := range from {
		for _, value := range values {
			out = append(out, v1alpha1.DebugHeader{Name: bound(redactor.Text(name), 256),
				Value: bound(redactor.Header(name, value), 1024)})
		}
	}
	slices.SortFunc(out, func(a, b v1alpha1.DebugHeader) int { return strings.Compare(a.Name+a.Value, b.Name+b.Value) })
	return out[:min(len(out), maxHeaders)]
}

func since(from, until time.Time) int64 {
	if until.IsZero() {
		return 0
	}
	return until.Sub(from).Milliseconds()
}

func microTime(t time.Time) *metav1.MicroTime {
	if t.IsZero() {
		return nil
	}
	return new(metav1.NewMicroTime(t))
}
