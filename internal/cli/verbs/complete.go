// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/printable"
)

// completing is how long a person waits for what could be typed when the cluster does not answer.
const completing = 2 * time.Second

// finder finds what could be typed behind the arguments that were. What it has found when time is over counts.
type finder func(ctx context.Context, s *session, args []string, found func(name, description string)) error

// valuesOf are what could be typed for flags that name objects.
var valuesOf = map[string]finder{"namespace": namespaces, "gateway-namespace": namespaces, "context": contexts,
	"class": classes, "model": modelConfigs}

// wordsOf are the values of flags that have few.
var wordsOf = map[string][]string{
	"mode":       {string(v1alpha1.ModePlan), string(v1alpha1.ModeExplore)},
	"visibility": {string(v1alpha1.VisibleToAll), string(v1alpha1.VisibleToModel), string(v1alpha1.VisibleToPeople)},
	"by":         {byChat, byModel, byConfig, byDay},
	"output":     {render.FormatJSON, render.FormatYAML, render.FormatName, render.FormatWide, outMarkdown, outLines},
}

// completeFlags lets shells ask what could be typed for flags.
func completeFlags(o *options, cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if find := valuesOf[flag.Name]; find != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, completesFlag(o, find)) // There is such a flag.
		}
		if words := wordsOf[flag.Name]; words != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
		}
	})
}

// completes finds what could be typed for the next argument.
func completes(o *options, finders []finder) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		args, err := plainNames(cmd.Use, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if len(args) >= len(finders) {
			if cmd.Name() != "answer" { // It takes a call more, and another one.
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return findNames(cmd.Context(), o, finders[len(finders)-1], args, begun)
		}
		return findNames(cmd.Context(), o, finders[len(args)], args, begun)
	}
}

func completesFlag(o *options, find finder) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return findNames(cmd.Context(), o, find, args, begun)
	}
}

// findNames asks the cluster, and goes without what it does not say in time. Errors are not shown to who is typing.
func findNames(ctx context.Context, o *options, find finder, args []string, begun string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, completing)
	defer cancel()
	found, directive := make(chan cobra.Completion), cobra.ShellCompDirectiveNoFileComp
	go func() {
		defer close(found)
		s, err := o.quietly()
		if err != nil {
			return
		}
		_ = find(ctx, s, args, func(name, description string) {
			select {
			case found <- cobra.CompletionWithDesc(name, terminal.EscapeLine(render.OneLine(printable.Line(description)))):
			case <-ctx.Done():
			}
		})
	}()
	var all []cobra.Completion
	for {
		select {
		case name, more := <-found:
			if !more {
				return all, directive
			}
			if strings.HasPrefix(name, begun) {
				all = append(all, name)
			}
			if word, _, _ := strings.Cut(name, "\t"); strings.HasSuffix(word, "=") {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
		case <-ctx.Done(): // A program that brings credentials may not know of it.
			return all, directive
		}
	}
}

// quietly connects to the cluster without a word to whoever is typing, or a question.
func (o *options) quietly() (*session, error) {
	cfg, err := o.config.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	cfg.WarningHandler = rest.NoWarnings{}
	if cfg.ExecProvider != nil {
		cfg.ExecProvider.StdinUnavailable = true
	}
	return o.session(cfg)
}

// maxNamespaces is how many namespaces are named at most.
const maxNamespaces = 1000

var (
	allChats  = chatsThat(func(*v1alpha1.Chat) bool { return true })
	openChats = chatsThat(func(c *v1alpha1.Chat) bool { return !c.Status.Archived })
)

// chatsThat finds the chats of the namespace that are to be kept.
func chatsThat(keep func(*v1alpha1.Chat) bool) finder {
	return func(ctx context.Context, s *session, _ []string, found func(name, description string)) error {
		return cluster.Each(ctx, cluster.InPages(), s.Chats().List, func(c *v1alpha1.Chat) {
			if keep(c) {
				found(c.Name, fmt.Sprintf("%s %s", c.Status.Phase, c.Status.Title))
			}
		})
	}
}

// messagesThat finds the messages of the chat that are to be kept.
func messagesThat(keep func(*v1alpha1.ChatMessage) bool) finder {
	return func(ctx context.Context, s *session, args []string, found func(name, description string)) error {
		return cluster.Each(ctx, cluster.MessagesOf(args[0]), s.Messages().List, func(m *v1alpha1.ChatMessage) {
			if keep(m) {
				found(m.Name, string(m.Spec.Role)+": "+render.OneLine(m.Spec.Content))
			}
		})
	}
}

// queuedMessages finds the messages of the chat that wait.
func queuedMessages(ctx context.Context, s *session, args []string, found func(name, description string)) error {
	chat, err := s.Chats().Get(ctx, args[0])
	if err != nil {
		return err
	}
	for _, m := range chat.Status.Queue {
		found(m.Name, "")
	}
	return nil
}

// callsThat finds the calls of the chat that need one of those things. They are typed with what ends them.
func callsThat(end string, needs ...render.Need) finder {
	return func(ctx context.Context, s *session, args []string, found func(name, description string)) error {
		chat, err := s.Chats().Get(ctx, args[0])
		if err != nil || chat.Status.RequiresAction == nil {
			return err
		}
		for i := range chat.Status.RequiresAction.ToolCalls {
			if call := &chat.Status.RequiresAction.ToolCalls[i]; slices.Contains(needs, render.NeedOf(call)) {
				found(call.ID+end, call.Name+" "+call.Input)
			}
		}
		return nil
	}
}

func classes(ctx context.Context, s *session, _ []string, found func(name, description string)) error {
	return cluster.Each(ctx, cluster.InPages(), s.Client.Classes(s.Namespace).List,
		func(c *v1alpha1.ChatClass) { found(c.Name, c.Spec.Description) })
}

func modelConfigs(ctx context.Context, s *session, _ []string, found func(name, description string)) error {
	return cluster.Each(ctx, cluster.InPages(), s.Client.ModelConfigs(s.Namespace).List,
		func(c *v1alpha1.ChatModelConfig) { found(c.Name, c.Spec.Model) })
}

func namespaces(ctx context.Context, s *session, _ []string, found func(name, description string)) error {
	all, _, err := s.Client.Namespaces(ctx, maxNamespaces)
	for _, name := range all {
		found(name, "")
	}
	return err
}

// contexts finds those of the kubeconfig, without asking a cluster.
func contexts(_ context.Context, s *session, _ []string, found func(name, description string)) error {
	config, err := s.config.ToRawKubeConfigLoader().RawConfig()
	if err != nil {
		return fmt.Errorf("reading the kubeconfig: %w", err)
	}
	for _, name := range slices.Sorted(maps.Keys(config.Contexts)) {
		found(name, config.Contexts[name].Namespace)
	}
	return nil
}
