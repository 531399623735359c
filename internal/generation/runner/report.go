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
	"parley.dev/parley/internal/cost"
)

const (
	// firstRetry and lastRetry bound the wait before a refused create is tried again; it doubles in between.
	firstRetry = 100 * time.Millisecond
	lastRetry  = 5 * time.Second
	// createTimeout bounds one create.
	createTimeout = 30 * time.Second
)

// report creates the attempt's result. It does not give up while the attempt counts: a finished answer has been paid for. An
// attempt whose result cannot be named is ended by the chat, which sees the same message.
func (a *attempt) report(ctx context.Context, o outcome) {
	message, began, said := a.message(o), a.Now(), false
	for wait := firstRetry; ctx.Err() == nil; wait = min(2*wait, lastRetry) {
		created, err := a.create(ctx, message)
		switch {
		case err == nil:
			a.endStep(o)
			if o.kind == v1alpha1.OutcomeCompleted {
				a.histories.Add(a.chat, created)
			}
			a.summarize(o, message.Spec.Generation)
			return
		case apierrors.IsAlreadyExists(err) && a.isMine(ctx, message.Name, &said):
			a.foundStep(o)
			return
		case a.isFinal(err, began) && !o.bare:
			o = a.lessThan(ctx, o, message, err)
			message = a.message(o)
			continue
		}
		a.Log.WarnContext(ctx, "creating the result failed, trying again", a.about(), slog.String("reason", string(apierrors.ReasonForError(err))))
		select {
		case <-ctx.Done():
			return
		case <-time.After(wait):
		}
	}
}

// create goes through with a create that has begun: the chat can move on because of the result before the answer to the
// create has come.
func (a *attempt) create(ctx context.Context, message *v1alpha1.ChatMessage) (*v1alpha1.ChatMessage, error) {
	creating, cancel := context.WithTimeout(context.WithoutCancel(ctx), createTimeout)
	defer cancel()
	return a.Client.Messages(a.Namespace).Create(creating, message)
}

// isMine reports whether the message that exists is this attempt's result, by an earlier create whose answer was lost. A message of
// a deleted chat of the same name is not; it will be collected. That somebody else's has the name is said once.
func (a *attempt) isMine(ctx context.Context, name string, said *bool) bool {
	m, err := a.Client.Messages(a.Namespace).Get(ctx, name)
	if err != nil {
		return false
	}
	switch g := m.Spec.Generation; {
	case g != nil && g.ChatUID != a.fence.ChatUID:
		return false
	case g != nil && attempts.Answered(m) == a.fence && g.Pod == a.Pod:
		return true
	}
	if !*said {
		*said = true
		a.Log.ErrorContext(ctx, "a message of somebody else has the name of the result", a.about(), slog.String("reason", string(v1alpha1.ErrorResultNameTaken)))
		a.Metrics.ResultRefused(string(v1alpha1.ErrorResultNameTaken))
	}
	return false
}

// lessThan is what is offered in place of a result that the API server will never take: first a failure that says what the call
// cost, then one that says nothing which came from elsewhere. An interruption that may not say what it has says nothing.
func (a *attempt) lessThan(ctx context.Context, o outcome, refused *v1alpha1.ChatMessage, err error) outcome {
	reason := string(apierrors.ReasonForError(err))
	a.Log.ErrorContext(ctx, "the API server refused the result", a.about(), slog.String("reason", reason))
	a.Metrics.ResultRefused(reason)
	a.titles.returnCall(a.titleOf, refused.Spec.Generation.TitleCall)
	less := outcome{kind: o.kind}
	if o.kind == v1alpha1.OutcomeCompleted || o.kind == v1alpha1.OutcomeFailed {
		less = failed(refusedError(err))
	}
	less.bare = o.kind != v1alpha1.OutcomeCompleted
	return less.paidFor(o.step)
}

// isFinal reports whether the API server would refuse the same object again. For want of rights it refuses everybody for a
// moment after it was started.
func (a *attempt) isFinal(err error, began time.Time) bool {
	if apierrors.IsForbidden(err) {
		return a.Now().Sub(began) >= a.Forbidden
	}
	return apierrors.IsInvalid(err) || apierrors.IsRequestEntityTooLargeError(err) || apierrors.IsBadRequest(err)
}

// refusedError tells of a result that the API server does not take. The refusal itself can quote the result, so only its
// kind is told.
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

func (a *attempt) message(o outcome) *v1alpha1.ChatMessage {
	status := &a.chat.Status
	role := roles[status.Generation.Action]
	visibility := v1alpha1.MessageVisibility("")
	if role == v1alpha1.RoleSystem { // A summary is for the model: people have what it stands for.
		visibility = v1alpha1.VisibleToModel
	}
	return &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{
			Name:            a.fence.ResultName(a.chat.Name),
			Namespace:       a.Namespace,
			OwnerReferences: []metav1.OwnerReference{ownedBy(a.chat)},
		},
		Spec: v1alpha1.ChatMessageSpec{
			ChatRef:    v1alpha1.ChatReference{Name: a.chat.Name},
			Role:       role,
			Visibility: visibility,
			Parts:      o.step.Parts,
			Parent:     status.History.Head,
			Index:      new(status.History.Length),
			Generation: a.account(o),
		},
	}
}

func (a *attempt) account(o outcome) *v1alpha1.MessageGeneration {
	g := &v1alpha1.MessageGeneration{
		ChatUID: a.fence.ChatUID, HistoryVersion: a.fence.HistoryVersion, Attempt: a.fence.Attempt,
		Action: a.chat.Status.Generation.Action, Pod: a.Pod, Outcome: o.kind, Error: o.err,
		StartedAt: metav1.NewMicroTime(a.startedAt), FinishedAt: metav1.NewMicroTime(a.Now()),
	}
	if o.bare {
		return g
	}
	g.Truncated, g.FinishReason, g.Preview, g.Warnings = o.step.Truncated, o.step.FinishReason, o.step.Preview, o.step.Warnings
	g.PendingCalls, g.AwaitingCalls, g.WaitsFor, g.StoppedBy = o.step.PendingCalls, o.step.AwaitingCalls, o.step.WaitsFor, o.step.StoppedBy
	if o.kind != v1alpha1.OutcomeFailed {
		g.Context, g.Compaction = a.context, a.compaction
	}
	if a.target != nil {
		g.Model = a.target.identity()
	}
	if o.step.Usage != (v1alpha1.TokenUsage{}) {
		g.Usage = &o.step.Usage
	}
	if a.target != nil {
		g.Cost = cost.Of(a.target.config.Spec.Pricing, o.step.Usage)
	}
	if t := a.chat.Status.Turn; t != nil && g.Action == v1alpha1.ActionGenerateAssistant {
		g.CallsGivenUpBefore = t.CallsGivenUp
	}
	a.accountAdvice(g)
	a.addTitle(g, o)
	return g
}

// ownedBy makes garbage collection remove the message with its chat.
func ownedBy(chat *v1alpha1.Chat) metav1.OwnerReference {
	return metav1.OwnerReference{
		APIVersion: v1alpha1.GroupVersion.String(), Kind: "Chat", Name: chat.Name, UID: chat.UID, Controller: new(true),
	}
}
