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
	"slices"
	"strings"
	"testing"
	"time"

	"charm.land/fantasy"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
)

const key = "sk-known-0123456789"

var resource = schema.GroupResource{Group: "parley.dev", Resource: "chatdebugsteps"}

// store keeps recordings in memory. Only one goroutine at a time uses it.
type store struct {
	steps modeltest.Recordings
	// fail returns the error of the next write; nil: none.
	fail func() error
}

func (s *store) Get(ctx context.Context, name string) (*v1beta1.ChatDebugStep, error) {
	step, err := s.steps.Get(ctx, name)
	return step.DeepCopy(), err
}

func (s *store) Create(ctx context.Context, step *v1beta1.ChatDebugStep) (*v1beta1.ChatDebugStep, error) {
	if s.fail != nil {
		if err := s.fail(); err != nil {
			return nil, err
		}
	}
	return s.steps.Create(ctx, step.DeepCopy())
}

func (s *store) Update(ctx context.Context, step *v1beta1.ChatDebugStep) (*v1beta1.ChatDebugStep, error) {
	return s.Create(ctx, step)
}

// session is an observer that records to a store, and a chat whose calls it observes.
type session struct {
	t        *testing.T
	store    *store
	log      *bytes.Buffer
	metrics  *prometheus.Registry
	now      time.Time
	observer *observe.Observer
	chat     *v1beta1.Chat
	config   *v1beta1.ChatModelConfig
}

func newSession(t *testing.T) *session {
	s := &session{t: t, store: &store{steps: modeltest.Recordings{}}, log: &bytes.Buffer{},
		metrics: prometheus.NewRegistry(), now: time.Now()}
	s.observer = observe.New(observe.Options{
		Namespace: "ns", Pod: "pod", Recordings: s.store, Chats: chats, Log: slog.New(slog.NewJSONHandler(s.log, nil)),
		Metrics: telemetry.NewGenerator(s.metrics), Tracer: tracing.Off(), Now: func() time.Time { return s.now },
	})
	s.chat = &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "uid"}}
	s.chat.Spec.Debug = &v1beta1.DebugSettings{Enabled: true}
	s.chat.Status.History.Version = 7
	s.chat.Status.Generation = &v1beta1.GenerationStatus{Attempt: 1, Action: v1beta1.ActionGenerateAssistant}
	s.config = &v1beta1.ChatModelConfig{ObjectMeta: metav1.ObjectMeta{Name: "default"},
		Spec: v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderOpenAI, Model: "m"}}
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
	return s.observer.SideCaller(s.chat, v1beta1.ActionGenerateAssistant, "alice")
}

// callOf is a call of the model.
func (s *session) callOf(model fantasy.LanguageModel, request fantasy.Call) *observe.ModelCall {
	return &observe.ModelCall{
		Target: &models.Target{Config: s.config, Key: key, Model: model}, Request: request,
		Reply: collect.NewAccumulator(s.config.Spec.Provider, 0, nil),
		Classify: func(error) *v1beta1.GenerationError {
			return &v1beta1.GenerationError{Reason: v1beta1.ErrorProviderError}
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
func (s *session) step(name string) *v1beta1.DebugRecording {
	s.t.Helper()
	step, err := s.store.Get(s.t.Context(), name)
	check.OK(s.t, err)
	raw, err := json.Marshal(step)
	check.Equal(s.t, "error, too large, has the key", []any{nil, false, false},
		[]any{err, len(raw) > v1beta1.MaxDebugStepBytes+4096, strings.Contains(string(raw), key)})
	return &step.DebugRecording
}

// model answers every call the same.
type model struct {
	fantasy.LanguageModel
	parts []fantasy.StreamPart
	err   error
	// do is done within each call.
	do func(context.Context)
}

func (m *model) Stream(ctx context.Context, _ fantasy.Call) (fantasy.StreamResponse, error) {
	if m.do != nil {
		m.do(ctx)
	}
	return fantasy.StreamResponse(slices.Values(m.parts)), m.err
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
