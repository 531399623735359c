// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

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
	"parley.dev/parley/internal/text/clip"
)

// maxToolRunes is how much of a tool's input or output is shown: it is to be recognised, not read.
const maxToolRunes = 200

// printer shows the events of a chat to a person, or as JSON lines to a program.
type printer struct {
	out, errOut *screen
	json        bool
	// version and attempt name the attempt whose parts are on the screen: text, and the tool calls and results by id.
	version int64
	attempt int32
	text    strings.Builder
	prose   markdown
	tools   map[string]bool
	// names are those of the tools that were called, by the call's id: a client's results do not repeat them.
	names map[string]string
	// commands are those that calls run in the workspace, by the call's id; live is the call whose output was shown as it
	// came.
	commands map[string]string
	live     string
	// midLine is true when the last line on the screen is not ended, and openCall names the call that it shows.
	midLine  bool
	openCall string
	// status is the last one that came, actionVersion that of the last action that was shown,
	// and hint what it tells to type.
	status        stream.Status
	actionVersion int64
	// wait is the one that was shown last, and warned holds the warnings that were.
	wait   string
	warned map[stream.Warning]bool
	// givenUp is why calls of the newest reply have no result, as far as that has been shown.
	givenUp v1alpha1.CallsGivenUp
	hint    hint
	// noteGenerations are those of the notes that were shown, by UID. Notes before the message of index notesFrom are not
	// shown; it is negative until it is known where the listening began.
	noteGenerations map[string]int64
	notesFrom       int64
}

// jsonEvent is how an event is printed for programs.
type jsonEvent struct {
	Event string          `json:"event"`
	ID    string          `json:"id"`
	Data  json.RawMessage `json:"data"`
}

func newPrinter(out, errOut io.Writer, asJSON bool, hint hint) *printer {
	return &printer{out: newScreen(out), errOut: newScreen(errOut), json: asJSON, tools: map[string]bool{},
		names: map[string]string{}, commands: map[string]string{}, hint: hint, noteGenerations: map[string]int64{},
		warned: map[stream.Warning]bool{}}
}

// show prints one event. What others ask, and why turns fail, is shown to who listens to everything.
func (p *printer) show(e stream.Event, everything bool) error {
	if p.json {
		return printJSON(p.out, jsonEvent{e.Name, e.ID, e.Data})
	}
	switch e.Name {
	case stream.EventMessagePart:
		return handle(e, p.part)
	case stream.EventMessage:
		return handle(e, func(m *stream.MessageCommitted) { p.committed(m, everything) })
	case stream.EventRetry, stream.EventRequiresAction:
		return p.waits(e)
	case stream.EventError, stream.EventNote, stream.EventNoteDeleted:
		if everything {
			return p.aside(e)
		}
	case stream.EventPreviewReset:
		p.voided()
	case stream.EventHistoryReset:
		return handle(e, func(c *change) { p.note("%s", c); p.forget() })
	case stream.EventStatus:
		return handle(e, func(s *stream.Status) { p.turned(s, everything) })
	}
	return nil
}

// waits tells what the turn waits for.
func (p *printer) waits(e stream.Event) error {
	if e.Name == stream.EventRetry {
		return handle(e, p.retry)
	}
	return handle(e, p.action)
}

// handle passes the data of an event to its handler.
func handle[T any](e stream.Event, do func(*T)) error {
	data, err := stream.Decode[T](e)
	if err == nil {
		do(data)
	}
	return err
}

func (p *printer) part(part *stream.MessagePart) {
	if part.HistoryVersion != p.version || part.Attempt != p.attempt {
		p.forget()
		p.version, p.attempt = part.HistoryVersion, part.Attempt
	}
	if part.Role == string(v1alpha1.RoleSystem) {
		p.summarising()
		return
	}
	switch part.Part.Type {
	case parts.Text:
		if p.text.Len() < client.MaxEvent {
			p.text.WriteString(part.Part.Text)
		}
		p.write(part.Part.Text)
	case parts.Reasoning:
		if p.out.styled {
			p.begun(part.Part.Text)
			p.out.faint(part.Part.Text)
		}
	default:
		p.toolPart(&part.Part)
	}
}

func (p *printer) toolPart(part *parts.Part) {
	switch part.Type {
	case parts.ToolCall:
		p.call(part.ID, part.Name, part.Text)
	case parts.ToolOutput:
		p.output(part.ID, part.Text)
	case parts.ToolResult:
		p.result(part.ID, part.Name, part.Text)
	}
}

// committed shows a committed message. Who has just asked knows what was asked.
func (p *printer) committed(m *stream.MessageCommitted, everything bool) {
	p.gaveUp(m.Message.CallsGivenUpBefore)
	p.givenUp = ""
	switch {
	case m.Message.Role != v1alpha1.RoleUser:
		p.generated(m)
	case everything && m.Message.Visibility == v1alpha1.VisibleToModel:
		p.note("a message for the model alone: %s", m.Message.Name)
	case everything && len(m.Message.History) > 0:
		p.earlier(m.Message.History)
	case everything:
		p.asked(m.Message.Content + textOf(m))
		if by := m.Message.EditedBy; by != "" && by != m.Message.CreatedBy {
			p.note("changed by %s", by)
		}
	}
}

// generated shows what of a generated message was not shown while it was streamed.
func (p *printer) generated(m *stream.MessageCommitted) {
	if p.version != m.HistoryVersion-1 || p.attempt != m.Message.Attempt {
		p.forget()
	}
	if m.Message.Role == v1alpha1.RoleSystem {
		p.note("%s", compacted(m.Message.Compaction))
		p.forget()
		return
	}
	p.rest(textOf(m))
	for i := range m.Message.Parts {
		part := &m.Message.Parts[i]
		if call := part.ToolCall; call != nil {
			p.call(call.ID, call.Name, call.Input)
		}
		if result := part.ToolResult; result != nil {
			p.result(result.ID, result.Name, result.Output)
			p.decision(m.Message.Decisions, result)
		}
	}
	if p.openCall == "" {
		p.endLine()
	}
	p.forget()
	if note := m.Message.ReplyOutcome.Note(); note != "" {
		p.note("%s", withFinishReason(note, m.Message.FinishReason))
	}
	if m.Message.Outcome == v1alpha1.OutcomeInterrupted {
		p.note("interrupted")
		p.status.Phase, p.status.Result = "", v1alpha1.TurnInterrupted
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
func (p *printer) decision(decisions []v1alpha1.ToolDecision, result *v1alpha1.ToolResult) {
	i := slices.IndexFunc(decisions, func(d v1alpha1.ToolDecision) bool { return d.ID == result.ID })
	if i < 0 {
		return
	}
	words := decisionWords(&decisions[i])
	if comment := decisions[i].Comment; comment != "" {
		words += ": " + comment
	}
	p.endLine()
	p.out.line("[%s was %s]", cmp.Or(result.Name, p.names[result.ID], result.ID), words)
}

// compacted says what the model continues from, with numbers where there are some.
func compacted(c *v1alpha1.CompactionAccount) string {
	if c == nil || c.Messages == 0 {
		return "the model continues from a summary of what was said before"
	}
	of := "the model continues from a summary of " + plural(int(c.Messages), "message")
	if c.ContextTokens > 0 && c.ContextLimit > 0 {
		of += fmt.Sprintf(", which filled %d of %d tokens", c.ContextTokens, c.ContextLimit)
	}
	return of
}

// summarising tells once that a summary is being written: people want to know that, not to read it.
func (p *printer) summarising() {
	if !p.tools["summary"] {
		p.tools["summary"] = true
		p.note("the conversation is being summarised")
	}
}

func (p *printer) asked(text string) {
	p.endLine()
	p.quote("> ", text)
}

// rest shows what of a text was not shown while it was streamed.
func (p *printer) rest(text string) {
	rest, streamed := strings.CutPrefix(text, p.text.String())
	if !streamed {
		p.endLine()
		rest = text
	}
	p.write(rest)
}

// voided says that the parts on the screen are all that will come of them.
func (p *printer) voided() {
	if p.text.Len() > 0 || len(p.tools) > 0 {
		if p.status.Phase == v1alpha1.ChatInterrupting {
			p.note("interrupted; nothing of this was kept")
			p.status.Result = v1alpha1.TurnInterrupted
		} else {
			p.note("that attempt came to nothing; the reply begins again")
		}
	}
	p.forget()
}

// turned notices that the turn under way was interrupted before anything was said, which no message tells.
func (p *printer) turned(now *stream.Status, everything bool) {
	before := p.status
	p.status = *now
	if p.notesFrom < 0 {
		p.notesFrom = now.Length
	}
	p.standing(now)
	p.gaveUp(now.CallsGivenUp)
	if everything && now.Result == v1alpha1.TurnInterrupted && before.Turn == now.Turn && before.Result == "" {
		p.note("interrupted")
	}
}

// action tells what the turn waits for, and what to type.
func (p *printer) action(a *stream.RequiresAction) {
	if p.actionVersion == a.HistoryVersion { // a stream that was resumed tells it again
		return
	}
	p.actionVersion = a.HistoryVersion
	lines := p.hint.lines(a)
	if len(lines) == 0 {
		return
	}
	p.note("the chat waits for you until %s", clock(a.Deadline.Time))
	for _, line := range lines {
		p.errOut.line("%s", line)
	}
}

// call leaves the line open: if nothing comes in between, the result follows on it.
func (p *printer) call(id, name, input string) {
	if p.tools["call "+id] {
		return
	}
	p.tools["call "+id], p.names[id] = true, name
	p.endLine()
	if question := questionOf(name, input); question != "" {
		p.out.line("[the advisor is asked:]")
		p.quote("  ", question)
		return
	}
	if command := commandOf(name, input); command != "" {
		p.command(id, command)
		return
	}
	p.out.own(mark + "[")
	p.out.foreign(flat(name + " " + oneLine(subjectOf(name, input))))
	p.out.endForeign()
	p.out.own("]")
	p.midLine, p.openCall = true, id
}

func (p *printer) result(id, name, output string) {
	if p.tools["result "+id] {
		return
	}
	p.tools["result "+id] = true
	name = cmp.Or(name, p.names[id], id)
	if a, ok := adviceOf(name, output); ok {
		p.endLine()
		p.out.line("[%s]", a.heading())
		p.quote("  ", a.Advice)
		return
	}
	if r, ok := ranOf(name, output); ok {
		p.ended(id, &r)
		return
	}
	diffs, words := editedOf(name, output)
	if open := p.openCall; open != id || p.commands[id] != "" {
		p.endLine()
		p.out.own(mark + "[")
		p.out.foreign(flat(name))
		p.out.own("]")
	}
	p.out.own(" -> ")
	p.out.foreign(oneLine(cmp.Or(words, output)))
	p.midLine = true
	p.endLine()
	if diffs != "" {
		p.lines(diffs)
	}
}

// forget says that what is on the screen is of no attempt that could continue.
func (p *printer) forget() {
	p.version, p.attempt = 0, 0
	p.text.Reset()
	p.prose = markdown{}
	clear(p.tools)
}

// note tells something about the conversation that is no part of it.
func (p *printer) note(format string, args ...any) {
	p.endLine()
	p.errOut.line("["+format+"]", args...)
}

// quote shows what somebody said within lines of the plug-in's.
func (p *printer) quote(indent, text string) {
	for line := range strings.Lines(strings.TrimRight(text, "\r\n")) {
		p.out.own(mark + indent)
		p.out.foreign(strings.TrimRight(line, "\r\n"))
		p.out.endForeign()
		p.out.put("\n")
	}
}

func (p *printer) write(text string) {
	if text == "" {
		return
	}
	p.begun(text)
	p.out.prose(text, &p.prose)
}

// begun notes that a piece of text is about to be shown, which belongs to no call.
func (p *printer) begun(text string) {
	if p.openCall != "" {
		p.endLine()
	}
	p.midLine = !strings.HasSuffix(text, "\n")
}

func (p *printer) endLine() {
	p.openCall = ""
	p.out.endForeign()
	if p.midLine {
		p.out.put("\n")
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

// oneLine is a text to be recognised, and not read.
func oneLine(s string) string { return clip.Ellipsis(flat(s), maxToolRunes) }

// flat is a text in one line.
func flat(s string) string { return strings.Join(strings.Fields(s), " ") }
