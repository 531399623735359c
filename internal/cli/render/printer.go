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
	out, ErrOut *terminal.Screen
	JSON        bool
	hint        Hint
	// chat is what was shown, without its messages.
	Chat  client.Transcript
	prose terminal.Markdown
	// names shows each message below its name, which edit, delete and promote take.
	Names bool
	// tools are those that were called, by the call's id: a client's results do not repeat them.
	tools map[string]string
	// commands are those that calls run in the workspace, by the call's id; live is the call whose output was shown as it
	// came.
	commands map[string]string
	live     string
	// midLine is true when the last line on the screen is not ended, and openCall names the call that it shows.
	midLine  bool
	openCall string
	// interrupted is true when it is shown that the turn is interrupted, which a status is yet to tell.
	interrupted bool
	// wait is the one that was shown last, and warned holds the warnings that were.
	wait   string
	warned map[stream.Warning]bool
	// givenUp is why calls of the newest reply have no result, as far as that has been shown.
	givenUp v1alpha1.CallsGivenUp
	// notesFrom is the index of the message from which on notes are shown; it is negative until it is known where the
	// listening began.
	NotesFrom int64
}

// jsonEvent is how an event is printed for programs.
type jsonEvent struct {
	Event string          `json:"event"`
	ID    string          `json:"id"`
	Data  json.RawMessage `json:"data"`
}

func NewPrinter(out, errOut io.Writer, asJSON bool, hint Hint) *Printer {
	return &Printer{out: terminal.NewScreen(out), ErrOut: terminal.NewScreen(errOut), JSON: asJSON, hint: hint, tools: map[string]string{},
		commands: map[string]string{}, warned: map[stream.Warning]bool{}}
}

// Event prints an event. What others ask, and why turns fail, is shown to who listens to everything.
func (p *Printer) Event(e stream.Event, everything bool) error {
	if p.JSON {
		return PrintJSON(p.out, jsonEvent{e.Name, e.ID, e.Data})
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
		p.prose = terminal.Markdown{}
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
	p.EndLine()
	p.out.Line("[note%s:]", of)
	p.quote("  ", n.Message.Content+textOf(&stream.MessageCommitted{Message: n.Message}))
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
		live, p.prose = nil, terminal.Markdown{}
	}
	if part.Role == string(v1alpha1.RoleSystem) {
		if live == nil { // People want to know that, not to read it.
			p.Note("the conversation is being summarised")
		}
		return
	}
	switch id := part.Part.ID; part.Part.Type {
	case parts.Text:
		p.write(part.Part.Text)
	case parts.Reasoning:
		if p.out.Styled {
			p.begun(part.Part.Text)
			p.out.Faint(part.Part.Text)
		}
	case parts.ToolCall:
		if !live.Has(parts.ToolCall, id) {
			p.call(id, part.Part.Name, part.Part.Text)
		}
	case parts.ToolOutput:
		p.output(id, part.Part.Text)
	case parts.ToolResult:
		if !live.Has(parts.ToolResult, id) {
			p.result(id, part.Part.Name, part.Part.Text)
		}
	}
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
		p.asked(m.Message.Content + textOf(m))
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
			p.asked(m.Content)
		case v1alpha1.RoleAssistant:
			p.write(m.Content)
		}
		for j := range m.ToolCalls {
			p.call(m.ToolCalls[j].ID, m.ToolCalls[j].Name, m.ToolCalls[j].Input)
		}
		for j := range m.ToolResults {
			p.result(m.ToolResults[j].ID, m.ToolResults[j].Name, m.ToolResults[j].Output)
		}
		if p.openCall == "" {
			p.EndLine()
		}
		p.prose = terminal.Markdown{}
	}
}

// heading shows the name of the message that follows.
func (p *Printer) heading(name string) {
	if p.Names {
		p.EndLine()
		p.out.Line("[%s]", name)
	}
}

// generated shows what of a generated message was not shown while it was streamed.
func (p *Printer) generated(m *stream.MessageCommitted) {
	live := p.Chat.Live
	if !live.Previews(m.HistoryVersion-1, m.Message.Attempt) {
		live, p.prose = nil, terminal.Markdown{}
	}
	if m.Message.Role == v1alpha1.RoleSystem {
		p.Note("%s", compacted(m.Message.Compaction))
		return
	}
	p.rest(live.Text(), textOf(m))
	for i := range m.Message.Parts {
		part := &m.Message.Parts[i]
		if call := part.ToolCall; call != nil && !live.Has(parts.ToolCall, call.ID) {
			p.call(call.ID, call.Name, call.Input)
		}
		if result := part.ToolResult; result != nil {
			if !live.Has(parts.ToolResult, result.ID) {
				p.result(result.ID, result.Name, result.Output)
			}
			p.decision(m.Message.Decisions, result)
		}
	}
	if p.openCall == "" {
		p.EndLine()
	}
	if note := m.Message.ReplyOutcome.Note(); note != "" {
		p.Note("%s", withFinishReason(note, m.Message.FinishReason))
	}
	if m.Message.Outcome == v1alpha1.OutcomeInterrupted {
		p.Note("interrupted")
		p.interrupted = true
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
	p.EndLine()
	p.out.Line("[%s was %s]", cmp.Or(result.Name, p.tools[result.ID], result.ID), words)
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

func (p *Printer) asked(text string) {
	p.EndLine()
	p.quote("> ", text)
}

// rest shows what of a text was not shown while it was streamed.
func (p *Printer) rest(shown, text string) {
	rest, streamed := strings.CutPrefix(text, shown)
	if !streamed {
		p.EndLine()
		rest = text
	}
	p.write(rest)
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
		p.ErrOut.Line("%s", line)
	}
}

// call leaves the line open: if nothing comes in between, the result follows on it.
func (p *Printer) call(id, name, input string) {
	p.tools[id] = name
	p.EndLine()
	if question := questionOf(name, input); question != "" {
		p.out.Line("[the advisor is asked:]")
		p.quote("  ", question)
		return
	}
	if command := commandOf(name, input); command != "" {
		p.command(id, command)
		return
	}
	p.out.Own(terminal.Mark + "[")
	p.out.Foreign(flat(name + " " + OneLine(subjectOf(name, input))))
	p.out.EndForeign()
	p.out.Own("]")
	p.midLine, p.openCall = true, id
}

func (p *Printer) result(id, name, output string) {
	name = cmp.Or(name, p.tools[id], id)
	if a, ok := adviceOf(name, output); ok {
		p.EndLine()
		p.out.Line("[%s]", a.heading())
		p.quote("  ", a.Advice)
		return
	}
	if r, ok := ranOf(name, output); ok {
		p.ended(id, &r)
		return
	}
	diffs, words := editedOf(name, output)
	if open := p.openCall; open != id || p.commands[id] != "" {
		p.EndLine()
		p.out.Own(terminal.Mark + "[")
		p.out.Foreign(flat(name))
		p.out.Own("]")
	}
	p.out.Own(" -> ")
	p.out.Foreign(OneLine(cmp.Or(words, output)))
	p.midLine = true
	p.EndLine()
	if diffs != "" {
		p.lines(diffs)
	}
}

// OutOfReach tells why nothing is shown at the moment.
func (p *Printer) OutOfReach(err error) {
	p.Note("the gateway is out of reach, and is asked again until it answers: %v", err)
}

// Note tells something about the conversation that is no part of it.
func (p *Printer) Note(format string, args ...any) {
	p.EndLine()
	p.ErrOut.Line("["+format+"]", args...)
}

// quote shows what somebody said within lines of the plug-in's.
func (p *Printer) quote(indent, text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\r\n")) {
		p.out.Own(terminal.Mark + indent)
		p.out.Foreign(strings.TrimRight(line, "\r\n"))
		p.out.EndForeign()
		p.out.Put("\n")
	}
}

func (p *Printer) write(text string) {
	if text == "" {
		return
	}
	p.begun(text)
	p.out.Prose(text, &p.prose)
}

// begun notes that a piece of text is about to be shown, which belongs to no call.
func (p *Printer) begun(text string) {
	if p.openCall != "" {
		p.EndLine()
	}
	p.midLine = !strings.HasSuffix(text, "\n")
}

func (p *Printer) EndLine() {
	p.openCall = ""
	p.out.EndForeign()
	if p.midLine {
		p.out.Put("\n")
		p.midLine = false
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
