// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

//go:build linux

package process

import (
	"context"
	"os"
	"os/exec"
	"testing"
	"time"
)

// sleeper starts a process that lives until it is killed.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	cmd := exec.Command("sleep", "600")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	return cmd
}

func of(t *testing.T, pid int) Ref {
	t.Helper()
	r, err := Of(pid)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func TestKilledProcessIsNotAliveBeforeReaping(t *testing.T) {
	ref := of(t, sleeper(t).Process.Pid)
	if !ref.Alive() {
		t.Fatal("a running process counts as dead")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := ref.Kill(ctx); err != nil {
		t.Fatal(err)
	}
	if ref.Alive() {
		t.Error("a killed process counts as alive")
	}
	if err := ref.Kill(ctx); err != nil {
		t.Errorf("killing it again: %v", err)
	}
}

func TestKillIgnoresProcessWithReusedPID(t *testing.T) {
	now := of(t, sleeper(t).Process.Pid)
	before := Ref{PID: now.PID, Start: "1"}
	if before.Alive() {
		t.Error("the earlier process counts as alive")
	}
	if err := before.Kill(t.Context()); err != nil {
		t.Error(err)
	}
	if !now.Alive() {
		t.Error("the later process was killed")
	}
}

func TestAChildIsFoundByItsProgram(t *testing.T) {
	cmd := sleeper(t)
	self := of(t, os.Getpid())
	if child, ok := self.Child("sleep"); !ok || child.PID != cmd.Process.Pid {
		t.Errorf("found %+v, %v; want process %d", child, ok, cmd.Process.Pid)
	}
	if child, ok := self.Child("kube-apiserver"); ok {
		t.Errorf("found %+v, which nobody started", child)
	}
}

func TestNoProcessIsNotAlive(t *testing.T) {
	if (Ref{}).Alive() {
		t.Error("the zero Ref counts as alive")
	}
}
