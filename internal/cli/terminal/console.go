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

// Console is a terminal in raw mode at which a person types lines while others speak. What others say comes as it is
// said as long as nobody types, and in whole lines above the line that somebody is at.
type Console struct {
	editor *term.Terminal
	Keys   *keys
	// size of the terminal in characters.
	size func() (width, height int, err error)

	mu sync.Mutex
	// typing is true while somebody is at a line, and hidden while no prompt is shown. It is undrawn until the editor
	// draws it, which it does when a line is begun or gone on with.
	typing, hidden, undrawn bool
	// midLine is true when the last line that others said is not ended; held is the beginning of one that is not shown.
	midLine bool
	held    []byte
}

// Prompt begins the line that a person types, as it begins what was asked elsewhere.
const Prompt = Mark + "> "

// NewConsole is that of a terminal in raw mode. Its keys are yet to listen.
func NewConsole(terminal io.Writer, size func() (int, int, error)) *Console {
	c := &Console{size: size}
	c.Keys = newKeys(c.begun)
	c.editor = term.NewTerminal(struct {
		io.Reader
		io.Writer
	}{c.Keys, terminal}, Prompt)
	c.editor.SetBracketedPasteMode(true)
	return c
}

// Close leaves the terminal as it was, but for raw mode.
func (c *Console) Close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	shown := !c.hidden
	c.say(c.held)
	c.editor.SetPrompt("")
	if shown || c.midLine {
		_, _ = c.editor.Write([]byte("\n"))
	}
	c.editor.SetBracketedPasteMode(false)
}

// Line reads a line, or the lines that were pasted and the one in which they end.
func (c *Console) Line() (string, error) {
	var pasted strings.Builder
	for {
		if width, height, err := c.size(); err == nil && width > 0 && height > 0 {
			_ = c.editor.SetSize(width, height) // It is a matter of looks.
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
			c.ended()
			return pasted.String() + line, nil
		}
	}
}

// begun notes that somebody types. It reports whether there is no prompt at which they do.
func (c *Console) begun() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.typing = true
	c.show()
	return c.undrawn
}

// show has the prompt shown below what was said. The caller holds mu.
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

// ended notes that nobody is at a line any more.
func (c *Console) ended() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.typing = false
	held := c.held
	c.held = nil
	c.say(held)
}

// Write shows what others say. It implements io.Writer.
func (c *Console) Write(p []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.typing {
		c.say(p)
		return len(p), nil
	}
	c.held = append(c.held, p...)
	if whole := bytes.LastIndexByte(c.held, '\n') + 1; whole > 0 {
		_, _ = c.editor.Write(c.held[:whole])
		c.held = bytes.Clone(c.held[whole:])
	}
	return len(p), nil
}

// say shows what others say where nobody types. The caller holds mu.
func (c *Console) say(p []byte) {
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

// ShowPrompt shows the prompt, since nobody speaks at the moment.
func (c *Console) ShowPrompt() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.held) > 0 {
		_, _ = c.editor.Write(append(c.held, '\n'))
		c.held = nil
	}
	if c.show(); c.undrawn {
		c.Keys.prompt()
	}
}

// IsTyping reports whether somebody is at a line.
func (c *Console) IsTyping() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.typing
}
