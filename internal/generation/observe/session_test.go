// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe_test

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
	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/test/kit/check"
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

// session is an observer that records to a store, and a chat whose calls it observes.
type session struct {
	t        *testing.T
	store    *store
	log      *bytes.Buffer
	metrics  *prometheus.Registry
	now      time.Time
	observer *observe.Observer
	chat     *v1alpha1.Chat
	config   *v1alpha1.ChatModelConfig
}

func newSession(t *testing.T) *session {
	s := &session{t: t, store: &store{}, log: &bytes.Buffer{}, metrics: prometheus.NewRegistry(), now: time.Now()}
	s.observer = observe.New(observe.Options{
		Namespace: "ns", Pod: "pod", Recordings: s.store, Chats: chats, Log: slog.New(slog.NewJSONHandler(s.log, nil)),
		Metrics: telemetry.NewGenerator(s.metrics), Tracer: tracing.Off(), Now: func() time.Time { return s.now },
	})
	s.chat = &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "uid"}}
	s.chat.Spec.Debug = &v1alpha1.DebugSettings{Enabled: true}
	s.chat.Status.History.Version = 7
	s.chat.Status.Generation = &v1alpha1.GenerationStatus{Attempt: 1, Action: v1alpha1.ActionGenerateAssistant}
	s.config = &v1alpha1.ChatModelConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: v1alpha1.ChatModelConfigSpec{Provider: v1alpha1.ProviderOpenAI, Model: "m"}}
	return s
}

// lost are how many recordings were lost, by reason.
func (s *session) lost() map[string]int {
	s.t.Helper()
	families, err := s.metrics.Gather()
	check.OK(s.t, err)
	lost := map[string]int{}
	for _, family := range families {
		for _, m := range family.Metric {
			if family.GetName() == "parley_lost_recordings_total" {
				lost[m.Label[0].GetValue()] = int(m.Counter.GetValue())
			}
		}
	}
	return lost
}

// caller is a new attempt at the chat.
func (s *session) caller() *observe.Caller {
	return s.observer.SideCaller(s.chat, v1alpha1.ActionGenerateAssistant, "alice")
}

// callOf is a call of the model.
func (s *session) callOf(model fantasy.LanguageModel, request fantasy.Call) *observe.ModelCall {
	return &observe.ModelCall{
		Target: &models.Target{Config: s.config, Key: key, Model: model}, Request: request,
		Reply: collect.NewAccumulator(s.config.Spec.Provider, 0, nil),
		Classify: func(error) *v1alpha1.GenerationError {
			return &v1alpha1.GenerationError{Reason: v1alpha1.ErrorProviderError}
		},
	}
}

// attempt makes the calls of an attempt, and writes what there is to write.
func (s *session) attempt(model fantasy.LanguageModel, requests ...fantasy.Call) {
	s.t.Helper()
	caller := s.caller()
	for _, request := range requests {
		caller.Call(s.t.Context(), s.callOf(model, request))
	}
	s.flush()
}

// flush runs the observer as the end of a process does.
func (s *session) flush() {
	ended, cancel := context.WithCancel(s.t.Context())
	cancel()
	s.observer.Run(ended)
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
