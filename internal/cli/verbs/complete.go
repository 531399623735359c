// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/printable"
)

// completionTimeout is how long a person waits for completions when the cluster does not answer.
const completionTimeout = 2 * time.Second

// finder finds the words that may follow the arguments. At the timeout, the words found so far count.
type finder func(ctx context.Context, s *session, args []string, found func(name, description string)) error

// flagFinders complete flags that name objects.
var flagFinders = map[string]finder{"namespace": namespaces, "gateway-namespace": namespaces, "context": contexts,
	"class": classes, "model": modelConfigs, "workspace": templates, "at": messagesThat(anyMessage)}

// flagValues complete flags that have few values, or none that are known.
var flagValues = map[string][]string{
	"mode":       {string(v1beta1.ModePlan), string(v1beta1.ModeExplore)},
	"visibility": {string(v1beta1.VisibleToAll), string(v1beta1.VisibleToModel), string(v1beta1.VisibleToUsers)},
	"by":         {byChat, byModel, byConfig, byDay},
	"with":       {},
	"remove":     {},
}

// outputValues complete --output of verbs that have other values than most.
var outputValues = map[string][]string{"ls": tables, "get": tables, "export": {outMarkdown, outLines}}

// completeOutput completes --output.
func completeOutput(cmd *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
	values := outputValues[cmd.Name()]
	if values == nil {
		values = forms
	}
	return values, cobra.ShellCompDirectiveNoFileComp
}

// completeFlags registers the completions of flags.
func completeFlags(o *options, cmd *cobra.Command) {
	cmd.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		var complete cobra.CompletionFunc
		if find := flagFinders[flag.Name]; find != nil {
			complete = func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
				return findNames(cmd.Context(), o, find, args, typed)
			}
		} else if values := flagValues[flag.Name]; values != nil {
			complete = cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)
		}
		if flag.Name == "output" {
			complete = completeOutput
		}
		if complete != nil {
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, complete) // There is such a flag.
		}
	})
}

// completeArguments completes the next argument.
func completeArguments(o *options, finders []finder) cobra.CompletionFunc {
	return func(cmd *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		args, err := plainNames(cmd.Use, args)
		next := len(args)
		if last := len(finders) - 1; next > last && last >= 0 && mayRepeat(cmd.Use) {
			next = last
		}
		if err != nil || next >= len(finders) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return findNames(cmd.Context(), o, finders[next], args, typed)
	}
}

// mayRepeat reports whether a verb with that usage line takes several objects as its last arguments.
func mayRepeat(use string) bool {
	words := strings.Fields(use)
	return slices.Contains([]string{"CHAT...", "CALL=JSON..."}, strings.Trim(words[len(words)-1], "[]"))
}

// findNames returns what the finder finds before the timeout. Errors are not shown to the person who types.
func findNames(ctx context.Context, o *options, find finder, args []string, typed string) ([]cobra.Completion,
	cobra.ShellCompDirective) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	var mu sync.Mutex
	var all []cobra.Completion
	directive := cobra.ShellCompDirectiveNoFileComp
	done := make(chan struct{})
	go func() { // A credential plug-in of the kubeconfig may ignore ctx.
		defer close(done)
		s, err := o.connectQuietly()
		if err != nil {
			return
		}
		_ = find(ctx, s, args, func(name, description string) {
			mu.Lock()
			defer mu.Unlock()
			if strings.HasPrefix(name, typed) {
				all = append(all, cobra.CompletionWithDesc(name,
					terminal.EscapeLine(render.OneLine(printable.Line(description)))))
			}
			if strings.HasSuffix(name, "=") {
				directive |= cobra.ShellCompDirectiveNoSpace
			}
		})
	}()
	select {
	case <-done:
	case <-ctx.Done():
	}
	mu.Lock()
	defer mu.Unlock()
	return slices.Clone(all), directive
}

// connectQuietly connects to the cluster without warnings or questions on the terminal.
func (o *options) connectQuietly() (*session, error) {
	return o.connectWith(func(cfg *rest.Config) {
		cfg.WarningHandler = rest.NoWarnings{}
		if cfg.ExecProvider != nil {
			cfg.ExecProvider.StdinUnavailable = true
		}
	})
}

// maxNamespaces is the most namespaces that are completed.
const maxNamespaces = 1000

var (
	allChats  = chatsThat(anyChat)
	openChats = chatsThat(isOpen)
	// waitingChats have calls that wait.
	waitingChats = chatsThat(func(c *v1beta1.Chat) bool { return c.Status.RequiresAction != nil })
)

// chatsThat finds the chats of the namespace that keep accepts.
func chatsThat(keep func(*v1beta1.Chat) bool) finder {
	return func(ctx context.Context, s *session, _ []string, found func(name, description string)) error {
		return cluster.Each(ctx, cluster.InPages(), s.Chats().List, func(c *v1beta1.Chat) {
			if keep(c) {
				found(c.Name, fmt.Sprintf("%s %s", c.Status.Phase, c.Status.Title))
			}
		})
	}
}

// messagesThat finds the messages of the chat that keep accepts. A flag may be typed before the chat.
func messagesThat(keep func(*v1beta1.ChatMessage) bool) finder {
	return func(ctx context.Context, s *session, args []string, found func(name, description string)) error {
		if len(args) == 0 {
			return nil
		}
		return cluster.Each(ctx, cluster.MessagesOf(args[0]), s.Messages().List, func(m *v1beta1.ChatMessage) {
			if keep(m) {
				found(m.Name, string(m.Spec.Role)+": "+render.OneLine(m.Spec.Content))
			}
		})
	}
}

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

// callsThat finds the calls of the chat that need one of those things, each with a suffix.
func callsThat(suffix string, needs ...render.Need) finder {
	return func(ctx context.Context, s *session, args []string, found func(name, description string)) error {
		chat, err := s.Chats().Get(ctx, args[0])
		if err != nil || chat.Status.RequiresAction == nil {
			return err
		}
		for i := range chat.Status.RequiresAction.ToolCalls {
			if call := &chat.Status.RequiresAction.ToolCalls[i]; slices.Contains(needs, render.NeedOf(call)) {
				found(call.ID+suffix, call.Name+" "+call.Input)
			}
		}
		return nil
	}
}

func classes(ctx context.Context, s *session, _ []string, found func(name, description string)) error {
	return cluster.Each(ctx, cluster.InPages(), s.Client.Classes(s.Namespace).List,
		func(c *v1beta1.ChatClass) { found(c.Name, c.Spec.Description) })
}

func modelConfigs(ctx context.Context, s *session, _ []string, found func(name, description string)) error {
	return cluster.Each(ctx, cluster.InPages(), s.Client.ModelConfigs(s.Namespace).List,
		func(c *v1beta1.ChatModelConfig) { found(c.Name, c.Spec.Model) })
}

func templates(ctx context.Context, s *session, _ []string, found func(name, description string)) error {
	all, err := s.Client.Templates(ctx, s.Namespace)
	if err != nil {
		return fmt.Errorf("listing the workspace templates: %w", err)
	}
	for _, one := range all {
		found(one.Name, one.Description)
	}
	return nil
}

func namespaces(ctx context.Context, s *session, _ []string, found func(name, description string)) error {
	all, _, err := s.Client.Namespaces(ctx, maxNamespaces)
	for _, name := range all {
		found(name, "")
	}
	return err
}

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

// kindByWord maps the words of a usage line to the kinds of objects that they stand for.
var kindByWord = map[string]string{"CHAT": "chat", "NAME": "chat", "MESSAGE": "chatmessage"}

// plainNames returns the arguments of a verb with that usage line, names of objects without their types.
func plainNames(use string, args []string) ([]string, error) {
	names := slices.Clone(args)
	words := strings.Fields(use)[1:]
	for i := range names {
		if len(words) == 0 {
			break
		}
		word := strings.Trim(words[min(i, len(words)-1)], "[]")
		kind := kindByWord[strings.TrimSuffix(word, "...")]
		if kind == "" || i >= len(words) && !strings.HasSuffix(word, "...") {
			continue
		}
		var err error
		if names[i], err = plainName(kind, names[i]); err != nil {
			return nil, err
		}
	}
	return names, nil
}

// plainName returns the name of NAME or TYPE/NAME, where TYPE can be chat, chats or chat.parley.dev for kind chat.
func plainName(kind, typed string) (string, error) {
	resource, name, isTyped := strings.Cut(typed, "/")
	if !isTyped {
		return typed, nil
	}
	singular, group, _ := strings.Cut(strings.ToLower(resource), ".")
	group = strings.TrimPrefix(group, v1beta1.GroupVersion.Version+".")
	if strings.TrimSuffix(singular, "s") != kind || group != "" && group != v1beta1.GroupVersion.Group || name == "" {
		return "", usageError{fmt.Errorf("%q names no %s: type its name, or %s/NAME", typed, kind, kind)}
	}
	return name, nil
}

// findCall finds a call by its id, or the beginning or end of that; nil if there is none.
func findCall(calls []v1beta1.PendingToolCall, typed string) (*v1beta1.PendingToolCall, error) {
	var found []v1beta1.PendingToolCall
	for i := range calls {
		id := calls[i].ID
		if id == typed {
			return &calls[i], nil
		}
		if typed != "" && (strings.HasPrefix(id, typed) || strings.HasSuffix(id, typed)) {
			found = append(found, calls[i])
		}
	}
	switch len(found) {
	case 0:
		return nil, nil
	case 1:
		return &found[0], nil
	}
	return nil, usageError{fmt.Errorf("%q can be %s: type more of the id", typed, render.NamesOf(found))}
}

// Arguments returns the arguments of a command line. Under the name that kubectl runs to complete words of kubectl
// chat, the program completes them.
func Arguments(line []string) []string {
	if name := filepath.Base(line[0]); strings.TrimSuffix(name, ".exe") == completer {
		return append([]string{cobra.ShellCompRequestCmd}, line[1:]...)
	}
	return line[1:]
}

// completer is the name that kubectl runs to complete words of kubectl chat.
const completer = "kubectl_complete-chat"
