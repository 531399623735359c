// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/printers"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/cost"
)

// What usage can be told by.
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
		Short: "Show the tokens that chats took, and what they cost",
		Long: "Shows tokens and costs of a chat, of the chats of the namespace, or with -A of all namespaces. By chat it " +
			"is what the status of the chats has, of messages that were deleted since, too. By model, config or day (UTC) it " +
			"is the sum of the replies that exist.",
		Example: "  kubectl chat usage triage --by model\n  kubectl chat usage -A --by day",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 1 && everywhere {
				return usageError{errors.New("name a chat, or all namespaces with -A")}
			}
			if !slices.Contains([]string{byChat, byModel, byConfig, byDay}, by) {
				return usageError{fmt.Errorf("--by %q is not known; it can be chat, model, config or day", by)}
			}
			s, err := o.connect(outJSON, outYAML)
			if err != nil {
				return err
			}
			if everywhere {
				s.objects.namespace = ""
			}
			return s.usage(cmd.Context(), strings.Join(args, ""), by)
		},
	}
	cmd.Flags().StringVar(&by, "by", byChat, "chat, model, config or day")
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "of all namespaces")
	return cmd
}

// spent is what something took and cost.
type spent struct {
	// Of is the chat (with its namespace), model, ChatModelConfig or day.
	Of    string              `json:"of"`
	Usage v1alpha1.TokenUsage `json:"usage"`
	Cost  []v1alpha1.Cost     `json:"cost,omitempty"`
}

// add counts a call of a model.
func (s *spent) add(u *v1alpha1.TokenUsage, costs ...v1alpha1.Cost) {
	s.Usage, s.Cost = s.Usage.Add(*u), cost.Total(s.Cost, costs)
}

func (s *session) usage(ctx context.Context, chat, by string) error {
	if chat != "" {
		if err := s.objects.checkChat(ctx, chat); err != nil {
			return err
		}
	}
	gather := s.objects.spentByReplies
	if by == byChat {
		gather = s.objects.spentByChats
	}
	counts, err := gather(ctx, chat, by)
	if err != nil {
		return err
	}
	all := make([]spent, 0, len(counts))
	for _, of := range slices.Sorted(maps.Keys(counts)) {
		all = append(all, *counts[of])
	}
	if s.options.output != "" {
		return s.options.print(map[string]any{"usage": all})
	}
	return s.options.printSpent(by, all)
}

// spentByChats is what the status of chats says.
func (o objects) spentByChats(ctx context.Context, chat, _ string) (map[string]*spent, error) {
	options := metav1.ListOptions{Limit: listPage}
	if chat != "" {
		options.FieldSelector = "metadata.name=" + chat
	}
	counts := map[string]*spent{}
	err := eachPage(ctx, options, o.chats().List, func(page *v1alpha1.ChatList) {
		for i := range page.Items {
			c := &page.Items[i]
			of := c.Name
			if o.namespace == "" {
				of = c.Namespace + "/" + c.Name
			}
			counts[of] = &spent{Of: of}
			counts[of].add(&c.Status.Usage, c.Status.Cost...)
			counts[of].add(&c.Status.AdvisorUsage)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing the chats: %w", err)
	}
	return counts, nil
}

// spentByReplies is the sum of what the replies of models took.
func (o objects) spentByReplies(ctx context.Context, chat, by string) (map[string]*spent, error) {
	counts := map[string]*spent{}
	err := eachPage(ctx, ofChat(chat), o.messages().List, func(page *v1alpha1.ChatMessageList) {
		for i := range page.Items {
			count(counts, &page.Items[i], by)
		}
	})
	if err != nil {
		return nil, fmt.Errorf("listing the messages: %w", err)
	}
	return counts, nil
}

// count adds what a message took.
func count(counts map[string]*spent, m *v1alpha1.ChatMessage, by string) {
	g := m.Spec.Generation
	if g == nil || g.Usage == nil && g.Cost == nil {
		return
	}
	of := keyOf(m, by)
	if counts[of] == nil {
		counts[of] = &spent{Of: of}
	}
	usage, costs := &v1alpha1.TokenUsage{}, []v1alpha1.Cost{}
	if g.Usage != nil {
		usage = g.Usage
	}
	if g.Cost != nil {
		costs = append(costs, *g.Cost)
	}
	counts[of].add(usage, costs...)
}

// keyOf is what a reply is counted under; empty if that is not known.
func keyOf(m *v1alpha1.ChatMessage, by string) string {
	model := m.Spec.Generation.Model
	switch {
	case by == byDay:
		return m.CreationTimestamp.UTC().Format(time.DateOnly)
	case model == nil:
		return ""
	case by == byModel:
		return model.Name
	}
	return model.Config
}

// printSpent prints a table with the sum of several below it.
func (o *options) printSpent(by string, all []spent) error {
	table := printers.GetNewTabWriter(o.Out)
	fmt.Fprintln(table, strings.ToUpper(by)+"\tINPUT\tCACHED\tOUTPUT\tTOTAL\tCOST")
	row := func(of string, s *spent) {
		number := func(n int64) string { return strconv.FormatInt(n, 10) }
		said := costsOf(s.Cost)
		if said == "" {
			said = "<none>"
		}
		fmt.Fprintln(table, strings.Join([]string{of, number(s.Usage.InputTokens), number(s.Usage.CacheReadTokens),
			number(s.Usage.OutputTokens), number(s.Usage.TotalTokens), said}, "\t"))
	}
	sum := &spent{}
	for i := range all {
		of := escapeLine(flat(all[i].Of))
		if of == "" {
			of = "<unknown>"
		}
		row(of, &all[i])
		sum.add(&all[i].Usage, all[i].Cost...)
	}
	if len(all) != 1 {
		row("SUM", sum)
	}
	if err := table.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}
