// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/netguard/retry"
)

func newDelete(o *options) *cobra.Command {
	var w waiting
	yes := false
	cmd := &cobra.Command{
		Use:   "delete CHAT [MESSAGE]",
		Short: "Delete a chat with all that was said in it, or a message",
		Long: "Deletes a chat with its messages and sub-chats, which on a terminal is asked for without --yes; or a " +
			"message, with what followed it: the chat continues from there. Waits until the object is gone.",
		Example: "  kubectl chat delete triage --yes\n  kubectl chat delete triage triage-message-x7k2p",
		Args:    cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			s, err := o.connect(outName)
			if err != nil {
				return err
			}
			if len(args) == 2 {
				return s.deleteMessage(cmd.Context(), args[0], args[1], w)
			}
			return s.deleteChat(cmd.Context(), args[0], yes, w)
		},
	}
	w.addFlags(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask whether a chat is to be deleted")
	return cmd
}

func (s *session) deleteChat(ctx context.Context, name string, yes bool, w waiting) error {
	chat, err := s.objects.chat(ctx, name)
	if err != nil {
		return err
	}
	if !yes && onTerminal(s.options.In) && !s.agreed("Delete chat %s with its %s, sub-chats included?", name,
		plural(int(chat.Status.History.Length), "message")) {
		return usageError{fmt.Errorf("chat %s is kept", name)}
	}
	err = s.objects.chats().Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &chat.UID}})
	if err != nil {
		return fmt.Errorf("deleting chat %s: %w", name, err)
	}
	if err := w.gone(ctx, "chat "+name, chat.UID, func(ctx context.Context) (types.UID, error) {
		now, err := s.objects.chats().Get(ctx, name)
		return now.UID, err
	}); err != nil {
		return err
	}
	return s.options.say(chatNamed+name, nil, " deleted")
}

func (s *session) deleteMessage(ctx context.Context, chat, name string, w waiting) error {
	m, err := s.objects.message(ctx, chat, name)
	if err != nil {
		return err
	}
	err = s.objects.messages().Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &m.UID}})
	if err != nil {
		return fmt.Errorf("deleting message %s: %w", name, err)
	}
	if err := w.gone(ctx, "message "+name, m.UID, func(ctx context.Context) (types.UID, error) {
		now, err := s.objects.messages().Get(ctx, name)
		return now.UID, err
	}); err != nil {
		return err
	}
	return s.options.say(messageNamed+name, nil, " deleted")
}

// message reads a message of a chat. Of another chat's it says that there is none.
func (o objects) message(ctx context.Context, chat, name string) (*v1alpha1.ChatMessage, error) {
	if err := o.checkChat(ctx, chat); err != nil {
		return nil, err
	}
	m, err := o.messages().Get(ctx, name)
	if apierrors.IsNotFound(err) || err == nil && m.Spec.ChatRef.Name != chat {
		return nil, missingError{fmt.Sprintf("chat %s has no message %s", chat, name)}
	}
	if err != nil {
		return nil, fmt.Errorf("reading message %s: %w", name, err)
	}
	return m, nil
}

// gone waits until an object is no more, or is another one of its name.
func (w *waiting) gone(ctx context.Context, what string, was types.UID,
	read func(context.Context) (types.UID, error)) error {
	if !w.wait {
		return nil
	}
	return w.until(ctx, what+" to be gone", func(ctx context.Context, note func(string)) error {
		note("its finalizers are not done")
		for {
			uid, err := read(ctx)
			if apierrors.IsNotFound(err) || err == nil && uid != was {
				return nil
			}
			if err != nil {
				return fmt.Errorf("looking for %s: %w", what, err)
			}
			if err := retry.Sleep(ctx, reconnectAfter); err != nil {
				return err
			}
		}
	})
}

// agreed asks a question that is answered with y, and otherwise with no.
func (s *session) agreed(format string, args ...any) bool {
	fmt.Fprintf(s.options.ErrOut, format+" [y/N] ", args...)
	line, err := bufio.NewReader(io.LimitReader(s.options.In, 1<<10)).ReadString('\n')
	if err != nil {
		return false
	}
	answer := strings.ToLower(strings.TrimSpace(line))
	return answer == "y" || answer == "yes"
}

// onTerminal reports whether a person types or reads there.
func onTerminal(stream any) bool {
	file, ok := fileOf(stream)
	return ok && term.IsTerminal(int(file.Fd()))
}

// fileOf is the file that is read, or shown on.
func fileOf(stream any) (*os.File, bool) {
	if shown, ok := stream.(*screen); ok {
		stream = shown.to
	}
	file, ok := stream.(*os.File)
	return file, ok
}
