// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/compose"
)

const (
	sendTimeout = 20 * time.Second
	// interruptTimeout bounds an interruption, also for a person who leaves meanwhile.
	interruptTimeout = 5 * time.Second
)

// conversation sends what a person types at a terminal, and shows the events of the chat.
type conversation struct {
	s       *session
	chat    string
	console *terminal.Console
	leave   context.CancelFunc

	mu      sync.Mutex
	printer *render.Printer
	// mine holds the messages that were typed here, which are on the screen already.
	mine map[string]bool
	// sent is the last message until the chat has committed or queued it: statuses before that are of the time before.
	sent string
	// working is true while the status has a turn under way, and warned after the first ctrl-C.
	working, warned bool
	running         sync.WaitGroup
}

// busy reports whether there is something to interrupt. The caller holds mu.
func (c *conversation) busy() bool { return c.working || c.sent != "" }

// converse checks that there is a terminal, and talks to a chat there.
func (o *options) converse(cmd *cobra.Command, chat string) error {
	only := ""
	cmd.LocalNonPersistentFlags().Visit(func(f *pflag.Flag) { only = "--" + f.Name })
	switch {
	case !terminal.OnTerminal(o.In) || !terminal.OnTerminal(o.Out):
		return usageError{errors.New("without a TEXT a person types at a terminal, and there is none: give a TEXT, or - " +
			"for standard input")}
	case only != "":
		return usageError{fmt.Errorf("%s is about one message: give its TEXT", only)}
	}
	s, err := o.connect()
	if err != nil {
		return err
	}
	return converse(cmd.Context(), s, chat)
}

// converse talks to a chat at a terminal until the person leaves or the chat is deleted.
func converse(ctx context.Context, s *session, chat string) error {
	if err := s.CheckChat(ctx, chat); err != nil {
		return err
	}
	from, err := openSource(ctx, s)
	if err != nil {
		return err
	}
	defer from.Close()
	in, _ := s.In.(*os.File)
	out, _ := terminal.FileOf(s.Out)
	before, err := term.MakeRaw(int(in.Fd()))
	if err != nil {
		return fmt.Errorf("taking over the terminal: %w", err)
	}
	defer func() { _ = term.Restore(int(in.Fd()), before) }()
	within, leave := context.WithCancel(ctx)
	defer leave()
	c := &conversation{s: s, chat: chat, leave: leave, mine: map[string]bool{}}
	c.console = terminal.NewConsole(out, func() (int, int, error) { return term.GetSize(int(out.Fd())) })
	defer c.console.Close()
	shown := &terminal.Screen{To: c.console, Styled: os.Getenv("NO_COLOR") == ""}
	s.ErrOut = shown
	c.printer = render.NewPrinter(shown, shown, false, render.Hint{Chat: chat, Command: s.command})
	c.printer.NotesFrom = -1
	go c.console.Keys.Listen(in, c.keyPressed, func() { c.interruptPressed(within) }) // It may wait for a key for ever.
	err = c.run(within, from)
	if ctx.Err() != nil { // The person did not leave.
		return context.Cause(ctx)
	}
	return err
}

// run follows the chat and sends lines.
func (c *conversation) run(ctx context.Context, from cluster.Source) error {
	defer c.running.Wait()
	defer c.leave()
	c.note("chat %s: Enter sends, ctrl-C interrupts the turn under way, ctrl-D leaves", c.chat)
	ended, connected := make(chan error, 2), make(chan struct{})
	c.running.Go(func() { ended <- c.follow(ctx, from, sync.OnceFunc(func() { close(connected) })) })
	go func() { c.sendLines(ctx, connected); ended <- nil }() // It may wait for a key for ever.
	select {
	case err := <-ended:
		c.farewell()
		if ctx.Err() == nil {
			return terminal.DuringOutput(err)
		}
	case <-ctx.Done():
		c.farewell()
	}
	return nil
}

// farewell notes that the turn does not end with the conversation.
func (c *conversation) farewell() {
	c.mu.Lock()
	busy := c.busy()
	c.mu.Unlock()
	if busy {
		c.note("the turn continues: %s shows it", c.s.command("tail", c.chat))
	}
}

// sendLines sends each line, until the person leaves with ctrl-D, or the terminal is gone.
func (c *conversation) sendLines(ctx context.Context, connected <-chan struct{}) {
	select { // No part of a reply may be missed.
	case <-connected:
	case <-ctx.Done():
		return
	}
	for {
		line, err := c.console.Line()
		if err != nil {
			return
		}
		if text := strings.TrimSpace(line); text != "" {
			c.send(ctx, text)
		}
	}
}

// send sends a text. A refused one returns to the line.
func (c *conversation) send(ctx context.Context, text string) {
	m := compose.Message(c.s.Namespace, c.chat, c.chat+"-message-"+rand.String(8),
		v1beta1.ChatMessageSpec{Content: text})
	c.mu.Lock()
	// From now on ctrl-C interrupts: the turn may begin before the API server answers.
	c.mine[m.Name], c.warned, c.sent = true, false, m.Name
	c.mu.Unlock()
	within, cancel := context.WithTimeout(ctx, sendTimeout)
	defer cancel()
	if _, err := c.s.Messages().Create(within, m); err != nil {
		c.showRefusal(m.Name, text, fmt.Errorf("the message is not sent: %w", err))
		return
	}
	c.running.Go(func() {
		if v := c.s.AwaitVerdict(ctx, m.Name); v.Err != nil && !v.Committed && ctx.Err() == nil {
			c.showRefusal(m.Name, text, v.Err)
		}
	})
}

// showRefusal shows why a text was not sent, and puts it into the line again.
func (c *conversation) showRefusal(name, text string, err error) {
	c.mu.Lock()
	c.forgetSent(name)
	c.printer.Complain(err)
	c.mu.Unlock()
	if c.console.IsTyping() {
		c.note("what you wrote is above the line: arrow up shows it")
		return
	}
	c.console.ShowPrompt()
	c.console.Keys.Retype(text)
}

// forgetSent notes that the chat has the message. The caller holds mu.
func (c *conversation) forgetSent(name string) {
	if c.sent == name {
		c.sent = ""
	}
}

func (c *conversation) note(format string, args ...any) {
	c.withPrompt(func() { c.printer.Note(format, args...) })
}

// withPrompt calls show, and shows the prompt below if no turn is under way.
func (c *conversation) withPrompt(show func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	show()
	if !c.busy() {
		c.console.ShowPrompt()
	}
}

// follow shows the events of the chat until it is deleted, and calls connected before the first.
func (c *conversation) follow(ctx context.Context, from cluster.Source, connected func()) error {
	lost := func(err error) { c.withPrompt(func() { c.printer.OutOfReach(err) }) }
	for e, err := range from.Follow(ctx, c.s.Namespace, c.chat, false, lost) {
		if err == nil {
			connected()
			err = c.event(e)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (c *conversation) event(e stream.Event) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	updates, err := c.printer.Chat.Updates(e)
	if err != nil {
		return err
	}
	for _, u := range updates {
		c.printer.Show(u, !c.observe(u))
	}
	if !c.busy() || e.Name == stream.EventRequiresAction {
		c.printer.EndLine()
		c.console.ShowPrompt()
	}
	if e.Name == stream.EventDeleted {
		return cli.NotFoundError("the chat was deleted")
	}
	return nil
}

// observe updates whether there is something to interrupt. It reports whether the update is a message that was typed
// here. The caller holds mu.
func (c *conversation) observe(u client.Update) (mine bool) {
	switch u := u.(type) {
	case *stream.MessageCommitted:
		if c.sent == u.Message.Name { // The status follows.
			c.sent, c.working = "", true
		}
		return c.mine[u.Message.Name]
	case *stream.QueueUpdate:
		for _, waits := range u.Queue {
			c.forgetSent(waits.Name)
		}
	case *stream.Status:
		c.working = u.Ready == metav1.ConditionUnknown
		c.warned = c.warned && c.busy()
	}
	return false
}

// keyPressed notes a key other than ctrl-C.
func (c *conversation) keyPressed() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.warned = false
}

// interruptPressed stops the turn under way the first time, and leaves the second time.
func (c *conversation) interruptPressed(ctx context.Context) {
	c.mu.Lock()
	warned, busy := c.warned, c.busy()
	c.warned = true
	c.mu.Unlock()
	switch {
	case warned:
		c.leave()
	case busy:
		c.note("interrupting; ctrl-C again leaves")
		c.running.Go(func() { c.interrupt(ctx) })
	default:
		c.note("ctrl-C again, or ctrl-D in an empty line, leaves")
	}
}

// interrupt makes the request that kubectl chat interrupt makes.
func (c *conversation) interrupt(ctx context.Context) {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), interruptTimeout)
	defer cancel()
	err := c.s.Request(within, c.chat, v1beta1.RequestInterrupt, time.Now().UTC().Format(time.RFC3339Nano))
	if err != nil {
		c.note("not interrupted: %v", err)
	}
}
