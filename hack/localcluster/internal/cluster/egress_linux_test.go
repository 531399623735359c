// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"parley.dev/parley/hack/localcluster/internal/layout"
	"parley.dev/parley/hack/localcluster/internal/process"
)

func TestOriginAllowsOnlySchemeAndHost(t *testing.T) {
	for origin, want := range map[string]string{
		"https://api.openai.com":       "https://api.openai.com",
		"https://api.openai.com/":      "https://api.openai.com",
		"http://127.0.0.1:8080":        "http://127.0.0.1:8080",
		"https://api.openai.com/v1":    "",
		"https://api.openai.com?a=b":   "",
		"https://me:pw@api.openai.com": "",
		"ftp://api.openai.com":         "",
		"api.openai.com":               "",
		"https://:443":                 "",
		"":                             "",
	} {
		got, err := parseOrigin(origin)
		if (err == nil) != (want != "") || err == nil && got.String() != want {
			t.Errorf("%q became %v, %v; want %q", origin, got, err, want)
		}
	}
}

// running starts a process that does nothing until it is killed.
func running(t *testing.T) process.Ref {
	t.Helper()
	cmd := exec.Command("cat")
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = in.Close(); _ = cmd.Wait() })
	ref, err := process.Of(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	return ref
}

func manager(t *testing.T) Manager {
	t.Helper()
	return Manager{Cluster: layout.Cluster{Dir: t.TempDir()}, Messages: io.Discard}
}

func TestOpenEgressIsReusedUntilClosed(t *testing.T) {
	m, ref := manager(t), running(t)
	const origin, at = "https://api.example.com", "http://10.244.0.1:1"
	if err := m.record(m.wayFile(origin), way{ref, at}); err != nil {
		t.Fatal(err)
	}
	if got, err := m.openWay(t.Context(), origin); got != at || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
	if err := m.closeWays(t.Context()); err != nil || ref.Alive() {
		t.Errorf("closed with %v, alive: %v", err, ref.Alive())
	}
}

func TestCloseSignalsOnlyTheRecordedProcess(t *testing.T) {
	m, ref := manager(t), running(t)
	other := process.Ref{PID: ref.PID, Start: ref.Start + "0"} // the same number, given out again
	if err := m.record(m.wayFile("https://a.example.com"), way{other, ""}); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.wayFile("https://b.example.com"), []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := m.closeWays(t.Context()); err != nil || !ref.Alive() {
		t.Errorf("closed with %v, alive: %v", err, ref.Alive())
	}
}

func TestEgressOfStoppedClusterIsRefused(t *testing.T) {
	if _, err := manager(t).Egress(t.Context(), "https://api.example.com"); !errors.Is(err, ErrNotUp) {
		t.Errorf("got %v", err)
	}
}

func TestEgressFailureReportsItsCause(t *testing.T) {
	m := manager(t)
	if err := os.MkdirAll(m.Path("log"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(m.Log("egress"), []byte("cluster: no such address\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := m.whyClosed(t.Context()); !strings.HasSuffix(err.Error(), "did not open: no such address") {
		t.Errorf("got %v", err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := m.whyClosed(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v from a caller that went away", err)
	}
}
