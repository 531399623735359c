// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"io"
	"os"
	"time"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/sys/unix"
	"k8s.io/cli-runtime/pkg/genericiooptions"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/pty"
)

// typist is a person at a terminal with the plug-in.
type typist struct {
	*person
	terminal *os.File
	program  *os.File
	before   *unix.Termios
	seen     pty.Output
	code     chan int
}

// sits starts the plug-in at a terminal.
func (p *person) sits(args ...string) *typist {
	p.t.Helper()
	hand, program := pty.Open(p.t)
	a := &typist{person: p, terminal: hand, program: program, code: make(chan int, 1)}
	a.before = a.mode()
	go func() { _, _ = io.Copy(&a.seen, hand) }()
	args = append([]string{"--kubeconfig", p.files["token"], "--gateway", p.gateway}, args...)
	go func() {
		a.code <- Run(p.t.Context(), genericiooptions.IOStreams{In: program, Out: program, ErrOut: program}, args)
	}()
	return a
}

func (a *typist) mode() *unix.Termios {
	a.t.Helper()
	mode, err := unix.IoctlGetTermios(int(a.program.Fd()), unix.TCGETS)
	check.OK(a.t, err)
	return mode
}

// types presses keys.
func (a *typist) types(keys string) {
	a.t.Helper()
	if _, err := a.terminal.WriteString(keys); err != nil {
		a.t.Fatal(err)
	}
}

// sees waits until the words were shown, and forgets what was shown until then.
func (a *typist) sees(words string) {
	a.t.Helper()
	a.seen.Sees(a.t, words)
}

// ends waits until the plug-in has ended, and checks its exit code and that the terminal is as it was.
func (a *typist) ends(code int) {
	a.t.Helper()
	select {
	case got := <-a.code:
		if got != code {
			a.t.Errorf("it ends with %d; it shows %q", got, a.seen.String())
		}
		if diff := cmp.Diff(a.before, a.mode()); diff != "" {
			a.t.Errorf("the terminal is not as it was:\n%s", diff)
		}
	case <-time.After(20 * time.Second):
		a.t.Fatalf("it does not end; it shows %q", a.seen.String())
	}
}
