// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"

	"golang.org/x/term"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/parts"
)

// printer shows the events of a chat to a person, or as JSON lines to a program.
type printer struct {
	out, errOut io.Writer
	json        bool
	terminal    bool
	// shown is what of the attempt under way is on the screen, so that its message is not shown twice.
	shown   strings.Builder
	version int64
	// midLine is true when the last line on the screen is not ended.
	midLine bool
}

func newPrinter(out, errOut io.Writer, asJSON bool) *printer {
	p := &printer{out: out, errOut: errOut, json: asJSON}
	if file, ok := out.(*os.File); ok {
		p.terminal = term.IsTerminal(int(file.Fd()))
	}
	return p
}

// show prints one event.
func (p *printer) show(e event, users bool) error {
	if p.json {
		_, err := fmt.Fprintf(p.out, "{\"event\":%q,\"id\":%q,\"data\":%s}\n", e.name, e.id, e.data)
		return err
	}
	switch e.name {
	case follow.EventMessagePart:
		var part follow.MessagePart
		if err := json.Unmarshal(e.data, &part); err != nil {
			return fmt.Errorf("reading a part: %w", err)
		}
		p.part(&part)
	case follow.EventMessage:
		var message follow.MessageCommitted
		if err := json.Unmarshal(e.data, &message); err != nil {
			return fmt.Errorf("reading a message: %w", err)
		}
		p.message(&message, users)
	case follow.EventPreviewReset:
		if p.shown.Len() > 0 {
			p.endLine()
			fmt.Fprintln(p.errOut, "[the attempt was lost; the reply begins anew]")
		}
		p.shown.Reset()
	case follow.EventHistoryReset:
		p.shown.Reset()
	}
	return nil
}

func (p *printer) part(part *follow.MessagePart) {
	if part.HistoryVersion != p.version {
		p.version = part.HistoryVersion
		p.shown.Reset()
	}
	switch part.Part.Type {
	case parts.Text:
		p.shown.WriteString(part.Part.Text)
		p.write(part.Part.Text)
	case parts.Reasoning:
		if p.terminal {
			p.write("\033[2m" + part.Part.Text + "\033[0m")
		}
	case parts.ToolCall:
		p.endLine()
		p.write("[" + part.Part.Name + " " + part.Part.Text + "]")
	case parts.ToolResult:
		p.write(" -> " + part.Part.Text)
		p.endLine()
	}
}

// message shows what of a committed message was not shown while it was streamed, and what others asked.
func (p *printer) message(m *follow.MessageCommitted, users bool) {
	text := textOf(m)
	switch m.Message.Role {
	case v1alpha1.RoleUser:
		if users {
			p.endLine()
			p.write("> " + strings.ReplaceAll(text, "\n", "\n> "))
			p.endLine()
		}
	case v1alpha1.RoleAssistant:
		if p.version != m.HistoryVersion-1 {
			p.shown.Reset()
		}
		if rest, ok := strings.CutPrefix(text, p.shown.String()); ok {
			p.write(rest)
		}
		p.endLine()
	}
	p.shown.Reset()
}

func textOf(m *follow.MessageCommitted) string {
	b := strings.Builder{}
	b.WriteString(m.Message.Content)
	for i := range m.Message.Parts {
		if part := &m.Message.Parts[i]; part.Type == v1alpha1.PartText && part.Text != nil {
			b.WriteString(*part.Text)
		}
	}
	return b.String()
}

func (p *printer) write(text string) {
	if text == "" {
		return
	}
	fmt.Fprint(p.out, text)
	p.midLine = !strings.HasSuffix(text, "\n")
}

func (p *printer) endLine() {
	if p.midLine {
		fmt.Fprintln(p.out)
		p.midLine = false
	}
}
