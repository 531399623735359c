// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package converse

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"regexp"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"
	xansi "github.com/charmbracelet/x/ansi"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// recorder is a Chat that records what it is asked for, and fails with err. It refuses messages with refusal.
type recorder struct {
	asked, held  []string
	text         string
	err, refusal error
	open         []v1beta1.ChatMessage
}

func (r *recorder) Follow(context.Context, func(error)) iter.Seq2[stream.Event, error] {
	return func(func(stream.Event, error) bool) {}
}

func (r *recorder) NewName() string { return fmt.Sprintf("m%d", len(r.asked)) }

func (r *recorder) record(format string, args ...any) error {
	r.asked = append(r.asked, fmt.Sprintf(format, args...))
	return r.err
}

func (r *recorder) Send(_ context.Context, _, text string) error { return r.record("send %s", text) }

func (r *recorder) Await(context.Context, string) error { return r.refusal }

func (r *recorder) Open(context.Context) ([]v1beta1.ChatMessage, error) { return r.open, nil }

func (r *recorder) Interrupt(context.Context) error { return r.record("interrupt") }

func (r *recorder) Decide(_ context.Context, call v1beta1.PendingToolCall, d v1beta1.ApprovalDecision, input string,
) error {
	return r.record("%s %s %s", d, call.Digest, input)
}

func (r *recorder) Command(_ context.Context, name, argument string) ([]string, error) {
	return []string{name + " is done", "a remark\nof it"}, r.record("%s %s", name, argument)
}

func (r *recorder) Read(_ context.Context, name string) (*v1beta1.ChatMessage, error) {
	m := chattest.User("triage", name, chattest.Content(r.text))
	m.Generation = int64(len(r.asked)) + 1
	return m, nil
}

func (r *recorder) Hold(_ context.Context, m *v1beta1.ChatMessage) func() {
	r.held = append(r.held, "hold "+m.Name)
	return func() { r.held = append(r.held, "release "+m.Name) }
}

func (r *recorder) Edit(_ context.Context, read *v1beta1.ChatMessage, text string) error {
	return r.record("edit %s %d %s", read.Name, read.Generation, text)
}

func (r *recorder) Chats(context.Context) ([]Listed, error) {
	return []Listed{{"other", "other  about the DNS"}, {"triage", "triage  about the CNI"}}, r.err
}

// screen is a model with a person before it.
type screen struct {
	*model

	t    *testing.T
	does *recorder
}

func newScreen(t *testing.T) *screen {
	does := &recorder{}
	s := &screen{model: newModel(t.Context(), does, "triage"), t: t, does: does}
	s.arrivals = make(chan arrival, 1)
	now := time.Now()
	s.pane.now = func() time.Time { now = now.Add(time.Second); return now }
	s.Update(tea.WindowSizeMsg{Width: 80, Height: 24})
	return s
}

// takes passes events to the model.
func (s *screen) takes(events ...stream.Event) {
	batch := make([]arrival, len(events))
	for i, e := range events {
		batch[i].event = e
	}
	s.Update(batch)
}

// press presses keys, and does at once what the model asks for. It reports whether the model ends.
func (s *screen) press(keys ...tea.KeyPressMsg) (ended bool) {
	for _, k := range keys {
		_, cmd := s.Update(k)
		ended = s.run(cmd) || ended
	}
	return ended
}

// run does what the model asks for. It reports whether the model ends.
func (s *screen) run(cmd tea.Cmd) (ended bool) {
	if cmd == nil {
		return false
	}
	switch msg := cmd().(type) {
	case tea.QuitMsg:
		return true
	case tea.BatchMsg:
		for _, cmd := range msg {
			ended = s.run(cmd) || ended
		}
	case outcome, []v1beta1.ChatMessage, *v1beta1.ChatMessage, []Listed:
		_, cmd = s.Update(msg)
		return s.run(cmd)
	}
	return ended
}

func (s *screen) types(text string) {
	for _, r := range text {
		s.press(tea.KeyPressMsg{Code: r, Text: string(r)})
	}
}

var (
	enter    = tea.KeyPressMsg{Code: tea.KeyEnter}
	esc      = tea.KeyPressMsg{Code: tea.KeyEscape}
	tab      = tea.KeyPressMsg{Code: tea.KeyTab}
	up       = tea.KeyPressMsg{Code: tea.KeyUp}
	down     = tea.KeyPressMsg{Code: tea.KeyDown}
	ctrlL    = tea.KeyPressMsg{Code: 'l', Mod: tea.ModCtrl}
	pageUp   = tea.KeyPressMsg{Code: tea.KeyPgUp}
	pageDown = tea.KeyPressMsg{Code: tea.KeyPgDown}
	ctrlC    = tea.KeyPressMsg{Code: 'c', Mod: tea.ModCtrl}
	ctrlD    = tea.KeyPressMsg{Code: 'd', Mod: tea.ModCtrl}
	keyA     = tea.KeyPressMsg{Code: 'a', Text: "a"}
	keyE     = tea.KeyPressMsg{Code: 'e', Text: "e"}
	keyD     = tea.KeyPressMsg{Code: 'd', Text: "d"}
	keyR     = tea.KeyPressMsg{Code: 'r', Text: "r"}
	keyN     = tea.KeyPressMsg{Code: 'n', Text: "n"}
	keyY     = tea.KeyPressMsg{Code: 'y', Text: "y"}
)

// shown is the screen without styles, and without spaces at the ends of lines.
func (s *screen) shown() string { return blanks.ReplaceAllString(xansi.Strip(s.View().Content), "") }

var blanks = regexp.MustCompile(`(?m) +$`)

func (s *screen) shows(words ...string) {
	s.t.Helper()
	check.Contains(s.t, s.shown(), words...)
}

func event(name string, data any) stream.Event {
	raw, err := json.Marshal(data)
	if err != nil {
		panic(err)
	}
	return stream.Event{Name: name, Data: raw}
}

func question(index int64, text string) stream.Event {
	return event(stream.EventMessage, stream.MessageCommitted{HistoryVersion: index + 1, Index: index,
		Message: stream.Message{Name: fmt.Sprint("q", index), Role: v1beta1.RoleUser, Content: text}})
}

func reply(index int64, text ...v1beta1.MessagePart) stream.Event {
	return event(stream.EventMessage, stream.MessageCommitted{HistoryVersion: index + 1, Index: index,
		Message: stream.Message{Name: fmt.Sprint("r", index), Role: v1beta1.RoleAssistant, Attempt: 1, Parts: text}})
}

func words(text string) v1beta1.MessagePart {
	return v1beta1.MessagePart{Type: v1beta1.PartText, Text: &text}
}

func part(p parts.Part) stream.Event {
	return event(stream.EventMessagePart, stream.MessagePart{HistoryVersion: 1, Attempt: 1, Role: "Assistant", Part: p})
}

func waits(calls ...v1beta1.PendingToolCall) stream.Event {
	for i := range calls {
		calls[i].Digest = calls[i].CallDigest()
	}
	return event(stream.EventRequiresAction, stream.RequiresAction{ToolCalls: calls})
}
