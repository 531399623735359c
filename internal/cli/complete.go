// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/printable"
)

// completing is how long a person waits for what could be typed when the cluster does not answer.
const completing = 2 * time.Second

// finder finds what could be typed behind the arguments that were. What it has found when time is over counts.
type finder func(ctx context.Context, s *session, args []string, found func(name, description string)) error

// argumentsOf are what could be typed for the arguments of each verb, in their order.
var argumentsOf = map[string][]finder{
	"send": {openChats}, "tail": {openChats}, "ui": {openChats}, "interrupt": {openChats}, "suspend": {openChats},
	"archive": {openChats}, "compact": {openChats}, "title": {openChats}, "clear": {openChats},
	"refresh-context": {openChats}, "calls": {openChats},
	"show": {allChats}, "usage": {allChats}, "export": {allChats}, "settings": {allChats}, "debug": {allChats},
	"unarchive": {chatsThat(func(c *v1alpha1.Chat) bool { return c.Spec.Archived })},
	"resume":    {chatsThat(func(c *v1alpha1.Chat) bool { return c.Spec.Suspend })},
	"edit": {openChats, messagesThat(func(m *v1alpha1.ChatMessage) bool {
		return m.Spec.Generation == nil && m.Spec.Content != ""
	})},
	"delete":  {allChats, messagesThat(func(*v1alpha1.ChatMessage) bool { return true })},
	"promote": {openChats, queued},
	"approve": {openChats, callsThat(toDecide, "")},
	"deny":    {openChats, callsThat(toDecide, "")},
	"answer":  {openChats, callsThat(toAnswer, "=")},
}

// valuesOf are what could be typed for flags that name objects.
var valuesOf = map[string]finder{"namespace": namespaces, "gateway-namespace": namespaces, "context": contexts,
	"class": classes, "model": modelConfigs}

// wordsOf are the values of flags that have few.
var wordsOf = map[string][]string{
	"mode":       {string(v1alpha1.ModePlan), string(v1alpha1.ModeExplore)},
	"visibility": {string(v1alpha1.VisibleToAll), string(v1alpha1.VisibleToModel), string(v1alpha1.VisibleToPeople)},
	"by":         {byChat, byModel, byConfig, byDay},
	"output":     {outJSON, outYAML, outName, outWide, outMarkdown, outLines},
}

// addCompletion lets shells ask what could be typed.
func (o *options) addCompletion(root *cobra.Command) {
	for _, cmd := range append(root.Commands(), root) {
		if finders := argumentsOf[cmd.Name()]; len(finders) > 0 {
			cmd.ValidArgsFunction = o.completes(finders)
		}
		cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
			if find := valuesOf[flag.Name]; find != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag.Name, o.completesFlag(find)) // There is such a flag.
			}
			if words := wordsOf[flag.Name]; words != nil {
				_ = cmd.RegisterFlagCompletionFunc(flag.Name,
					cobra.FixedCompletions(words, cobra.ShellCompDirectiveNoFileComp))
			}
		})
	}
}

// completes finds what could be typed for the next argument.
func (o *options) completes(finders []finder) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		args, err := plainNames(cmd.Use, args)
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		if len(args) >= len(finders) {
			if cmd.Name() != "answer" { // It takes a call more, and another one.
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return o.find(cmd.Context(), finders[len(finders)-1], args, begun)
		}
		return o.find(cmd.Context(), finders[len(args)], args, begun)
	}
}

func (o *options) completesFlag(find finder) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, begun string) ([]cobra.Completion, cobra.ShellCompDirective) {
		return o.find(cmd.Context(), find, args, begun)
	}
}

// find asks the cluster, and goes without what it does not say in time. Nobody is told of errors, who is just typing.
func (o *options) find(ctx context.Context, find finder, args []string, begun string) ([]cobra.Completion,
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
			case found <- cobra.CompletionWithDesc(name, escapeLine(oneLine(printable.Line(description)))):
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
