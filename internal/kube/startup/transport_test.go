// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package startup_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/kube/startup"
	"parley.dev/parley/test/kit/check"
)

// apiServer refuses the first requests with an error, and takes those that come later.
type apiServer struct {
	refusal  error
	refusals int
	// asked is called for each request; nil: nothing is.
	asked func()

	mu     sync.Mutex
	bodies []string
}

func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	body, _ := io.ReadAll(r.Body) // A short body fails the test.
	s.bodies = append(s.bodies, string(body))
	if s.asked != nil {
		s.asked()
	}
	w.Header().Set("Content-Type", "application/json")
	if len(s.bodies) > s.refusals {
		w.WriteHeader(http.StatusCreated)
		_, _ = w.Write(body) // The same.
		return
	}
	status := statusOf(s.refusal)
	w.WriteHeader(int(status.Code))
	_ = json.NewEncoder(w).Encode(status) // The same.
}

func statusOf(err error) metav1.Status {
	status := err.(apierrors.APIStatus).Status()
	status.TypeMeta = metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}
	return status
}

// create creates a chat as gateways, generation pods and kubectl chat do.
func create(ctx context.Context, t *testing.T, s *apiServer) error {
	t.Helper()
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	client, err := apiclient.New(&rest.Config{Host: server.URL}, "parley-test/1")
	check.OK(t, err)
	_, err = client.Chats("demo").Create(ctx, &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "hello"}})
	return err
}

func TestClientsRetryRefusalsOfAStart(t *testing.T) {
	for name, refusal := range passing {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &apiServer{refusal: refusal, refusals: 2}
			check.OK(t, create(t.Context(), t, s))
			if len(s.bodies) != 3 || s.bodies[2] != s.bodies[0] || !strings.Contains(s.bodies[2], `"hello"`) {
				t.Errorf("the API server got %q", s.bodies)
			}
		})
	}
}

func TestLastingRefusalsAreReturnedUnchanged(t *testing.T) {
	for name, refusal := range lasting {
		if !errors.As(refusal, new(apierrors.APIStatus)) {
			continue
		}
		s := &apiServer{refusal: refusal, refusals: 2}
		err := create(t.Context(), t, s)
		want := statusOf(refusal)
		if got, ok := errors.AsType[*apierrors.StatusError](err); !ok || got.ErrStatus.Message != want.Message ||
			got.ErrStatus.Code != want.Code || got.ErrStatus.Reason != want.Reason || len(s.bodies) != 1 {
			t.Errorf("%s: after %d requests got %#v", name, len(s.bodies), err)
		}
	}
}

func TestARetryEndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := &apiServer{refusal: passing["a plugin that is not ready"], refusals: 100, asked: cancel}
	if err := create(ctx, t, s); !errors.Is(err, context.Canceled) || len(s.bodies) != 1 {
		t.Errorf("after %d requests got %v", len(s.bodies), err)
	}
}

// roundTrips is a transport that answers.
type roundTrips func(*http.Request) (*http.Response, error)

func (f roundTrips) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// TestARefusalThatStaysIsNoDenial is what gateways answer, and what generation pods go by.
func TestARefusalThatStaysIsNoDenial(t *testing.T) {
	refusal, err := json.Marshal(statusOf(passing["parameters that are not read"]))
	check.OK(t, err)
	answer, err := startup.Transport(roundTrips(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusUnprocessableEntity, Header: http.Header{},
			Body: io.NopCloser(strings.NewReader(string(refusal)))}, nil
	})).RoundTrip(nil)
	check.OK(t, err)
	defer answer.Body.Close()
	var status metav1.Status
	check.OK(t, json.NewDecoder(answer.Body).Decode(&status))
	seconds, again := apierrors.SuggestsClientDelay(&apierrors.StatusError{ErrStatus: status})
	if answer.StatusCode != http.StatusServiceUnavailable || answer.Header.Get("Retry-After") != "1" ||
		status.Code != http.StatusServiceUnavailable || !strings.HasPrefix(status.Message, notSynced) ||
		seconds != 1 || !again {
		t.Errorf("got %s %v: %+v", answer.Status, answer.Header, status)
	}
}

func TestALargeAnswerIsReturnedWhole(t *testing.T) {
	whole := strings.Repeat("x", 200_000)
	answer, err := startup.Transport(roundTrips(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusForbidden, Body: io.NopCloser(strings.NewReader(whole))}, nil
	})).RoundTrip(nil)
	check.OK(t, err)
	defer answer.Body.Close()
	if got, err := io.ReadAll(answer.Body); err != nil || string(got) != whole {
		t.Errorf("got %d bytes, %v", len(got), err)
	}
}
