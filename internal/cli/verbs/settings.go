// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/cli/render"
)

func newSettings(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "settings CHAT",
		Short: "Show the effective settings, and where they come from",
		Long: "Prints the settings of a chat from the next step on, as YAML: those of the chat, those of its ChatClass " +
			"where the chat sets none, and the effect of the restrictions of the class on both. Settings that are not set are " +
			"omitted. It reads them with your own rights, which must let you read ChatClasses. With -o json each setting has " +
			"its path, value and from (Chat, ChatClass, Restrictions, NamespaceDefault).",
		Example: "  kubectl chat settings triage\n  kubectl chat settings triage -o json",
		Args:    cobra.ExactArgs(1),
		RunE: o.connected(func(ctx context.Context, s *session, args []string) error {
			return showSettings(ctx, s, args[0])
		}, render.FormatJSON, render.FormatYAML),
	}
}

func showSettings(ctx context.Context, s *session, name string) error {
	chat, err := s.Chat(ctx, name)
	if err != nil {
		return err
	}
	classes, err := s.Client.Classes(s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the ChatClasses, which say what the chat leaves unsaid: %w", err)
	}
	class, missing := chatclass.Resolve(classes.Items, &chat.Spec)
	if missing != nil {
		return errors.New(missing.Text())
	}
	of := render.Settings{Chat: chat.Name, IsSubChat: chat.Spec.ParentRef != nil}
	namespace := chatclass.Namespace(classes.Items)
	of.ChatClass, of.NamespaceClass = nameOf(class), nameOf(namespace)
	of.Settings, of.Ignored = chatclass.Explain(chat, class, namespace)
	if s.Format == render.FormatJSON {
		return render.PrintJSON(s.Out, of)
	}
	return of.Print(s.Out)
}

func nameOf(class *v1beta1.ChatClass) string {
	if class == nil {
		return ""
	}
	return class.Name
}
