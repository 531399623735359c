// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"errors"
	"fmt"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chatstate"
	"parley.dev/parley/internal/decide"
	"parley.dev/parley/internal/printable"
	"parley.dev/parley/internal/status"
)

// Advance takes the chat as far as it can go without waiting. The error is a fault of Parley itself: the state machine
// refused what this package asked of it.
func Advance(f Facts) (Plan, error) {
	p := &pass{facts: f, chat: f.Chat, plan: Plan{Status: *f.Chat.Status.DeepCopy()}}
	for _, step := range []func() error{
		p.repair, p.archive, p.putAside, p.truncate, p.edit, p.dropGone, p.endAttempt, p.heed, p.decide, p.answer, p.expire, p.promote, p.takeOpen, p.refuseEarly, p.archive, p.takeSummary,
	} {
		if err := step(); err != nil {
			return Plan{}, err
		}
	}
	p.report()
	return p.plan, nil
}

// pass is one run of Advance.
type pass struct {
	facts Facts
	chat  *v1alpha1.Chat
	plan  Plan
	// held is why work that is due may not begin; empty if it may.
	held chatstate.Reason
	// event whose effects are being carried out.
	event chatstate.Event
	// early are results that came before the people's decisions that their calls wait for, too.
	early []Results
}

func (p *pass) status() *v1alpha1.ChatStatus { return &p.plan.Status }

// dropGone takes deleted messages out of the queue.
func (p *pass) dropGone() error {
	if p.status().Archived {
		return nil
	}
	for _, queued := range slices.Clone(p.status().Queue) {
		if slices.ContainsFunc(p.facts.Queued, func(m Message) bool { return m.Name == queued.Name }) {
			continue
		}
		if err := p.fire(chatstate.DeleteQueued, subject{message: queued.Name}); err != nil {
			return err
		}
	}
	return nil
}

// endAttempt ends the attempt under way if it has a result, its pod is gone, its result was deleted, or another message has
// the name of its result.
func (p *pass) endAttempt() error {
	st := p.status()
	switch {
	case st.Phase == v1alpha1.ChatInterrupting:
		return p.endInterrupted()
	case st.Phase != v1alpha1.ChatRunning:
		return nil
	case st.Generation == nil:
		return p.goOn()
	case attempts.IsResult(p.chat, st, p.facts.Result):
		return p.useResult(p.facts.Result)
	case p.facts.PodLost, p.resultDeleted(), attempts.NameTaken(p.chat, st, p.facts.Result):
		return p.loseAttempt()
	}
	return nil
}

func (p *pass) useResult(result *v1alpha1.ChatMessage) error {
	switch g := result.Spec.Generation; g.Outcome {
	case v1alpha1.OutcomeFailed:
		p.account(result)
		return p.tryAgain(*g.Error)
	case v1alpha1.OutcomeLost, v1alpha1.OutcomeInterrupted: // Nobody asked for an interruption, or no longer.
		return p.loseAttempt()
	default:
		if err := p.fire(chatstate.CommitStep, subject{result: result}); err != nil {
			return err
		}
		return p.goOn()
	}
}

// goOn starts the next action of the turn, or ends it; ending it may promote a queued message, which begins a turn.
func (p *pass) goOn() error {
	for p.status().Phase == v1alpha1.ChatRunning && p.status().Generation == nil && p.held == "" {
		if err := p.nextAction(); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) nextAction() error {
	st := p.status()
	decision := decide.Next(decide.Facts{
		MaxSteps:         int(p.chat.Spec.MaxStepsOrDefault()),
		StepsInTurn:      int(st.Turn.Steps),
		OutstandingCalls: int(st.Turn.PendingCalls),
		AwaitingCalls:    int(st.Turn.AwaitingCalls),
		HeadIsAssistant:  st.Turn.LastRole == v1alpha1.RoleAssistant,
		StoppedByTool:    st.Turn.StoppedBy != "",
		TurnOver:         st.Turn.Result != "",
		CompactionAsked:  st.Compaction != "",
		Fill:             p.fill(),
		BudgetUsedUp:     p.budgetUsedUp(),
	})
	switch decision.Action {
	case decide.GenerateAssistant:
		return p.assign(v1alpha1.ActionGenerateAssistant)
	case decide.ExecuteTools:
		p.beginWaits()
		return p.assign(v1alpha1.ActionExecuteTools)
	case decide.Compact:
		return p.assign(v1alpha1.ActionCompact)
	case decide.Fail:
		return p.fail(p.whyNot(decision.Reason))
	case decide.RequireAction:
		// Without the message that made the calls nobody could be asked: it was deleted, which the next pass will find out.
		if len(p.facts.Calls) == 0 {
			p.held = chatstate.TargetNotFound
			return nil
		}
		return p.fire(chatstate.EnterRequiresAction, subject{})
	case decide.FinishTurn:
		if st.Turn.Result == "" { // It may have ended before a compaction.
			st.Turn.Result = endings[decision.Reason]
		}
		return p.fire(chatstate.FinishTurn, subject{})
	}
	return fmt.Errorf("no way to perform the action %s", decision.Action)
}

// endings are how turns end normally.
var endings = map[decide.Reason]v1alpha1.TurnResult{
	decide.Complete:         v1alpha1.TurnAnswered,
	decide.StoppedAfterTool: v1alpha1.TurnStoppedAfterTool,
	decide.MaxStepsReached:  v1alpha1.TurnMaxStepsReached,
}

func (p *pass) assign(action v1alpha1.GenerationAction) error {
	if _, blocked := p.answering(); blocked != nil {
		return p.fail(*blocked)
	}
	if unpriced := p.unpriced(action); unpriced != nil {
		return p.fail(*unpriced)
	}
	err := p.fire(chatstate.RecordAttempt, subject{action: action})
	refusal, ok := errors.AsType[*chatstate.Refusal](err)
	if ok && holds(refusal.Reason) {
		p.held = refusal.Reason
		return nil
	}
	return err
}

func (p *pass) maxAttempts() int32 {
	model, _ := p.answering()
	if model == nil {
		return v1alpha1.DefaultMaxAttempts
	}
	return model.Retry.MaxAttemptsOrDefault()
}

// holds reports whether the step is only put off.
func holds(r chatstate.Reason) bool {
	return slices.Contains([]chatstate.Reason{chatstate.Suspended, chatstate.SubChatsAtWork, chatstate.RetryNotDue, chatstate.NoCapacity, chatstate.PodRefused}, r)
}

func (p *pass) fail(e v1alpha1.GenerationError) error {
	p.notice(string(e.Reason), "Generate", e.Text())
	return p.fire(chatstate.FinishError, subject{err: &e})
}

// takeOpen takes new User messages up: an idle chat begins a turn, a busy one queues them as far as there is room.
func (p *pass) takeOpen() error {
	for _, message := range p.facts.Open {
		if p.facts.Archive || p.status().Archived || p.idle() && p.blocked(message) != nil {
			return nil // They stay open until the chat is taken back, or there is a model.
		}
		err := p.fire(p.eventOf(message), subject{message: message.Name, interrupts: message.Interrupts})
		if refusal, ok := errors.AsType[*chatstate.Refusal](err); ok && refusal.Reason == chatstate.QueueFull {
			p.plan.Rejected = append(p.plan.Rejected, p.queueFull(message.Name))
			continue
		}
		if err != nil {
			return err
		}
		p.plan.Taken = append(p.plan.Taken, message.Name)
		if err := p.follow(); err != nil {
			return err
		}
	}
	return nil
}

func (p *pass) queueFull(message string) Rejection {
	return Rejection{message, v1alpha1.ReasonQueueFull, fmt.Sprintf(
		"The queue of chat %s is full (%d messages, and limits.maxQueue is %d): delete this message and create it again when there is room",
		p.chat.Name, len(p.status().Queue), p.chat.Spec.MaxQueueOrDefault())}
}

func (p *pass) eventOf(message Message) chatstate.Event {
	switch {
	case p.state() == chatstate.None:
		return chatstate.Create
	case message.Interrupts:
		return chatstate.SendMessageInterrupt
	}
	return chatstate.SendMessageQueue
}

func (p *pass) idle() bool {
	switch p.status().Phase {
	case "", v1alpha1.ChatWaiting, v1alpha1.ChatError:
		return true
	}
	return false
}

// report computes the conditions, last, from all the rest.
func (p *pass) report() {
	st := p.status()
	if st.Phase == "" {
		st.Phase = v1alpha1.ChatWaiting
	}
	facts := status.ChatFacts{Generation: p.chat.Generation, Now: p.facts.Now}
	facts.Beginning = p.chat.Spec.Prompt != "" && st.History.Version == 0
	if p.idle() && len(p.facts.Open) > 0 {
		facts.Blocked = p.blocked(p.facts.Open[0])
		facts.MayCome = p.mayCome(facts.Blocked)
	}
	facts.Held, facts.NoCapacity, facts.PodRefused = p.held, p.facts.NoCapacity, p.facts.PodRefused
	if facts.Beginning {
		facts.NoPrompt = p.noPrompt()
	}
	facts.Archiving = p.facts.Archive && !st.Archived
	facts.FamilyAtWork = p.facts.FamilyAtWork
	st.ParentUID = p.facts.ParentUID
	p.settleTitle()
	p.settleSummary()
	p.recordWaiting()
	if !p.plan.NeedsPod {
		facts.PodStarting = p.facts.PodStarting
	}
	p.markAdvisor()
	cleanTexts(st)
	p.markFallback()
	status.Chat(st, facts)
	p.noticeRefusal()
}

func (p *pass) notice(reason, action, note string) {
	p.plan.Notices = append(p.plan.Notices, Notice{Reason: reason, Action: action, Note: printable.Line(note)})
}
