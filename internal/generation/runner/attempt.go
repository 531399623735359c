// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	runtimedebug "runtime/debug"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/clip"
	"parley.dev/parley/internal/fence"
	"parley.dev/parley/internal/generation/chain"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/debug"
	"parley.dev/parley/internal/parts"
	"parley.dev/parley/internal/relay/relayclient"
)

var (
	// errMovedOn cancels an attempt that nobody waits for any more.
	errMovedOn = errors.New("the chat has moved on")
	// errInterrupted stops an attempt that is to hand over what it has.
	errInterrupted = errors.New("the chat was interrupted")
	// errSilent cancels a call that has been silent for too long.
	errSilent = errors.New("the provider sent nothing for too long")
)

// attempt is one try of one step.
type attempt struct {
	*Runner
	chat  *v1alpha1.Chat
	fence fence.Fence
	// cancel ends the attempt without a result.
	cancel context.CancelCauseFunc
	// working is what calls of the model and of tools run in; interrupt ends it, and the attempt hands over what it has.
	working   context.Context
	interrupt context.CancelCauseFunc
	startedAt time.Time
	// recording of the attempt's model calls.
	recording *debug.Recording
	// target is the model that was called, if any.
	target *target
	// lasting ends with the process: what is done in it outlives the attempt.
	lasting context.Context
	// titleOf is what the chat's title is of, firstWords are how that begins if the chat has no title.
	titleOf    beginning
	firstWords string
	// question is what the turn's message says, for the summary of the turn; empty if there will be none.
	question string
	// context is how full the model's context was, compaction what a summary stands for; nil for other steps.
	context    *v1alpha1.ContextStatus
	compaction *v1alpha1.CompactionAccount
	observed   observedStep
	// advice is what asking the advisor has used up.
	advice advice
}

// outcome is how an attempt ended.
type outcome struct {
	kind v1alpha1.GenerationOutcome
	step collect.Step
	err  *v1alpha1.GenerationError
	// bare is true for a result that holds nothing which came from a provider.
	bare bool
}

func failed(err *v1alpha1.GenerationError) outcome {
	return outcome{kind: v1alpha1.OutcomeFailed, err: err}
}

// paidFor is a failure of a step whose call is paid for all the same.
func (o outcome) paidFor(by collect.Step) outcome {
	o.step.Usage = by.Usage
	return o
}

// run performs the attempt and creates its result. An attempt that is cancelled writes nothing.
func (a *attempt) run(ctx context.Context) {
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
	case errors.Is(err, relayclient.ErrExists):
		a.report(ctx, a.afterCrash(ctx, messages.messages))
		return
	case err != nil:
		// Without a relay nobody can watch; the answer is worth as much.
		a.Log.DebugContext(ctx, "the relay takes no parts", a.about(), slog.Any("error", err))
		episode = unheard{}
	}
	result := a.perform(ctx, messages.messages, messages.err, episode)
	a.endRecording(ctx, result)
	a.closeEpisode(ctx, episode)
	if ctx.Err() == nil {
		a.report(ctx, result)
	} else {
		a.titles.abandon(a.titleOf)
	}
}

// afterCrash is the outcome of an attempt that a former life of this process has begun: what the relay has heard of it, if it was
// interrupted or calls of tools had ended. Anything else is lost.
func (a *attempt) afterCrash(ctx context.Context, messages []v1alpha1.ChatMessage) outcome {
	action := a.chat.Status.Generation.Action
	switch {
	case !a.interrupted() && action != v1alpha1.ActionExecuteTools:
		return outcome{kind: v1alpha1.OutcomeLost}
	case action == v1alpha1.ActionCompact:
		return outcome{kind: v1alpha1.OutcomeInterrupted}
	}
	reading, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	frames, err := a.Relay.SoFar(reading, a.fence)
	if err != nil {
		a.Log.DebugContext(ctx, "the relay does not say what was said", a.about(), slog.Any("error", err))
	}
	if a.interrupted() {
		return outcome{kind: v1alpha1.OutcomeInterrupted, step: collect.FromFrames(frames)}
	}
	return a.resumeTools(messages, frames)
}

// openTimeout bounds the wait for a relay that does not answer.
const openTimeout = 2 * time.Second

func (a *attempt) open(ctx context.Context) (Episode, error) {
	opening, cancel := context.WithTimeout(ctx, openTimeout)
	defer cancel()
	return a.Relay.Open(opening, a.fence)
}

// perform does what the chat wants. A fault while handling one reply must not take the other chats of this pod along.
func (a *attempt) perform(ctx context.Context, messages []v1alpha1.ChatMessage, err error, episode Episode) (o outcome) {
	defer func() {
		if fault := recover(); fault != nil {
			// The fault itself can quote content.
			a.Log.ErrorContext(ctx, "an attempt failed unexpectedly", a.about(), slog.String("fault", fmt.Sprintf("%T", fault)), slog.String("stack", string(runtimedebug.Stack())))
			o = failed(&v1alpha1.GenerationError{
				Reason: v1alpha1.ErrorInternal, Message: "The step failed unexpectedly",
				Advice: "See the log of pod " + a.Pod + ", then send a message to try again",
			})
		}
	}()
	if err != nil {
		return failed(historyError(a.chat, err))
	}
	if a.chat.Status.History.Length == 0 {
		return failed(&v1alpha1.GenerationError{
			Reason: v1alpha1.ErrorHistoryBroken, Message: fmt.Sprintf("Chat %s has no message to answer", a.chat.Name), Advice: "Send one",
		})
	}
	a.entitle(messages)
	a.recording.By(a.authorOf(messages))
	switch a.chat.Status.Generation.Action {
	case v1alpha1.ActionExecuteTools:
		return a.executeTools(messages, episode) //nolint:contextcheck // It works in a.working, which is derived from ctx.
	case v1alpha1.ActionCompact:
		return a.compact(a.working, messages, episode) //nolint:contextcheck // It is derived from ctx, where the attempt began.
	}
	return a.generate(a.working, messages, episode) //nolint:contextcheck // It is derived from ctx, where the attempt began.
}

// load reads the history. Trouble with the API server passes: it is asked again until it answers. So does an edit that the chat does
// not know of yet, and with it this attempt.
func (a *attempt) load(ctx context.Context) ([]v1alpha1.ChatMessage, error) {
	for wait := firstRetry; ; wait = min(2*wait, lastRetry) {
		messages, err := a.histories.Load(ctx, a.chat)
		if err == nil || chain.Broken(err) {
			return messages, err
		}
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(wait):
		}
	}
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

func (a *attempt) interrupted() bool { return errors.Is(context.Cause(a.working), errInterrupted) }

// closeTimeout bounds the wait for a relay that has gone away.
const closeTimeout = 2 * time.Second

func (a *attempt) closeEpisode(ctx context.Context, episode Episode) {
	closing, cancel := context.WithTimeout(context.WithoutCancel(ctx), closeTimeout)
	defer cancel()
	defer a.countDropped(episode)
	if err := episode.Close(closing); err != nil {
		a.Log.DebugContext(ctx, "the relay did not take the end of the episode", a.about(), slog.Any("error", err))
	}
}

func (a *attempt) about() slog.Attr {
	return slog.Group("attempt", slog.String("chat", a.chat.Name), slog.Int64("historyVersion", a.fence.HistoryVersion), slog.Int("number", int(a.fence.Attempt)))
}

// unheard is an episode that nobody hears.
type unheard struct{}

func (unheard) Publish(string, parts.Part)  {}
func (unheard) Close(context.Context) error { return nil }
