// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
)

// The values of --by.
const (
	byChat   = "chat"
	byModel  = "model"
	byConfig = "config"
	byDay    = "day"
)

func newUsage(o *options) *cobra.Command {
	by, everywhere := byChat, false
	cmd := &cobra.Command{
		Use:   "usage [CHAT]",
		Short: "Show tokens and costs by chat, model, ChatModelConfig or day",
		Long: "Shows tokens and costs of a chat, of the chats of the namespace, or with -A of all namespaces. By chat it " +
			"shows status.usage, status.advisorUsage and status.cost, which include deleted messages. By model, config or day " +
			"(UTC) it sums up the calls of the messages that exist. Currencies are never added to each other.",
		Example: "  kubectl chat usage triage --by model\n  kubectl chat usage -A --by day",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && everywhere {
				return usageError{errors.New("name a chat, or all namespaces with -A")}
			}
			if !slices.Contains([]string{byChat, byModel, byConfig, byDay}, by) {
				return usageError{fmt.Errorf("--by %q is not known; it can be chat, model, config or day", by)}
			}
			s, err := o.connect(render.FormatJSON, render.FormatYAML)
			if err != nil {
				return err
			}
			if everywhere {
				s.Namespace = ""
			}
			return showUsage(cmd.Context(), s, strings.Join(args, ""), by)
		},
	}
	cmd.Flags().StringVar(&by, "by", byChat, "chat, model, config or day")
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

func showUsage(ctx context.Context, s *session, chat, by string) error {
	if chat != "" {
		if err := s.CheckChat(ctx, chat); err != nil {
			return err
		}
	}
	counts := map[string]render.Spent{}
	add := func(of string, usage *v1beta1.TokenUsage, costs ...v1beta1.Cost) {
		spent := counts[of]
		spent.Of = of
		spent.Add(usage, costs...)
		counts[of] = spent
	}
	var err error
	if by == byChat {
		err = countChats(ctx, s.Objects, chat, add)
	} else {
		err = countReplies(ctx, s.Objects, chat, by, add)
	}
	if err != nil {
		return err
	}
	all := make([]render.Spent, 0, len(counts))
	for _, of := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, counts[of])
	}
	if s.Format != "" {
		return s.Print(map[string]any{"usage": all})
	}
	return render.PrintSpent(s.Out, by, all)
}

// countChats adds the usage in the status of chats.
func countChats(ctx context.Context, o cluster.Objects, chat string,
	add func(of string, usage *v1beta1.TokenUsage, costs ...v1beta1.Cost)) error {
	err := cluster.Each(ctx, listOf(chat), o.Chats().List, func(c *v1beta1.Chat) {
		of := c.Name
		if o.Namespace == "" {
			of = c.Namespace + "/" + c.Name
		}
		add(of, &c.Status.Usage, c.Status.Cost...)
		add(of, &c.Status.AdvisorUsage)
	})
	if err != nil {
		return fmt.Errorf("listing the chats: %w", err)
	}
	return nil
}

// listOf returns the options to list all chats, or one.
func listOf(chat string) metav1.ListOptions {
	options := cluster.InPages()
	if chat != "" {
		options.FieldSelector = "metadata.name=" + chat
	}
	return options
}

// forksOf returns the forks among the chats.
func forksOf(ctx context.Context, o cluster.Objects, chat string) (map[types.NamespacedName]*v1beta1.Chat, error) {
	forks := map[types.NamespacedName]*v1beta1.Chat{}
	err := cluster.Each(ctx, listOf(chat), o.Chats().List, func(c *v1beta1.Chat) {
		if c.Spec.Fork != nil {
			forks[types.NamespacedName{Namespace: c.Namespace, Name: c.Name}] = c
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing the chats: %w", err)
	}
	return forks, nil
}

// countReplies adds the usage of the replies of models.
func countReplies(ctx context.Context, o cluster.Objects, chat, by string,
	add func(of string, usage *v1beta1.TokenUsage, costs ...v1beta1.Cost)) error {
	forks, err := forksOf(ctx, o, chat)
	if err != nil {
		return err
	}
	err = cluster.Each(ctx, cluster.MessagesOf(chat), o.Messages().List, func(m *v1beta1.ChatMessage) {
		if of := forks[types.NamespacedName{Namespace: m.Namespace, Name: m.Spec.ChatRef.Name}]; of != nil &&
			cost.IsCopy(of, m) {
			return
		}
		for _, call := range cost.Calls(m.Spec.Generation) {
			var costs []v1beta1.Cost
			if call.Cost != nil {
				costs = append(costs, *call.Cost)
			}
			add(keyOf(m, call.Model, by), &call.Usage, costs...)
		}
	})
	if err != nil {
		return fmt.Errorf("listing the messages: %w", err)
	}
	return nil
}

// keyOf returns the model, config or day of a call; empty if that is not known.
func keyOf(m *v1beta1.ChatMessage, model *v1beta1.ModelIdentity, by string) string {
	switch {
	case by == byDay:
		return m.Spec.Generation.FinishedAt.UTC().Format(time.DateOnly)
	case model == nil:
		return ""
	case by == byModel:
		return model.Name
	}
	return model.Config
}
