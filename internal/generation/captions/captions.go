// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package captions has models write what chats and turns are called: titles and summaries of turns, beside the replies
// that they are of.
//
// Invariants: no reply waits for a caption, and none fails for want of one. One title is asked for once, and what
// asking for it used up is accounted for once. A summary is given up when its chat goes on. No call outlives Stop.
package captions

import (
	"context"
	"log/slog"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
)

// timeout bounds what is asked for beside a reply. Nothing waits for it.
const timeout = 30 * time.Second

// Options of a Writer. All are required.
type Options struct {
	// Pod that this is.
	Pod string
	// Models that may write captions.
	Models *models.Models
	// Observer of their calls.
	Observer *observe.Observer
	// Create creates a message of the chat.
	Create func(ctx context.Context, chat *v1alpha1.Chat, name string, spec v1alpha1.ChatMessageSpec) error
	// Now returns the current time.
	Now func() time.Time
}

// Writer has captions written. It is safe for concurrent use.
type Writer struct {
	options Options
	store   store
}

// New returns a writer.
func New(o Options) *Writer { return &Writer{options: o} }

// AbandonSummary gives up what is asked about the turn that the chat had ended.
func (w *Writer) AbandonSummary(chat types.UID) { w.store.abandon(summaryOf(chat)) }

// Stop ends all calls and waits for their end. No more may be begun.
func (w *Writer) Stop() { w.store.stop() }

// summaryOf is the summary of the chat's newest turn.
func summaryOf(chat types.UID) caption {
	return caption{action: v1alpha1.ActionSummarizeTurn, chat: chat}
}

// Attempt is what one attempt has to do with captions.
type Attempt struct {
	writer *Writer
	chat   *v1alpha1.Chat
	fence  fence.Fence
	log    *slog.Logger
	// preamble of the namespace stands before all that a model is told.
	preamble string
	// author created the message of the turn.
	author string
	// title is the caption of the chat's title, and firstWords the first words of its message, which stand in for a title.
	title      caption
	firstWords string
	// question is what the turn's message says, for the summary of the turn; empty if there will be none.
	question string
}

// Attempt returns what the attempt at the chat has to do with captions. The log names the attempt, and gets no content.
func (w *Writer) Attempt(chat *v1alpha1.Chat, of fence.Fence, log *slog.Logger) *Attempt {
	return &Attempt{writer: w, chat: chat, fence: of, log: log}
}

// SetPreamble notes what stands before all that models of the namespace are told.
func (a *Attempt) SetPreamble(preamble string) { a.preamble = preamble }

// BeforeReply asks for a title beside the reply to the messages that t is about to give, if its configuration wants
// one. It neither waits nor fails. What it asks is asked in ctx, which the attempt does not end.
func (a *Attempt) BeforeReply(ctx context.Context, t *models.Target, messages []v1alpha1.ChatMessage) {
	a.askTitle(ctx, t, messages)
	if a.wantsSummary(t) {
		a.question = questionOf(messages)
	}
}
