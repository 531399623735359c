// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/step"
	"parley.dev/parley/internal/netguard/retry"
)

const createTimeout = 30 * time.Second

// answer is an outcome as it is reported.
type answer struct {
	outcome step.Outcome
	// bare is true for a result without content from a provider.
	bare bool
}

// report creates the attempt's result, and returns it if it has. It retries until ctx is done: the answer is paid for.
// If another message has the result's name, the chat ends the attempt.
func (a *attempt) report(ctx context.Context, performer *step.Performer, o step.Outcome) *v1beta1.ChatMessageSpec {
	offer, began, reported := answer{outcome: o}, a.runner.options.Now(), false
	spec := a.spec(performer, offer)
	for pauses := retry.APIServer.Start(); ctx.Err() == nil; {
		created, err := a.runner.create(ctx, a.chat, a.fence.ResultName(a.chat.Name), spec)
		switch {
		case err == nil:
			a.observed.End(offer.outcome.Kind, offer.outcome.Err)
			a.logEnd(ctx, offer.outcome)
			if offer.outcome.Kind == v1beta1.OutcomeCompleted {
				a.runner.histories.Add(a.chat, created)
			}
			return &spec
		case apierrors.IsAlreadyExists(err) && a.isMine(ctx, &reported):
			a.observed.Found(offer.outcome.Kind, offer.outcome.Err)
			return nil
		case a.isFinal(err, began) && !offer.bare:
			a.captions.ReturnCall(spec.Generation)
			offer = a.reduce(ctx, offer.outcome, err)
			spec = a.spec(performer, offer)
			continue
		}
		reason := string(apierrors.ReasonForError(err))
		a.log.WarnContext(ctx, "creating the result failed, trying again", slog.String("reason", reason))
		_ = pauses.Wait(ctx, err) // The loop checks ctx.
	}
	return nil
}

// create creates a message of the chat, even if ctx ends meanwhile: the chat can continue with the result before the
// create has returned.
func (r *Runner) create(
	ctx context.Context, chat *v1beta1.Chat, name string, spec v1beta1.ChatMessageSpec,
) (*v1beta1.ChatMessage, error) {
	owner := metav1.NewControllerRef(chat, v1beta1.GroupVersion.WithKind("Chat"))
	owner.BlockOwnerDeletion = nil // It can require the right to update the chat.
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	return r.options.Client.Messages(r.options.Namespace).Create(creating, &v1beta1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: r.options.Namespace, OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Spec: spec,
	})
}

// isMine reports whether the existing message is this attempt's result, from a create whose answer was lost. A message
// of a deleted chat of the same name will be garbage-collected. Any other message is reported once.
func (a *attempt) isMine(ctx context.Context, reported *bool) bool {
	o := &a.runner.options
	m, err := o.Client.Messages(o.Namespace).Get(ctx, a.fence.ResultName(a.chat.Name))
	if err != nil {
		return false
	}
	switch g := m.Spec.Generation; {
	case g != nil && g.ChatUID != a.fence.ChatUID:
		return false
	case g != nil && attempts.Answered(m) == a.fence && g.Pod == o.Pod:
		return true
	}
	if !*reported {
		*reported = true
		reason := string(v1beta1.ErrorResultNameConflict)
		a.log.ErrorContext(ctx, "another message has the name of the result", slog.String("reason", reason))
		a.observed.ResultRefused(reason)
	}
	return false
}

// reduce replaces a result that the API server refuses: first by a failure with the usage, then by one without content
// from a provider. An interruption loses its content.
func (a *attempt) reduce(ctx context.Context, o step.Outcome, err error) answer {
	reason := string(apierrors.ReasonForError(err))
	a.log.ErrorContext(ctx, "the API server refused the result", slog.String("reason", reason))
	a.observed.ResultRefused(reason)
	less := step.Outcome{Kind: o.Kind}
	if o.Kind == v1beta1.OutcomeCompleted || o.Kind == v1beta1.OutcomeFailed {
		less = step.Failed(refusedError(err))
	}
	return answer{outcome: less.PaidFor(o.Content), bare: o.Kind != v1beta1.OutcomeCompleted}
}

// isFinal reports whether the API server would refuse the same object again. An API server that has just started
// forbids everything for a moment.
func (a *attempt) isFinal(err error, began time.Time) bool {
	if apierrors.IsForbidden(err) {
		return a.runner.options.Now().Sub(began) >= a.runner.options.Forbidden
	}
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsBadRequest(err)
}

// refusedError is the error of a refused result. The refusal can quote the result, so only its reason is included.
func refusedError(err error) *v1beta1.GenerationError {
	return &v1beta1.GenerationError{
		Reason:  v1beta1.ErrorInternal,
		Message: fmt.Sprintf("The API server refused the finished step (%s)", apierrors.ReasonForError(err)),
		Advice:  "Send a message to try again, and see the policies that bind ChatMessages",
	}
}

// roles are those of the actions' results.
var roles = map[v1beta1.GenerationAction]v1beta1.MessageRole{
	v1beta1.ActionGenerateAssistant: v1beta1.RoleAssistant,
	v1beta1.ActionExecuteTools:      v1beta1.RoleTool,
	v1beta1.ActionCompact:           v1beta1.RoleSystem,
}

func (a *attempt) spec(performer *step.Performer, offer answer) v1beta1.ChatMessageSpec {
	status := &a.chat.Status
	role := roles[status.Generation.Action]
	var visibility v1beta1.MessageVisibility
	if role == v1beta1.RoleSystem { // A summary is for the model only.
		visibility = v1beta1.VisibleToModel
	}
	return v1beta1.ChatMessageSpec{
		ChatRef:    v1beta1.ChatReference{Name: a.chat.Name},
		Role:       role,
		Visibility: visibility,
		Parts:      offer.outcome.Content.Parts,
		Parent:     status.History.Head,
		Index:      new(status.History.Length),
		Follows:    status.Internal.Tail,
		Generation: a.account(performer, offer),
	}
}

// account is the account of the attempt and its step.
func (a *attempt) account(performer *step.Performer, offer answer) *v1beta1.MessageGeneration {
	o := offer.outcome
	g := &v1beta1.MessageGeneration{}
	if !offer.bare {
		g = performer.Account(o)
	}
	g.ChatUID, g.HistoryVersion, g.Attempt = a.fence.ChatUID, a.fence.HistoryVersion, a.fence.Attempt
	g.Action, g.Pod, g.Outcome, g.Error = a.chat.Status.Generation.Action, a.runner.options.Pod, o.Kind, o.Err
	g.StartedAt, g.FinishedAt = metav1.NewMicroTime(a.startedAt), metav1.NewMicroTime(a.runner.options.Now())
	if offer.bare {
		return g
	}
	if t := a.chat.Status.Turn; t != nil && g.Action == v1beta1.ActionGenerateAssistant {
		g.CallsCanceledReasonBefore = t.CallsCanceledReason
	}
	a.captions.Account(g, len(o.Content.Parts) > 0)
	return g
}

// summarize asks for a summary of the turn that the reply ends, unless the chat has already continued.
func (a *attempt) summarize(ctx context.Context, t *models.Target, reply *v1beta1.ChatMessageSpec) {
	begin := a.captions.Summary(t, reply)
	if begin == nil {
		return
	}
	a.runner.mu.Lock()
	defer a.runner.mu.Unlock()
	if next := a.runner.attempts[a.fence.ChatUID]; next == nil || next == a {
		begin(ctx)
	}
}

// logEnd logs the outcome without content.
func (a *attempt) logEnd(ctx context.Context, o step.Outcome) {
	values := []any{slog.String("outcome", string(o.Kind)),
		slog.Duration("lasted", a.runner.options.Now().Sub(a.startedAt))}
	if o.Err != nil {
		values = append(values, slog.String("error", string(o.Err.Reason)))
	}
	a.log.DebugContext(ctx, "Attempt ended", values...)
}
