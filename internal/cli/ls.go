// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/duration"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/cli-runtime/pkg/printers"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/netguard/retry"
)

// listOptions say which chats are listed, and how.
type listOptions struct {
	allNamespaces bool
	archived      bool
	selector      string
	watch         bool
}

func newLs(o *options) *cobra.Command {
	var lo listOptions
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List chats, and what waits for whom",
		Long: "Lists the chats of the namespace: how each stands, who answers, how many messages are committed and wait, " +
			"what it has cost, and which calls wait for people or clients. Archived chats are left out without --all. " +
			"With --watch each change is a further line, until ctrl-C.",
		Example: "  kubectl chat ls\n  kubectl chat ls -A --all -o wide\n  kubectl chat ls -l team=blue --watch",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := o.connect(outName, outWide, outJSON, outYAML)
			if err != nil {
				return err
			}
			return s.list(cmd.Context(), lo)
		},
	}
	flags := cmd.Flags()
	flags.BoolVarP(&lo.allNamespaces, "all-namespaces", "A", false, "list the chats of all namespaces")
	flags.BoolVar(&lo.archived, "all", false, "list archived chats, too")
	flags.StringVarP(&lo.selector, "selector", "l", "", "labels of the chats to list, such as team=blue")
	flags.BoolVarP(&lo.watch, "watch", "w", false, "after the list, print what changes")
	return cmd
}

func (s *session) list(ctx context.Context, lo listOptions) error {
	if lo.allNamespaces {
		s.objects.namespace = ""
	}
	out := newLister(s.options, lo.allNamespaces)
	all, err := s.objects.listed(ctx, lo)
	if err != nil {
		return err
	}
	if len(all.Items) == 0 && !lo.watch && s.options.output != outJSON && s.options.output != outYAML {
		fmt.Fprintln(s.options.ErrOut, none(s.objects.namespace))
		return nil
	}
	if err := out.all(all); err != nil || !lo.watch {
		return err
	}
	return s.watchList(ctx, out, lo, all.ResourceVersion)
}

// listed are the chats to list.
func (o objects) listed(ctx context.Context, lo listOptions) (*v1alpha1.ChatList, error) {
	all := &v1alpha1.ChatList{}
	err := eachPage(ctx, metav1.ListOptions{LabelSelector: lo.selector, Limit: listPage}, o.chats().List,
		func(page *v1alpha1.ChatList) {
			all.Items, all.ResourceVersion = append(all.Items, page.Items...), page.ResourceVersion
		})
	if err != nil {
		return nil, fmt.Errorf("listing the chats: %w", err)
	}
	all.Items = slices.DeleteFunc(all.Items, func(c v1alpha1.Chat) bool { return c.Status.Archived && !lo.archived })
	return all, nil
}

// none says that there are no chats to list.
func none(namespace string) string {
	if namespace == "" {
		return "No chats found."
	}
	return "No chats found in namespace " + namespace + "."
}

// watchList prints each change behind a list, and what happened while the API server had ended the watch.
func (s *session) watchList(ctx context.Context, out *lister, lo listOptions, version string) error {
	for ctx.Err() == nil {
		var err error
		if version, err = s.watchOnce(ctx, out, lo, version); err != nil && ctx.Err() == nil {
			return err
		}
		_ = retry.Sleep(ctx, reconnectAfter) // The loop looks.
	}
	return nil
}

// watchOnce prints changes until the API server ends the watch, and returns behind which version to continue.
func (s *session) watchOnce(ctx context.Context, out *lister, lo listOptions, version string) (string, error) {
	events, err := s.objects.chats().Watch(ctx, metav1.ListOptions{LabelSelector: lo.selector, ResourceVersion: version})
	if err != nil {
		return version, fmt.Errorf("watching the chats: %w", err)
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		chat, ok := e.Object.(*v1alpha1.Chat)
		if !ok { // The version is too old: what is there comes as if it were new.
			return "", nil
		}
		version = chat.ResourceVersion
		if e.Type == watch.Deleted || chat.Status.Archived && !lo.archived {
			continue
		}
		if err := out.one(chat); err != nil {
			return version, err
		}
	}
	return version, nil
}

// lister prints chats as rows of a table, or as programs ask for.
type lister struct {
	options    *options
	namespaces bool
	table      interface {
		io.Writer
		Flush() error
	}
}

func newLister(o *options, namespaces bool) *lister {
	return &lister{options: o, namespaces: namespaces, table: printers.GetNewTabWriter(o.Out)}
}

// all prints a list.
func (l *lister) all(list *v1alpha1.ChatList) error {
	switch l.options.output {
	case outJSON, outYAML:
		return l.options.print(list)
	case outName:
	default:
		l.heading()
	}
	for i := range list.Items {
		l.row(&list.Items[i])
	}
	return l.flush()
}

// one prints a chat that has changed.
func (l *lister) one(chat *v1alpha1.Chat) error {
	switch l.options.output {
	case outJSON:
		return l.options.print(chat)
	case outYAML:
		fmt.Fprintln(l.options.Out, "---")
		return l.options.print(chat)
	}
	l.row(chat)
	return l.flush()
}

func (l *lister) flush() error {
	if err := l.table.Flush(); err != nil {
		return fmt.Errorf("printing: %w", err)
	}
	return nil
}

func (l *lister) heading() {
	columns := []string{"NAME", "PHASE", "REASON", "MODEL", "MSGS", "QUEUED", "COST", "WAITS FOR", "AGE", "TITLE"}
	if l.options.output == outWide {
		columns = append(columns, "TOKENS", "PARENT", "TURN", "LAST REPLY")
	}
	if l.namespaces {
		columns = append([]string{"NAMESPACE"}, columns...)
	}
	fmt.Fprintln(l.table, strings.Join(columns, "\t"))
}

func (l *lister) row(chat *v1alpha1.Chat) {
	if l.options.output == outName {
		fmt.Fprintln(l.options.Out, chatNamed+chat.Name)
		return
	}
	st := &chat.Status
	cells := []string{chat.Name, string(st.Phase), reasonOf(chat), st.Model, strconv.FormatInt(st.History.Length, 10),
		strconv.Itoa(len(st.Queue)), costsOf(st.Cost), waitOf(chat),
		duration.HumanDuration(time.Since(chat.CreationTimestamp.Time)), st.Title}
	if l.options.output == outWide {
		parent, turn := "", ""
		if chat.Spec.ParentRef != nil {
			parent = chat.Spec.ParentRef.Name
		}
		if st.Turn != nil {
			turn = st.Turn.Summary
		}
		cells = append(cells, strconv.FormatInt(st.Usage.TotalTokens, 10), parent, turn, st.LastReply)
	}
	if l.namespaces {
		cells = append([]string{chat.Namespace}, cells...)
	}
	for i := range cells {
		if cells[i] = escapeLine(flat(cells[i])); cells[i] == "" {
			cells[i] = "<none>"
		}
	}
	fmt.Fprintln(l.table, strings.Join(cells, "\t"))
}

// reasonOf is why the chat is Ready or not; what holds it comes first.
func reasonOf(chat *v1alpha1.Chat) string {
	if c := meta.FindStatusCondition(chat.Status.Conditions, v1alpha1.ConditionReady); c != nil {
		return c.Reason
	}
	return ""
}

// costsOf is money of several currencies.
func costsOf(costs []v1alpha1.Cost) string {
	said := make([]string, 0, len(costs))
	for _, c := range costs {
		said = append(said, cost.String(c.MicroUnits, c.Currency))
	}
	return strings.Join(said, ", ")
}

// waitOf says how many calls wait for whom, or what else the chat waits for.
func waitOf(chat *v1alpha1.Chat) string {
	switch {
	case chat.Status.RequiresAction != nil:
	case chat.Status.Wait != nil:
		return string(chat.Status.Wait.For)
	default:
		return ""
	}
	counts := map[wanted]int{}
	for i := range chat.Status.RequiresAction.ToolCalls {
		counts[waitsFor(&chat.Status.RequiresAction.ToolCalls[i])]++
	}
	var said []string
	for _, w := range []wanted{forApproval, forInput, forClient} {
		if counts[w] > 0 {
			said = append(said, plural(counts[w], string(w)))
		}
	}
	return strings.Join(said, ", ")
}
