// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/netguard/retry"
)

type listOptions struct {
	allNamespaces bool
	archived      bool
	noHeaders     bool
	selector      string
	watch         bool
}

// seeGet leads from ls to the verb that does more.
const seeGet = "kubectl chat get prints one chat, and sorts and prints as kubectl get does"

func newLs(o *options) *cobra.Command {
	var lo listOptions
	cmd := &cobra.Command{
		Use:     "ls",
		Aliases: []string{"list"},
		Short:   "List chats, and what they wait for",
		Long: "Lists the chats of the namespace. WAITS FOR counts the calls that wait for people (approval, answer) or " +
			"clients; without such calls it shows what else the chat waits for, as in status.wait. -o wide adds tokens, the " +
			"parent chat, the outcome of the turn, and how the newest reply begins. With --watch each change is a new line, " +
			"until ctrl-C.",
		Example: "  kubectl chat ls\n  kubectl chat ls -A --all -o wide\n  kubectl chat ls -l team=blue --watch",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) > 0 {
				return fmt.Errorf("ls lists all chats, and takes no arguments such as %q: %s", args[0], seeGet)
			}
			return nil
		},
		RunE: o.connected(func(ctx context.Context, s *session, _ []string) error {
			return listChats(ctx, s, lo)
		}, tables...),
	}
	cmd.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return fmt.Errorf("%w; %s", err, seeGet) })
	flags := cmd.Flags()
	flags.BoolVarP(&lo.allNamespaces, "all-namespaces", "A", false, "list the chats of all namespaces")
	flags.BoolVar(&lo.archived, "all", false, "list archived chats, too")
	flags.BoolVar(&lo.noHeaders, "no-headers", false, "print no names of columns")
	flags.StringVarP(&lo.selector, "selector", "l", "", "labels of the chats to list, such as team=blue")
	flags.BoolVarP(&lo.watch, "watch", "w", false, "after the list, print what changes")
	return cmd
}

func listChats(ctx context.Context, s *session, lo listOptions) error {
	if lo.allNamespaces {
		s.Namespace = ""
	}
	all, err := chatsToList(ctx, s, lo)
	if err != nil {
		return fmt.Errorf("listing the chats: %w", err)
	}
	if len(all.Items) == 0 && !lo.watch && s.Format != render.FormatJSON && s.Format != render.FormatYAML {
		fmt.Fprintln(s.ErrOut, none(s.Namespace))
		return nil
	}
	out := render.NewChatTable(&s.Output, lo.allNamespaces)
	out.NoHeaders = lo.noHeaders
	if err := out.PrintList(all); err != nil || !lo.watch {
		return err
	}
	return watchList(ctx, s, out, lo, all.ResourceVersion)
}

// chatsToList reads the chats, with the version to watch from.
func chatsToList(ctx context.Context, s *session, lo listOptions) (*v1beta1.ChatList, error) {
	all, options := &v1beta1.ChatList{}, cluster.InPages()
	options.LabelSelector = lo.selector
	list := func(ctx context.Context, options metav1.ListOptions) (*v1beta1.ChatList, error) {
		page, err := s.Chats().List(ctx, options)
		if err == nil {
			all.ResourceVersion = page.ResourceVersion
		}
		return page, err
	}
	return all, cluster.Each(ctx, options, list, func(c *v1beta1.Chat) {
		if lo.archived || !c.Status.Archived {
			all.Items = append(all.Items, *c)
		}
	})
}

func none(namespace string) string {
	if namespace == "" {
		return "No chats found."
	}
	return "No chats found in namespace " + namespace + "."
}

// watchList prints each change after a list, also those between two watches.
func watchList(ctx context.Context, s *session, out *render.ChatTable, lo listOptions, version string) error {
	outage := cluster.Outage{Report: func(err error) { terminal.NewScreen(s.ErrOut).Line("[%v]", err) }}
	for ctx.Err() == nil {
		var err error
		if version, err = watchOnce(ctx, s, out, lo, version, &outage); err != nil && ctx.Err() == nil {
			return err
		}
		_ = retry.Sleep(ctx, cluster.ReconnectAfter) // The loop looks.
	}
	return nil
}

// watchOnce prints changes until the API server ends the watch, and returns the version to continue from.
func watchOnce(ctx context.Context, s *session, out *render.ChatTable, lo listOptions, version string,
	outage *cluster.Outage) (string, error) {
	events, failed := s.Chats().Watch(ctx, metav1.ListOptions{LabelSelector: lo.selector, ResourceVersion: version})
	if err := outage.Tolerate(failed); err != nil {
		return version, fmt.Errorf("watching the chats: %w", err)
	}
	if failed != nil {
		return version, nil
	}
	defer events.Stop()
	for e := range events.ResultChan() {
		chat, ok := e.Object.(*v1beta1.Chat)
		if !ok { // The version is too old: all chats come as new ones.
			return "", nil
		}
		version = chat.ResourceVersion
		if e.Type == watch.Deleted || chat.Status.Archived && !lo.archived {
			continue
		}
		if err := out.PrintChange(chat); err != nil {
			return version, err
		}
	}
	return version, nil
}
