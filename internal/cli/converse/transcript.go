// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
)

// transcript makes items of the state of a chat. Those of committed messages are kept, the others are made again.
type transcript struct {
	chat client.Transcript
	// committed holds the items of the first taken messages, of which starts has the first of each message; calls holds
	// those of tool calls by their ids.
	committed []*item
	starts    []int
	taken     int
	calls     map[string]*toolCall
	costs     []v1beta1.Cost
	// running holds the calls that show what comes of them now.
	running []*toolCall
}

// toolCall is a call with its item.
type toolCall struct {
	item                *item
	name, input, output string
	live, decision      string
}

// update shows what has come of the call.
func (c *toolCall) update() {
	c.item.rendered = nil
	c.item.fold.result = ""
	if output := cmp.Or(c.output, c.live); output != "" {
		c.item.fold.result = render.ResultLine(c.name, output)
	}
	if c.decision != "" {
		c.item.fold.result += " (" + c.decision + ")"
	}
}

func (c *toolCall) detail() []string {
	lines := render.CallDetail(c.input)
	if output := cmp.Or(c.output, c.live); output != "" {
		lines = append(append(lines, "->"), render.CallDetail(output)...)
	}
	return lines
}

// take takes an update.
func (t *transcript) take(u client.Update) {
	if _, ok := u.(*client.Reset); ok {
		t.committed, t.starts, t.taken, t.calls, t.costs = nil, nil, 0, nil, nil
	}
	t.chat.Take(u)
}

// items returns all items in their order.
func (t *transcript) items() []*item {
	if t.calls == nil {
		t.calls = map[string]*toolCall{}
	}
	for ; t.taken < len(t.chat.Messages); t.taken++ {
		t.commit(&t.chat.Messages[t.taken])
	}
	for _, call := range t.running {
		call.live = ""
		call.update()
	}
	t.running = nil
	return slices.Concat(t.withNotes(), t.live(), t.waiting(), t.pending(), t.queue())
}

// withNotes returns the items of the messages, with each note before the message of its index.
func (t *transcript) withNotes() (items []*item) {
	notes := slices.SortedFunc(maps.Values(t.chat.Notes), func(a, b *stream.Note) int {
		return cmp.Or(cmp.Compare(a.Index, b.Index), cmp.Compare(a.Message.UID, b.Message.UID))
	})
	done := 0
	for _, n := range notes {
		at := len(t.committed)
		if i, _ := slices.BinarySearchFunc(t.chat.Messages, n.Index, func(m stream.MessageCommitted, index int64) int {
			return cmp.Compare(m.Index, index)
		}); i < len(t.starts) {
			at = t.starts[i]
		}
		items = append(append(items, t.committed[done:at]...), &item{note: n})
		done = at
	}
	return append(items, t.committed[done:]...)
}

// commit adds the items of a message.
func (t *transcript) commit(m *stream.MessageCommitted) {
	t.starts = append(t.starts, len(t.committed))
	if m.Message.Cost != nil {
		t.costs = cost.Add(t.costs, *m.Message.Cost)
	}
	rest := *m
	if m.Message.Role != v1beta1.RoleUser {
		for i := range m.Message.Parts {
			t.commitPart(m, i)
		}
		rest.Message.Parts = nil
	}
	lines := render.Lines(&rest)
	if m.Message.Role == v1beta1.RoleUser && len(lines) > 0 {
		lines = append([]string{""}, append(lines, "")...)
	}
	t.add(&item{own: lines})
}

func (t *transcript) add(it *item) {
	if it.prose != "" || it.fold != nil || len(it.own) > 0 {
		t.committed = append(t.committed, it)
	}
}

func (t *transcript) commitPart(m *stream.MessageCommitted, i int) {
	switch part := &m.Message.Parts[i]; {
	case part.ToolCall != nil:
		t.add(t.call(part.ToolCall.ID, part.ToolCall.Name, part.ToolCall.Input))
	case part.ToolResult != nil:
		result := part.ToolResult
		call := t.calls[result.ID]
		if call == nil {
			t.add(t.call(result.ID, result.Name, ""))
			call = t.calls[result.ID]
		}
		call.output = cmp.Or(result.Output, " ")
		for j := range m.Message.Decisions {
			if d := &m.Message.Decisions[j]; d.ID == result.ID {
				call.decision = render.DecisionLine(d)
			}
		}
		call.update()
	case part.Text == nil:
	case part.Type == v1beta1.PartReasoning:
		t.add(reasoning(m.HistoryVersion-1, i, *part.Text, part.Title))
	case part.Type == v1beta1.PartText:
		t.add(&item{prose: *part.Text})
	}
}

// call makes the item of a call.
func (t *transcript) call(id, name, input string) *item {
	c := &toolCall{name: name, input: input}
	c.item = &item{key: callKey(id), fold: &fold{head: render.CallLine(name, input), detail: c.detail}}
	t.calls[id] = c
	return c.item
}

// callKey identifies the item of a call in a reply.
func callKey(id string) string { return "call " + id }

// reasoning makes the item of a part that follows a version of the history.
func reasoning(version int64, part int, text, title string) *item {
	head := "reasoning"
	if title != "" {
		head += ": " + title
	}
	return &item{key: fmt.Sprintf("reasoning %d %d", version, part),
		fold: &fold{head: head, detail: func() []string { return strings.Split(text, "\n") }}}
}

// live returns the items of the attempt under way. Calls of earlier messages show what comes of them.
func (t *transcript) live() (items []*item) {
	live := t.chat.Live
	if live == nil {
		return nil
	}
	if live.Role == string(v1beta1.RoleSystem) {
		return []*item{note("the conversation is being summarised")}
	}
	for i := range live.Parts {
		switch part := &live.Parts[i]; part.Type {
		case parts.Text:
			items = append(items, &item{prose: part.Text})
		case parts.Reasoning:
			items = append(items, reasoning(live.HistoryVersion, i, part.Text, ""))
		case parts.ToolCall:
			items = append(items, t.call(part.ID, part.Name, part.Text))
		case parts.ToolOutput, parts.ToolResult:
			if call := t.calls[part.ID]; call != nil {
				call.live = part.Text
				call.update()
				t.running = append(t.running, call)
			}
		}
	}
	return items
}

// note makes an item of words of the plug-in.
func note(format string, args ...any) *item {
	return &item{own: []string{terminal.Mark + "[" + terminal.EscapeLine(fmt.Sprintf(format, args...)) + "]"}}
}

// waiting returns warnings, and why an attempt or a turn failed.
func (t *transcript) waiting() (items []*item) {
	if t.chat.Status != nil {
		for _, w := range t.chat.Status.Warnings {
			items = append(items, note("%s: %s: %s", w.Type, w.Reason, w.Message))
		}
	}
	if t.chat.Retry != nil {
		items = append(items, &item{own: render.Lines(t.chat.Retry)})
	}
	if t.chat.Error != nil {
		items = append(items, &item{own: render.Lines(t.chat.Error)})
	}
	return items
}

// pending returns the calls that wait for people or a client, below their deadline.
func (t *transcript) pending() (items []*item) {
	if t.chat.Action == nil {
		return nil
	}
	for i := range t.chat.Action.ToolCalls {
		if call := &t.chat.Action.ToolCalls[i]; render.NeedOf(call) != render.NeedsNothing {
			key := fmt.Sprint("pending ", call.ID, call.ApprovalCause, call.CallDigest())
			items = append(items, &item{key: key, pending: call})
		}
	}
	if len(items) > 0 {
		items = slices.Insert(items, 0, note("%s", render.DeadlineWords(t.chat.Action)))
	}
	return items
}

// queue returns the messages that wait for the chat.
func (t *transcript) queue() (items []*item) {
	for _, q := range t.chat.Queue {
		line := terminal.Mark + "> " + terminal.EscapeLine(cmp.Or(q.Preview, q.Name)) + " [queued]"
		items = append(items, &item{key: "queued " + q.Name, queued: q.Name, own: []string{line}})
	}
	return items
}
