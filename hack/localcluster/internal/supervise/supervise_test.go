// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package supervise

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// supervisor starts one that collects this test's processes. One a test: two would take each other's.
func supervisor(t *testing.T) *Supervisor {
	t.Helper()
	s := New([]string{"PATH=/usr/bin:/bin", "GREETING=hello"}, slog.New(slog.NewTextHandler(io.Discard, nil)))
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { defer close(done); s.Reap(ctx) }()
	t.Cleanup(func() { cancel(); <-done })
	return s
}

func shell(t *testing.T, script string) Program {
	t.Helper()
	return Program{Name: "script", Path: "/bin/sh", Args: []string{"-c", script},
		Log: filepath.Join(t.TempDir(), "script.log")}
}

func TestRunUsesOnlyGivenEnvironmentAndLogsOutput(t *testing.T) {
	t.Setenv("SECRET_OF_THE_CALLER", "x")
	p := shell(t, `echo "$GREETING $SECRET_OF_THE_CALLER."; echo bad >&2`)
	if err := supervisor(t).Run(t.Context(), p); err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(p.Log); err != nil || string(b) != "hello .\nbad\n" {
		t.Errorf("log holds %q, %v", b, err)
	}
}

func TestFailedRunReportsExitStatusAndLastOutput(t *testing.T) {
	s := supervisor(t)
	for script, want := range map[string]string{
		"echo no such device; exit 3":  "exit status 3",
		"echo no such device; kill $$": "signal terminated",
	} {
		err := s.Run(t.Context(), shell(t, script))
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "no such device") {
			t.Errorf("%s: %v", script, err)
		}
	}
	if err := s.Run(t.Context(), Program{Name: "nothing", Path: "/no/such/program", Log: os.DevNull}); !errors.Is(err,
		os.ErrNotExist) {
		t.Errorf("a program that is not there: %v", err)
	}
}

func TestEarlyProgramExitIsReportedAsFailure(t *testing.T) {
	failed := make(chan error, 1)
	if err := supervisor(t).Keep(t.Context(), shell(t, "echo bad flag; exit 1"),
		func(err error) { failed <- err }); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-failed:
		if !strings.Contains(err.Error(), "bad flag") {
			t.Error(err)
		}
	case <-time.After(30 * time.Second):
		t.Error("nobody was told")
	}
}

func TestAProgramThatEndsLaterIsStartedAgain(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, "starts")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s := supervisor(t)
	s.Settle()
	p := shell(t, "echo started >>"+pipe+"; test $(wc -l <"+pipe+") -lt 2 || exec sleep 1")
	if err := s.Keep(ctx, p, func(err error) { t.Error(err) }); err != nil {
		t.Fatal(err)
	}
	deadline := time.After(20 * time.Second)
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	for {
		if b, _ := os.ReadFile(pipe); strings.Count(string(b), "started") >= 2 {
			return
		}
		select {
		case <-deadline:
			t.Fatal("it was not started again")
		case <-tick.C:
		}
	}
}
