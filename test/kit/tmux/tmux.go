// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package tmux runs programs in a terminal that draws its screen, with tmux.
package tmux

import (
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// patience is how long a screen may take to show something.
const patience = time.Minute

// Terminal is a terminal of 80 columns and 24 lines with a program.
type Terminal struct {
	t      testing.TB
	socket string
}

// Start starts a program with variables in addition to those of the test.
func Start(t testing.TB, variables []string, program ...string) *Terminal {
	t.Helper()
	if _, err := exec.LookPath("tmux"); err != nil {
		t.Fatal("there is no tmux: run hack/setup.sh tests")
	}
	dir, err := os.MkdirTemp("", "tmux-") //nolint:usetesting // The path of a socket is short.
	check.OK(t, err)
	a := &Terminal{t: t, socket: filepath.Join(dir, "s")}
	t.Cleanup(func() {
		_ = exec.Command("tmux", "-S", a.socket, "kill-server").Run() //nolint:noctx // The test's context is done.
		_ = os.RemoveAll(dir)
	})
	command := append([]string{"-f", "/dev/null", "new-session", "-d", "-x", "80", "-y", "24", "sh", "-c",
		`"$@"; echo "[exit code $?]"; exec cat`, "sh", "env", "TERM=screen-256color"}, variables...)
	a.tmux(append(command, program...)...)
	return a
}

func (a *Terminal) tmux(args ...string) string {
	a.t.Helper()
	args = append([]string{"-u", "-S", a.socket}, args...)
	out, err := exec.CommandContext(a.t.Context(), "tmux", args...).CombinedOutput()
	if err != nil {
		a.t.Fatalf("tmux %v: %v\n%s", args, err, out)
	}
	return string(out)
}

// Screen returns the lines of the screen, without spaces at their ends.
func (a *Terminal) Screen() string {
	a.t.Helper()
	return a.tmux("capture-pane", "-p")
}

// Styled returns the screen with its styles.
func (a *Terminal) Styled() string {
	a.t.Helper()
	return a.tmux("capture-pane", "-p", "-e")
}

// Sees waits until the screen has all the words.
func (a *Terminal) Sees(words ...string) {
	a.t.Helper()
	last := ""
	defer func() {
		if a.t.Failed() {
			a.t.Logf("instead of %q the screen shows:\n%s", words, last)
		}
	}()
	for _, w := range words {
		waiting.Until(a.t, patience, "the screen shows "+w, func() bool {
			last = a.Screen()
			return strings.Contains(last, w)
		})
	}
}

// Types types text.
func (a *Terminal) Types(text string) {
	a.t.Helper()
	a.tmux("send-keys", "-l", text)
}

// Press presses keys by the names that tmux gives them, such as Enter and C-c.
func (a *Terminal) Press(keys ...string) {
	a.t.Helper()
	a.tmux(append([]string{"send-keys"}, keys...)...)
}

// Paste pastes text as terminals do: within brackets.
func (a *Terminal) Paste(text string) {
	a.t.Helper()
	a.tmux("set-buffer", text, ";", "paste-buffer", "-p")
}

// Resize gives the terminal another size.
func (a *Terminal) Resize(width, height int) {
	a.t.Helper()
	a.tmux("resize-window", "-x", strconv.Itoa(width), "-y", strconv.Itoa(height))
}

// Ends waits until the program has ended with that exit code.
func (a *Terminal) Ends(code int) {
	a.t.Helper()
	a.Sees("[exit code " + strconv.Itoa(code) + "]")
}
