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
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli/terminal"
)

// Printer shows the events of a chat to a person, or as JSON lines to a program.
type Printer struct {
	JSON bool
	// Chat is what was shown, without its messages.
	Chat client.Transcript
	// Names shows each message below its name, which edit, delete and promote take.
	Names bool
	// NotesFrom is the index of the message from which on notes are shown; it is negative until it is known where the
	// listening began.
	NotesFrom int64

	sheet *sheet
	hint  Hint
	// interrupted is true when it is shown that the turn is interrupted, which a status is yet to tell.
	interrupted bool
	// wait is the one that was shown last, and warned holds the warnings that were.
	wait   string
	warned map[stream.Warning]bool
	// givenUp is why calls of the newest reply have no result, as far as that has been shown.
	givenUp v1alpha1.CallsGivenUp
}

// jsonEvent is how an event is printed for programs.
type jsonEvent struct {
	Event string          `json:"event"`
	ID    string          `json:"id"`
	Data  json.RawMessage `json:"data"`
}

// NewPrinter is one whose notes go to errOut.
func NewPrinter(out, errOut io.Writer, asJSON bool, hint Hint) *Printer {
	return &Printer{JSON: asJSON, hint: hint, warned: map[stream.Warning]bool{}, sheet: newSheet(out, errOut)}
}

// Event prints an event. What others ask, and why turns fail, is shown to who listens to everything.
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

// Show prints what an event changes.
func (p *Printer) Show(u client.Update, everything bool) {
	switch u := u.(type) {
	case *stream.MessagePart:
		p.part(u)
	case *stream.MessageCommitted:
		p.committed(u, everything)
	case *stream.Status:
		p.turned(u, everything)
	case *stream.Retry:
		p.retry(u)
	case *stream.RequiresAction:
		p.action(u)
	case *stream.PreviewReset:
		p.voided()
	case *client.Reset:
		p.Note("%s", resetWords(u))
	default:
		if everything {
			p.aside(u)
		}
	}
	p.Chat.Take(u)
	p.Chat.Messages = nil
	if p.Chat.Live == nil {
		p.sheet.prose = terminal.Markdown{}
	}
}

// aside shows what is no part of the conversation: why a turn failed, and what became of a note.
func (p *Printer) aside(u client.Update) {
	switch u := u.(type) {
	case *stream.Error:
		p.Note("%s: %s", u.Reason, u.Text())
	case *stream.Note:
		p.noted(u)
	case *stream.NoteDeleted:
		p.Note("note %s was deleted", u.Name)
	}
}

// noted shows a note. A stream that was resumed tells all of them again.
func (p *Printer) noted(n *stream.Note) {
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

// resetWords say what has changed, counting messages from 1 as people do.
func resetWords(r *client.Reset) string {
	first := r.From + 1
	switch {
	case r.Other:
		return "another chat of this name has begun"
	case r.More:
		return fmt.Sprintf("the conversation was changed from message %d on; it continues like this:", first)
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
	if part.Role == string(v1alpha1.RoleSystem) {
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

// committed shows a committed message. Who has just asked knows what was asked.
func (p *Printer) committed(m *stream.MessageCommitted, everything bool) {
	p.heading(m.Message.Name)
	p.gaveUp(m.Message.CallsGivenUpBefore)
	p.givenUp = ""
	switch {
	case m.Message.Role != v1alpha1.RoleUser:
		p.generated(m)
	case everything && m.Message.Visibility == v1alpha1.VisibleToModel:
		p.Note("a message for the model alone: %s", m.Message.Name)
	case everything && len(m.Message.History) > 0:
		p.earlier(m.Message.History)
	case everything:
		p.sheet.asked(m.Message.Content + textOf(m))
		if by := m.Message.EditedBy; by != "" && by != m.Message.CreatedBy {
			p.Note("changed by %s", by)
		}
	}
}

// earlier shows the conversation that a chat continues from.
func (p *Printer) earlier(history []v1alpha1.PriorMessage) {
	p.Note("continues from a conversation of %d messages that was led elsewhere:", len(history))
	for i := range history {
		m := &history[i]
		switch m.Role {
		case v1alpha1.RoleUser:
			p.sheet.asked(m.Content)
		case v1alpha1.RoleAssistant:
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

// heading shows the name of the message that follows.
func (p *Printer) heading(name string) {
	if p.Names {
		p.sheet.endLine()
		p.sheet.out.Line("[%s]", name)
	}
}

// generated shows what of a generated message was not shown while it was streamed.
func (p *Printer) generated(m *stream.MessageCommitted) {
	live := p.Chat.Live
	if !live.Previews(m.HistoryVersion-1, m.Message.Attempt) {
		live, p.sheet.prose = nil, terminal.Markdown{}
	}
	if m.Message.Role == v1alpha1.RoleSystem {
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
	if m.Message.Outcome == v1alpha1.OutcomeInterrupted {
		p.Note("interrupted")
		p.interrupted = true
	}
}

// work shows the calls and results of a message that were not shown while it was streamed, and who decided about them.
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

// withFinishReason adds the provider's word for how a reply ended.
func withFinishReason(note, reason string) string {
	if reason == "" {
		return note
	}
	return note + " (finish reason " + reason + ")"
}

// decision shows who let the call of a result run, or did not.
func (p *Printer) decision(decisions []v1alpha1.ToolDecision, result *v1alpha1.ToolResult) {
	i := slices.IndexFunc(decisions, func(d v1alpha1.ToolDecision) bool { return d.ID == result.ID })
	if i < 0 {
		return
	}
	words := decisionWords(&decisions[i])
	if comment := decisions[i].Comment; comment != "" {
		words += ": " + comment
	}
	p.sheet.endLine()
	p.sheet.out.Line("[%s was %s]", cmp.Or(result.Name, p.sheet.tools[result.ID], result.ID), words)
}

// compacted says what the model continues from, with numbers where there are some.
func compacted(c *v1alpha1.CompactionAccount) string {
	if c == nil || c.Messages == 0 {
		return "the model continues from a summary of what was said before"
	}
	of := "the model continues from a summary of " + Plural(int(c.Messages), "message")
	if c.ContextTokens > 0 && c.ContextLimit > 0 {
		of += fmt.Sprintf(", which filled %d of %d tokens", c.ContextTokens, c.ContextLimit)
	}
	return of
}

// voided says that the parts on the screen are all that will come of them.
func (p *Printer) voided() {
	live, now := p.Chat.Live, p.Chat.Status
	switch {
	case !live.Has(parts.Text, "") && !live.Has(parts.ToolCall, "") && !live.Has(parts.ToolResult, "") &&
		(live == nil || live.Role != string(v1alpha1.RoleSystem)):
	case now != nil && now.Phase == v1alpha1.ChatInterrupting && !p.interrupted:
		p.Note("interrupted; nothing of this was kept")
		p.interrupted = true
	default:
		p.Note("that attempt came to nothing; the reply begins again")
	}
}

// turned notices that the turn under way was interrupted before anything was said, which no message tells.
func (p *Printer) turned(now *stream.Status, everything bool) {
	before := p.Chat.Status
	if p.NotesFrom < 0 {
		p.NotesFrom = now.Length
	}
	p.standing(now)
	p.gaveUp(now.CallsGivenUp)
	if everything && now.Result == v1alpha1.TurnInterrupted && before != nil && before.Turn == now.Turn &&
		before.Result == "" && !p.interrupted {
		p.Note("interrupted")
	}
	p.interrupted = false
}

// action tells what the turn waits for, and what to type.
func (p *Printer) action(a *stream.RequiresAction) {
	if before := p.Chat.Action; before != nil && before.HistoryVersion == a.HistoryVersion { // It is told again.
		return
	}
	lines := p.hint.lines(a)
	if len(lines) == 0 {
		return
	}
	p.Note("the chat waits for you until %s", clock(a.Deadline.Time))
	for _, line := range lines {
		p.sheet.errOut.Line("%s", line)
	}
}

func textOf(m *stream.MessageCommitted) string {
	var b strings.Builder
	for i := range m.Message.Parts {
		if part := &m.Message.Parts[i]; part.Type == v1alpha1.PartText && part.Text != nil {
			b.WriteString(*part.Text)
		}
	}
	return b.String()
}

// OutOfReach tells why nothing is shown at the moment.
func (p *Printer) OutOfReach(err error) {
	p.Note("the gateway is out of reach, and is asked again until it answers: %v", err)
}

// Note tells something about the conversation that is no part of it.
func (p *Printer) Note(format string, args ...any) { p.sheet.note(format, args...) }

// Complain tells of an error below what was said.
func (p *Printer) Complain(err error) {
	p.sheet.endLine()
	p.sheet.errOut.Line("kubectl chat: %v", err)
}

// EndLine ends what is shown.
func (p *Printer) EndLine() { p.sheet.endLine() }
