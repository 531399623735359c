// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/netguard/retry"
)

type sendOptions struct {
	noFollow   bool
	interrupt  bool
	visibility string
	files      []string
	timeout    time.Duration
	plain      bool
}

func newSend(o *options) *cobra.Command {
	var so sendOptions
	cmd := &cobra.Command{
		Use:   "send CHAT [TEXT...]",
		Short: "Send a message and stream the reply",
		Long: "Creates a ChatMessage and shows the reply as it streams. If TEXT ends with the word -, standard " +
			"input follows. A message to a busy chat waits its turn; with --interrupt it stops the running turn " +
			"and is next. When the turn needs a person, send shows what to type, and continues once it is done. " +
			"At a terminal, you approve and deny calls right there. It fails with the reason of the message, such " +
			"as QueueFull, Superseded or Interrupted.\n\nWithout a TEXT, on a terminal, it shows the conversation " +
			"on the whole screen, and you write messages and decide about calls there; the last line shows the " +
			"keys. ctrl-C removes what you typed. Without a text, the first one interrupts the running turn, and " +
			"the second one leaves, as does ctrl-D in an empty line; the chat continues. With --plain each line " +
			"is a message or a command, which /help lists, and what follows is printed in plain lines, as for " +
			"screen readers.\n\nFiles that are too large for a message are uploaded by the gateway, if it has " +
			"object storage.",
		Example: "  kubectl chat send triage \"And how do I tell it is the CNI?\"\n  kubectl chat send triage --interrupt " +
			"\"Never mind, look at the DNS first\"\n  kubectl logs web-0 | kubectl chat send triage -" +
			"\n  kubectl chat send triage \"What is wrong here?\" --file dashboard.png\n  kubectl chat send triage",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && len(so.files) == 0 {
				return o.converse(cmd, args[0], so.plain)
			}
			text, err := o.textOf(args[1:])
			if err != nil {
				return err
			}
			if text == "" && len(so.files) == 0 {
				return usageError{errors.New("the message is empty: give a TEXT, or - to read standard input")}
			}
			s, err := o.connect(outputsOf(so.unfollowed())...)
			if err != nil {
				return err
			}
			return sendMessage(cmd.Context(), s, args[0], text, so)
		},
	}
	cmd.Flags().BoolVar(&so.noFollow, "no-follow", false, "do not wait for the reply; print the message's name")
	cmd.Flags().BoolVar(&so.interrupt, "interrupt", false,
		"do not wait for the turn under way: stop it, keep what was said, and be next")
	cmd.Flags().StringVar(&so.visibility, "visibility", "",
		"for whom the message is: All, Model (transcripts leave its text out), or Users: a note, which no model is told of "+
			"and no model answers")
	cmd.Flags().StringArrayVar(&so.files, "file", nil, "a file to attach, of at most 3.5 MiB; it can be repeated")
	cmd.Flags().DurationVar(&so.timeout, "timeout", time.Hour, "how long to wait for the reply")
	cmd.Flags().BoolVar(&so.plain, "plain", false, "hold a conversation in plain lines; default if $TERM is dumb")
	return cmd
}

func sendMessage(ctx context.Context, s *session, chat, text string, so sendOptions) error {
	found, err := s.Chat(ctx, chat)
	switch {
	case err != nil:
		return err
	case found.Spec.Archived && !so.unfollowed():
		return fmt.Errorf("chat %s is archived, and answers no messages: run %s", chat, s.command("unarchive", chat))
	}
	spec := so.message(text)
	files, err := readFiles(so.files)
	if err != nil {
		return err
	}
	if err := attach(ctx, s, chat, &spec, files); err != nil {
		return err
	}
	create := func(ctx context.Context) (string, error) {
		m, err := s.CreateMessage(ctx, chat, spec)
		if err != nil {
			return "", err
		}
		if so.unfollowed() {
			err = s.Say(render.MessagePrefix+m.Name, m, " created")
		}
		return m.Name, err
	}
	if so.unfollowed() {
		_, err := create(ctx)
		return err
	}
	return ask(ctx, s, question{chat: chat, interrupts: so.interrupt, timeout: so.timeout, ask: create})
}

func (so *sendOptions) message(text string) v1beta1.ChatMessageSpec {
	spec := v1beta1.ChatMessageSpec{Content: text, Visibility: v1beta1.MessageVisibility(so.visibility)}
	if so.interrupt {
		spec.WhenBusy = v1beta1.WhenBusyInterrupt
	}
	return spec
}

// unfollowed reports whether no reply is shown.
func (so *sendOptions) unfollowed() bool {
	return so.noFollow || so.visibility == string(v1beta1.VisibleToUsers)
}

// outputsOf returns the values of --output of a verb that shows a reply or, unfollowed, an object.
func outputsOf(unfollowed bool) []string {
	if unfollowed {
		return forms
	}
	return []string{render.FormatJSON}
}

// textOf joins the words. If "-" is the last one, standard input follows the others.
func (o *options) textOf(words []string) (string, error) {
	last := len(words) - 1
	if last < 0 || words[last] != "-" {
		return strings.Join(words, " "), nil
	}
	all, err := io.ReadAll(io.LimitReader(o.In, v1beta1.MaxContentBytes+1))
	if err != nil {
		return "", fmt.Errorf("reading the message from standard input: %w", err)
	}
	text := strings.TrimSuffix(string(all), "\n") // A line that a program printed.
	if last > 0 && strings.TrimSpace(text) == "" {
		return "", usageError{errors.New("standard input is empty: look at what writes to it, or leave out the - at the end")}
	}
	if last > 0 {
		text = strings.Join(words[:last], " ") + "\n\n" + text
	}
	if len(text) > v1beta1.MaxContentBytes {
		return "", usageError{fmt.Errorf("the text with standard input has more than the %d bytes that a message can have",
			v1beta1.MaxContentBytes)}
	}
	return text, nil
}

// drain is how long the end of a turn may take to come through the stream once the message's status has it.
const drain = 5 * time.Second

// errSettled ends a stream whose turn is over by the status of its message.
var errSettled = errors.New("the message is settled")

// question is a message whose reply is shown.
type question struct {
	chat string
	// ask creates the message and returns its name.
	ask func(ctx context.Context) (message string, err error)
	// first is true for the prompt of a new chat, and interrupts for a message that does not wait for the turn under way.
	first, interrupts bool
	// silent is true where the reply is not shown.
	silent bool
	// timeout is how long to wait for the reply.
	timeout time.Duration
}

// openSource connects to the gateway, or uses the API server and says so.
func openSource(ctx context.Context, s *session) (cluster.Source, error) {
	g, err := s.dialer.DialStream(ctx)
	if errors.Is(err, cluster.ErrNoToken) {
		fmt.Fprintf(s.ErrOut,
			"Replies are shown only when they are complete: %v that may get chats/stream, or use a kubeconfig with a token.\n",
			err)
		return cluster.APIServer{Client: s.Client}, nil
	}
	if err != nil {
		return nil, err
	}
	return g, nil
}

func (s *session) printer(chat string) *render.Printer {
	return render.NewPrinter(s.Out, s.ErrOut, s.Format == render.FormatJSON, render.Hint{Chat: chat, Command: s.command})
}

func ask(ctx context.Context, s *session, q question) error {
	from, err := openSource(ctx, s)
	if err != nil {
		return err
	}
	defer from.Close()
	return askFrom(ctx, s, from, q)
}

// askFrom shows the reply as the source has it.
func askFrom(ctx context.Context, s *session, from cluster.Source, q question) error {
	ctx, stop := context.WithTimeout(ctx, q.timeout)
	defer stop()
	p := newPrompt(ctx, s, q)
	defer p.end()
	err := followTurn(ctx, s, from, q, p)
	if errors.Is(err, context.DeadlineExceeded) {
		known, requiresAction := p.turn.Waits()
		err = timeoutError{waited: q.timeout, what: "the reply", known: known, person: requiresAction}
	}
	return terminal.DuringOutput(err)
}

// followTurn shows a turn until both the stream and the message's status have its end. It creates the message once the
// stream is open, so that no part of the reply is missed.
func followTurn(ctx context.Context, s *session, from cluster.Source, q question, p *prompt) error {
	ctx, stop := context.WithCancelCause(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer stop(nil)
	verdict, lost := make(chan cluster.Verdict, 1), p.outOfReach
	if _, same := from.(cluster.APIServer); same { // It reports the outage.
		lost = func(error) {}
	}
	settle := func() {
		v := s.AwaitVerdict(ctx, p.turn.Message, lost)
		verdict <- v
		if v.Committed { // The end of its turn is on its way.
			_ = retry.Sleep(ctx, drain)
		}
		stop(errSettled)
	}
	failed := showTurn(ctx, s, from, q, p, func() { running.Go(settle) })
	if failed == nil || errors.Is(failed, errSettled) {
		return (<-verdict).Err
	}
	select {
	case v := <-verdict:
		return cmp.Or(v.Err, failed)
	default:
		return failed
	}
}

// showTurn creates the message at the first event, calls created, and shows events until the turn has ended.
func showTurn(ctx context.Context, s *session, from cluster.Source, q question, p *prompt, created func()) error {
	for e, err := range from.Follow(ctx, s.Namespace, q.chat, q.first, p.outOfReach) {
		if err != nil {
			return err
		}
		if p.turn.Message == "" {
			if p.turn.Message, err = q.ask(ctx); err != nil {
				return err
			}
			created()
		}
		if err := p.event(e); err != nil || p.turn.Ended {
			return err
		}
	}
	return nil
}
