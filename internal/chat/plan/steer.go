// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/machine"
)

// InterruptPatience is how long an interrupted attempt has to hand over what it has: 15 s. After that it is given up.
const InterruptPatience = 15 * time.Second

// repair brings a chat whose status somebody else has changed back to a state that there is.
func (p *pass) repair() error {
	if p.state() != machine.Invalid {
		return nil
	}
	st := p.status()
	return p.fire(machine.ReconcileInvalid, subject{err: &v1alpha1.GenerationError{
		Reason: v1alpha1.ErrorStateInvalid,
		Message: fmt.Sprintf("The status had phase %s with %d queued messages, which must not be: something other than Parley has changed it",
			st.Phase, len(st.Queue)),
		Advice: "Send a message to go on",
	}})
}

// putAside asks for the messages that left the history in an earlier pass.
func (p *pass) putAside() error {
	p.plan.PutAside = p.status().History.Superseded != nil
	p.status().History.Superseded = nil
	return nil
}

// heed acts on what annotations ask for, once for each token.
func (p *pass) heed() error {
	for _, request := range p.facts.Requests {
		reason, why := p.answerRequest(request.Kind)
		handled := v1alpha1.HandledRequest{
			Kind: request.Kind, Token: request.Token, Outcome: v1alpha1.RequestDone, Time: metav1.NewTime(p.facts.Now),
		}
		if why != "" {
			handled.Outcome, handled.Message = v1alpha1.RequestRefused, why
			p.notice(reason, string(request.Kind), fmt.Sprintf("%s was refused: %s", request.Kind, why))
		} else if err := p.follow(); err != nil {
			return err
		}
		p.record(handled)
	}
	return nil
}

// requested are the events that requests ask for.
var requested = map[v1alpha1.RequestKind]machine.Event{
	v1alpha1.RequestInterrupt: machine.Interrupt,
	v1alpha1.RequestClear:     machine.ClearContext,
	v1alpha1.RequestCompact:   machine.RequestCompaction,
}

// answerRequest does what is asked, or says why not.
func (p *pass) answerRequest(kind v1alpha1.RequestKind) (reason, why string) {
	if kind == v1alpha1.RequestTitle {
		return reasonNoTitle, p.askTitle()
	}
	refused := p.try(requested[kind], subject{compaction: v1alpha1.CompactionManual})
	return string(refused), refused.Meaning()
}

func (p *pass) record(handled v1alpha1.HandledRequest) {
	st := p.status()
	st.Requests = slices.DeleteFunc(st.Requests, func(r v1alpha1.HandledRequest) bool { return r.Kind == handled.Kind })
	st.Requests = append(st.Requests, handled)
}

// promote lets queued messages cut in that were told to since they were queued.
func (p *pass) promote() error {
	for _, message := range p.facts.Queued {
		queued := slices.IndexFunc(p.status().Queue, func(q v1alpha1.QueuedMessage) bool { return q.Name == message.Name })
		if p.status().Archived || !message.Interrupts || queued < 0 || p.status().Queue[queued].Interrupts {
			continue
		}
		if err := p.fire(machine.PromoteQueued, subject{message: message.Name}); err != nil {
			return err
		}
		if err := p.follow(); err != nil {
			return err
		}
	}
	return nil
}

// follow does what the phase that was just reached demands.
func (p *pass) follow() error {
	if p.status().Phase == v1alpha1.ChatInterrupting {
		return p.stopAttempt()
	}
	return p.goOn()
}

// stopAttempt tells the attempt under way to stop. One that no pod has begun has nothing to hand over.
func (p *pass) stopAttempt() error {
	st := p.status()
	switch {
	case st.Generation == nil || p.plan.NeedsPod:
		st.Generation, p.plan.NeedsPod = nil, false
		return p.finishInterruption(nil)
	case st.Generation.InterruptedAt == nil:
		st.Generation.InterruptedAt = new(metav1.NewMicroTime(p.facts.Now))
		return p.endInterrupted() // It may have ended already.
	}
	return nil
}

// endInterrupted ends the interruption if the attempt has handed over what it had, or never will.
func (p *pass) endInterrupted() error {
	st := p.status()
	switch {
	case st.Generation != nil && attempts.IsResult(p.chat, st, p.facts.Result):
		return p.finishInterruption(p.facts.Result)
	case st.Generation == nil || st.Generation.InterruptedAt == nil || p.facts.PodLost || p.resultDeleted() || attempts.NameTaken(p.chat, st, p.facts.Result),
		p.facts.Now.Sub(st.Generation.InterruptedAt.Time) >= InterruptPatience:
		return p.finishInterruption(nil)
	}
	return nil
}

func (p *pass) finishInterruption(result *v1alpha1.ChatMessage) error {
	end := p.interrupted(result)
	if result != nil && !saysSomething(result) {
		result = nil
	}
	if err := p.fire(machine.FinishInterruption, subject{result: result, ending: v1alpha1.TurnInterrupted, attempt: end}); err != nil {
		return err
	}
	return p.goOn()
}

// saysSomething reports whether an attempt that was told to stop has something to keep. It may have been done just then.
func saysSomething(result *v1alpha1.ChatMessage) bool {
	switch result.Spec.Generation.Outcome {
	case v1alpha1.OutcomeCompleted:
		return true
	case v1alpha1.OutcomeInterrupted:
		return len(result.Spec.Parts) > 0
	}
	return false
}

// cutIn puts the message, be it new or queued, behind those that cut in before it, and all of these before the others.
func (p *pass) cutIn(message string) {
	var cutIns, others []v1alpha1.QueuedMessage
	for _, queued := range p.status().Queue {
		switch {
		case queued.Name == message:
		case queued.Interrupts:
			cutIns = append(cutIns, queued)
		default:
			others = append(others, queued)
		}
	}
	p.status().Queue = slices.Concat(cutIns, []v1alpha1.QueuedMessage{{Name: message, Interrupts: true}}, others)
}

func (p *pass) clearQueue() {
	for _, queued := range p.status().Queue {
		p.plan.Superseded = append(p.plan.Superseded, queued.Name)
	}
	p.status().Queue = nil
}

// said is a message that is about to be committed.
func (p *pass) said(name string) Message {
	if p.facts.Edited != nil && p.facts.Edited.Name == name {
		return p.facts.Edited.Message
	}
	for _, messages := range [][]Message{p.facts.Open, p.facts.Queued} {
		for _, message := range messages {
			if message.Name == name {
				return message
			}
		}
	}
	return Message{Name: name}
}
