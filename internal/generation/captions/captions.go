// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package captions asks models for titles of chats and summaries of turns, in parallel to the replies.
//
// Invariants: no reply waits for a caption, or fails without one. Each title is requested and accounted for once. A
// summary is canceled when its chat continues. No call outlives Stop.
package captions

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"charm.land/fantasy"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/captions/wording"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/netguard/httpguard"
)

// timeout limits the call for a caption.
const timeout = 30 * time.Second

// Options of a Writer. All are required.
type Options struct {
	Pod      string
	Models   *models.Models
	Observer *observe.Observer
	// Create creates a message of the chat.
	Create func(ctx context.Context, chat *v1beta1.Chat, name string, spec v1beta1.ChatMessageSpec) error
	Now    func() time.Time
}

// Writer asks models for captions. It is safe for concurrent use.
type Writer struct {
	options Options
	store   store
}

// New returns a writer.
func New(o Options) *Writer { return &Writer{options: o} }

// AbandonSummary cancels the summary of the chat's last turn.
func (w *Writer) AbandonSummary(chat types.UID) { w.store.abandon(summaryOf(chat)) }

// Stop cancels all calls and waits for their end. No more may begin.
func (w *Writer) Stop() { w.store.stop() }

// summaryOf is the summary of the chat's newest turn.
func summaryOf(chat types.UID) caption {
	return caption{action: v1beta1.ActionSummarizeTurn, chat: chat}
}

// Attempt handles the captions of one attempt.
type Attempt struct {
	writer *Writer
	chat   *v1beta1.Chat
	fence  fence.Fence
	log    *slog.Logger
	// preamble of the namespace begins each system prompt.
	preamble string
	// author created the message of the turn.
	author string
	// title is the caption of the chat's title, and firstWords its replacement.
	title      caption
	firstWords string
	// question is the text of the turn's message; empty if the turn gets no summary.
	question string
}

// Attempt returns the captions of an attempt. The log names the attempt, and gets no content.
func (w *Writer) Attempt(chat *v1beta1.Chat, of fence.Fence, log *slog.Logger) *Attempt {
	return &Attempt{writer: w, chat: chat, fence: of, log: log}
}

// SetPreamble sets the preamble of the namespace.
func (a *Attempt) SetPreamble(preamble string) { a.preamble = preamble }

// BeforeReply asks for a title if the configuration of t, which is about to reply, enables titles. It does not wait:
// the call runs in ctx, which outlives the attempt.
func (a *Attempt) BeforeReply(ctx context.Context, t *models.Target, messages []v1beta1.ChatMessage) {
	a.askTitle(ctx, t, messages)
	if a.needsSummary(t) {
		a.question = questionOf(messages)
	}
}

// request is a call for a caption.
type request struct {
	form   wording.Form
	action v1beta1.GenerationAction
	// config is the ChatModelConfig to call; nil: that of the reply.
	config *v1beta1.ModelConfigReference
	// text is the part of the conversation that the model sees.
	text string
	// spent is the cost of the chat before the call.
	spent []v1beta1.Cost
}

// write asks a model for a caption; empty if it fails, which is no error. The account is nil if there is no usage.
func (a *Attempt) write(ctx context.Context, t *models.Target, r request) (text string, account *v1beta1.CallAccount) {
	log := a.log.With(slog.String("action", string(r.action)))
	var failure *v1beta1.GenerationError
	defer func() {
		if fault := recover(); fault != nil {
			// The panic itself can quote content.
			log.ErrorContext(ctx, "writing a caption failed unexpectedly", slog.String("fault", fmt.Sprintf("%T", fault)))
		}
	}()
	if t, failure = a.target(ctx, t, r); failure == nil {
		text, account, failure = a.ask(ctx, t, r)
	}
	if failure != nil {
		log.DebugContext(ctx, "no caption was written", slog.String("reason", string(failure.Reason)))
	}
	return text, account
}

// target is the model to call, within the budget.
func (a *Attempt) target(
	ctx context.Context, t *models.Target, r request,
) (*models.Target, *v1beta1.GenerationError) {
	if r.config != nil && r.config.Name != t.Config.Name {
		var missing *v1beta1.GenerationError
		if t, missing = a.writer.options.Models.Target(ctx, r.config.Name); missing != nil {
			return nil, missing
		}
	}
	return t, t.OverBudget(a.chat, r.spent)
}

// ask asks for the caption, and a second time without a tool if the model may have refused the tool.
func (a *Attempt) ask(
	ctx context.Context, t *models.Target, r request,
) (string, *v1beta1.CallAccount, *v1beta1.GenerationError) {
	if wait := t.MayCall(ctx); wait != nil {
		return "", nil, wait
	}
	ctx, notes := httpguard.WithNotes(ctx, a.writer.options.Now)
	caller, about := a.writer.options.Observer.SideCaller(a.chat, r.action, a.author), t.Subject()
	about.HTTP = notes
	call := func(plain bool) *observe.ModelCall {
		c := &observe.ModelCall{
			Target: t, Request: a.call(t, r, plain), Reply: collect.NewAccumulator(t.Config.Spec.Provider, 0, nil),
			Classify: func(err error) *v1beta1.GenerationError { return fault.Classify(err, about) },
		}
		caller.Call(ctx, c)
		return c
	}
	made := call(false)
	if refusesTools(made.Err) {
		made = call(true)
	}
	_, isRefusal := errors.AsType[*finish.Error](made.Err) // It is no error here, and is paid for.
	if made.Err != nil && !isRefusal {
		t.NoteFailure(made.Failure)
		return "", nil, made.Failure
	}
	var account *v1beta1.CallAccount
	if usage := made.Content.Usage; usage != (v1beta1.TokenUsage{}) {
		account = &v1beta1.CallAccount{Model: t.Identity(), Usage: usage, Cost: cost.Of(t.Config.Spec.Pricing, usage)}
	}
	if isRefusal {
		return "", account, nil
	}
	return r.form.Read(made.Content.Parts), account, nil
}

// call disables thinking, which a caption does not need. A plain call does so only where it is safe for every model.
func (a *Attempt) call(t *models.Target, r request, plain bool) fantasy.Call {
	spec, form := &t.Config.Spec, r.form
	effort := spec.ReasoningEffort.Effort("")
	if provider.IsClaude(spec.Provider) || effort != "" && !plain {
		effort = v1beta1.EffortNone
	}
	if provider.AlwaysThinks(spec) {
		form.Tokens += tokensToThink
	}
	return form.Ask(provider.Call(spec, effort), a.preamble, r.text, plain)
}

// tokensToThink are those of a caption of a model that always thinks: with its lowest effort, it thinks briefly.
const tokensToThink = 2048

// refusesTools reports whether the call may have failed because it requires a tool, for which servers have no one
// error.
func refusesTools(err error) bool {
	refusal, ok := errors.AsType[*fantasy.ProviderError](err)
	return ok && slices.Contains([]int{400, 422, 500, 501}, refusal.StatusCode)
}
