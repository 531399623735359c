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
	"sync"
	"time"

	"github.com/spf13/cobra"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/text/compose"
)

func newEdit(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "edit CHAT MESSAGE [TEXT...]",
		Short: "Change the text of a message; the chat continues from there",
		Long: "Changes the text of a User message. The messages after it are superseded, and the message is " +
			"answered again; a queued message is answered with its new text. Without a TEXT it opens " +
			"$KUBE_EDITOR, $EDITOR or vi; a queued message is not answered meanwhile. If TEXT ends with the word " +
			"-, standard input follows. If another person has edited the message meanwhile, nothing happens (code " +
			"5), and your text is kept in a file. Edit messages with files with kubectl edit.",
		Example: "  kubectl chat edit triage triage-message-x7k2p\n  kubectl chat edit triage triage-prompt \"And the DNS?\"",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			text, err := o.textOf(args[2:])
			if err != nil {
				return err
			}
			if len(args) > 2 && text == "" {
				return usageError{errors.New("the text is empty: give a TEXT, or delete the message with kubectl chat delete")}
			}
			s, err := o.connect(render.FormatName, render.FormatJSON, render.FormatYAML)
			if err != nil {
				return err
			}
			m, err := editableMessage(cmd.Context(), s, args[0], args[1])
			switch {
			case err != nil:
				return err
			case len(args) > 2:
				return changeMessage(cmd.Context(), s, m, text)
			}
			return editInEditor(cmd.Context(), s, m)
		},
	}
}

// holdTimeout limits a request that holds or releases a message.
const holdTimeout = 10 * time.Second

func anyMessage(*v1beta1.ChatMessage) bool { return true }
func isEditable(m *v1beta1.ChatMessage) bool {
	return m.Spec.Generation == nil && m.Spec.Content != ""
}

// editableMessage reads a message that people may edit with this verb.
func editableMessage(ctx context.Context, s *session, chat, name string) (*v1beta1.ChatMessage, error) {
	m, err := s.Message(ctx, chat, name)
	switch {
	case err != nil:
		return nil, err
	case m.Spec.Generation != nil || m.Spec.Role != v1beta1.RoleUser:
		return nil, fmt.Errorf("message %s was not said by a person: edit the User message before it, or delete this one",
			name)
	case m.Spec.Content == "":
		return nil, fmt.Errorf("message %s has files or an earlier conversation: edit it with kubectl edit chatmessage %s",
			name, name)
	}
	return m, nil
}

// changeMessage changes the content of the message, unless it was edited since it was read. Writes to the status are no
// edits.
func changeMessage(ctx context.Context, s *session, read *v1beta1.ChatMessage, text string) error {
	if text == read.Spec.Content {
		return s.Say(render.MessagePrefix+read.Name, read, " not changed")
	}
	removed := removedAfter(ctx, s, read)
	for m := read; ; {
		changed, err := s.Messages().MergePatch(ctx, m.Name, map[string]any{
			"metadata": map[string]any{"resourceVersion": m.ResourceVersion, "uid": m.UID},
			"spec":     map[string]any{"content": text}})
		if err == nil {
			return s.Say(render.MessagePrefix+read.Name, changed, " edited%s", removed)
		}
		if !apierrors.IsConflict(err) {
			return fmt.Errorf("editing message %s: %w", read.Name, err)
		}
		if m, err = unchanged(ctx, s, read); err != nil {
			return err
		}
	}
}

// removedAfter says how many messages leave the history when the message is edited or deleted; empty: none does, or
// the chat cannot be read.
func removedAfter(ctx context.Context, s *session, m *v1beta1.ChatMessage) string {
	chat, err := s.Chats().Get(ctx, m.Spec.ChatRef.Name)
	if err != nil || !history.MayHold(chat, m) {
		return ""
	}
	node := history.Of(chat, m)
	if later := int(chat.Status.History.Length - node.Index - 1); node.Placed && later > 0 {
		return ", and " + render.Plural(later, "message") + " after it removed from the history"
	}
	return ""
}

// unchanged reads a message again, and fails if it was edited.
func unchanged(ctx context.Context, s *session, read *v1beta1.ChatMessage) (*v1beta1.ChatMessage, error) {
	m, err := s.Messages().Get(ctx, read.Name)
	if err != nil {
		return nil, fmt.Errorf("reading message %s: %w", read.Name, err)
	}
	if m.UID != read.UID || m.Generation != read.Generation {
		return nil, conflictError{fmt.Sprintf("message %s was changed meanwhile, and stays as it is: look at it, and try it "+
			"again", read.Name)}
	}
	return m, nil
}

// withdraw deletes the message, unless it was edited since it was read, or the chat has started it.
func withdraw(ctx context.Context, s *session, read *v1beta1.ChatMessage) error {
	for {
		m, err := unchanged(ctx, s, read)
		if err == nil {
			err = checkQueued(ctx, s, read.Spec.ChatRef.Name, read.Name)
		}
		if err != nil {
			return err
		}
		err = s.Messages().Delete(ctx, m.Name, metav1.DeleteOptions{
			Preconditions: &metav1.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion}})
		if !apierrors.IsConflict(err) {
			if err != nil {
				return fmt.Errorf("withdrawing message %s: %w", m.Name, err)
			}
			return nil
		}
	}
}

// waits reports whether the chat has not started the message. If they cannot be read, the next request reports it.
func waits(ctx context.Context, s *session, m *v1beta1.ChatMessage) bool {
	now, err := s.Messages().Get(ctx, m.Name)
	if err != nil || now.UID != m.UID {
		return true
	}
	chat, err := s.Chats().Get(ctx, m.Spec.ChatRef.Name)
	return err != nil || history.Waits(chat, now)
}

// hold keeps the chat from starting a message that waits, until release is called; err says why it may start anyway.
// Nothing cancels its requests: a hold whose time is not known could not be released.
func hold(ctx context.Context, s *session, m *v1beta1.ChatMessage) (release func(), err error) {
	unstopped, until := context.WithoutCancel(ctx), ""
	extend := func() error {
		ctx, end := context.WithTimeout(unstopped, holdTimeout)
		defer end()
		held, err := s.Messages().MergePatch(ctx, m.Name, compose.Hold(m, time.Now()))
		if err == nil {
			until = held.Annotations[v1beta1.AnnotationHoldUntil]
		}
		return err
	}
	err = extend()
	editing, end := context.WithCancel(ctx)
	var extending sync.WaitGroup
	extending.Go(func() {
		for retry.Sleep(editing, compose.HoldAgain) == nil {
			_ = extend() // The hold lasts for longer, and the editor has the terminal.
		}
	})
	return func() {
		end()
		extending.Wait()
		ctx, end := context.WithTimeout(unstopped, holdTimeout)
		defer end()
		_, _ = s.Messages().JSONPatch(ctx, m.Name, compose.Release(m, until)) // The hold expires.
	}, err
}

// editInEditor opens an editor with the message and saves what a person writes.
func editInEditor(ctx context.Context, s *session, m *v1beta1.ChatMessage) error {
	waiting := waits(ctx, s, m)
	if waiting {
		release, err := hold(ctx, s, m)
		defer release()
		if err != nil {
			_, _ = fmt.Fprintf(s.ErrOut, "message %s may be started while you edit it: %v\n", m.Name, err)
		}
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
		err = saveEdit(ctx, s, m, text, waiting)
	}
	if err != nil {
		return fmt.Errorf("%w; what you wrote is in %s", err, path)
	}
	_ = os.Remove(path) // It is in the cluster.
	return nil
}

// saveEdit changes the message. One that waited is not changed if its turn has begun: an edit would cut the turn.
func saveEdit(ctx context.Context, s *session, m *v1beta1.ChatMessage, text string, waited bool) error {
	if waited && !waits(ctx, s, m) {
		return conflictError{fmt.Sprintf("the chat has started message %s meanwhile, and it is not edited: edit it again to "+
			"have it answered again", m.Name)}
	}
	return changeMessage(ctx, s, m, text)
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
	if err == nil && info.Size() > v1beta1.MaxContentBytes {
		return "", fmt.Errorf("it has more than the %d bytes that a message can have", v1beta1.MaxContentBytes)
	}
	raw, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("reading what was written: %w", err)
	}
	return string(raw), nil
}

func newDelete(o *options) *cobra.Command {
	yes := false
	cmd := newAwaited(o, &cobra.Command{
		Use:   "delete CHAT [MESSAGE]",
		Short: "Delete a chat, or a message with what followed it",
		Long: "Deletes a chat with its messages and sub-chats, or a message with what followed it: the chat continues from " +
			"there. Deleting a chat asks for confirmation on a terminal, without --yes. Waits until the object is deleted.",
		Example: "  kubectl chat delete triage --yes\n  kubectl chat delete triage triage-message-x7k2p",
		Args:    cobra.RangeArgs(1, 2),
	}, func(ctx context.Context, s *session, args []string, w waiting) error {
		if len(args) == 2 {
			m, err := s.Message(ctx, args[0], args[1])
			if err != nil {
				return err
			}
			return remove(ctx, s, w, s.Messages(), "message", render.MessagePrefix, m, removedAfter(ctx, s, m))
		}
		return deleteChat(ctx, s, args[0], yes, w)
	}, render.FormatName)
	cmd.Flags().BoolVarP(&yes, "yes", "y", false, "do not ask whether a chat is to be deleted")
	return cmd
}

func deleteChat(ctx context.Context, s *session, name string, yes bool, w waiting) error {
	chat, err := s.Chat(ctx, name)
	if err != nil {
		return err
	}
	if !yes && terminal.OnTerminal(s.In) {
		switch agreed, err := terminal.Agreed(s.In, s.ErrOut,
			"Delete chat %s with its %s, sub-chats and workspace included?", name,
			render.Plural(int(chat.Status.History.Length), "message")); {
		case err != nil:
			return err
		case !agreed:
			return usageError{fmt.Errorf("chat %s is kept", name)}
		}
	}
	return remove(ctx, s, w, s.Chats(), "chat", render.ChatPrefix, chat, "")
}

// remove deletes an object and waits until it is gone, or another one has its name. The note says what else has gone.
func remove[T, L any](ctx context.Context, s *session, w waiting, from apiclient.Resource[T, L], kind, prefix string,
	object metav1.Object, note string) error {
	name, uid := object.GetName(), object.GetUID()
	err := from.Delete(ctx, name, metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &uid}})
	if err != nil {
		return fmt.Errorf("deleting %s %s: %w", kind, name, err)
	}
	if w.wait {
		err = w.until(ctx, kind+" "+name+" to be gone", func(ctx context.Context, note func(string)) error {
			return awaitGone(ctx, from, kind, name, uid, note)
		})
	}
	if err != nil {
		return err
	}
	return s.Say(prefix+name, nil, " deleted%s", note)
}

func awaitGone[T, L any](ctx context.Context, from apiclient.Resource[T, L], kind, name string, uid types.UID,
	note func(string)) error {
	for outage := (cluster.Outage{Report: func(err error) { note(err.Error()) }}); ; {
		now, err := from.Get(ctx, name)
		if o, ok := any(now).(metav1.Object); apierrors.IsNotFound(err) || err == nil && ok && o.GetUID() != uid {
			return nil
		}
		if err == nil {
			note("its finalizers are not done")
		}
		if err := outage.Tolerate(err); err != nil {
			return fmt.Errorf("looking for %s %s: %w", kind, name, err)
		}
		if err := retry.Sleep(ctx, cluster.ReconnectAfter); err != nil {
			return err
		}
	}
}
