// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/render"
)

type shareOptions struct {
	with, remove []string
	lasts        time.Duration
	list         bool
}

func newShare(o *options) *cobra.Command {
	var f shareOptions
	cmd := &cobra.Command{
		Use:   "share CHAT",
		Short: "Let others read a chat and its sub-chats",
		Long: "Changes spec.sharing: who may read the chat and its sub-chats through the gateway. A reader is user:NAME, " +
			"group:NAME, or serviceaccount:NAME of the chat's namespace. Without --for, access lasts until it is removed. " +
			"Condition Shared of the chat reports what is in force. Takes the verb share on chats (ClusterRole " +
			"parley-chat-admin).",
		Example: "  kubectl chat share triage --with user:jane --for 24h\n  kubectl chat share triage --list",
		Args:    cobra.ExactArgs(1),
		RunE: o.connected(func(ctx context.Context, s *session, args []string) error {
			return f.run(ctx, s, args[0])
		}, forms...),
	}
	cmd.Flags().StringArrayVar(&f.with, "with", nil, "a reader, such as user:jane; it can be repeated")
	cmd.Flags().StringArrayVar(&f.remove, "remove", nil, "a reader who loses access; it can be repeated")
	cmd.Flags().DurationVar(&f.lasts, "for", 0, "how long the readers of --with have access; default: until removed")
	cmd.Flags().BoolVar(&f.list, "list", false, "print the readers")
	return cmd
}

func (f *shareOptions) run(ctx context.Context, s *session, name string) error {
	if err := f.check(); err != nil {
		return usageError{err}
	}
	chat, err := s.Chat(ctx, name)
	if err != nil {
		return err
	}
	sharing, err := f.apply(chat.Spec.Sharing)
	if err != nil {
		return usageError{err}
	}
	if len(f.with)+len(f.remove) > 0 {
		chat, err = s.Chats().MergePatch(ctx, name, map[string]any{
			"metadata": map[string]any{"resourceVersion": chat.ResourceVersion}, // The list is replaced as a whole.
			"spec":     map[string]any{"sharing": sharing}})
		if err != nil {
			return fmt.Errorf("sharing chat %s: %w", name, err)
		}
	}
	if f.list && s.Format == "" {
		for _, r := range chat.Spec.Sharing {
			fmt.Fprintln(s.Out, r.Describe())
		}
		return nil
	}
	return s.Say(render.ChatPrefix+name, chat, " has %s", render.Plural(len(chat.Spec.Sharing), "reader"))
}

func (f *shareOptions) check() error {
	if !f.list && len(f.with)+len(f.remove) == 0 {
		return errors.New("name readers by --with or --remove, or use --list")
	}
	if f.lasts < 0 { // Without an end, which is what zero means, is the opposite of what it says.
		return fmt.Errorf("--for is %s: it must not be negative", f.lasts)
	}
	return nil
}

// apply adds and removes readers. One who is there already gets the new end.
func (f *shareOptions) apply(sharing []v1beta1.ChatShare) ([]v1beta1.ChatShare, error) {
	for i, text := range slices.Concat(f.remove, f.with) {
		reader, err := readerOf(text)
		if err != nil {
			return nil, err
		}
		sharing = slices.DeleteFunc(slices.Clone(sharing), func(r v1beta1.ChatShare) bool {
			return r.Kind == reader.Kind && r.Name == reader.Name
		})
		if i < len(f.remove) {
			continue
		}
		if f.lasts > 0 {
			reader.Until = &metav1.Time{Time: time.Now().Add(f.lasts)}
		}
		sharing = append(sharing, reader)
	}
	return sharing, nil
}

func readerOf(text string) (v1beta1.ChatShare, error) {
	kind, name, _ := strings.Cut(text, ":")
	for _, known := range []v1beta1.ShareKind{v1beta1.ShareUser, v1beta1.ShareGroup, v1beta1.ShareServiceAccount} {
		if name != "" && strings.EqualFold(kind, string(known)) {
			return v1beta1.ChatShare{Kind: known, Name: name}, nil
		}
	}
	return v1beta1.ChatShare{}, fmt.Errorf("%q is no reader: use user:NAME, group:NAME or serviceaccount:NAME", text)
}
