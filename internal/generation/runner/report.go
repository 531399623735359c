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

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/step"
	"parley.dev/parley/internal/netguard/retry"
)

// createTimeout bounds one create.
const createTimeout = 30 * time.Second

// answer is an outcome as it is reported.
type answer struct {
	outcome step.Outcome
	// bare is true for a result that holds nothing which came from a provider.
	bare bool
}

// report creates the attempt's result. It does not give up while the attempt counts: a finished answer has been paid
// for. An attempt whose result cannot be named is ended by the chat, which sees the same message. It returns the result
// that it created, or nil.
func (a *attempt) report(ctx context.Context, performer *step.Performer, o step.Outcome) *v1alpha1.ChatMessageSpec {
	offer, began, said := answer{outcome: o}, a.runner.options.Now(), false
	spec := a.spec(performer, offer)
	for pauses := retry.APIServer.Start(); ctx.Err() == nil; {
		created, err := a.runner.create(ctx, a.chat, a.fence.ResultName(a.chat.Name), spec)
		switch {
		case err == nil:
			a.observed.End(offer.outcome.Kind, offer.outcome.Err)
			a.logEnd(ctx, offer.outcome)
			if offer.outcome.Kind == v1alpha1.OutcomeCompleted {
				a.runner.histories.Add(a.chat, created)
			}
			return &spec
		case apierrors.IsAlreadyExists(err) && a.isMine(ctx, &said):
			a.observed.Found(offer.outcome.Kind, offer.outcome.Err)
			return nil
		case a.isFinal(err, began) && !offer.bare:
			a.captions.ReturnCall(spec.Generation)
			offer = a.lessThan(ctx, offer.outcome, err)
			spec = a.spec(performer, offer)
			continue
		}
		reason := string(apierrors.ReasonForError(err))
		a.log.WarnContext(ctx, "creating the result failed, trying again", slog.String("reason", reason))
		_ = pauses.Wait(ctx, err) // The loop looks at ctx.
	}
	return nil
}

// create creates a message of the chat. It goes through with a create that has begun: the chat can move on because of
// the result before the answer to the create has come.
func (r *Runner) create(
	ctx context.Context, chat *v1alpha1.Chat, name string, spec v1alpha1.ChatMessageSpec,
) (*v1alpha1.ChatMessage, error) {
	owner := metav1.NewControllerRef(chat, v1alpha1.GroupVersion.WithKind("Chat"))
	owner.BlockOwnerDeletion = nil // To set it takes a right to the chat where the API server enforces such.
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	return r.options.Client.Messages(r.options.Namespace).Create(creating, &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{
			Name: name, Namespace: r.options.Namespace, OwnerReferences: []metav1.OwnerReference{*owner},
		},
		Spec: spec,
	})
}

// createSummary creates the message with a summary of a turn.
func (r *Runner) createSummary(
	ctx context.Context, chat *v1alpha1.Chat, name string, spec v1alpha1.ChatMessageSpec,
) error {
	_, err := r.create(ctx, chat, name, spec)
	return err
}

// isMine reports whether the message that exists is this attempt's result, by an earlier create whose answer was lost.
// A message of a deleted chat of the same name is not; it will be collected. That somebody else's has the name is said
// once.
func (a *attempt) isMine(ctx context.Context, said *bool) bool {
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
	if !*said {
		*said = true
		reason := string(v1alpha1.ErrorResultNameTaken)
		a.log.ErrorContext(ctx, "another message has the name of the result", slog.String("reason", reason))
		a.observed.ResultRefused(reason)
	}
	return false
}

// lessThan is what is offered in place of a result that the API server will never take: first a failure that says what
// the call cost, then one that says nothing which came from elsewhere. An interruption that may not say what it has
// says nothing.
func (a *attempt) lessThan(ctx context.Context, o step.Outcome, err error) answer {
	reason := string(apierrors.ReasonForError(err))
	a.log.ErrorContext(ctx, "the API server refused the result", slog.String("reason", reason))
	a.observed.ResultRefused(reason)
	less := step.Outcome{Kind: o.Kind}
	if o.Kind == v1alpha1.OutcomeCompleted || o.Kind == v1alpha1.OutcomeFailed {
		less = step.Failed(refusedError(err))
	}
	return answer{outcome: less.PaidFor(o.Content), bare: o.Kind != v1alpha1.OutcomeCompleted}
}

// isFinal reports whether the API server would refuse the same object again. For want of rights it refuses everybody
// for a moment after it was started.
func (a *attempt) isFinal(err error, began time.Time) bool {
	if apierrors.IsForbidden(err) {
		return a.runner.options.Now().Sub(began) >= a.runner.options.Forbidden
	}
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsBadRequest(err)
}

// refusedError tells of a result that the API server does not take. The refusal itself can quote the result, so only
// its kind is told.
func refusedError(err error) *v1alpha1.GenerationError {
	return &v1alpha1.GenerationError{
		Reason:  v1alpha1.ErrorInternal,
		Message: fmt.Sprintf("The API server refused the finished step (%s)", apierrors.ReasonForError(err)),
		Advice:  "Send a message to try again, and see the policies that bind ChatMessages",
	}
}

// roles are those of the messages that actions yield.
var roles = map[v1alpha1.GenerationAction]v1alpha1.MessageRole{
	v1alpha1.ActionGenerateAssistant: v1alpha1.RoleAssistant,
	v1alpha1.ActionExecuteTools:      v1alpha1.RoleTool,
	v1alpha1.ActionCompact:           v1alpha1.RoleSystem,
}

// spec is what the result says.
func (a *attempt) spec(performer *step.Performer, offer answer) v1alpha1.ChatMessageSpec {
	status := &a.chat.Status
	role := roles[status.Generation.Action]
	visibility := v1alpha1.MessageVisibility("")
	if role == v1alpha1.RoleSystem { // A summary is for the model: people have what it stands for.
		visibility = v1alpha1.VisibleToModel
	}
	return v1alpha1.ChatMessageSpec{
		ChatRef:    v1alpha1.ChatReference{Name: a.chat.Name},
		Role:       role,
		Visibility: visibility,
		Parts:      offer.outcome.Content.Parts,
		Parent:     status.History.Head,
		Index:      new(status.History.Length),
		Follows:    status.Internal.Tail,
		Generation: a.account(performer, offer),
	}
}

// account says how the attempt went, and what it used up.
func (a *attempt) account(performer *step.Performer, offer answer) *v1alpha1.MessageGeneration {
	o := offer.outcome
	g := &v1alpha1.MessageGeneration{}
	if !offer.bare {
		g = performer.Account(o)
	}
	g.ChatUID, g.HistoryVersion, g.Attempt = a.fence.ChatUID, a.fence.HistoryVersion, a.fence.Attempt
	g.Action, g.Pod, g.Outcome, g.Error = a.chat.Status.Generation.Action, a.runner.options.Pod, o.Kind, o.Err
	g.StartedAt, g.FinishedAt = metav1.NewMicroTime(a.startedAt), metav1.NewMicroTime(a.runner.options.Now())
	if offer.bare {
		return g
	}
	if t := a.chat.Status.Turn; t != nil && g.Action == v1alpha1.ActionGenerateAssistant {
		g.CallsGivenUpBefore = t.CallsGivenUp
	}
	a.captions.Account(g, len(o.Content.Parts) > 0)
	return g
}

// summarize asks what became of the turn, if the reply ends one and the chat has not gone on, quicker than this was
// asked.
func (a *attempt) summarize(ctx context.Context, t *models.Target, reply *v1alpha1.ChatMessageSpec) {
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

// logEnd logs how the attempt ended, never what was said.
func (a *attempt) logEnd(ctx context.Context, o step.Outcome) {
	values := []any{slog.String("outcome", string(o.Kind)),
		slog.Duration("lasted", a.runner.options.Now().Sub(a.startedAt))}
	if o.Err != nil {
		values = append(values, slog.String("error", string(o.Err.Reason)))
	}
	a.log.DebugContext(ctx, "Attempt ended", values...)
}
