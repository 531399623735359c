// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package models_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"testing"
	"testing/synctest"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/modelserver"
)

func TestConfigurationTheWatchLacksIsLookedUp(t *testing.T) {
	w := modeltest.New(t, modelserver.Script{})
	w.Unwatched = map[string]*v1alpha1.ChatModelConfig{"late": modeltest.Config("late", w.URL)}
	w.Refuse.Store(1) // Trouble with the API server passes.
	if target, failure := w.Target(t.Context(), "late"); failure != nil || target.Config.Name != "late" {
		t.Errorf("got %+v, %+v", target, failure)
	}
	check.Equal(t, "requests", 2, int(w.Asked.Load()))
	_, failure := w.Target(t.Context(), "absent")
	check.Equal(t, "the failure", []any{v1alpha1.ErrorModelConfigNotFound, true}, []any{failure.Reason, failure.Retryable})
}

// piped answers requests with a stream.
type piped struct{ stream io.ReadCloser }

// RoundTrip implements http.RoundTripper.
func (p piped) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: p.stream, Request: r,
		Header: http.Header{"Content-Type": {"text/event-stream"}}}, nil
}

func TestKeepAlivesAreASignOfLife(t *testing.T) {
	for _, sign := range []string{"event: ping\ndata: {\"type\": \"ping\"}\n\n", ": OPENROUTER PROCESSING\n\n"} {
		synctest.Test(t, func(t *testing.T) {
			ctx, notes := httpguard.WithNotes(t.Context(), time.Now)
			ctx, cancel := context.WithCancelCause(ctx)
			defer models.GuardSilence(notes, time.Second, cancel)()
			stream, provider := io.Pipe()
			began := time.Now()
			go func() {
				for range 12 { // 3.6 s in all, of which each wait is shorter than the patience of 1 s.
					<-time.After(300 * time.Millisecond)
					_, _ = io.WriteString(provider, sign)
				}
				<-ctx.Done()
				_ = provider.CloseWithError(context.Cause(ctx))
			}()
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://model.test", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			response, err := httpguard.Guard(&http.Client{Transport: piped{stream}}, httpguard.ModelLimits).Do(request)
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = response.Body.Close() }()
			if _, err := io.Copy(io.Discard, response.Body); !errors.Is(err, models.ErrSilent) {
				t.Errorf("the call ended with %v", err)
			}
			check.Equal(t, "how long it lasted", 4600*time.Millisecond, time.Since(began))
		})
	}
}
