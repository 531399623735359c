// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package captions

import (
	"context"
	"log/slog"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/captions/wording"
	"parley.dev/parley/internal/generation/models"
)

// Summary returns a function that asks for a summary of the turn that ends with the reply of t, in a context that
// outlives the attempt; nil if no turn ends, or if summaries are disabled.
func (a *Attempt) Summary(t *models.Target, reply *v1beta1.ChatMessageSpec) (begin func(context.Context)) {
	answer := wording.Text(reply)
	if answer == "" || !a.endsTurn(t, reply.Generation) || !a.needsSummary(t) {
		return nil
	}
	r := request{
		form: wording.TurnSummary, action: v1beta1.ActionSummarizeTurn,
		config: t.Config.Spec.TurnSummaries.ModelConfigRef,
		text:   wording.Exchange(a.question, answer), spent: a.spentWith(reply.Generation),
	}
	return func(ctx context.Context) {
		a.writer.store.begin(ctx, summaryOf(a.chat.UID), func(ctx context.Context) (string, *v1beta1.CallAccount) {
			began := metav1.NewMicroTime(a.writer.options.Now())
			if text, account := a.write(ctx, t, r); text != "" || account != nil {
				a.create(ctx, a.summary(text, account, began))
			}
			return "", nil // The message has both.
		})
	}
}

// spentWith is the cost of the chat including the reply.
func (a *Attempt) spentWith(reply *v1beta1.MessageGeneration) []v1beta1.Cost {
	costs := a.chat.Status.Cost
	if reply.Cost != nil {
		costs = cost.Add(costs, *reply.Cost)
	}
	if call := reply.TitleCall; call != nil && call.Cost != nil {
		costs = cost.Add(costs, *call.Cost)
	}
	return costs
}

// needsSummary reports whether the configuration enables summaries, and the turn has one to replace.
func (a *Attempt) needsSummary(t *models.Target) bool {
	turn := a.chat.Status.Turn
	return t.Config.Spec.TurnSummaries.On() && turn != nil && turn.SummarySource != ""
}

// endsTurn reports whether the turn ends with this reply, and no queued message follows: one that is held does not.
func (a *Attempt) endsTurn(t *models.Target, reply *v1beta1.MessageGeneration) bool {
	follows := func(q v1beta1.QueuedMessage) bool { return q.HeldUntil == nil }
	return reply.Outcome == v1beta1.OutcomeCompleted && t != nil && !slices.ContainsFunc(a.chat.Status.Queue, follows) &&
		reply.Action == v1beta1.ActionGenerateAssistant && reply.PendingCalls == 0
}

// create creates the message with a summary. It does not retry.
func (a *Attempt) create(ctx context.Context, summary v1beta1.ChatMessageSpec) {
	name := fence.SummaryName(a.chat.Name, summary.Generation.HistoryVersion)
	if err := a.writer.options.Create(ctx, a.chat, name, summary); err != nil && ctx.Err() == nil {
		reason := string(apierrors.ReasonForError(err))
		a.log.DebugContext(ctx, "the summary of a turn was not taken", slog.String("reason", reason))
	}
}

// summary is the message with the summary of a turn, or only with the cost of an empty answer. Its version is that
// after the commit of the last reply: the chat accepts it as long as nothing else has happened.
func (a *Attempt) summary(text string, account *v1beta1.CallAccount, began metav1.MicroTime) v1beta1.ChatMessageSpec {
	g := &v1beta1.MessageGeneration{
		ChatUID: a.fence.ChatUID, HistoryVersion: a.fence.HistoryVersion + 1, Attempt: 1,
		Action: v1beta1.ActionSummarizeTurn, Pod: a.writer.options.Pod,
		Outcome: v1beta1.OutcomeCompleted, TurnSummary: text,
		StartedAt: began, FinishedAt: metav1.NewMicroTime(a.writer.options.Now()),
	}
	if account != nil {
		g.Model, g.Usage, g.Cost = account.Model, &account.Usage, account.Cost
	}
	return v1beta1.ChatMessageSpec{
		ChatRef: v1beta1.ChatReference{Name: a.chat.Name}, Role: v1beta1.RoleAssistant, Generation: g,
	}
}

// questionOf is the text of the turn's message; empty if it is not for people, who read the summary.
func questionOf(messages []v1beta1.ChatMessage) string {
	for _, m := range slices.Backward(messages) {
		if m.Spec.Role == v1beta1.RoleUser {
			return wording.Shown(&m.Spec)
		}
	}
	return ""
}
