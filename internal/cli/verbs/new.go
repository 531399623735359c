// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/cli/render"
)

type newOptions struct {
	class, model, title, mode string
	labels                    map[string]string
	noFollow                  bool
	timeout                   time.Duration
}

func newNew(o *options) *cobra.Command {
	var no newOptions
	cmd := &cobra.Command{
		Use:   "new [NAME [TEXT...]]",
		Short: "Create a chat and show the first reply",
		Long: "Creates a Chat. With a TEXT it starts at once, and the reply is shown as with send; TEXT - reads standard " +
			"input. Without a TEXT the chat waits for a message. If NAME ends with a hyphen, the API server completes it; " +
			"without a NAME it completes chat-.",
		Example: "  kubectl chat new triage \"Why does node-7 not get ready?\"\n  kubectl chat new review- --class " +
			"reviewer --label team=blue - < change.diff\n  kubectl chat new",
		Args: cobra.ArbitraryArgs,
		RunE: func(cmd *cobra.Command, args []string) error {
			chat, err := no.chat(o, args)
			if err != nil {
				return err
			}
			s, err := o.connect(outputsOf(no.noFollow || chat.Spec.Prompt == "")...)
			if err != nil {
				return err
			}
			return createChat(cmd.Context(), s, chat, no)
		},
	}
	no.addFlags(cmd)
	return cmd
}

func (no *newOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVar(&no.class, "class", "", "the ChatClass; default: that of the namespace")
	flags.StringVar(&no.model, "model", "",
		"the ChatModelConfig that answers; default: that of the class or the namespace")
	flags.StringVar(&no.title, "title", "", "the title; default: what a model writes, or how the first message begins")
	flags.StringVar(&no.mode, "mode", "", "Plan or Explore: what the model may do; default: all")
	flags.StringToStringVar(&no.labels, "label", nil, "labels of the chat, KEY=VALUE")
	flags.BoolVar(&no.noFollow, "no-follow", false, "do not wait for the reply; print the chat's name")
	flags.DurationVar(&no.timeout, "timeout", time.Hour, "how long to wait for the reply")
}

func (no *newOptions) chat(o *options, args []string) (*v1beta1.Chat, error) {
	name, words := generatedNamePrefix, args
	if len(args) > 0 && args[0] != "-" {
		name, words = args[0], args[1:]
	}
	chat := no.named(name)
	var err error
	chat.Spec.Prompt, err = o.textOf(words)
	return chat, err
}

// generatedNamePrefix begins the names that the API server generates for chats.
const generatedNamePrefix = "chat-"

// named returns a chat without a prompt. A name that ends with a hyphen is the prefix of a generated one.
func (no *newOptions) named(name string) *v1beta1.Chat {
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: no.labels}, Spec: v1beta1.ChatSpec{
		Title: no.title, ChatClassName: no.class, Mode: v1beta1.ChatMode(no.mode)}}
	if strings.HasSuffix(name, "-") {
		chat.Name, chat.GenerateName = "", name
	}
	if no.model != "" {
		chat.Spec.ModelConfigRef = &v1beta1.ModelConfigReference{Name: no.model}
	}
	return chat
}

// createChat creates a chat and shows the first reply, if there is one.
func createChat(ctx context.Context, s *session, chat *v1beta1.Chat, no newOptions) error {
	created, err := s.Chats().Create(ctx, chat)
	if err != nil {
		return fmt.Errorf("creating the chat: %w", err)
	}
	if no.noFollow || created.Spec.Prompt == "" {
		return s.Say(render.ChatPrefix+created.Name, created, " created")
	}
	announce(s, created, " created")
	return ask(ctx, s, question{chat: created.Name, first: true, timeout: no.timeout,
		ask: func(context.Context) (string, error) { return created.Name + plan.PromptSuffix, nil }})
}
