// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1beta1"
)

type forkOptions struct {
	new newOptions
	at  string
}

func newFork(o *options) *cobra.Command {
	var f forkOptions
	cmd := &cobra.Command{
		Use:   "fork CHAT [NAME [TEXT...]]",
		Short: "Create a chat that continues another one from one of its messages",
		Long: "Creates a Chat that begins with a copy of the history of CHAT, up to the newest message or that of --at, " +
			"and has the settings of CHAT. Nothing in the history is generated or run again. With a TEXT it continues at " +
			"once, and the reply is shown as with send; TEXT - reads standard input. Without a TEXT it waits for a message, " +
			"unless the history ends with a message of a person or results of tools, which are answered again. If NAME ends " +
			"with a hyphen, the API server completes it; without a NAME it completes CHAT-.\n\nWorkspace, service account, " +
			"and MCP servers with headers from Secrets are left out; a remark on standard error names them.",
		Example: "  kubectl chat fork triage\n" +
			"  kubectl chat fork triage triage-2 --at triage-5-1 --model large \"Is there another way?\"",
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
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
	return cmd
}

func (f *forkOptions) run(ctx context.Context, s *session, args []string) error {
	source, err := s.Chats().Get(ctx, args[0])
	if err != nil {
		return fmt.Errorf("reading chat %s: %w", args[0], err)
	}
	spec, omitted := forkSpec(source)
	if spec.Fork.Message = cmp.Or(f.at, source.Status.History.Head); spec.Fork.Message == "" {
		return fmt.Errorf("chat %s has no messages to continue from", source.Name)
	}
	chat := &v1beta1.Chat{Spec: spec}
	f.new.name(chat, cmp.Or(append(args[1:], source.Name+"-")[0]))
	if len(args) > 2 {
		if chat.Spec.Prompt, err = s.textOf(args[2:]); err != nil {
			return err
		}
	}
	if err := f.new.apply(chat); err != nil {
		return err
	}
	if len(omitted) > 0 {
		_, _ = fmt.Fprintf(s.ErrOut, "▎[left out: %s]\n", strings.Join(omitted, ", "))
	}
	return createChat(ctx, s, chat, f.new)
}

// forkSpec has the settings of a chat, without what gives access to something else than the conversation: that is the
// decision of who creates the fork.
func forkSpec(source *v1beta1.Chat) (spec v1beta1.ChatSpec, omitted []string) {
	said := source.Spec.DeepCopy()
	spec = v1beta1.ChatSpec{ChatClassName: said.ChatClassName, Mode: said.Mode, Output: said.Output,
		ChatSettings: said.ChatSettings, Fork: &v1beta1.ForkSource{Chat: source.Name}}
	if spec.Workspace != nil {
		omitted = append(omitted, "workspace")
	}
	if spec.Kubernetes != nil {
		omitted = append(omitted, "kubernetes")
	}
	spec.Workspace, spec.Kubernetes, spec.Retention, spec.MCPServers = nil, nil, nil, nil
	for _, server := range said.MCPServers {
		if len(server.HeadersFrom) > 0 {
			omitted = append(omitted, "MCP server "+server.Name)
			continue
		}
		spec.MCPServers = append(spec.MCPServers, server)
	}
	return spec, omitted
}
