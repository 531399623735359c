// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package terminal

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"sync"

	"golang.org/x/term"
)

// Console is a terminal in raw mode where a person types lines while replies come. A reply is shown piece by piece, or
// in whole lines above the line that the person types.
type Console struct {
	editor *term.Terminal
	Keys   *keys
	size   func() (width, height int, err error)

	mu sync.Mutex
	// typing is true while a line is being typed, and hidden while no prompt is shown. undrawn is true until the editor
	// has drawn the prompt, as it does at the start of Line.
	typing, hidden, undrawn bool
	// midLine is true while the last line of a reply is not ended; pending is the start of one that is not shown.
	midLine bool
	pending []byte
}

// Prompt begins the line of a person, here and in what is shown.
const Prompt = Mark + "> "

// NewConsole creates a console. Call Keys.Listen next.
func NewConsole(terminal io.Writer, size func() (int, int, error)) *Console {
	c := &Console{size: size}
	c.Keys = newKeys(c.beginLine)
	c.editor = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{c.Keys, terminal}, Prompt)
	c.editor.SetBracketedPasteMode(true)
	return c
}

// Close restores the terminal, but for raw mode.
func (c *Console) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	shown := !c.hidden
	c.write(c.pending)
	c.editor.SetPrompt("")
	if shown || c.midLine {
		_, _ = c.editor.Write([]byte("\n"))
	}
	c.editor.SetBracketedPasteMode(false)
}

// Line reads a line, with the lines that were pasted into it.
func (c *Console) Line() (string, error) {
	var pasted strings.Builder
	for {
		if width, height, err := c.size(); err == nil && width > 0 && height > 0 {
			_ = c.editor.SetSize(width, height) // Lines wrap at another column.
		}
		c.mu.Lock()
		c.undrawn = false
		c.mu.Unlock()
		line, err := c.editor.ReadLine()
		switch {
		case errors.Is(err, errPrompt):
		case errors.Is(err, term.ErrPasteIndicator):
			pasted.WriteString(line + "\n")
		case err != nil:
			return "", err
		default:
			c.endLine()
			return pasted.String() + line, nil
		}
	}
}

// beginLine notes a key. It reports whether the prompt is undrawn.
func (c *Console) beginLine() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.typing = true
	c.show()
	return c.undrawn
}

// show shows the prompt below the reply. The caller holds mu.
func (c *Console) show() {
	if !c.hidden {
		return
	}
	if c.midLine {
		_, _ = c.editor.Write([]byte("\n"))
	}
	c.hidden, c.midLine, c.undrawn = false, false, true
	c.editor.SetPrompt(Prompt)
}

// endLine notes the end of a line.
func (c *Console) endLine() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.typing = false
	pending := c.pending
	c.pending = nil
	c.write(pending)
}

// Write implements io.Writer.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.typing {
		c.write(p)
		return len(p), nil
	}
	c.pending = append(c.pending, p...)
	if whole := bytes.LastIndexByte(c.pending, '\n') + 1; whole > 0 {
		_, _ = c.editor.Write(c.pending[:whole])
		c.pending = bytes.Clone(c.pending[whole:])
	}
	return len(p), nil
}

// write shows a piece of a reply while no line is typed. The caller holds mu.
func (c *Console) write(p []byte) {
	if len(p) == 0 {
		return
	}
	if !c.hidden {
		c.hidden = true
		c.editor.SetPrompt("")
	}
	_, _ = c.editor.Write(p)
	c.midLine = p[len(p)-1] != '\n'
}

// ShowPrompt shows the prompt at the end of a reply.
func (c *Console) ShowPrompt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.pending) > 0 {
		_, _ = c.editor.Write(append(c.pending, '\n'))
		c.pending = nil
	}
	if c.show(); c.undrawn {
		c.Keys.prompt()
	}
}

// IsTyping reports whether a line is being typed.
func (c *Console) IsTyping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.typing
}
