// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/kube/apiclient"
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
		RunE: o.connected(func(ctx context.Context, s *session, args []string) error {
			if len(args) == 2 {
				return deleteMessage(ctx, s, args[0], args[1], w)
			}
			return deleteChat(ctx, s, args[0], yes, w)
		}, render.FormatName),
	}
	w.addFlags(cmd)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask whether a chat is to be deleted")
	return cmd
}

func deleteChat(ctx context.Context, s *session, name string, yes bool, w waiting) error {
	chat, err := s.Chat(ctx, name)
	if err != nil {
		return err
	}
	if !yes && terminal.OnTerminal(s.In) && !terminal.Agreed(s.In, s.ErrOut,
		"Delete chat %s with its %s, sub-chats included?", name,
		render.Plural(int(chat.Status.History.Length), "message")) {
		return usageError{fmt.Errorf("chat %s is kept", name)}
	}
	return remove(ctx, s, w, s.Chats(), "chat", render.ChatPrefix, chat)
}

func deleteMessage(ctx context.Context, s *session, chat, name string, w waiting) error {
	m, err := s.Message(ctx, chat, name)
	if err != nil {
		return err
	}
	return remove(ctx, s, w, s.Messages(), "message", render.MessagePrefix, m)
}

// remove deletes an object and waits until it is no more, or is another one of its name.
func remove[T, L any](ctx context.Context, s *session, w waiting, from apiclient.Resource[T, L], kind, prefix string,
	object metav1.Object) error {
	name, uid := object.GetName(), object.GetUID()
	err := from.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil {
		return fmt.Errorf("deleting %s %s: %w", kind, name, err)
	}
	if w.wait {
		err = w.until(ctx, kind+" "+name+" to be gone", func(ctx context.Context, note func(string)) error {
			note("its finalizers are not done")
			return awaitGone(ctx, from, kind, name, uid)
		})
	}
	if err != nil {
		return err
	}
	return s.Say(prefix+name, nil, " deleted")
}

// awaitGone waits until the object is gone.
func awaitGone[T, L any](ctx context.Context, from apiclient.Resource[T, L], kind, name string, uid types.UID) error {
	for {
		now, err := from.Get(ctx, name)
		if o, ok := any(now).(metav1.Object); apierrors.IsNotFound(err) || err == nil && ok && o.GetUID() != uid {
			return nil
		}
		if err != nil {
			return fmt.Errorf("looking for %s %s: %w", kind, name, err)
		}
		if err := retry.Sleep(ctx, cluster.ReconnectAfter); err != nil {
			return err
		}
	}
}
