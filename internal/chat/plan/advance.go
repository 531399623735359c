// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/machine"
	"parley.dev/parley/internal/printable"
)

// Advance takes the chat as far as it can go without waiting. The error is a fault of Parley itself: the state machine
// refused what this package asked of it.
func Advance(f Facts) (Plan, error) {
	p := &pass{facts: f, chat: f.Chat, plan: Plan{Status: *f.Chat.Status.DeepCopy()}}
	p.attempt = p.status().Generation
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
	held machine.Reason
	// firing is the transition whose effects are being carried out.
	firing Transition
	// attempt that was under way when the pass began, until it ends.
	attempt *v1alpha1.GenerationStatus
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
		if err := p.fire(machine.DeleteQueued, subject{message: queued.Name}); err != nil {
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
	case st.Generation != p.attempt: // It began in this pass, and the facts are about the one before it.
		return nil
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
		if err := p.fire(machine.CommitStep, subject{result: result, attempt: p.committed(result)}); err != nil {
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
	switch next := nextOf(actionRules, p.progress()); next.action {
	case executeTools:
		p.beginWaits()
		return p.assign(v1alpha1.ActionExecuteTools)
	case failTurn:
		return p.fail(p.whyNot(next.ending))
	case requireAction:
		// Without the message that made the calls nobody could be asked: it was deleted, which the next pass will find out.
		p.held = p.try(machine.EnterRequiresAction, subject{})
		return nil
	case finishTurn:
		return p.fire(machine.FinishTurn, subject{ending: endings[next.ending]})
	default:
		return p.assign(v1alpha1.GenerationAction(next.action))
	}
}

func (p *pass) progress() progress {
	t := p.status().Turn
	return progress{
		maxSteps:         int(p.chat.Spec.MaxStepsOrDefault()),
		stepsInTurn:      int(t.Steps),
		outstandingCalls: int(t.PendingCalls),
		awaitingCalls:    int(t.AwaitingCalls),
		headIsAssistant:  t.LastRole == v1alpha1.RoleAssistant,
		stoppedByTool:    t.StoppedBy != "",
		turnOver:         t.Result != "",
		compactionAsked:  p.status().Compaction != "",
		fill:             p.fill(),
		budgetUsedUp:     p.budgetUsedUp(),
	}
}

// endings are how turns end normally.
var endings = map[ending]v1alpha1.TurnResult{
	complete:         v1alpha1.TurnAnswered,
	stoppedAfterTool: v1alpha1.TurnStoppedAfterTool,
	maxStepsReached:  v1alpha1.TurnMaxStepsReached,
}

// endTurn says how the turn ended, unless it has said so before and was only taken up for a compaction.
func (p *pass) endTurn(result v1alpha1.TurnResult, why v1alpha1.ErrorReason) {
	if t := p.status().Turn; t != nil && t.Result == "" {
		t.Result = result
		p.firing.Ended = &TurnEnd{Turn: t.DeepCopy(), Reason: why}
	}
}

func (p *pass) assign(action v1alpha1.GenerationAction) error {
	if _, blocked := p.answering(); blocked != nil {
		return p.fail(*blocked)
	}
	if unpriced := p.unpriced(action); unpriced != nil {
		return p.fail(*unpriced)
	}
	// What refuses an attempt only puts it off.
	p.held = p.try(machine.RecordAttempt, subject{action: action})
	return nil
}

func (p *pass) maxAttempts() int32 {
	model, _ := p.answering()
	if model == nil {
		return v1alpha1.DefaultMaxAttempts
	}
	return model.Retry.MaxAttemptsOrDefault()
}

func (p *pass) fail(e v1alpha1.GenerationError) error { return p.failAfter(e, nil) }

// failAfter ends the turn with an error that the attempt under way ended in.
func (p *pass) failAfter(e v1alpha1.GenerationError, attempt *AttemptEnd) error {
	p.notice(string(e.Reason), "Generate", e.Text())
	return p.fire(machine.FinishError, subject{err: &e, attempt: attempt})
}

// takeOpen takes new User messages up: an idle chat begins a turn, a busy one queues them as far as there is room.
func (p *pass) takeOpen() error {
	for _, message := range p.facts.Open {
		if p.facts.Archive || p.status().Archived || p.idle() && p.blocked(message) != nil {
			return nil // They stay open until the chat is taken back, or there is a model.
		}
		switch refused := p.try(p.eventOf(message), subject{message: message.Name, interrupts: message.Interrupts}); refused {
		case "":
		case machine.QueueFull:
			p.plan.Rejected = append(p.plan.Rejected, p.queueFull(message.Name))
			continue
		default:
			return fmt.Errorf("taking message %s up in state %s: %s", message.Name, p.state(), refused.Meaning())
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

func (p *pass) eventOf(message Message) machine.Event {
	switch {
	case p.state() == machine.None:
		return machine.Create
	case message.Interrupts:
		return machine.SendMessageInterrupt
	}
	return machine.SendMessageQueue
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
	facts := conditions.ChatFacts{Generation: p.chat.Generation, Now: p.facts.Now}
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
	conditions.Chat(st, facts)
	p.noticeRefusal()
}

func (p *pass) notice(reason, action, note string) {
	p.plan.Notices = append(p.plan.Notices, Notice{Reason: reason, Action: action, Note: printable.Line(note)})
}
