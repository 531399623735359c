// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bufio"
	"context"
	"strings"
	"sync"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/converse"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/kube/apiclient"
)

// prompt asks the person at the terminal about the calls of a turn that is shown, one after the other.
type prompt struct {
	*conversation

	// enabled is false where nobody answers: then the turn shows what to type elsewhere.
	enabled bool
	read    sync.Once

	// mu guards what follows.
	mu    sync.Mutex
	turn  *render.Turn
	ended bool
	// asked is the call that the person is asked about; nil if there is none.
	asked *v1beta1.PendingToolCall
	since time.Time
}

// newPrompt asks only people at a terminal who may decide.
func newPrompt(ctx context.Context, s *session, q question) *prompt {
	p := &prompt{conversation: &conversation{s: s, chat: q.chat}}
	if s.Format == "" && terminal.OnTerminal(s.In) && terminal.OnTerminal(s.ErrOut) {
		allowed, err := s.Client.Allowed(ctx, apiclient.ResourceAttributes{Verb: "create", Resource: "toolapprovals",
			Namespace: s.Namespace})
		p.enabled = allowed && err == nil
	}
	printer := render.NewPrinter(s.Out, s.ErrOut, s.Format == render.FormatJSON,
		render.Hint{Chat: q.chat, Command: s.command, Asks: p.enabled})
	p.turn = &render.Turn{Printer: printer, First: q.first, Interrupts: q.interrupts}
	return p
}

// event shows an event, and asks about the first call that waits for approval.
func (p *prompt) event(ctx context.Context, e stream.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.turn.Event(e); err != nil || p.turn.Ended || !p.enabled {
		return err
	}
	call := undecided(p.turn.Action())
	if call != nil && (p.asked == nil || call.ID != p.asked.ID || call.CallDigest() != p.asked.CallDigest()) {
		p.turn.Printer.Question(call)
		p.since = time.Now()
		p.read.Do(func() { go p.readLines(ctx) }) // It may wait for a line for ever.
	}
	p.asked = call
	return nil
}

// undecided returns the first call that waits for approval; nil if none does.
func undecided(action *stream.RequiresAction) *v1beta1.PendingToolCall {
	if action == nil {
		return nil
	}
	for i := range action.ToolCalls {
		if render.NeedOf(&action.ToolCalls[i]) == render.NeedsApproval {
			return &action.ToolCalls[i]
		}
	}
	return nil
}

func (p *prompt) outOfReach(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn.Printer.OutOfReach(err)
}

// end ends the output. Nothing is printed from then on.
func (p *prompt) end() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended = true
	p.turn.Printer.EndLine()
}

func (p *prompt) readLines(ctx context.Context) {
	for in := bufio.NewReader(p.s.In); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		p.answer(ctx, strings.ToLower(strings.TrimSpace(line)))
	}
}

// promptAnswers are the answers to a question whether to approve a call.
var promptAnswers = map[string]v1beta1.ApprovalDecision{"y": v1beta1.DecisionApprove, "yes": v1beta1.DecisionApprove,
	"n": v1beta1.DecisionDeny, "no": v1beta1.DecisionDeny}

// answer decides about the call that was asked about, unless the question has gone.
func (p *prompt) answer(ctx context.Context, line string) {
	call, decision := p.answered(line)
	if decision == "" {
		return
	}
	err := p.Decide(ctx, *call, decision, "")
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil && !p.ended {
		p.turn.Printer.Complain(err)
	}
}

// answered returns the call that a line decides about, and the decision; none if it decides nothing.
func (p *prompt) answered(line string) (*v1beta1.PendingToolCall, v1beta1.ApprovalDecision) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || p.asked == nil {
		return nil, ""
	}
	if promptAnswers[line] == "" || time.Since(p.since) < converse.ReadTime {
		p.turn.Printer.Note("call %s waits: y approves it, n denies it, ctrl-C leaves", p.asked.ID)
		return nil, ""
	}
	return p.asked, promptAnswers[line]
}
