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

// ctrlC is the key as a terminal in raw mode sends it.
const ctrlC = 3

var (
	// errPrompt has the prompt drawn again, with the line so far.
	errPrompt = errors.New("the prompt is to be shown")
	errHungUp = errors.New("the terminal is gone")
)

// keys reads the keys of a person, but for ctrl-C. It implements io.Reader.
type keys struct {
	in      chan []byte
	again   chan struct{}
	pending []byte
	paste   paste
	// beginLine is called before a line is changed. It reports whether the prompt has to be drawn first.
	beginLine func() bool

	mu      sync.Mutex
	retyped []byte
}

func newKeys(beginLine func() bool) *keys {
	return &keys{in: make(chan []byte, 64), again: make(chan struct{}, 1), beginLine: beginLine}
}

// Listen reads keys until the terminal is gone. It calls interrupted for each ctrl-C, and pressed for other keys.
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

// prompt has the prompt drawn again.
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
	k.takeRetyped()
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
	if k.beginLine() {
		return 0, errPrompt
	}
	n := copy(p, k.pending)
	k.pending = k.pending[n:]
	return n, nil
}

// takeRetyped moves retyped text before the other keys.
func (k *keys) takeRetyped() {
	k.mu.Lock()
	defer k.mu.Unlock()
	k.pending = append(k.retyped, k.pending...)
	k.retyped = nil
}

// What terminals send around pasted text.
const (
	pasteBegins = "\x1b[200~"
	pasteEnds   = "\x1b[201~"
)

// paste removes control characters from pasted text, which may be of others.
type paste struct {
	pasting bool
	partial []byte // may be the start of a marker or character
}

// pass filters input of a terminal.
func (p *paste) pass(b []byte) (out []byte) {
	b = append(p.partial, b...)
	p.partial = nil
	for len(b) > 0 {
		next := pasteBegins
		if p.pasting {
			next = pasteEnds
		}
		text, rest, found := bytes.Cut(b, []byte(next))
		if !found {
			text, p.partial = cutBeginning(text, next)
		}
		if p.pasting {
			if !found && len(p.partial) == 0 {
				text, p.partial = cutCharacter(text)
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

// cutBeginning cuts off the end what may be the start of a sequence.
func cutBeginning(b []byte, sequence string) (before, beginning []byte) {
	for n := len(sequence) - 1; n > 0; n-- {
		if bytes.HasSuffix(b, []byte(sequence[:n])) {
			return b[:len(b)-n], bytes.Clone(b[len(b)-n:])
		}
	}
	return b, nil
}

// cutCharacter cuts off the end the start of a character.
func cutCharacter(b []byte) (before, beginning []byte) {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if last := b[len(b)-n:]; utf8.RuneStart(last[0]) && !utf8.FullRune(last) {
			return b[:len(b)-n], bytes.Clone(last)
		}
	}
	return b, nil
}

// withoutControls removes control characters, but for tabs and line ends.
func withoutControls(r rune) rune {
	if r < ' ' && r != '\t' && r != '\n' && r != '\r' || r >= 0x7f && r < 0xa0 {
		return -1
	}
	return r
}
