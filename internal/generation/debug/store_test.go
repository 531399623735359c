// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package debug_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"charm.land/fantasy"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/debug"
)

const key = "sk-known-0123456789"

var resource = schema.GroupResource{Group: "parley.dev", Resource: "chatdebugsteps"}

// store keeps recordings in memory.
type store struct {
	mu    sync.Mutex
	steps map[string]*v1alpha1.ChatDebugStep
	// before is asked before each write; its error is the answer.
	before func(verb string) error
}

func (s *store) Get(_ context.Context, name string) (*v1alpha1.ChatDebugStep, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if step := s.steps[name]; step != nil {
		return step.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource, name)
}

func (s *store) Create(_ context.Context, step *v1alpha1.ChatDebugStep) (*v1alpha1.ChatDebugStep, error) {
	return s.write("create", step)
}

func (s *store) Update(_ context.Context, step *v1alpha1.ChatDebugStep) (*v1alpha1.ChatDebugStep, error) {
	return s.write("update", step)
}

func (s *store) write(verb string, step *v1alpha1.ChatDebugStep) (*v1alpha1.ChatDebugStep, error) {
	if s.before != nil {
		if err := s.before(verb); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.steps == nil {
		s.steps = map[string]*v1alpha1.ChatDebugStep{}
	}
	s.steps[step.Name] = step.DeepCopy()
	return step, nil
}

// session is a recorder that writes to a store, and one attempt that it records.
type session struct {
	t        *testing.T
	store    *store
	log      *bytes.Buffer
	lost     []string
	now      time.Time
	recorder *debug.Recorder
	chat     *v1alpha1.Chat
	subject  debug.Subject
}

func newSession(t *testing.T) *session {
	s := &session{t: t, store: &store{}, log: &bytes.Buffer{}, now: time.Now()}
	s.recorder = s.newRecorder(false)
	s.chat = &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "uid"}}
	s.chat.Spec.Debug = &v1alpha1.DebugSettings{Enabled: true}
	s.chat.Status.History.Version = 7
	s.chat.Status.Generation = &v1alpha1.GenerationStatus{Attempt: 1, Action: v1alpha1.ActionGenerateAssistant}
	s.subject = debug.Subject{
		Config: &v1alpha1.ChatModelConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"},
			Spec: v1alpha1.ChatModelConfigSpec{Provider: v1alpha1.ProviderOpenAI, Model: "m"}},
		Key: key, Classify: func(error) *v1alpha1.GenerationError {
			return &v1alpha1.GenerationError{Reason: v1alpha1.ErrorProviderError}
		},
	}
	return s
}

func (s *session) newRecorder(off bool) *debug.Recorder {
	return debug.New(debug.Options{
		Store: s.store, Namespace: "ns", Pod: "pod", Chats: chats, Off: off, Now: func() time.Time { return s.now },
		Lost: func(reason string) { s.lost = append(s.lost, reason) }, Log: slog.New(slog.NewJSONHandler(s.log, nil)),
	})
}

// attempt performs an attempt and writes what there is to write.
func (s *session) attempt(model fantasy.LanguageModel, do func(context.Context, fantasy.LanguageModel)) {
	s.t.Helper()
	recording := s.recorder.Begin(s.chat, v1alpha1.ActionGenerateAssistant)
	do(s.t.Context(), recording.Model(model, s.subject))
	recording.End(v1alpha1.DebugInterrupted, nil)
	s.flush()
}

// flush runs the recorder as the end of a process does.
func (s *session) flush() {
	ended, cancel := context.WithCancel(context.Background())
	cancel()
	s.recorder.Run(ended)
}

// step is a recording, which the API server would take.
func (s *session) step(name string) *v1alpha1.DebugRecording {
	s.t.Helper()
	step, err := s.store.Get(s.t.Context(), name)
	if err != nil {
		s.t.Fatalf("%v; there are %v", err, s.names())
	}
	raw, err := json.Marshal(step)
	if err != nil || len(raw) > v1alpha1.MaxDebugStepBytes+4096 || strings.Contains(string(raw), key) {
		s.t.Fatalf("the recording has %d bytes, or the key: %v", len(raw), err)
	}
	return &step.DebugRecording
}

func (s *session) names() (names []string) {
	for name := range s.store.steps {
		names = append(names, name)
	}
	return names
}

// model answers every call the same.
type model struct {
	fantasy.LanguageModel
	parts []fantasy.StreamPart
	err   error
	// do is done within each call.
	do func(context.Context)
}

func (m *model) called(ctx context.Context) {
	if m.do != nil {
		m.do(ctx)
	}
}

func (m *model) Stream(ctx context.Context, _ fantasy.Call) (fantasy.StreamResponse, error) {
	m.called(ctx)
	return func(yield func(fantasy.StreamPart) bool) {
		for _, p := range m.parts {
			if !yield(p) {
				return
			}
		}
	}, m.err
}

func read(stream fantasy.StreamResponse, err error) {
	if err == nil {
		for range stream {
		}
	}
}

// wire answers every HTTP request the same.
type wire struct {
	body io.Reader
	sent []byte
}

func (w *wire) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Body != nil {
		w.sent, _ = io.ReadAll(r.Body)
	}
	if w.body == nil {
		return nil, errors.New("refused: " + key)
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"X-Reply": {key}}, Body: io.NopCloser(w.body), Request: r},
		nil
}
