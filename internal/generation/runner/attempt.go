// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	runtimedebug "runtime/debug"
	"sync"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
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

// errMovedOn cancels an attempt whose fence is no longer current.
var errMovedOn = errors.New("the chat has moved on")

// attempt is one attempt at one step.
type attempt struct {
	runner    *Runner
	assigned  *v1beta1.Chat // the informer's, which nothing changes
	chat      *v1beta1.Chat // a copy, which settle changes
	fence     fence.Fence
	startedAt time.Time
	// settleErr is why the settings of the chat are unknown; nil if they are known.
	settleErr *v1beta1.GenerationError
	// commandsRefused is why MCP servers of the chat may not run in the workspace; empty if they may.
	commandsRefused string
	log             *slog.Logger
	observed        *observe.Attempt
	captions        *captions.Attempt
	// cancel prevents the result; interrupt ends the step.
	cancel, interrupt context.CancelCauseFunc
}

// abandon ends the attempt without a result. The cause decides whether running tools continue. The order matters: a
// step that ends by itself must not write its result.
func (a *attempt) abandon(cause error) {
	a.cancel(errMovedOn)
	a.interrupt(cause)
}

func (r *Runner) newAttempt(chat *v1beta1.Chat, of fence.Fence, observed *observe.Attempt) *attempt {
	log := r.options.Log.With(slog.Group("attempt",
		slog.String("chat", chat.Name), slog.Int64("historyVersion", of.HistoryVersion), slog.Int("number", int(of.Attempt))))
	return &attempt{
		runner: r, chat: chat, fence: of, startedAt: r.options.Now(),
		log: log, observed: observed, captions: r.captions.Attempt(chat, of, log),
	}
}

// settle changes the attempt's chat to the settings in force.
func (a *attempt) settle(ctx context.Context) {
	preamble, err := a.runner.classes.apply(ctx, a.chat)
	if err != nil {
		a.settleErr = classError(a.chat)
		return
	}
	options := &a.runner.options
	a.commandsRefused = a.runner.classes.restrict(ctx, a.chat, options.WorkspaceOwner, options.Tools.InWorkspace())
	a.captions.SetPreamble(preamble)
	*a.chat = *a.runner.steps.Settle(a.chat)
}

// interruptIfRequested interrupts the attempt if the chat requests it. a may be nil.
func (a *attempt) interruptIfRequested(chat *v1beta1.Chat, of fence.Fence) {
	if a != nil && a.fence == of && chat.Status.Phase == v1beta1.ChatInterrupting {
		a.interrupt(step.ErrInterrupted)
	}
}

// run performs the attempt and creates its result, unless ctx is done. Its step runs in working, which an interruption
// ends. Captions run in lasting, which outlives the attempt.
func (a *attempt) run(ctx, working, lasting context.Context) {
	a.log.DebugContext(ctx, "Attempt started", slog.String("action", string(a.chat.Status.Generation.Action)),
		slog.String("modelConfig", a.chat.Status.Generation.ModelConfig))
	a.settle(ctx)
	performer := a.runner.steps.Performer(step.Task{
		Chat: a.chat, Fence: a.fence, Observed: a.observed, Log: a.log, CommandsRefused: a.commandsRefused,
		BeforeReply: func(t *models.Target, messages []v1beta1.ChatMessage) { a.captions.BeforeReply(lasting, t, messages) },
	})
	if a.settleErr == nil { // Otherwise it is not known which servers the chat may use.
		performer.Prepare(working)
	}
	load := sync.OnceValues(func() ([]v1beta1.ChatMessage, error) { return a.load(ctx) })
	go func() { _, _ = load() }() // while the relay opens the episode
	opening, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	episode, err := a.runner.options.Relay.Open(opening, a.fence)
	messages, loadErr := load()
	switch {
	case errors.Is(err, publish.ErrExists):
		a.report(ctx, performer, a.afterCrash(ctx, working, performer, messages))
		return
	case err != nil: // The reply cannot be followed, but is as valid.
		a.log.DebugContext(ctx, "the relay takes no parts", slog.Any("error", err))
		episode = discardEpisode{}
	}
	result := a.perform(working, performer, messages, loadErr, episode)
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

// relayTimeout limits the requests to a relay that does not answer.
const relayTimeout = 2 * time.Second

// afterCrash is the outcome of an attempt that a former process of this pod has begun: its published parts, if it was
// interrupted or has results of tools. Otherwise it is lost.
func (a *attempt) afterCrash(
	ctx, working context.Context, performer *step.Performer, messages []v1beta1.ChatMessage,
) step.Outcome {
	action := a.chat.Status.Generation.Action
	switch {
	case a.settleErr != nil:
		return step.Failed(a.settleErr)
	case !step.Interrupted(working) && action != v1beta1.ActionExecuteTools:
		return step.Outcome{Kind: v1beta1.OutcomeLost}
	case action == v1beta1.ActionCompact:
		return step.Outcome{Kind: v1beta1.OutcomeInterrupted}
	}
	reading, cancel := context.WithTimeout(ctx, relayTimeout)
	defer cancel()
	frames, err := a.runner.options.Relay.SoFar(reading, a.fence)
	if err != nil {
		a.log.DebugContext(ctx, "reading the published parts failed", slog.Any("error", err))
	}
	return performer.Resume(working, messages, frames)
}

// perform performs the step. A panic must not end the other chats of this pod.
func (a *attempt) perform(
	ctx context.Context, performer *step.Performer, messages []v1beta1.ChatMessage, err error, to step.Publisher,
) (o step.Outcome) {
	defer func() {
		if fault := recover(); fault != nil {
			// The panic itself can quote content.
			a.log.ErrorContext(ctx, "an attempt failed unexpectedly",
				slog.String("fault", fmt.Sprintf("%T", fault)), slog.String("stack", string(runtimedebug.Stack())))
			o = step.Failed(&v1beta1.GenerationError{
				Reason: v1beta1.ErrorInternal, Message: "The step failed unexpectedly",
				Advice: "See the log of pod " + a.runner.options.Pod + ", then send a message to try again",
			})
		}
	}()
	switch {
	case a.settleErr != nil:
		return step.Failed(a.settleErr)
	case err != nil:
		return step.Failed(historyError(a.chat, err))
	case a.chat.Status.History.Length == 0:
		return step.Failed(&v1beta1.GenerationError{
			Reason: v1beta1.ErrorHistoryInconsistent, Message: fmt.Sprintf("Chat %s has no message to answer", a.chat.Name),
			Advice: "Send one",
		})
	}
	author := authorOf(a.chat, messages)
	a.captions.SetHistory(messages, author)
	a.observed.SetAuthor(author)
	return performer.Perform(ctx, messages, to)
}

// authorOf is who created the message of the turn; empty if unknown.
func authorOf(chat *v1beta1.Chat, messages []v1beta1.ChatMessage) string {
	for _, m := range messages {
		if turn := chat.Status.Turn; turn != nil && m.Name == turn.Message {
			return m.Annotations[v1beta1.AnnotationCreatedBy]
		}
	}
	return ""
}

// load reads the history. It retries errors of the API server, and edits that the chat has not seen yet, which will end
// this attempt.
func (a *attempt) load(ctx context.Context) ([]v1beta1.ChatMessage, error) {
	return retry.Do(ctx, retry.APIServer, func(ctx context.Context) ([]v1beta1.ChatMessage, error) {
		return a.runner.histories.Load(ctx, a.chat)
	}, chain.Broken)
}

func historyError(chat *v1beta1.Chat, err error) *v1beta1.GenerationError {
	message := fmt.Sprintf("The history of chat %s cannot be used: %s", chat.Name, clip.Ellipsis(err.Error(), 300))
	if missing, ok := errors.AsType[*history.MissingError](err); ok {
		message = fmt.Sprintf("Message %s of chat %s is missing: it was deleted", missing.Parent, chat.Name)
	}
	return &v1beta1.GenerationError{Reason: v1beta1.ErrorHistoryInconsistent, Message: message,
		Advice: "Start a new chat"}
}

func (a *attempt) closeEpisode(ctx context.Context, episode Episode) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), relayTimeout)
	defer cancel()
	if err := episode.Close(closing); err != nil {
		a.log.DebugContext(ctx, "closing the episode failed", slog.Any("error", err))
	}
	if counting, ok := episode.(interface{ Dropped() int64 }); ok {
		a.observed.PartsDropped(counting.Dropped())
	}
}

// discardEpisode drops every part.
type discardEpisode struct{}

func (discardEpisode) Publish(string, parts.Part)  {}
func (discardEpisode) Close(context.Context) error { return nil }
