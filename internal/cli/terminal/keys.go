// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"errors"
	"io"
	"sync"
	"unicode/utf8"
)

// ctrlC is what a terminal sends that leaves ctrl-C to the program.
const ctrlC = 3

var (
	// errPrompt means that the prompt is to be shown again, and the line so far with it.
	errPrompt = errors.New("the prompt is to be shown")
	// errHungUp means that nobody types any more.
	errHungUp = errors.New("the terminal is gone")
)

// keys are those that a person presses, but for ctrl-C. It implements io.Reader.
type keys struct {
	in      chan []byte
	again   chan struct{}
	pending []byte
	paste   paste
	// begun is called before a line is changed. It reports whether the prompt is to be shown first.
	begun func() bool

	mu      sync.Mutex
	retyped []byte
}

func newKeys(begun func() bool) *keys {
	return &keys{in: make(chan []byte, 64), again: make(chan struct{}, 1), begun: begun}
}

// Listen passes on what comes from a terminal until that is gone, and tells of each ctrl-C and of other keys.
func (k *keys) Listen(terminal io.Reader, pressed, interrupted func()) {
	defer close(k.in)
	for {
		b := make([]byte, 1<<10)
		n, err := terminal.Read(b)
		for i, typed := range bytes.Split(b[:n], []byte{ctrlC}) {
			if i > 0 {
				interrupted()
			}
			if len(typed) > 0 {
				pressed()
			}
			if typed = k.paste.pass(typed); len(typed) > 0 {
				k.in <- typed
			}
		}
		if err != nil {
			return
		}
	}
}

// prompt has the prompt shown again.
func (k *keys) prompt() {
	select {
	case k.again <- struct{}{}:
	default:
	}
}

// Retype puts a text before what is typed next, as if it were pasted.
func (k *keys) Retype(text string) {
	k.mu.Lock()
	k.retyped = append(k.retyped, pasteBegins+text+pasteEnds...)
	k.mu.Unlock()
	k.prompt()
}

// Read implements io.Reader.
func (k *keys) Read(p []byte) (int, error) {
	k.take()
	if len(k.pending) == 0 {
		select {
		case b, ok := <-k.in:
			if !ok {
				return 0, errHungUp
			}
			k.pending = b
		case <-k.again:
			return 0, errPrompt
		}
	}
	if k.begun() {
		return 0, errPrompt
	}
	n := copy(p, k.pending)
	k.pending = k.pending[n:]
	return n, nil
}

// take takes what was retyped.
func (k *keys) take() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pending = append(k.retyped, k.pending...)
	k.retyped = nil
}

// What terminals send around a text that is pasted.
const (
	pasteBegins = "\x1b[200~"
	pasteEnds   = "\x1b[201~"
)

// paste takes out of texts that are pasted what a terminal would act on: whoever copies a text has not written it.
type paste struct {
	pasting bool
	held    []byte // what may be the beginning of one of the two
}

// pass takes what comes from a terminal, and returns what is for the line.
func (p *paste) pass(b []byte) (out []byte) {
	b = append(p.held, b...)
	p.held = nil
	for len(b) > 0 {
		next := pasteBegins
		if p.pasting {
			next = pasteEnds
		}
		text, rest, found := bytes.Cut(b, []byte(next))
		if !found {
			text, p.held = cutBeginning(text, next)
		}
		if p.pasting {
			if !found && len(p.held) == 0 {
				text, p.held = cutCharacter(text)
			}
			text = bytes.Map(withoutControls, text)
		}
		out = append(out, text...)
		if !found {
			return out
		}
		out = append(out, next...)
		p.pasting, b = !p.pasting, rest
	}
	return out
}

// cutBeginning cuts what may be the beginning of a sequence off the end.
func cutBeginning(b []byte, sequence string) (before, beginning []byte) {
	for n := len(sequence) - 1; n > 0; n-- {
		if bytes.HasSuffix(b, []byte(sequence[:n])) {
			return b[:len(b)-n], bytes.Clone(b[len(b)-n:])
		}
	}
	return b, nil
}

// cutCharacter cuts a character off the end that is not whole.
func cutCharacter(b []byte) (before, beginning []byte) {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) && !utf8.FullRune(last) {
			return b[:len(b)-n], bytes.Clone(last)
		}
	}
	return b, nil
}

// withoutControls leaves control characters out, but for tabs and the ends of lines.
func withoutControls(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 {
		return -1
	}
	return r
}
