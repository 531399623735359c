// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"net/http/httptest"
	"testing"
	"time"

	"parley.dev/parley/internal/tools/builtin"
	"parley.dev/parley/test/kit/realpod"
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
	realpod.Run(t, cluster.Config, ns, pod, builtin.CurrentTime{Now: time.Now})
}
