// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli/terminal"
)

// Printer prints the events of a chat for a person, or as lines of JSON.
type Printer struct {
	JSON bool
	// Chat is the state that was shown, without the messages.
	Chat client.Transcript
	// Names shows the name of each message above it.
	Names bool
	// NotesFrom is the index of the first message whose notes are shown. A negative one is replaced by the length of the
	// history in the first status.
	NotesFrom int64

	sheet *sheet
	hint  Hint
	// interrupted is true after a note that the turn is interrupted, until the status has it.
	interrupted bool
	// wait and cancelled, the reason why calls of the newest reply have no result, are the last that were shown; warned
	// holds the warnings that were shown.
	wait      string
	cancelled v1beta1.CallsCanceledReason
	warned    map[stream.Warning]bool
}

type jsonEvent struct {
	Event string          `json:"event"`
	ID    string          `json:"id"`
	Data  json.RawMessage `json:"data"`
}

// NewPrinter creates a printer whose notes go to errOut.
func NewPrinter(out, errOut io.Writer, asJSON bool, hint Hint) *Printer {
	return &Printer{JSON: asJSON, hint: hint, warned: map[stream.Warning]bool{}, sheet: newSheet(out, errOut)}
}

// Event prints an event. With everything, it prints messages of people and why turns fail, too.
func (p *Printer) Event(e stream.Event, everything bool) error {
	if p.JSON {
		return PrintJSON(p.sheet.out, jsonEvent{e.Name, e.ID, e.Data})
	}
	updates, err := p.Chat.Updates(e)
	for _, u := range updates {
		p.Show(u, everything)
	}
	return err
}

// Show prints an update.
func (p *Printer) Show(u client.Update, everything bool) {
	switch u := u.(type) {
	case *stream.MessagePart:
		p.part(u)
	case *stream.MessageCommitted:
		p.committed(u, everything)
	case *stream.Status:
		p.status(u, everything)
	case *stream.Retry:
		p.retry(u)
	case *stream.RequiresAction:
		p.action(u)
	case *stream.PreviewReset:
		p.previewReset()
	case *client.Reset:
		p.reset(u)
	default:
		if everything {
			p.showAside(u)
		}
	}
	p.Chat.Take(u)
	p.Chat.Messages = nil
	if p.Chat.Live == nil {
		p.sheet.prose = terminal.Markdown{}
	}
}

// showAside prints updates that are no part of the conversation: errors of turns, and notes.
func (p *Printer) showAside(u client.Update) {
	switch u := u.(type) {
	case *stream.Error:
		p.Note("%s: %s", u.Reason, u.Text())
	case *stream.Note:
		p.note(u)
	case *stream.NoteDeleted:
		p.Note("note %s was deleted", u.Name)
	}
}

// note shows a note. A stream that was resumed repeats all of them.
func (p *Printer) note(n *stream.Note) {
	before, changed := p.Chat.Notes[n.Message.UID]
	if changed && n.Generation <= before.Generation || n.Index < p.NotesFrom {
		return
	}
	of := ""
	if by := cmp.Or(n.Message.EditedBy, n.Message.CreatedBy); by != "" {
		of = " of " + by
	}
	if changed {
		of += ", changed"
	}
	p.heading(n.Message.Name)
	p.sheet.endLine()
	p.sheet.out.Line("[note%s:]", of)
	p.sheet.quote("  ", n.Message.Content+textOf(&stream.MessageCommitted{Message: n.Message}))
}

func (p *Printer) reset(r *client.Reset) {
	words := ResetWords(r)
	if r.More && !r.Other {
		words += "; it continues like this:"
	}
	p.Note("%s", words)
}

// ResetWords describes what has changed, with messages counted from 1.
func ResetWords(r *client.Reset) string {
	first := r.From + 1
	switch {
	case r.Other:
		return "another chat of this name has begun"
	case r.More:
		return fmt.Sprintf("the conversation was changed from message %d on", first)
	case first == r.Length:
		return fmt.Sprintf("message %d was deleted", first)
	}
	return fmt.Sprintf("messages %d to %d were deleted", first, r.Length)
}

func (p *Printer) part(part *stream.MessagePart) {
	live := p.Chat.Live
	if !live.Previews(part.HistoryVersion, part.Attempt) {
		live, p.sheet.prose = nil, terminal.Markdown{}
	}
	if part.Role == string(v1beta1.RoleSystem) {
		if live == nil { // People want to know that, not to read it.
			p.Note("the conversation is being summarised")
		}
		return
	}
	switch kind := part.Part.Type; kind {
	case parts.ToolCall, parts.ToolResult:
		if live.Has(kind, part.Part.ID) {
			return
		}
	}
	p.sheet.part(&part.Part)
}

// committed shows a committed message; one of a person only with everything.
func (p *Printer) committed(m *stream.MessageCommitted, everything bool) {
	p.heading(m.Message.Name)
	p.showCancelled(m.Message.CallsCanceledReasonBefore)
	p.cancelled = ""
	switch {
	case m.Message.Role != v1beta1.RoleUser:
		p.generated(m)
	case everything && m.Message.Visibility == v1beta1.VisibleToModel:
		p.Note("a message for the model alone: %s", m.Message.Name)
	case everything && len(m.Message.History) > 0:
		p.earlier(m.Message.History)
	case everything:
		p.sheet.question(m.Message.Content + textOf(m))
		if by := m.Message.EditedBy; by != "" && by != m.Message.CreatedBy {
			p.Note("changed by %s", by)
		}
	}
}

func (p *Printer) earlier(history []v1beta1.PriorMessage) {
	p.Note("continues from a conversation of %d messages that was led elsewhere:", len(history))
	for i := range history {
		m := &history[i]
		switch m.Role {
		case v1beta1.RoleUser:
			p.sheet.question(m.Content)
		case v1beta1.RoleAssistant:
			p.sheet.write(m.Content)
		}
		for j := range m.ToolCalls {
			p.sheet.call(m.ToolCalls[j].ID, m.ToolCalls[j].Name, m.ToolCalls[j].Input)
		}
		for j := range m.ToolResults {
			p.sheet.result(m.ToolResults[j].ID, m.ToolResults[j].Name, m.ToolResults[j].Output)
		}
		if p.sheet.openCall == "" {
			p.sheet.endLine()
		}
		p.sheet.prose = terminal.Markdown{}
	}
}

func (p *Printer) heading(name string) {
	if p.Names {
		p.sheet.endLine()
		p.sheet.out.Line("[%s]", name)
	}
}

// generated shows the part of a generated message that was not streamed.
func (p *Printer) generated(m *stream.MessageCommitted) {
	live := p.Chat.Live
	if !live.Previews(m.HistoryVersion-1, m.Message.Attempt) {
		live, p.sheet.prose = nil, terminal.Markdown{}
	}
	if m.Message.Role == v1beta1.RoleSystem {
		p.Note("%s", compacted(m.Message.Compaction))
		return
	}
	rest, streamed := strings.CutPrefix(textOf(m), live.Text())
	if !streamed {
		p.sheet.endLine()
		rest = textOf(m)
	}
	p.sheet.write(rest)
	p.work(m, live)
	if p.sheet.openCall == "" {
		p.sheet.endLine()
	}
	if note := m.Message.ReplyOutcome.Note(); note != "" {
		p.Note("%s", withFinishReason(note, m.Message.FinishReason))
	}
	if m.Message.Outcome == v1beta1.OutcomeInterrupted {
		p.Note("interrupted")
		p.interrupted = true
	}
}

// work shows the calls and results of a message that were not streamed, and the decisions about them.
func (p *Printer) work(m *stream.MessageCommitted, live *client.Live) {
	for i := range m.Message.Parts {
		part := &m.Message.Parts[i]
		if call := part.ToolCall; call != nil && !live.Has(parts.ToolCall, call.ID) {
			p.sheet.call(call.ID, call.Name, call.Input)
		}
		if result := part.ToolResult; result != nil {
			if !live.Has(parts.ToolResult, result.ID) {
				p.sheet.result(result.ID, result.Name, result.Output)
			}
			p.decision(m.Message.Decisions, result)
		}
	}
}

func withFinishReason(note, reason string) string {
	if reason == "" {
		return note
	}
	return note + " (finish reason " + reason + ")"
}

func (p *Printer) decision(decisions []v1beta1.ToolDecision, result *v1beta1.ToolResult) {
	i := slices.IndexFunc(decisions, func(d v1beta1.ToolDecision) bool { return d.ID == result.ID })
	if i < 0 {
		return
	}
	p.sheet.endLine()
	p.sheet.out.Line("[%s was %s]", cmp.Or(result.Name, p.sheet.tools[result.ID], result.ID), DecisionLine(&decisions[i]))
}

func compacted(c *v1beta1.CompactionAccount) string {
	if c == nil || c.Messages == 0 {
		return "the model continues from a summary of what was said before"
	}
	of := "the model continues from a summary of " + Plural(int(c.Messages), "message")
	if c.ContextTokens > 0 && c.ContextLimit > 0 {
		of += fmt.Sprintf(", which filled %d of %d tokens", c.ContextTokens, c.ContextLimit)
	}
	return of
}

// previewReset notes that nothing follows the parts on the screen.
func (p *Printer) previewReset() {
	live, now := p.Chat.Live, p.Chat.Status
	switch {
	case !live.Has(parts.Text, "") && !live.Has(parts.ToolCall, "") && !live.Has(parts.ToolResult, "") &&
		(live == nil || live.Role != string(v1beta1.RoleSystem)):
	case now != nil && now.Phase == v1beta1.ChatInterrupting && !p.interrupted:
		p.Note("interrupted; nothing of this was kept")
		p.interrupted = true
	default:
		p.Note("that attempt came to nothing; the reply begins again")
	}
}

// status shows what a status changes. It notes an interruption before the first part of a reply, of which there is no
// message.
func (p *Printer) status(now *stream.Status, everything bool) {
	before := p.Chat.Status
	if p.NotesFrom < 0 {
		p.NotesFrom = now.Length
	}
	p.showWait(now)
	p.showCancelled(now.CallsCanceledReason)
	if everything && now.Result == v1beta1.TurnInterrupted && before != nil && before.Turn == now.Turn &&
		before.Result == "" && !p.interrupted {
		p.Note("interrupted")
	}
	p.interrupted = false
}

func (p *Printer) action(a *stream.RequiresAction) {
	if before := p.Chat.Action; before != nil && before.HistoryVersion == a.HistoryVersion { // It is repeated.
		return
	}
	p.instruct(a)
}

// Instruct shows once more what to type about the calls that wait.
func (p *Printer) Instruct() {
	if p.Chat.Action != nil {
		p.instruct(p.Chat.Action)
	}
}

func (p *Printer) instruct(a *stream.RequiresAction) {
	lines := p.hint.lines(a)
	if len(lines) == 0 {
		return
	}
	p.Note("%s", DeadlineWords(a))
	for _, line := range lines {
		p.sheet.errOut.Line("%s", line)
	}
}

// DeadlineWords says until when calls wait for people.
func DeadlineWords(a *stream.RequiresAction) string {
	return "the chat waits for you until " + clock(a.Deadline.Time)
}

func textOf(m *stream.MessageCommitted) string {
	var b strings.Builder
	for i := range m.Message.Parts {
		if part := &m.Message.Parts[i]; part.Type == v1beta1.PartText && part.Text != nil {
			b.WriteString(*part.Text)
		}
	}
	return b.String()
}

// OutOfReach notes that a server is out of reach.
func (p *Printer) OutOfReach(err error) { p.Note("%v", err) }

// Note prints a line of the plug-in.
func (p *Printer) Note(format string, args ...any) { p.sheet.note(format, args...) }

// Complain prints an error below the messages.
func (p *Printer) Complain(err error) {
	p.sheet.endLine()
	p.sheet.errOut.Line("kubectl chat: %v", err)
}

// EndLine ends an open line.
func (p *Printer) EndLine() { p.sheet.endLine() }
