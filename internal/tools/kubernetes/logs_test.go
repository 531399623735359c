// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubernetes

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/kubeapi"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// logging is a chat whose API server answers each request for logs so: that of the tests has no nodes.
func logging(t *testing.T, handler http.HandlerFunc) func(input string) (logsResult, error) {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	client, err := kubeapi.New(&rest.Config{Host: server.URL},
		func(context.Context, string) (string, time.Time, error) { return "t", time.Now().Add(time.Hour), nil }, time.Now)
	check.OK(t, err)
	chat := chattest.In("team", chattest.Chat("c"))
	chat.Spec.Kubernetes = &v1alpha1.KubernetesAccess{ServiceAccountName: "worker"}
	return func(input string) (got logsResult, err error) {
		said, err := newTool(client, logsDefinition, logs).Run(t.Context(), tools.Call{ToolCall: v1alpha1.ToolCall{Input: input}, Chat: chat})
		if err == nil {
			err = json.Unmarshal([]byte(said), &got)
		}
		return got, err
	}
}

func TestTheNewestLinesOfAContainerAreRead(t *testing.T) {
	var path, query string
	read := logging(t, func(w http.ResponseWriter, r *http.Request) {
		path, query = r.URL.Path, r.URL.RawQuery
		fmt.Fprint(w, "one\ntwo \xff\n")
	})
	got, err := read(`{"pod":"web-1"}`)
	check.OK(t, err)
	check.Equal(t, "logs", logsResult{Lines: "one\ntwo \uFFFD\n"}, got)
	if path != "/api/v1/namespaces/team/pods/web-1/log" || query != "limitBytes=4194304&tailLines=200" {
		t.Errorf("it asks for %s?%s", path, query)
	}
	_, err = read(`{"pod":"web-1","namespace":"other","container":"main","previous":true,"tail_lines":7,` +
		`"since_seconds":60,"timestamps":true}`)
	if err != nil || path != "/api/v1/namespaces/other/pods/web-1/log" ||
		query != "container=main&limitBytes=4194304&previous=true&sinceSeconds=60&tailLines=7&timestamps=true" {
		t.Errorf("it asks for %s?%s: %v", path, query, err)
	}
}

func TestOfManyLinesTheNewestAreShown(t *testing.T) {
	size := 0
	read := logging(t, func(w http.ResponseWriter, _ *http.Request) {
		for i := range size / 10 {
			fmt.Fprintf(w, "line %04d\n", i%10000)
		}
	})
	size = 1 << 20
	got, err := read(`{"pod":"web-1"}`)
	if err != nil || !got.Cut || got.Newest || len(got.Lines) < 8<<10 || len(got.Lines) > tools.MaxResultBytes ||
		!strings.HasPrefix(got.Lines, "line ") || !strings.HasSuffix(got.Lines, "line 4856\n") {
		t.Errorf("of 1 MiB it says %d bytes, %t, %t, %v", len(got.Lines), got.Cut, got.Newest, err)
	}
	size = maxLogBytes + 10
	if got, err = read(`{"pod":"web-1"}`); err != nil || !got.Newest {
		t.Errorf("where the API server leaves lines out it says %t, %v", got.Newest, err)
	}
	size = kubeapi.MaxAnswer * 2
	if _, err = read(`{"pod":"web-1"}`); err == nil || !strings.Contains(err.Error(), "ask for less") {
		t.Errorf("of too much it says %v", err)
	}
}

func TestLogsErrorOfAPIServerIsReturned(t *testing.T) {
	read := logging(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		fmt.Fprint(w, `{"kind":"Status","status":"Failure","code":400,"reason":"BadRequest",`+
			`"message":"a container name must be specified for pod web-1, choose one of: [a\u001b[2J b]"}`)
	})
	_, err := read(`{"pod":"web-1"}`)
	if err == nil || !strings.Contains(err.Error(), "choose one of: [a") || strings.ContainsRune(err.Error(), '\x1b') {
		t.Errorf("it says %v", err)
	}
}
