// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package egress

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
)

// in says whether the network of a process has the socket of a listener.
func in(t *testing.T, pid int, ln net.Listener) bool {
	t.Helper()
	file, err := ln.(*net.TCPListener).File()
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		t.Fatal(err)
	}
	inode := fmt.Sprint(info.Sys().(*syscall.Stat_t).Ino)
	for _, table := range []string{"tcp", "tcp6"} {
		b, err := os.ReadFile(fmt.Sprintf("/proc/%d/net/%s", pid, table))
		if err != nil && !errors.Is(err, os.ErrNotExist) { // a machine may have no IPv6
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			const field = 9 // the tenth, see proc(5)
			if f := strings.Fields(line); len(f) > field && f[field] == inode {
				return true
			}
		}
	}
	return false
}

func TestListenInOpensListenerOnlyInOtherNetwork(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root, to make and enter a network namespace")
	}
	inside := exec.Command("cat")
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	stdin, err := inside.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	switch err := inside.Start(); {
	case errors.Is(err, syscall.EPERM), errors.Is(err, syscall.EINVAL): // forbidden here, or not in this kernel
		t.Skipf("this machine makes no network namespaces: %v", err)
	case err != nil:
		t.Fatal(err)
	}
	defer func() { _ = stdin.Close(); _ = inside.Wait() }()
	self, other := os.Getpid(), inside.Process.Pid
	for range 10 { // so that the main thread, which has to stay as it is, is asked to do it as well
		away, err := ListenIn(t.Context(), other, "0.0.0.0:0")
		if err != nil {
			t.Fatal(err)
		}
		defer away.Close()
		here, err := net.Listen("tcp4", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		defer here.Close()
		if !in(t, other, away) || in(t, self, away) {
			t.Fatalf("the listener is in the other network: %v, in this program's: %v", in(t, other, away), in(t, self, away))
		}
		if !in(t, self, here) {
			t.Fatal("a listener made afterwards is not in this program's network")
		}
	}
}

func TestListenInFailsForMissingProcess(t *testing.T) {
	if ln, err := ListenIn(t.Context(), -1, "127.0.0.1:0"); err == nil {
		ln.Close()
		t.Error("it listens somewhere")
	}
}
