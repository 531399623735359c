// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"unicode"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli"
	"parley.dev/parley/internal/cli/converse"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
)

// lines is a conversation in plain lines: each line is a message, and the events of the chat are printed as they come.
type lines struct {
	decider

	mu      sync.Mutex
	printer *render.Printer
	// open are requests and their verdicts, which the conversation waits for.
	open sync.WaitGroup
	// mine holds the messages that were typed here, which are on the screen already.
	mine map[string]bool
}

// inLines talks to a chat until the person leaves or the chat is deleted.
func (c *conversation) inLines(ctx context.Context) error {
	within, leave := context.WithCancel(ctx)
	defer leave()
	l := &lines{decider: decider{conversation: c}, mine: map[string]bool{}}
	hint := render.Hint{Chat: c.chat, Command: c.s.command}
	decides := ""
	if mayDecide(ctx, c.s) {
		hint.Here, decides = l.ask, ", /approve and /deny decide about a call"
	}
	l.printer = render.NewPrinter(c.s.Out, c.s.ErrOut, false, hint)
	l.printer.NotesFrom = -1
	l.printer.Note("chat %s: Enter sends, /interrupt interrupts the turn under way%s, /help lists commands, ctrl-D leaves",
		c.chat, decides)
	err := l.follow(within, leave)
	left := within.Err() != nil
	l.mu.Lock()
	leave() // No request begins from now on.
	l.mu.Unlock()
	l.open.Wait()
	l.printer.EndLine()
	if now := l.printer.Chat.Status; now != nil && now.Ready == metav1.ConditionUnknown {
		l.printer.Note("the turn continues: %s shows it", c.s.command("tail", c.chat))
	}
	if left {
		return context.Cause(ctx)
	}
	return terminal.DuringOutput(err)
}

// ask returns how to decide about a call that is being shown.
func (l *lines) ask(call *v1beta1.PendingToolCall) []string {
	number := l.add(call)
	return []string{fmt.Sprintf("    /approve %d", number), fmt.Sprintf("    /deny %d", number)}
}

// follow prints the events of the chat. It reads what is typed from the first one on, so that no part of a reply is
// missed.
func (l *lines) follow(ctx context.Context, leave func()) error {
	read := sync.OnceFunc(func() { go l.read(ctx, leave) })
	for e, err := range l.from.Follow(ctx, l.s.Namespace, l.chat, false, l.outOfReach) {
		if err == nil {
			err = l.event(e)
			read()
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (l *lines) outOfReach(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.printer.OutOfReach(err)
}

func (l *lines) event(e stream.Event) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	updates, err := l.printer.Chat.Updates(e)
	for _, u := range updates {
		m, committed := u.(*stream.MessageCommitted)
		l.printer.Show(u, !committed || !l.mine[m.Message.Name])
	}
	if err == nil && e.Name == stream.EventDeleted {
		err = cli.NotFoundError("the chat was deleted")
	}
	return err
}

// read does what each line says, until ctrl-D or /quit.
func (l *lines) read(ctx context.Context, leave func()) {
	defer leave()
	for in := bufio.NewReader(l.s.In); ; {
		line, err := in.ReadString('\n')
		if err != nil {
			return
		}
		switch text := strings.TrimRightFunc(line, unicode.IsSpace); text {
		case "":
		case "/quit", "/exit":
			return
		default:
			l.do(ctx, text)
		}
	}
}

// do does what a line says, unless the conversation has ended. The next line waits, so that messages keep their order.
func (l *lines) do(ctx context.Context, text string) {
	name := l.NewName()
	l.mu.Lock()
	if ctx.Err() != nil {
		l.mu.Unlock()
		return
	}
	l.mine[name] = true
	l.open.Add(1)
	l.mu.Unlock()
	defer l.open.Done()
	words := strings.Fields(text)
	var err error
	switch decision := typedDecisions[words[0]]; {
	case text == "/interrupt":
		err = l.Interrupt(ctx)
	case decision != "" && strings.HasPrefix(text, "/"):
		l.open.Go(func() { l.decide(ctx, decision, strings.Join(words[1:], " ")) })
	case decisionLike.MatchString(text):
		err = errors.New("type /approve N or /deny N, with the number of a call")
	case strings.HasPrefix(text, "/"):
		err = doCommand(ctx, l, name, text)
	default:
		err = sendLine(ctx, l, name, text)
	}
	l.complain(err)
}

func sendLine(ctx context.Context, l *lines, name, text string) error {
	err := l.Send(ctx, name, strings.TrimSpace(text))
	if err == nil {
		l.open.Go(func() { l.complain(l.Await(ctx, name)) })
	}
	return err
}

// doCommand does what a command says. A text that is none is a message of that name.
func doCommand(ctx context.Context, l *lines, message, text string) (err error) {
	var says []string
	switch name, argument, complaint := converse.ParseCommand(text); {
	case complaint != "":
		return errors.New(complaint)
	case name == "":
		return sendLine(ctx, l, message, text)
	case name == "help":
		says = append(converse.Help(), "/interrupt: interrupt the turn under way",
			"/approve N, /deny N: decide about the call with that number")
	default:
		says, err = l.Command(ctx, name, argument)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range says {
		l.printer.Note("%s", line)
	}
	return err
}

// typedDecisions are the words that begin a line about a call.
var typedDecisions = map[string]v1beta1.ApprovalDecision{"/approve": v1beta1.DecisionApprove,
	"/deny": v1beta1.DecisionDeny}

// decisionLike is a line that would be a message, and is meant as a decision.
var decisionLike = regexp.MustCompile(`(?i)^/(approve|deny)`)

// decide decides about a call, while further lines are read, also for a person who leaves meanwhile.
func (l *lines) decide(ctx context.Context, decision v1beta1.ApprovalDecision, number string) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	words, err := l.decider.decide(ctx, decision, number)
	if err != nil {
		l.complain(err)
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.printer.Note("%s", words)
}

func (l *lines) complain(err error) {
	if err != nil {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.printer.Complain(err)
	}
}
