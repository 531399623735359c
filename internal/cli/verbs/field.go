// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/render"
)

// field is a verb that sets a field of a chat and waits until that is in force.
type field struct {
	name, short string
	// path of the field in the spec, and what it is set to.
	path  string
	value bool
	// done is what has happened to the chat.
	done string
	// concerns reports whether the verb would change the chat, and inForce whether a status that describes the change
	// has it.
	concerns, inForce func(*v1alpha1.Chat) bool
	effect            string
}

// seen is in force as soon as it was seen.
func seen(*v1alpha1.Chat) bool { return true }

func isOpen(c *v1alpha1.Chat) bool     { return !c.Status.Archived }
func isArchived(c *v1alpha1.Chat) bool { return c.Status.Archived }

var fields = []field{
	{"suspend", "Hold the work of a chat, and that of its sub-chats", "suspend", true, "suspended", isOpen, seen,
		"Sets spec.suspend and waits until the chat has seen it. The step under way is finished and committed, no further " +
			"one begins, and messages wait."},
	{"resume", "Let a chat continue that was suspended", "suspend", false, "resumed",
		func(c *v1alpha1.Chat) bool { return c.Spec.Suspend }, seen,
		"Takes spec.suspend back and waits until the chat has seen it."},
	{"archive", "Put a chat away, with its sub-chats", "archived", true, "archived", isOpen, isArchived,
		"Sets spec.archived and waits until the chat is archived, which it is once none of its family is at work. An " +
			"archived chat takes no messages, and kubectl chat ls leaves it out."},
	{"unarchive", "Take a chat up again that was archived", "archived", false, "unarchived",
		func(c *v1alpha1.Chat) bool { return c.Spec.Archived }, isOpen,
		"Takes spec.archived back and waits until the chat takes messages."},
}

func newField(o *options, f field) *cobra.Command {
	return newAwaited(o, &cobra.Command{
		Use: f.name + " CHAT", Short: f.short, Long: f.effect, Example: "  kubectl chat " + f.name + " triage",
	}, func(ctx context.Context, s *session, chat string, w waiting) error {
		return setField(ctx, s, f, chat, w)
	})
}

// setField sets a field of a chat and waits until it is in force.
func setField(ctx context.Context, s *session, f field, name string, w waiting) error {
	if err := s.CheckChat(ctx, name); err != nil {
		return err
	}
	chat, err := s.Chats().MergePatch(ctx, name, map[string]any{"spec": map[string]any{f.path: f.value}})
	if err != nil {
		return fmt.Errorf("changing chat %s: %w", name, err)
	}
	if !w.wait {
		return s.Say(render.ChatPrefix+name, chat, " changed")
	}
	generation := chat.Generation
	chat, err = settle(ctx, w, "chat "+name+" to be "+f.done, s.Chats().Watch, name,
		func(now *v1alpha1.Chat, note func(string)) (bool, error) {
			if c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReady); c != nil {
				note(c.Reason + ": " + c.Message)
			}
			return now.Status.ObservedGeneration >= generation && f.inForce(now), nil
		})
	if err != nil {
		return err
	}
	return s.Say(render.ChatPrefix+name, chat, " %s: %s", f.done, chat.Status.Phase)
}
