// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/util/retry"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/render"
)

type shareOptions struct {
	with, remove []string
	lasts        days
	list         bool
}

func newShare(o *options) *cobra.Command {
	var f shareOptions
	cmd := &cobra.Command{
		Use:   "share CHAT",
		Short: "Let others read a chat and its sub-chats",
		Long: "Changes spec.sharing: who may read the chat and its sub-chats through the gateway. A reader is user:NAME, " +
			"group:NAME, serviceaccount:NAME of the chat's namespace, or serviceaccount:NAMESPACE:NAME. Without " +
			"--for, access lasts until it is removed. Condition Shared of the chat reports what is in force. Takes " +
			"the verb share on chats (ClusterRole parley-chat-admin).",
		Example: "  kubectl chat share triage --with user:jane --for 24h\n  kubectl chat share triage --list",
		Args:    cobra.ExactArgs(1),
		PreRunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd.Flags().Changed("for")); err != nil {
				return usageError{err}
			}
			return nil
		},
		RunE: o.connected(func(ctx context.Context, s *session, args []string) error {
			return f.run(ctx, s, args[0])
		}, forms...),
	}
	cmd.Flags().StringArrayVar(&f.with, "with", nil, "a reader, such as user:jane; it can be repeated")
	cmd.Flags().StringArrayVar(&f.remove, "remove", nil, "a reader who loses access; it can be repeated")
	cmd.Flags().Var(&f.lasts, "for",
		"how long the readers of --with have access, such as 24h or 7d; default: until removed")
	cmd.Flags().BoolVar(&f.list, "list", false, "print the readers")
	return cmd
}

func (f *shareOptions) run(ctx context.Context, s *session, name string) error {
	var chat *v1beta1.Chat
	err := retry.RetryOnConflict(retry.DefaultRetry, func() (err error) { // The status changes all the time.
		chat, err = f.change(ctx, s, name)
		return err
	})
	if err != nil {
		return err
	}
	if f.list && s.Format == "" {
		if len(chat.Spec.Sharing) == 0 {
			fmt.Fprintf(s.ErrOut, "Chat %s is not shared.\n", name)
		}
		for _, r := range chat.Spec.Sharing {
			fmt.Fprintln(s.Out, r.Describe())
		}
		return nil
	}
	return s.Say(render.ChatPrefix+name, chat, " has %s", render.Plural(len(chat.Spec.Sharing), "reader"))
}

// change reads the chat and writes its readers, if the flags change them.
func (f *shareOptions) change(ctx context.Context, s *session, name string) (*v1beta1.Chat, error) {
	chat, err := s.Chat(ctx, name)
	if err != nil || len(f.with)+len(f.remove) == 0 {
		return chat, err
	}
	sharing, err := f.apply(chat.Spec.Sharing, chat.Namespace)
	if err != nil {
		return nil, usageError{err}
	}
	chat, err = s.Chats().MergePatch(ctx, name, map[string]any{
		"metadata": map[string]any{"resourceVersion": chat.ResourceVersion}, // The list is replaced as a whole.
		"spec":     map[string]any{"sharing": sharing}})
	if err != nil {
		return nil, fmt.Errorf("sharing chat %s: %w", name, err)
	}
	return chat, nil
}

// check refuses flags that do not fit together. hasEnd is true if --for is given.
func (f *shareOptions) check(hasEnd bool) error {
	if hasEnd && len(f.with) == 0 {
		return errors.New("--for is the time of the readers of --with: name them")
	}
	if !f.list && len(f.with)+len(f.remove) == 0 {
		return errors.New("name readers by --with or --remove, or use --list")
	}
	if hasEnd && f.lasts <= 0 {
		return fmt.Errorf("--for is %s: it must be positive; without --for, access has no end", &f.lasts)
	}
	return nil
}

// apply adds and removes readers of a chat in a namespace. One who is there already gets the new end. The API takes one
// entry for a kind and a name, so that a service account must not replace that of another namespace.
func (f *shareOptions) apply(sharing []v1beta1.ChatShare, namespace string) ([]v1beta1.ChatShare, error) {
	for i, text := range slices.Concat(f.remove, f.with) {
		reader, err := readerOf(text)
		if err != nil {
			return nil, err
		}
		at := slices.IndexFunc(sharing, func(r v1beta1.ChatShare) bool {
			return r.Kind == reader.Kind && r.Name == reader.Name
		})
		adds := i >= len(f.remove)
		wanted, there := cmp.Or(reader.Namespace, namespace), ""
		if at >= 0 {
			there = cmp.Or(sharing[at].Namespace, namespace)
		}
		switch {
		case there == wanted:
			sharing = slices.Delete(slices.Clone(sharing), at, at+1)
		case !adds:
			return nil, fmt.Errorf("the chat is not shared with %s: --list prints the readers", text)
		case there != "":
			return nil, fmt.Errorf("the chat is shared with the service account %s of namespace %s, and has one reader of "+
				"each name: remove that one, or name yours as user:system:serviceaccount:%s:%s", reader.Name, there, wanted,
				reader.Name)
		}
		if adds {
			sharing = append(sharing, f.until(reader))
		}
	}
	return sharing, nil
}

// until gives a reader the end of --for.
func (f *shareOptions) until(reader v1beta1.ChatShare) v1beta1.ChatShare {
	if f.lasts > 0 {
		reader.Until = &metav1.Time{Time: time.Now().Add(time.Duration(f.lasts))}
	}
	return reader
}

func readerOf(text string) (v1beta1.ChatShare, error) {
	kind, name, _ := strings.Cut(text, ":")
	for _, known := range []v1beta1.ShareKind{v1beta1.ShareUser, v1beta1.ShareGroup, v1beta1.ShareServiceAccount} {
		if name == "" || !strings.EqualFold(kind, string(known)) {
			continue
		}
		reader := v1beta1.ChatShare{Kind: known, Name: name}
		if namespace, account, found := strings.Cut(name, ":"); found && known == v1beta1.ShareServiceAccount {
			reader.Namespace, reader.Name = namespace, account
		}
		return reader, nil
	}
	return v1beta1.ChatShare{}, fmt.Errorf(
		"%q is no reader: use user:NAME, group:NAME, serviceaccount:NAME or serviceaccount:NAMESPACE:NAME", text)
}
