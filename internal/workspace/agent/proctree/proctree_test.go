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

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// sleeper starts a process.
func sleeper(t *testing.T) *exec.Cmd {
	t.Helper()
	c := exec.Command("sleep", "60")
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	check.OK(t, c.Start())
	t.Cleanup(func() {
		_ = c.Process.Kill() // It may have ended.
		_ = c.Wait()         // The error says that it was killed.
	})
	return c
}

func find(t *testing.T, pid int) (Process, bool) {
	t.Helper()
	all, err := All()
	check.OK(t, err)
	below := Below(all, os.Getpid())
	i := slices.IndexFunc(below, func(p Process) bool { return p.PID == pid })
	if i < 0 {
		return Process{}, false
	}
	return below[i], true
}

func TestProcessHasParentGroupAndCommandLine(t *testing.T) {
	pid := sleeper(t).Process.Pid
	p, ok := find(t, pid)
	if !ok || p.Parent != os.Getpid() || p.Group != pid || p.Ended {
		t.Errorf("found %v: %+v", ok, p)
	}
	for most, want := range map[int]string{100: "sleep 60", 4: "slee"} {
		if got := p.CommandLine(most); got != want {
			t.Errorf("of %d bytes its command line is %q", most, got)
		}
	}
}

func TestProcessNamesMayContainAnything(t *testing.T) {
	fields := strings.Repeat(" 1", 15) + " 4711 " + strings.Repeat("2 ", 30) + "0\n"
	p, err := parse(7, []byte("7 (a) S 1 (b \n) R 2 3 4"+fields))
	if err != nil || p.PID != 7 || p.Parent != 2 || p.Group != 3 || p.start != "4711" || p.name != "a) S 1 (b \n" {
		t.Errorf("got %+v: %v", p, err)
	}
	ones := strings.Repeat(" 1", 50)
	for _, broken := range []string{"", ")(", "7 (a) S", "7 a) S" + ones, "7 (a) S x" + ones} {
		if _, err := parse(7, []byte(broken)); err == nil {
			t.Errorf("%q was parsed", broken)
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

func TestSignalIsNotSentAfterPIDReuse(t *testing.T) {
	c := sleeper(t)
	p, _ := find(t, c.Process.Pid)
	other := p
	other.start = "1"
	if err := other.Signal(unix.SIGKILL); !errors.Is(err, unix.ESRCH) {
		t.Errorf("another one: %v", err)
	}
	check.OK(t, p.Signal(unix.SIGTERM))
	waiting.Until(t, 30*time.Second, "it is a zombie", func() bool {
		p, ok := find(t, p.PID)
		return ok && p.Ended
	})
	_ = c.Wait() // The error says that it was ended.
	if err := p.Signal(unix.SIGKILL); !errors.Is(err, unix.ESRCH) {
		t.Errorf("one that has gone: %v", err)
	}
}

// family starts a shell that leads a process group, with a child in it.
func family(t *testing.T) (leader, child Process) {
	t.Helper()
	c := exec.Command("sh", "-c", "sleep 60 & wait")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check.OK(t, c.Start())
	t.Cleanup(func() {
		_ = unix.Kill(-c.Process.Pid, unix.SIGKILL) // It may have ended.
		_ = c.Wait()                                // The error says that it was killed.
	})
	waiting.Until(t, 30*time.Second, "it has a child", func() bool {
		all, err := All()
		if below := Below(all, c.Process.Pid); err == nil && len(below) == 1 {
			child = below[0]
			return true
		}
		return false
	})
	leader, _ = find(t, c.Process.Pid)
	return leader, child
}

func TestOnlyWholeGroupsAreSignalledAtOnce(t *testing.T) {
	for name, all := range map[string]bool{"all of it": true, "the child alone": false} {
		t.Run(name, func(t *testing.T) {
			leader, child := family(t)
			meant := []Process{child}
			if all {
				meant = append(meant, leader)
			}
			Send(unix.SIGKILL, meant, []Process{leader, child})
			waiting.Until(t, 30*time.Second, "the child has ended", func() bool {
				p, ok := find(t, child.PID)
				return !ok || p.Ended
			})
			// The shell waits for its child alone, and ends by itself.
			waiting.Until(t, 30*time.Second, "the leader has ended", func() bool {
				p, ok := find(t, leader.PID)
				return !ok || p.Ended
			})
			var status syscall.WaitStatus
			if _, err := syscall.Wait4(leader.PID, &status, 0, nil); err != nil || status.Signaled() != all {
				t.Errorf("the leader ended with %v: %v", status, err)
			}
		})
	}
}

func TestAKillEndsAllThatForksMeanwhile(t *testing.T) {
	c := exec.Command("sh", "-c", "f() { sleep 0.01 & setsid sleep 0.01 & sleep 0.01; f; }; f")
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check.OK(t, c.Start())
	look := func() (meant, all []Process) {
		all, err := All()
		if err != nil {
			t.Error(err)
		}
		for _, p := range Below(all, os.Getpid()) {
			if !p.Ended {
				meant = append(meant, p)
			}
		}
		return meant, all
	}
	if found, left := Kill(look); !found || left {
		t.Errorf("found %v, left %v", found, left)
	}
	if err := c.Wait(); err == nil || c.ProcessState.Sys().(syscall.WaitStatus).Signal() != unix.SIGKILL {
		t.Errorf("it ended with %v", err)
	}
	if found, left := Kill(look); found || left {
		t.Errorf("then found %v, left %v", found, left)
	}
}
