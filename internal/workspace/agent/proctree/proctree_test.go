// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package proctree

import (
	"errors"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/testing/waiting"
)

// sleeper starts a process.
func sleeper(t *testing.T, environment ...string) *exec.Cmd {
	t.Helper()
	c := exec.Command("sleep", "60")
	c.Env = environment
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = c.Process.Kill() // It may have ended.
		_ = c.Wait()         // The error says that it was killed.
	})
	return c
}

func find(t *testing.T, pid int) (Process, bool) {
	t.Helper()
	all, err := All()
	if err != nil {
		t.Fatal(err)
	}
	below := Below(all, os.Getpid())
	i := slices.IndexFunc(below, func(p Process) bool { return p.PID == pid })
	if i < 0 {
		return Process{}, false
	}
	return below[i], true
}

func TestAProcessIsWhatTheSystemSays(t *testing.T) {
	pid := sleeper(t).Process.Pid
	p, ok := find(t, pid)
	if !ok || p.Parent != os.Getpid() || p.Session != pid || p.Group != pid || p.Ended {
		t.Errorf("found %v: %+v", ok, p)
	}
}

func TestNamesOfProcessesConfuseNobody(t *testing.T) {
	fields := strings.Repeat(" 1", 15) + " 4711 " + strings.Repeat("2 ", 27) + "1000 1500 0\n"
	p, err := parse(7, []byte("7 (a) S 1 (b \n) R 2 3 4"+fields))
	if err != nil || p.PID != 7 || p.Parent != 2 || p.Group != 3 || p.Session != 4 || p.start != "4711" ||
		p.environment != 500 {
		t.Errorf("got %+v: %v", p, err)
	}
	for _, broken := range []string{"", "7 (a) S", "7 (a) S x" + strings.Repeat(" 1", 50)} {
		if _, err := parse(7, []byte(broken)); err == nil {
			t.Errorf("%q was taken", broken)
		}
	}
}

func TestBelowAProcessAreItsDescendantsParentsFirst(t *testing.T) {
	all := []Process{
		{PID: 5, Parent: 4}, {PID: 1}, {PID: 4, Parent: 2}, {PID: 3, Parent: 1}, {PID: 2, Parent: 1}, {PID: 9, Parent: 8},
	}
	var pids []int
	for _, p := range Below(all, 2) {
		pids = append(pids, p.PID)
	}
	if !slices.Equal(pids, []int{4, 5}) {
		t.Errorf("got %v", pids)
	}
}

func TestAVariableIsFoundAsAWhole(t *testing.T) {
	long := strings.Repeat("NAME=wrong", 3000)
	for _, c := range []struct {
		name        string
		environment []string
		want        string
	}{
		{"alone", []string{"NAME=right"}, "right"},
		{"behind a long one", []string{"LONG=" + long, "XNAME=wrong", "NAME=right"}, "right"},
		{"missing", []string{"LONG=" + long, "NAMES=wrong"}, ""},
		{"no environment", nil, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p, _ := find(t, sleeper(t, append([]string{}, c.environment...)...).Process.Pid)
			var got string
			waiting.Until(t, 10*time.Second, "it is sure", func() (sure bool) {
				got, sure = p.Variable("NAME")
				return sure
			})
			if got != c.want {
				t.Errorf("got %.20q", got)
			}
		})
	}
}

func TestASignalReachesNoOtherProcessOfThatNumber(t *testing.T) {
	c := sleeper(t)
	p, _ := find(t, c.Process.Pid)
	other := p
	other.start = "1"
	if err := other.Signal(unix.SIGKILL); !errors.Is(err, unix.ESRCH) {
		t.Errorf("another one: %v", err)
	}
	if err := p.Signal(unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	waiting.Until(t, 10*time.Second, "it is a zombie", func() bool {
		p, ok := find(t, p.PID)
		return ok && p.Ended
	})
	_ = c.Wait() // The error says that it was ended.
	if err := p.Signal(unix.SIGKILL); !errors.Is(err, unix.ESRCH) {
		t.Errorf("one that has gone: %v", err)
	}
}
