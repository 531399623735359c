// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"cmp"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli/prior"
)

// Export is a chat with all its messages and notes.
type Export struct {
	header  prior.Header
	entries []prior.Entry
}

// NewExport creates the export of a chat without messages. others are the chats of its namespace.
func NewExport(chat *v1beta1.Chat, others []v1beta1.Chat) *Export {
	st := &chat.Status
	h := prior.Header{Type: prior.TypeChat, Namespace: chat.Namespace, Name: chat.Name, UID: string(chat.UID),
		Labels: chat.Labels, CreatedAt: chat.CreationTimestamp, Title: st.Title, Model: st.Model, Messages: st.History.Length,
		ContextStart: st.History.ContextStart, Usage: st.Usage, Cost: st.Cost}
	if chat.Spec.ParentRef != nil {
		h.Parent = chat.Spec.ParentRef.Name
	}
	for i := range others {
		if ref := others[i].Spec.ParentRef; ref != nil && ref.Name == chat.Name {
			h.SubChats = append(h.SubChats, others[i].Name)
		}
	}
	slices.Sort(h.SubChats)
	return &Export{header: h}
}

// Add adds an event of the chat.
func (e *Export) Add(event stream.Event) error {
	u, err := client.Decode(event)
	switch u := u.(type) {
	case *stream.MessageCommitted:
		e.entries = append(e.entries, prior.Entry{Type: prior.TypeMessage, Index: u.Index, Message: u.Message})
	case *stream.Note:
		e.entries = append(e.entries, prior.Entry{Type: prior.TypeNote, Index: u.Index, Message: u.Message})
	case *stream.Error:
		e.header.Error = u
	}
	return err
}

// PrintLines prints one JSON object a line: the chat, then its messages and notes.
func (e *Export) PrintLines(to io.Writer) error {
	if err := PrintJSON(to, e.header); err != nil {
		return err
	}
	for i := range e.entries {
		if err := PrintJSON(to, e.entries[i]); err != nil {
			return err
		}
	}
	return nil
}

// page is a document in Markdown whose structure is the plug-in's alone: text of others is in fences that it cannot
// end, or escaped within a line.
type page struct{ strings.Builder }

// Markdown is the export for people.
func (e *Export) Markdown() string {
	p := &page{}
	p.line("# %s", inline(cmp.Or(e.header.Title, e.header.Name)))
	p.header(&e.header)
	for i := range e.entries {
		p.entry(&e.entries[i])
	}
	if failed := e.header.Error; failed != nil {
		p.line("**The last turn failed: %s.**", inline(string(failed.Reason)))
		p.fenced("", failed.Text())
	}
	return strings.TrimRight(p.String(), "\n") + "\n"
}

func (p *page) line(format string, args ...any) { fmt.Fprintf(p, format+"\n\n", args...) }

func (p *page) header(h *prior.Header) {
	p.line("Chat %s in namespace %s, created %s.", inline(h.Name), inline(h.Namespace), moment3339(h.CreatedAt.Time))
	if h.Parent != "" {
		p.line("It is a sub-chat of %s.", inline(h.Parent))
	}
	if len(h.SubChats) > 0 {
		p.line("Its sub-chats are %s.", inline(strings.Join(h.SubChats, ", ")))
	}
	totals := Plural(int(h.Messages), "message")
	if h.Usage.TotalTokens > 0 {
		totals += ", " + Plural(int(h.Usage.TotalTokens), "token")
	}
	if len(h.Cost) > 0 {
		totals += ", " + costsOf(h.Cost)
	}
	p.line("%s.", inline(totals))
}

func (p *page) entry(e *prior.Entry) {
	p.heading(e)
	if e.CallsCanceledReasonBefore != "" {
		p.line("The tool calls before were given up: %s.", inline(string(e.CallsCanceledReasonBefore)))
	}
	if e.Visibility == v1beta1.VisibleToModel && e.Role == v1beta1.RoleUser {
		p.line("A message for the model alone.")
		return
	}
	p.text(e.Content)
	for i := range e.History {
		p.prior(&e.History[i])
	}
	for i := range e.Parts {
		p.part(&e.Parts[i])
	}
	p.account(e)
}

func (p *page) heading(e *prior.Entry) {
	by := ""
	if e.CreatedBy != "" {
		by = ", " + inline(e.CreatedBy)
	}
	if e.EditedBy != "" && e.EditedBy != e.CreatedBy {
		by += ", changed by " + inline(e.EditedBy)
	}
	if e.Model != nil {
		by += ", " + inline(e.Model.Name)
	}
	what := fmt.Sprintf("%d. %s", e.Index+1, e.Role)
	if e.Type == "note" {
		what = "Note"
	}
	p.line("## %s%s, %s", what, by, moment3339(e.CreatedAt.Time))
}

func (p *page) account(e *prior.Entry) {
	if e.Outcome == v1beta1.OutcomeInterrupted {
		p.line("It was interrupted.")
	}
	if note := e.ReplyOutcome.Note(); note != "" {
		p.line("%s.", inline(withFinishReason(note, e.FinishReason)))
	}
	if e.Truncated {
		p.line("It was cut at what a message holds.")
	}
	for _, warning := range e.Warnings {
		p.line("Warning: %s", inline(warning))
	}
	var totals []string
	if e.Usage != nil {
		totals = append(totals, Plural(int(e.Usage.TotalTokens), "token"))
	}
	if e.Cost != nil {
		totals = append(totals, costsOf([]v1beta1.Cost{*e.Cost}))
	}
	if len(totals) > 0 {
		p.line("%s.", inline(strings.Join(totals, ", ")))
	}
}

func (p *page) part(part *v1beta1.MessagePart) {
	switch {
	case part.Text != nil && part.Type == v1beta1.PartReasoning:
		p.line("Reasoning:")
		p.text(*part.Text)
	case part.Text != nil:
		p.text(*part.Text)
	case part.ToolCall != nil:
		p.call(part.ToolCall.ID, part.ToolCall.Name, part.ToolCall.Input)
	case part.ToolResult != nil:
		p.result(part.ToolResult)
	case part.Source != nil:
		p.line("Source: %s %s", inline(part.Source.Title), inline(part.Source.URL))
	case part.File != nil:
		p.line("File: %s (%s) %s", inline(part.File.Name), inline(part.File.MediaType), inline(part.File.URL))
	}
}

func (p *page) prior(m *v1beta1.PriorMessage) {
	p.line("Earlier, elsewhere, %s:", m.Role)
	p.text(m.Content)
	for i := range m.Files {
		p.line("File: %s (%s)", inline(m.Files[i].Name), inline(m.Files[i].MediaType))
	}
	for i := range m.ToolCalls {
		p.call(m.ToolCalls[i].ID, m.ToolCalls[i].Name, m.ToolCalls[i].Input)
	}
	for i := range m.ToolResults {
		p.result(&m.ToolResults[i])
	}
}

func (p *page) call(id, name, input string) {
	p.line("Call %s of %s:", inline(id), inline(name))
	p.fenced("json", input)
}

func (p *page) result(r *v1beta1.ToolResult) {
	failed := ""
	if r.IsError {
		failed = ", which failed"
	}
	p.line("Result of call %s%s:", inline(r.ID), failed)
	p.fenced("", r.Output)
}

func (p *page) text(text string) {
	if strings.TrimSpace(text) != "" {
		p.fenced("markdown", text)
	}
}

// fenced adds text of others in a fence that it cannot end.
func (p *page) fenced(language, text string) {
	fence := "```"
	for strings.Contains(text, fence) {
		fence += "`"
	}
	fmt.Fprintf(p, "%s%s\n%s\n%s\n\n", fence, language, strings.TrimRight(text, "\r\n"), fence)
}

func inline(text string) string {
	var b strings.Builder
	for _, r := range flat(text) {
		if r < 128 && strings.ContainsRune("\\`*_{}[]<>()#+!|~&$:@", r) {
			b.WriteByte('\\')
		}
		b.WriteRune(r)
	}
	return b.String()
}

func moment3339(t time.Time) string { return t.UTC().Format(time.RFC3339) }
