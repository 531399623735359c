// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"log/slog"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cost"
	"parley.dev/parley/internal/fence"
	"parley.dev/parley/internal/generation/captions/wording"
)

// summaries asks models what became of turns, after the last reply of each. One that is not written when the chat goes on is
// given up. It belongs to the runner and not to an attempt, which is over by then.
type summaries struct {
	mu    sync.Mutex
	asked map[types.UID]*asking // by chat
	calls sync.WaitGroup
}

// asking is a call under way.
type asking struct{ cancel context.CancelFunc }

// begin asks in a goroutine of its own.
func (s *summaries) begin(ctx context.Context, chat types.UID, ask func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[chat] != nil || ctx.Err() != nil {
		return
	}
	if s.asked == nil {
		s.asked = map[types.UID]*asking{}
	}
	ctx, cancel := context.WithTimeout(ctx, captionTimeout)
	this := &asking{cancel}
	s.asked[chat] = this
	s.calls.Go(func() {
		defer cancel()
		ask(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asked[chat] == this { // Otherwise it was given up, and another may be under way.
			delete(s.asked, chat)
		}
	})
}

// abandon gives up what is asked about the chat.
func (s *summaries) abandon(chat types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if this := s.asked[chat]; this != nil {
		this.cancel()
		delete(s.asked, chat)
	}
}

// stop ends all calls and waits for their end. No more may be begun.
func (s *summaries) stop() {
	s.mu.Lock()
	for _, this := range s.asked {
		this.cancel()
	}
	s.mu.Unlock()
	s.calls.Wait()
}

// summarize asks what became of the turn that ends with the reply, if the configuration wants to know. It neither waits nor
// fails: the reply has been handed over.
func (a *attempt) summarize(o outcome, reply *v1alpha1.MessageGeneration) {
	if !a.endsTurn(o) || !a.wantsSummary(a.target) || a.usesBudgetUp(reply) {
		return
	}
	answer := wording.Text(&v1alpha1.ChatMessageSpec{Parts: o.step.Parts})
	if answer == "" {
		return
	}
	w := wanted{
		form: wording.TurnSummary, action: v1alpha1.ActionSummarizeTurn, by: a.target.config.Spec.TurnSummaries.ModelConfigRef,
		shown: wording.Exchange(a.question, answer),
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if next := a.attempts[a.fence.ChatUID]; next != nil && next != a { // The chat has gone on, quicker than this was asked.
		return
	}
	a.summaries.begin(a.lasting, a.chat.UID, func(ctx context.Context) {
		began := metav1.NewMicroTime(a.Now())
		if text, account := a.writeCaption(ctx, a.target, w); text != "" || account != nil {
			a.handOver(ctx, a.summary(text, account, began))
		}
	})
}

// usesBudgetUp reports whether the chat may spend nothing more once the reply is paid.
func (a *attempt) usesBudgetUp(reply *v1alpha1.MessageGeneration) bool {
	if a.chat.Spec.Limits == nil {
		return false
	}
	costs := a.chat.Status.Cost
	if reply.Cost != nil {
		costs = cost.Add(costs, *reply.Cost)
	}
	if call := reply.TitleCall; call != nil && call.Cost != nil {
		costs = cost.Add(costs, *call.Cost)
	}
	return cost.UsedUp(a.chat.Spec.Limits.Budget, costs)
}

// wantsSummary reports whether the chat waits for a summary, and the model that answers has one written.
func (a *attempt) wantsSummary(t *target) bool {
	turn := a.chat.Status.Turn
	return t.config.Spec.TurnSummaries.On() && turn != nil && turn.SummarySource != ""
}

// endsTurn reports whether the turn ends with this outcome and nothing follows it at once.
func (a *attempt) endsTurn(o outcome) bool {
	return o.kind == v1alpha1.OutcomeCompleted && a.target != nil && len(a.chat.Status.Queue) == 0 &&
		a.chat.Status.Generation.Action == v1alpha1.ActionGenerateAssistant && o.step.PendingCalls == 0
}

// handOver creates the message with a summary, once: what it says is worth no second try.
func (a *attempt) handOver(ctx context.Context, summary *v1alpha1.ChatMessage) {
	if _, err := a.create(ctx, summary); err != nil && ctx.Err() == nil {
		a.Log.DebugContext(ctx, "the summary of a turn was not taken", a.about(), slog.String("reason", string(apierrors.ReasonForError(err))))
	}
}

// summary is the message that says what became of the turn, or only what it cost to ask a model that had no words for it. Its
// version is what the commit of the last reply makes: the chat takes it as long as nothing else has happened.
func (a *attempt) summary(text string, account *v1alpha1.CallAccount, began metav1.MicroTime) *v1alpha1.ChatMessage {
	version := a.fence.HistoryVersion + 1
	g := &v1alpha1.MessageGeneration{
		ChatUID: a.fence.ChatUID, HistoryVersion: version, Attempt: 1, Action: v1alpha1.ActionSummarizeTurn, Pod: a.Pod,
		Outcome: v1alpha1.OutcomeCompleted, TurnSummary: text, StartedAt: began, FinishedAt: metav1.NewMicroTime(a.Now()),
	}
	if account != nil {
		g.Model, g.Usage, g.Cost = account.Model, &account.Usage, account.Cost
	}
	return &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{
			Name:            fence.SummaryName(a.chat.Name, version),
			Namespace:       a.Namespace,
			OwnerReferences: []metav1.OwnerReference{ownedBy(a.chat)},
		},
		Spec: v1alpha1.ChatMessageSpec{ChatRef: v1alpha1.ChatReference{Name: a.chat.Name}, Role: v1alpha1.RoleAssistant, Generation: g},
	}
}

// questionOf is what the turn's message says.
func questionOf(messages []v1alpha1.ChatMessage) string {
	for i := range slices.Backward(messages) {
		if messages[i].Spec.Role == v1alpha1.RoleUser {
			return wording.Text(&messages[i].Spec)
		}
	}
	return ""
}
