// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package converse is the conversation with a chat in a terminal, as an application on the whole screen. It shows what
// client.Transcript knows of the chat, and asks a Chat to do what a person wants. It knows no cluster.
//
//   - transcript.go: makes items of the state of the chat.
//   - item.go, markdown.go, wrap.go: render an item in lines of a width.
//   - pane.go: shows the items that fit on the screen, and selects one.
//   - model.go, keys.go, confirmation.go, input.go, commands.go, requests.go: the model of bubbletea.
package converse

import (
	"context"
	"errors"
	"iter"
	"maps"
	"os"

	tea "charm.land/bubbletea/v2"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
)

// Chat does what a person asks for. Its methods are called by goroutines of their own.
type Chat interface {
	// Follow yields the events of the chat from the first message on. It calls lost while the chat is out of reach.
	Follow(ctx context.Context, lost func(error)) iter.Seq2[stream.Event, error]
	// NewName returns a name for the next message.
	NewName() string
	// Send creates a message of that name, and Await fails if it is refused later.
	Send(ctx context.Context, name, text string) error
	Await(ctx context.Context, name string) error
	// Open lists the messages of people that the chat has not taken, oldest first.
	Open(ctx context.Context) ([]v1beta1.ChatMessage, error)
	// Interrupt stops the turn under way.
	Interrupt(ctx context.Context) error
	// Decide decides about a call that the person has read: Approve, with the input that the call asks for, or Deny.
	Decide(ctx context.Context, call v1beta1.PendingToolCall, decision v1beta1.ApprovalDecision, input string) error
	// Command does what a command of commands says, and returns what it has done in lines of words.
	Command(ctx context.Context, name, argument string) (lines []string, err error)
	// Read reads a queued message, and Edit replaces its text unless someone has changed it since it was read. A blank
	// text withdraws the message.
	Read(ctx context.Context, message string) (*v1beta1.ChatMessage, error)
	Edit(ctx context.Context, read *v1beta1.ChatMessage, text string) error
	// Hold keeps the chat from starting a queued message until release is called.
	Hold(ctx context.Context, message *v1beta1.ChatMessage) (release func())
	// Chats lists the chats that the person can switch to.
	Chats(ctx context.Context) ([]Listed, error)
}

// arrival is an event, why there are no more, or why the chat is out of reach.
type arrival struct {
	event     stream.Event
	err, lost error
}

// Outcome is how a conversation has ended.
type Outcome struct {
	// Next is the chat that the person wants to see next; empty if they leave.
	Next string
	// Drafts holds the texts that were not sent, by what they are for.
	Drafts map[string]string
	// Busy is true while a turn is under way.
	Busy bool
}

// Run shows the chat of that name in a terminal until the person leaves, or the events end with an error. Drafts are
// those of the last time, if there was one.
func Run(ctx context.Context, in, out *os.File, chat Chat, name string, drafts map[string]string) (Outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	arrivals := make(chan arrival, 256)
	pass := func(a arrival) bool {
		select {
		case arrivals <- a:
			return true
		case <-ctx.Done():
			return false
		}
	}
	go func() {
		for e, err := range chat.Follow(ctx, func(err error) { pass(arrival{lost: err}) }) {
			if !pass(arrival{event: e, err: err}) {
				return
			}
		}
	}()
	m := newModel(ctx, chat, name)
	m.arrivals = arrivals
	maps.Copy(m.composer.drafts, drafts)
	m.composer.showDraft()
	_, err := tea.NewProgram(m, tea.WithContext(ctx), tea.WithInput(in), tea.WithOutput(out),
		tea.WithoutSignalHandler()).Run()
	if errors.Is(err, tea.ErrProgramKilled) && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	m.composer.keepDraft()
	return Outcome{Next: m.next, Drafts: m.composer.drafts, Busy: m.turn.busy()}, errors.Join(err, m.ended)
}
