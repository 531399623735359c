// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
)

// removeTimeout is how long the deletion of a chat may take after its run, also after ctrl-C.
const removeTimeout = 10 * time.Second

func newRun(o *options) *cobra.Command {
	var no newOptions
	remove := false
	cmd := &cobra.Command{
		Use:   "run [TEXT...]",
		Short: "Ask a question in a new chat, and print the answer alone",
		Long: "Creates a Chat with the TEXT, waits for the end of the turn, and prints the text of the last " +
			"reply. With --output-schema that is the JSON. What the chat waits for goes to standard error; at a " +
			"terminal, you approve and deny calls there, as with send. If TEXT ends with the word -, standard " +
			"input follows. With nothing else to ask, it reads standard input, unless that is a terminal. The " +
			"exit code tells how the turn ended. An answer that was cut or refused is an error, as is a turn that " +
			"limits.maxSteps ended before the answer. It needs a gateway only for files that are too large for a message.",
		Example: "  kubectl chat run --rm \"Why does node-7 not get ready?\"\n" +
			"  kubectl logs web-0 | kubectl chat run --output-schema causes.json \"Why does it restart?\" -",
		RunE: func(cmd *cobra.Command, args []string) error {
			chat, err := no.chat(o, append([]string{"run-"}, args...))
			if err != nil {
				return err
			}
			if len(args) == 0 && !no.asks(chat) && !terminal.OnTerminal(o.In) {
				if chat.Spec.Prompt, err = o.textOf([]string{"-"}); err != nil {
					return err
				}
			}
			if !no.asks(chat) {
				return usageError{errors.New("there is nothing to ask: give a TEXT, or write it to standard input")}
			}
			s, err := o.connect()
			if err != nil {
				return err
			}
			return runChat(cmd.Context(), s, chat, no, remove)
		},
	}
	no.addFlags(cmd)
	no.addSpecFlags(cmd)
	cmd.Flags().BoolVar(&remove, "rm", false, "delete the chat afterwards, unless its answer cannot be printed")
	return cmd
}

func runChat(ctx context.Context, s *session, chat *v1beta1.Chat, no newOptions, remove bool) error {
	files, err := no.prepare(ctx, s)
	if err != nil {
		return err
	}
	created, first, err := no.create(ctx, s, chat, files)
	if err != nil {
		return err
	}
	if !remove {
		announce(s, created, " created")
	}
	quiet := *s.options
	quiet.Out = io.Discard
	waits := *s
	waits.options = &quiet
	err = askNew(ctx, &waits, cluster.APIServer{Client: s.Client}, created, question{first: true, silent: true,
		timeout: no.timeout, ask: first})
	if err == nil {
		err = printAnswer(ctx, s, created.Name)
	}
	if remove {
		err = removeAfter(ctx, s, created, err)
	}
	return err
}

// unprintedError means that there is an answer, which could not be read or printed.
type unprintedError struct{ error }

func (e unprintedError) Unwrap() error { return e.error }

// removeAfter deletes the chat of a run that ended with an error or nil, and returns the errors of both. A chat whose
// answer was not printed stays: it has the only copy.
func removeAfter(ctx context.Context, s *session, chat *v1beta1.Chat, failed error) error {
	remarks := terminal.NewScreen(s.ErrOut)
	if _, ok := errors.AsType[unprintedError](failed); ok {
		remarks.Line("[%s%s is kept, because its answer was not printed]", render.ChatPrefix, chat.Name)
		return failed
	}
	err := errors.Join(failed, removeRun(ctx, s, chat))
	if timeout, ok := errors.AsType[timeoutError](failed); ok && timeout.person {
		remarks.Line("[%s%s is deleted, as --rm says: without it, a person can still decide]", render.ChatPrefix, chat.Name)
	}
	return err
}

// printAnswer prints the text of the newest reply of a chat. It fails if that is no complete answer.
func printAnswer(ctx context.Context, s *session, name string) error {
	chat, err := s.Chat(ctx, name)
	if err != nil {
		return unprintedError{err}
	}
	reply, err := newestReply(ctx, s, chat)
	if err != nil {
		return unprintedError{err}
	}
	text := strings.TrimSuffix(textOf(reply), "\n")
	if text != "" {
		if _, err := fmt.Fprintln(s.Out, text); err != nil {
			return unprintedError{err}
		}
	}
	switch why := incompleteness(chat, reply); {
	case why != "":
		return fmt.Errorf("the answer is not complete: %s", why)
	case text == "":
		terminal.NewScreen(s.ErrOut).Line("[the turn has ended without a text]")
	}
	return nil
}

// newestReply reads the newest reply of the model. Results of tools may follow it.
func newestReply(ctx context.Context, s *session, chat *v1beta1.Chat) (*v1beta1.ChatMessage, error) {
	for name := chat.Status.History.Head; name != ""; {
		m, err := s.Messages().Get(ctx, name)
		switch {
		case err != nil:
			return nil, fmt.Errorf("reading the answer in message %s: %w", name, err)
		case m.Spec.Role == v1beta1.RoleAssistant:
			return m, nil
		}
		name = history.Of(chat, m).Parent
	}
	return nil, fmt.Errorf("chat %s has no answer", chat.Name)
}

// incompleteness says why a reply is not the answer that was asked for, or not all of it; empty: it is.
func incompleteness(chat *v1beta1.Chat, reply *v1beta1.ChatMessage) string {
	turn, g := chat.Status.Turn, reply.Spec.Generation
	switch {
	case turn != nil && turn.Result == v1beta1.TurnMaxStepsReached:
		return "The turn was ended by the chat's limits.maxSteps"
	case g == nil:
		return ""
	case g.ReplyOutcome.Note() != "":
		return g.ReplyOutcome.Note()
	case g.Output != nil && g.Output.Problem != "":
		return "It does not match the schema: " + g.Output.Problem
	case g.Output == nil && chat.Spec.Output != nil:
		return "The turn has ended without the JSON that was asked for"
	}
	return ""
}

func removeRun(ctx context.Context, s *session, chat *v1beta1.Chat) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), removeTimeout)
	defer cancel()
	err := s.Chats().Delete(ctx, chat.Name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &chat.UID}})
	if err != nil && !apierrors.IsNotFound(err) {
		return fmt.Errorf("deleting %s%s: %w", render.ChatPrefix, chat.Name, err)
	}
	return nil
}

func textOf(m *v1beta1.ChatMessage) string {
	var text strings.Builder
	for i := range m.Spec.Parts {
		if p := &m.Spec.Parts[i]; p.Type == v1beta1.PartText && p.Text != nil {
			text.WriteString(*p.Text)
		}
	}
	return text.String()
}
