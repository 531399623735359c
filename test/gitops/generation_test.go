// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"parley.dev/parley/internal/apiclient"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/parts"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/builtin"
	"parley.dev/parley/test/modelserver"
)

// script makes the model call a tool once per question, and refuse the question of chat "broken".
const script = `
rules:
- match: {lastUserText: will this be answered}
  reply: {fault: {kind: Status, status: 401}}
- match: {toolOffered: current_time, toolResults: 0}
  reply: {steps: [{toolCalls: [{name: current_time, arguments: {timezone: UTC}}]}]}
- reply: {steps: [{text: {value: Fine.}}]}
`

// serveModel serves the scripted model to the end of the test and returns its base URL.
func serveModel(t *testing.T) string {
	t.Helper()
	parsed, err := modelserver.Parse([]byte(script))
	if err != nil {
		t.Fatal(err)
	}
	models, err := modelserver.New(parsed)
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(models)
	t.Cleanup(server.Close)
	return server.URL + "/v1"
}

// runPod does, to the end of the test, what the generator in the named pod does, with the real runner.
func runPod(t *testing.T, ns, pod string) {
	t.Helper()
	c, err := apiclient.New(cluster.Config, "parley-generator")
	if err != nil {
		t.Fatal(err)
	}
	transport := &http.Transport{}
	r := runner.New(runner.Options{
		Namespace: ns, Pod: pod, Client: c, Relay: deafRelay{}, HTTP: &http.Client{Transport: transport},
		Keys:  func(string, string) ([]byte, error) { return []byte("sk-any"), nil },
		Tools: tools.NewRegistry(builtin.CurrentTime{Now: time.Now}),
		Log:   slog.New(slog.DiscardHandler), Now: time.Now,
	})
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx, ctx) }()
	t.Cleanup(func() {
		stop()
		if err := <-ended; err != nil {
			t.Errorf("the runner ended with %v", err)
		}
		transport.CloseIdleConnections()
	})
}

// deafRelay drops every part.
type deafRelay struct{}

// Open implements runner.Relay.
func (deafRelay) Open(context.Context, parts.Episode) (runner.Episode, error) {
	return deafRelay{}, nil
}

// SoFar implements runner.Relay.
func (deafRelay) SoFar(context.Context, parts.Episode) ([]parts.Frame, error) { return nil, nil }

// Publish implements runner.Episode.
func (deafRelay) Publish(string, parts.Part) {}

// Close implements runner.Episode.
func (deafRelay) Close(context.Context) error { return nil }
