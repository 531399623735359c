// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package lifetime

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"parley.dev/parley/test/kit/check"
)

// held names the file that this program holds, as another process.
const held = "PARLEY_TEST_HOLD"

func TestMain(m *testing.M) {
	if path := os.Getenv(held); path != "" {
		if _, err := Hold(path); err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString("held\n")
		select {}
	}
	os.Exit(m.Run())
}

// other starts a process that holds the file.
func other(t *testing.T, path string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	check.OK(t, err)
	c := exec.Command(self)
	c.Env = append(os.Environ(), held+"="+path)
	out, err := c.StdoutPipe()
	check.OK(t, err)
	check.OK(t, c.Start())
	t.Cleanup(func() { _, _ = c.Process.Kill(), c.Wait() })
	if !bufio.NewScanner(out).Scan() {
		t.Fatal("it does not hold the file")
	}
	return c
}

func TestAProcessThatIsKilledHasEnded(t *testing.T) {
	path := filepath.Join(t.TempDir(), "run", "lock")
	lives := other(t, path)
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := AwaitEnd(stopped, path); !errors.Is(err, context.Canceled) {
		t.Errorf("while it lives: %v", err)
	}
	ended := make(chan error, 1)
	go func() { ended <- AwaitEnd(t.Context(), path) }()
	check.OK(t, lives.Process.Kill())
	if err := <-ended; err != nil {
		t.Errorf("after it was killed: %v", err)
	}
}

func TestWhatWasNeverStartedHasEnded(t *testing.T) {
	if err := AwaitEnd(t.Context(), filepath.Join(t.TempDir(), "lock")); err != nil {
		t.Error(err)
	}
}

func TestTheNextLifeHoldsAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	for range 2 {
		end, err := Hold(path)
		check.OK(t, err)
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := AwaitEnd(stopped, path); err == nil {
			t.Error("it has ended before its end")
		}
		end()
	}
}

func TestUncreatableLockFileReturnsError(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file", "lock")
	check.OK(t, os.WriteFile(filepath.Dir(path), nil, 0o600))
	if _, err := Hold(path); err == nil {
		t.Error("held")
	}
	if err := AwaitEnd(t.Context(), path); err == nil {
		t.Error("ended")
	}
}
