// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	runtimedebug "runtime/debug"
	"slices"
	"sync"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/generation/captions"
	"parley.dev/parley/internal/generation/chain"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/generation/step"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/stream/publish"
	"parley.dev/parley/internal/text/clip"
)

// errMovedOn cancels an attempt that nobody waits for any more.
var errMovedOn = errors.New("the chat has moved on")

// attempt is one try of one step.
type attempt struct {
	runner    *Runner
	chat      *v1alpha1.Chat // Its own copy: see settle.
	fence     fence.Fence
	startedAt time.Time
	// unsettled is why it is not known what is in force of the chat; nil if it is.
	unsettled *v1alpha1.GenerationError
	// commandsRefused is why MCP servers of the chat may not run in the workspace; empty if they may.
	commandsRefused string
	// log names the attempt.
	log      *slog.Logger
	observed *observe.Attempt
	captions *captions.Attempt
	// cancel lets the attempt write no result; interrupt ends its step.
	cancel, interrupt context.CancelCauseFunc
}

// abandon ends the attempt without a result. The cause tells its step whether calls of tools go on. The result is out
// of the question before the step ends: nobody could tell whether it ended by itself.
func (a *attempt) abandon(cause error) {
	a.cancel(errMovedOn)
	a.interrupt(cause)
}

func (r *Runner) newAttempt(chat *v1alpha1.Chat, of fence.Fence, observed *observe.Attempt) *attempt {
	log := r.options.Log.With(slog.Group("attempt",
		slog.String("chat", chat.Name), slog.Int64("historyVersion", of.HistoryVersion), slog.Int("number", int(of.Attempt))))
	return &attempt{
		runner: r, chat: chat, fence: of, startedAt: r.options.Now(),
		log: log, observed: observed, captions: r.captions.Attempt(chat, of, log),
	}
}

// settle puts the settings into the attempt's chat that are in force.
func (a *attempt) settle(ctx context.Context) {
	preamble, err := a.runner.classes.apply(ctx, a.chat)
	if err != nil {
		a.unsettled = classError(a.chat)
		return
	}
	options := &a.runner.options
	a.commandsRefused = a.runner.classes.within(ctx, a.chat, options.WorkspaceOwner, options.Tools.InWorkspace())
	a.captions.SetPreamble(preamble)
	*a.chat = *a.runner.steps.Settle(a.chat)
}

// heed stops the attempt if it is the one that the chat wants interrupted.
func (a *attempt) heed(chat *v1alpha1.Chat, of fence.Fence) {
	if a != nil && a.fence == of && chat.Status.Phase == v1alpha1.ChatInterrupting {
		a.interrupt(step.ErrInterrupted)
	}
}

// run performs the attempt and creates its result. An attempt whose context is cancelled writes nothing. Its step works
// in working, which ends when the attempt is interrupted; what is done in lasting outlives it.
func (a *attempt) run(ctx, working, lasting context.Context) {
	a.log.DebugContext(ctx, "Attempt started", slog.String("action", string(a.chat.Status.Generation.Action)),
		slog.String("modelConfig", a.chat.Status.Generation.ModelConfig))
	a.settle(ctx)
	performer := a.runner.steps.Performer(step.Task{
		Chat: a.chat, Fence: a.fence, Observed: a.observed, Log: a.log, CommandsRefused: a.commandsRefused,
		BeforeReply: func(t *models.Target, messages []v1alpha1.ChatMessage) { a.captions.BeforeReply(lasting, t, messages) },
	})
	performer.Prepare(working)
	type loaded struct {
		messages []v1alpha1.ChatMessage
		err      error
	}
	loading := make(chan loaded, 1)
	go func() {
		messages, err := a.load(ctx)
		loading <- loaded{messages, err}
	}()
	episode, err := a.open(ctx)
	messages := <-loading
	switch {
	case errors.Is(err, publish.ErrExists):
		a.report(ctx, performer, a.afterCrash(ctx, working, performer, messages.messages))
		return
	case err != nil:
		// Without a relay nobody can watch; the answer is worth as much.
		a.log.DebugContext(ctx, "the relay takes no parts", slog.Any("error", err))
		episode = unheard{}
	}
	result := a.perform(working, performer, messages.messages, messages.err, episode)
	var closing sync.WaitGroup // The result does not wait for the relay.
	closing.Go(func() { a.closeEpisode(ctx, episode) })
	defer closing.Wait()
	if ctx.Err() != nil {
		a.captions.AbandonTitle()
		return
	}
	if reply := a.report(ctx, performer, result); reply != nil {
		a.summarize(lasting, performer.Target(), reply)
	}
}

// afterCrash is the outcome of an attempt that a former life of this process has begun: what the relay has heard of it,
// if it was interrupted or calls of tools had ended. Anything else is lost.
func (a *attempt) afterCrash(
	ctx, working context.Context, performer *step.Performer, messages []v1alpha1.ChatMessage,
) step.Outcome {
	action := a.chat.Status.Generation.Action
	switch {
	case a.unsettled != nil:
		return step.Failed(a.unsettled)
	case !step.Interrupted(working) && action != v1alpha1.ActionExecuteTools:
		return step.Outcome{Kind: v1alpha1.OutcomeLost}
	case action == v1alpha1.ActionCompact:
		return step.Outcome{Kind: v1alpha1.OutcomeInterrupted}
	}
	reading, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	frames, err := a.runner.options.Relay.SoFar(reading, a.fence)
	if err != nil {
		a.log.DebugContext(ctx, "the relay does not say what was said", slog.Any("error", err))
	}
	return performer.Resume(working, messages, frames)
}

// openTimeout bounds the wait for a relay that does not answer.
const openTimeout = 2 * time.Second

func (a *attempt) open(ctx context.Context) (Episode, error) {
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return a.runner.options.Relay.Open(opening, a.fence)
}

// perform does what the chat wants. A fault while handling one reply must not take the other chats of this pod along.
func (a *attempt) perform(
	ctx context.Context, performer *step.Performer, messages []v1alpha1.ChatMessage, err error, to step.Publisher,
) (o step.Outcome) {
	defer func() {
		if fault := recover(); fault != nil {
			// The fault itself can quote content.
			a.log.ErrorContext(ctx, "an attempt failed unexpectedly",
				slog.String("fault", fmt.Sprintf("%T", fault)), slog.String("stack", string(runtimedebug.Stack())))
			o = step.Failed(&v1alpha1.GenerationError{
				Reason: v1alpha1.ErrorInternal, Message: "The step failed unexpectedly",
				Advice: "See the log of pod " + a.runner.options.Pod + ", then send a message to try again",
			})
		}
	}()
	switch {
	case a.unsettled != nil:
		return step.Failed(a.unsettled)
	case err != nil:
		return step.Failed(historyError(a.chat, err))
	}
	if a.chat.Status.History.Length == 0 {
		return step.Failed(&v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorHistoryBroken, Message: fmt.Sprintf("Chat %s has no message to answer", a.chat.Name),
			Advice: "Send one",
		})
	}
	author := authorOf(a.chat, messages)
	a.captions.SetHistory(messages, author)
	a.observed.SetAuthor(author)
	return performer.Perform(ctx, messages, to)
}

// authorOf is who created the message whose turn the attempt is part of, as far as that is known.
func authorOf(chat *v1alpha1.Chat, messages []v1alpha1.ChatMessage) string {
	for i := range slices.Backward(messages) {
		if turn := chat.Status.Turn; turn != nil && messages[i].Name == turn.Message {
			return messages[i].Annotations[v1alpha1.AnnotationCreatedBy]
		}
	}
	return ""
}

// load reads the history. Trouble with the API server passes: it is asked again until it answers. So does an edit that
// the chat does not know of yet, and with it this attempt.
func (a *attempt) load(ctx context.Context) ([]v1alpha1.ChatMessage, error) {
	return retry.Do(ctx, retry.APIServer, func(ctx context.Context) ([]v1alpha1.ChatMessage, error) {
		return a.runner.histories.Load(ctx, a.chat)
	}, chain.Broken)
}

func historyError(chat *v1alpha1.Chat, err error) *v1alpha1.GenerationError {
	if missing, ok := errors.AsType[*history.MissingError](err); ok {
		return &v1alpha1.GenerationError{
			Reason:  v1alpha1.ErrorHistoryBroken,
			Message: fmt.Sprintf("Message %s of chat %s is missing: it was deleted", missing.Parent, chat.Name),
			Advice:  "Start a new chat",
		}
	}
	return &v1alpha1.GenerationError{
		Reason:  v1alpha1.ErrorHistoryBroken,
		Message: fmt.Sprintf("The history of chat %s cannot be used: %s", chat.Name, clip.Ellipsis(err.Error(), 300)),
		Advice:  "Start a new chat",
	}
}

// closeTimeout bounds the wait for a relay that has gone away.
const closeTimeout = 2 * time.Second

func (a *attempt) closeEpisode(ctx context.Context, episode Episode) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	if err := episode.Close(closing); err != nil {
		a.log.DebugContext(ctx, "the relay did not take the end of the episode", slog.Any("error", err))
	}
	if counting, ok := episode.(interface{ Dropped() int64 }); ok {
		a.observed.PartsDropped(counting.Dropped())
	}
}

// unheard is an episode that nobody hears.
type unheard struct{}

func (unheard) Publish(string, parts.Part)  {}
func (unheard) Close(context.Context) error { return nil }
