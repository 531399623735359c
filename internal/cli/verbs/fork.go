// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1beta1"
)

type forkOptions struct {
	new           newOptions
	at            string
	copyWorkspace bool
}

func newFork(o *options) *cobra.Command {
	var f forkOptions
	cmd := &cobra.Command{
		Use:   "fork CHAT [NAME [TEXT...]]",
		Short: "Create a chat that continues another one from one of its messages",
		Long: "Creates a Chat that begins with a copy of the history of CHAT, up to the newest message or that of " +
			"--at, and has the settings of CHAT. Nothing in the history is generated or run again. With a TEXT it " +
			"continues at once, and the reply is shown as with send. If TEXT ends with the word -, standard input " +
			"follows. Without a TEXT it waits for a message. A history that ends with a message of a person or " +
			"results of tools is answered at once. If NAME ends with a hyphen, the API server completes it; " +
			"without a NAME it completes CHAT-.\n\nWorkspace, service account, and MCP servers with headers from " +
			"Secrets are not copied; a remark on standard error names them. With --copy-workspace, the chat has a " +
			"workspace like that of CHAT, with a copy of its files, and begins when they are copied.",
		Example: "  kubectl chat fork triage\n" +
			"  kubectl chat fork triage triage-2 --at triage-5-1 --model large \"Is there another way?\"",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if f.copyWorkspace && f.new.workspace != "" {
				return usageError{errors.New("--workspace and --copy-workspace exclude each other")}
			}
			s, err := o.connect(outputsOf(f.new.noFollow || len(args) < 3 && len(f.new.files) == 0)...)
			if err != nil {
				return err
			}
			return f.run(cmd.Context(), s, args)
		},
	}
	f.new.addFlags(cmd)
	f.new.addFollowFlag(cmd)
	cmd.Flags().StringVar(&f.at, "at", "", "the last message to copy; default: the newest")
	cmd.Flags().StringVar(&f.new.workspace, "workspace", "", "the PodTemplate of a new workspace; default: none")
	cmd.Flags().BoolVar(&f.copyWorkspace, "copy-workspace", false, "copy the workspace of CHAT, which needs storage")
	return cmd
}

func (f *forkOptions) run(ctx context.Context, s *session, args []string) error {
	source, err := s.Chat(ctx, args[0])
	if err != nil {
		return err
	}
	spec, omitted := forkSpec(source)
	if f.copyWorkspace {
		if spec.Workspace, err = workspaceLike(ctx, s, source); err != nil {
			return err
		}
		spec.Fork.Workspace = v1beta1.ForkWorkspaceCopy
		omitted = slices.DeleteFunc(omitted, func(what string) bool { return what == omittedWorkspace })
	}
	if spec.Fork.Message, err = f.lastMessage(ctx, s, source); err != nil {
		return err
	}
	chat, name := &v1beta1.Chat{Spec: spec}, source.Name+"-"
	if len(args) > 1 {
		name = args[1]
	}
	f.new.name(chat, name)
	if len(args) > 2 {
		if chat.Spec.Prompt, err = s.textOf(args[2:]); err != nil {
			return err
		}
	}
	if err := f.new.apply(chat); err != nil {
		return err
	}
	return createChat(ctx, s, chat, f.new, func() { f.remark(s, source, omitted) })
}

// remark says what the fork does not have of its source.
func (f *forkOptions) remark(s *session, source *v1beta1.Chat, omitted []string) {
	if len(omitted) > 0 {
		_, _ = fmt.Fprintf(s.ErrOut, "▎[not copied: %s]\n", strings.Join(omitted, ", "))
	}
	if root := source.Status.Root; root != nil && root.Workspace != "" && !f.copyWorkspace {
		_, _ = fmt.Fprintf(s.ErrOut, "▎[The files of the workspace are not copied: --copy-workspace copies those in a "+
			"volume, %s any]\n", s.command("cp", source.Name+":.", "."))
	}
}

// lastMessage is the last message to copy. One that does not exist would keep the fork waiting.
func (f *forkOptions) lastMessage(ctx context.Context, s *session, source *v1beta1.Chat) (string, error) {
	if f.at == "" {
		if source.Status.History.Head == "" {
			return "", fmt.Errorf("chat %s has no messages to continue from", source.Name)
		}
		return source.Status.History.Head, nil
	}
	if _, err := s.Message(ctx, source.Name, f.at); err != nil {
		return "", err
	}
	return f.at, nil
}

const omittedWorkspace = "workspace"

// workspaceLike is what a workspace with the same files is made from: the template that the model chose, if it was to
// choose. Nil: that of the ChatClass, which the fork has anyway.
func workspaceLike(ctx context.Context, s *session, source *v1beta1.Chat) (*v1beta1.WorkspaceSource, error) {
	isOfClass := source.Spec.Workspace == nil && source.Status.ChatClass != nil
	if isOfClass {
		class, err := s.Client.Classes(s.Namespace).Get(ctx, source.Status.ChatClass.Name)
		if err != nil {
			return nil, fmt.Errorf("reading the ChatClass of chat %s: %w", source.Name, err)
		}
		source = source.DeepCopy()
		source.Spec.Workspace = class.Spec.Defaults.Workspace
	}
	like := source.WorkspaceSource().DeepCopy()
	if !like.HasStorage() {
		return nil, fmt.Errorf("the files of the workspace of chat %s are not in a volume: leave out --copy-workspace, "+
			"and copy files with %s", source.Name, s.command("cp", source.Name+":."))
	}
	if isOfClass && like.PodTemplateSelector == nil {
		return nil, nil
	}
	like.PodTemplateSelector = nil
	return like, nil
}

// forkSpec has the settings of a chat, without what gives access to something else than the conversation: that is the
// decision of who creates the fork.
func forkSpec(source *v1beta1.Chat) (spec v1beta1.ChatSpec, omitted []string) {
	from := source.Spec.DeepCopy()
	spec = v1beta1.ChatSpec{ChatClassName: from.ChatClassName, Mode: from.Mode, Output: from.Output,
		ChatSettings: from.ChatSettings, Fork: &v1beta1.ForkSource{Chat: source.Name}}
	if spec.Workspace != nil {
		omitted = append(omitted, omittedWorkspace)
	}
	if spec.Kubernetes != nil {
		omitted = append(omitted, "kubernetes")
	}
	spec.Workspace, spec.Kubernetes, spec.Retention, spec.MCPServers = nil, nil, nil, nil
	for _, server := range from.MCPServers {
		if len(server.HeadersFrom) > 0 {
			omitted = append(omitted, "MCP server "+server.Name)
			continue
		}
		spec.MCPServers = append(spec.MCPServers, server)
	}
	return spec, omitted
}
