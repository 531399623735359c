// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bufio"
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
)

// prompt shows a turn, and lets the person at the terminal decide about its calls.
type prompt struct {
	decider

	// mu guards what follows.
	mu   sync.Mutex
	turn *render.Turn
	// enabled is true if a person can answer at this terminal. Otherwise the turn shows commands to type.
	enabled bool
	// reading is true once lines are read, and ended once nothing more is printed.
	reading, ended bool
	// open are decisions that are being made, until stop ends them.
	open sync.WaitGroup
	stop context.CancelFunc
}

// newPrompt returns a prompt. It is enabled for people who may decide, and whose terminal shows the whole turn.
func newPrompt(ctx context.Context, s *session, q question) *prompt {
	ctx, stop := context.WithCancel(ctx)
	p := &prompt{decider: decider{conversation: &conversation{s: s, chat: q.chat}}, stop: stop}
	p.enabled = s.Format == "" && terminal.OnTerminal(s.In) && terminal.OnTerminal(s.ErrOut) &&
		(q.silent || terminal.OnTerminal(s.Out)) && mayDecide(ctx, s)
	hint := render.Hint{Chat: q.chat, Command: s.command, Here: func(call *v1beta1.PendingToolCall) []string {
		return p.ask(ctx, call)
	}}
	p.turn = &render.Turn{Printer: render.NewPrinter(s.Out, s.ErrOut, s.Format == render.FormatJSON, hint),
		First: q.first, Interrupts: q.interrupts}
	return p
}

// event shows an event.
func (p *prompt) event(e stream.Event) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.turn.Event(e)
}

func (p *prompt) outOfReach(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.turn.Printer.OutOfReach(err)
}

// end ends the decisions, and then the output.
func (p *prompt) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
	p.stop()
	p.open.Wait()
	p.turn.Printer.EndLine()
}

// ask returns what to type to decide about a call that is being shown; nil to show commands. The caller holds the lock.
func (p *prompt) ask(ctx context.Context, call *v1beta1.PendingToolCall) []string {
	if !p.enabled || !terminal.InForeground(p.s.In) {
		return nil
	}
	if !p.reading {
		p.reading = true
		go p.read(ctx)
	}
	number := p.add(call)
	return []string{fmt.Sprintf("    type y%[1]d to approve it, n%[1]d to deny it; n%[1]d REASON tells the model why",
		number)}
}

// read reads answers until the end of the input.
func (p *prompt) read(ctx context.Context) {
	for in := bufio.NewReader(p.s.In); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			break
		}
		p.answer(ctx, strings.TrimSpace(line))
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.enabled = false; !p.ended && ctx.Err() == nil {
		p.turn.Printer.Instruct()
	}
}

// typedAnswer is a line that approves, if it begins with y, or denies: with the number of a call, and perhaps a reason.
var typedAnswer = regexp.MustCompile(`^(?i:(y)|n)\s*(\d.*)$`)

// answer does what a line says.
func (p *prompt) answer(ctx context.Context, line string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended || line == "" {
		return
	}
	typed := typedAnswer.FindStringSubmatch(line)
	if typed == nil {
		p.turn.Printer.Note("type y1 or n1: the number says which call is meant")
		return
	}
	decision, number := v1beta1.DecisionApprove, typed[2]
	if typed[1] == "" {
		decision = v1beta1.DecisionDeny
	}
	p.open.Go(func() {
		words, err := p.decide(ctx, decision, number)
		p.mu.Lock()
		defer p.mu.Unlock()
		switch {
		case err == nil:
			p.turn.Printer.Note("%s", words)
		case ctx.Err() == nil:
			p.turn.Printer.Complain(err)
		}
	})
}
