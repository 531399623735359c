// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/render"
)

func newEdit(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "edit CHAT MESSAGE [TEXT...]",
		Short: "Change what a message says; the chat continues from there",
		Long: "Changes the text of a User message. What followed it is superseded, and the message is answered again. " +
			"Without a TEXT $KUBE_EDITOR or $EDITOR opens (else vi); TEXT - reads standard input. Nothing happens if " +
			"another person has edited the message meanwhile; your text is then kept in a file.",
		Example: "  kubectl chat edit triage triage-message-x7k2p\n  kubectl chat edit triage triage-prompt \"And the DNS?\"",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := o.textOf(args[2:])
			if err != nil {
				return err
			}
			s, err := o.connect(render.FormatName, render.FormatJSON, render.FormatYAML)
			if err != nil {
				return err
			}
			if len(args) > 2 {
				return editMessage(cmd.Context(), s, args[0], args[1], text)
			}
			return editInEditor(cmd.Context(), s, args[0], args[1])
		},
	}
}

// isEditable reports whether the verb edits the message.
func isEditable(m *v1alpha1.ChatMessage) bool {
	return m.Spec.Generation == nil && m.Spec.Content != ""
}

// editableMessage reads a message that people may edit with this verb.
func editableMessage(ctx context.Context, s *session, chat, name string) (*v1alpha1.ChatMessage, error) {
	m, err := s.Message(ctx, chat, name)
	switch {
	case err != nil:
		return nil, err
	case m.Spec.Generation != nil || m.Spec.Role != v1alpha1.RoleUser:
		return nil, fmt.Errorf("message %s was not said by a person: edit the User message before it, or delete this one",
			name)
	case m.Spec.Content == "":
		return nil, fmt.Errorf("message %s has files or an earlier conversation: edit it with kubectl edit chatmessage %s",
			name, name)
	}
	return m, nil
}

func editMessage(ctx context.Context, s *session, chat, name, text string) error {
	m, err := editableMessage(ctx, s, chat, name)
	if err != nil {
		return err
	}
	return changeMessage(ctx, s, m, text)
}

// changeMessage has the message say something else, unless it was edited since it was read. What the operator writes
// to its status is no edit.
func changeMessage(ctx context.Context, s *session, read *v1alpha1.ChatMessage, text string) error {
	if text == read.Spec.Content {
		return s.Say(render.MessagePrefix+read.Name, read, " not changed")
	}
	for m := read; ; {
		changed, err := s.Messages().MergePatch(ctx, m.Name, map[string]any{
			"metadata": map[string]any{"resourceVersion": m.ResourceVersion, "uid": m.UID},
			"spec":     map[string]any{"content": text}})
		if err == nil {
			return s.Say(render.MessagePrefix+read.Name, changed, " edited")
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("editing message %s: %w", read.Name, err)
		}
		if m, err = s.Messages().Get(ctx, read.Name); err != nil {
			return fmt.Errorf("reading message %s: %w", read.Name, err)
		}
		if m.UID != read.UID || m.Generation != read.Generation {
			return takenError{fmt.Sprintf("message %s was changed meanwhile, and is not edited: look at it, and edit it again",
				read.Name)}
		}
	}
}

// editInEditor has a person write what the message says.
func editInEditor(ctx context.Context, s *session, chat, name string) error {
	m, err := editableMessage(ctx, s, chat, name)
	if err != nil {
		return err
	}
	file, err := os.CreateTemp("", "kubectl-chat-*.md")
	if err != nil {
		return fmt.Errorf("making a file to edit: %w", err)
	}
	path := file.Name()
	_, err = file.WriteString(m.Spec.Content)
	if err = errors.Join(err, file.Close()); err != nil {
		return fmt.Errorf("writing the file to edit: %w", err)
	}
	text, err := runEditor(ctx, path)
	if err == nil && strings.TrimSpace(text) == "" {
		err = usageError{errors.New("the message is not edited: nothing is left of it; delete it with kubectl chat delete")}
	}
	if err == nil {
		// Editors end the last line, also where it was not ended.
		if !strings.HasSuffix(m.Spec.Content, "\n") {
			text = strings.TrimSuffix(text, "\n")
		}
		err = changeMessage(ctx, s, m, text)
	}
	if err != nil {
		return fmt.Errorf("%w; what you wrote is in %s", err, path)
	}
	_ = os.Remove(path) // It is in the cluster.
	return nil
}

// runEditor opens the editor and returns what the file holds then.
func runEditor(ctx context.Context, path string) (string, error) {
	editor := cmp.Or(os.Getenv("KUBE_EDITOR"), os.Getenv("EDITOR"), "vi")
	cmd := exec.CommandContext(ctx, "sh", "-c", editor+` "$0"`, path)
	if runtime.GOOS == "windows" {
		cmd = exec.CommandContext(ctx, cmp.Or(os.Getenv("KUBE_EDITOR"), os.Getenv("EDITOR"), "notepad"), path)
	}
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("the editor %q failed: %w", editor, err)
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() > v1alpha1.MaxContentBytes {
		return "", fmt.Errorf("it has more than the %d bytes that a message can have", v1alpha1.MaxContentBytes)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading what was written: %w", err)
	}
	return string(raw), nil
}
