// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func serving(t *testing.T, status int, body string) *Client {
	t.Helper()
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write([]byte(body))
	}))
	t.Cleanup(srv.Close)
	return &Client{server: srv.URL, http: srv.Client()}
}

func TestNodeIsReadyOnlyWithReadyCondition(t *testing.T) {
	for name, tc := range map[string]struct {
		status int
		body   string
		want   string // part of the error; empty for ready
	}{
		"ready": {200,
			`{"status":{"conditions":[{"type":"MemoryPressure","status":"False"},{"type":"Ready","status":"True"}]}}`, ""},
		"not ready": {200, `{"status":{"conditions":[{"type":"Ready","status":"False","message":"no network yet"}]}}`,
			"no network yet"},
		"unknown":        {200, `{"status":{"conditions":[{"type":"Ready","status":"Unknown"}]}}`, "not ready"},
		"silent":         {200, `{}`, "has not reported"},
		"not registered": {404, `nodes "node1" not found`, "404"},
		"no JSON":        {200, `<html>`, "reading node node1"},
	} {
		t.Run(name, func(t *testing.T) {
			err := serving(t, tc.status, tc.body).NodeReady(t.Context(), "node1")
			if tc.want == "" && err != nil || tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("got %v, want %q", err, tc.want)
			}
		})
	}
}

func TestUntilRetriesUntilFirstSuccess(t *testing.T) {
	asked := 0
	err := Until(t.Context(), time.Millisecond, func(context.Context) error {
		if asked++; asked < 3 {
			return errors.New("not yet")
		}
		return nil
	})
	if err != nil || asked != 3 {
		t.Errorf("asked %d times, %v", asked, err)
	}
}

func TestUntilReturnsCancelCauseAndLastError(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	crashed, notYet := errors.New("the server crashed"), errors.New("not yet")
	err := Until(ctx, time.Hour, func(context.Context) error {
		cancel(crashed)
		return notYet
	})
	if !errors.Is(err, crashed) || !errors.Is(err, notYet) {
		t.Errorf("got %v", err)
	}
}

func TestUntilDoesNotSayTheSameThingTwice(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	crashed := errors.New("the server crashed")
	err := Until(ctx, time.Hour, func(context.Context) error {
		cancel(crashed)
		return fmt.Errorf("asking: %w", crashed)
	})
	if err == nil || err.Error() != "the server crashed" {
		t.Errorf("got %v", err)
	}
}
