// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1alpha1"
)

// management is a field of a chat that people set, and how they see that it is in force.
type management struct {
	field string
	value bool
	// done is what has happened to the chat.
	done string
	// inForce reports whether a status that describes the change has it.
	inForce func(*v1alpha1.Chat) bool
}

// seen is in force as soon as it was seen.
func seen(*v1alpha1.Chat) bool { return true }

func newSuspend(o *options) *cobra.Command {
	return newManagement(o, management{"suspend", true, "suspended", seen}, &cobra.Command{
		Use:   "suspend CHAT",
		Short: "Hold the work of a chat, and that of its sub-chats",
		Long: "Sets spec.suspend and waits until the chat has seen it. The step under way is finished and committed, no " +
			"further one begins, and messages wait.",
		Example: "  kubectl chat suspend triage",
	})
}

func newResume(o *options) *cobra.Command {
	return newManagement(o, management{"suspend", false, "resumed", seen}, &cobra.Command{
		Use:     "resume CHAT",
		Short:   "Let a chat continue that was suspended",
		Long:    "Takes spec.suspend back and waits until the chat has seen it.",
		Example: "  kubectl chat resume triage",
	})
}

func newArchive(o *options) *cobra.Command {
	return newManagement(o, management{"archived", true, "archived",
		func(c *v1alpha1.Chat) bool { return c.Status.Archived }}, &cobra.Command{
		Use:   "archive CHAT",
		Short: "Put a chat away, with its sub-chats",
		Long: "Sets spec.archived and waits until the chat is archived, which it is once none of its family is at work. An " +
			"archived chat takes no messages, and kubectl chat ls leaves it out.",
		Example: "  kubectl chat archive triage",
	})
}

func newUnarchive(o *options) *cobra.Command {
	return newManagement(o, management{"archived", false, "unarchived",
		func(c *v1alpha1.Chat) bool { return !c.Status.Archived }}, &cobra.Command{
		Use:     "unarchive CHAT",
		Short:   "Take a chat up again that was archived",
		Long:    "Takes spec.archived back and waits until the chat takes messages.",
		Example: "  kubectl chat unarchive triage",
	})
}

func newManagement(o *options, m management, cmd *cobra.Command) *cobra.Command {
	return newAwaited(o, cmd, func(ctx context.Context, s *session, chat string, w waiting) error {
		return s.manage(ctx, m, chat, w)
	})
}

// manage sets a field of a chat and waits until it is in force.
func (s *session) manage(ctx context.Context, m management, name string, w waiting) error {
	if err := s.objects.checkChat(ctx, name); err != nil {
		return err
	}
	chat, err := s.objects.chats().MergePatch(ctx, name, map[string]any{"spec": map[string]any{m.field: m.value}})
	if err != nil {
		return fmt.Errorf("changing chat %s: %w", name, err)
	}
	if !w.wait {
		return s.options.say(chatNamed+name, chat, " changed")
	}
	generation := chat.Generation
	err = w.until(ctx, "chat "+name+" to be "+m.done, func(ctx context.Context, note func(string)) error {
		return await(ctx, s.objects.chats().Watch, name, func(now *v1alpha1.Chat) (bool, error) {
			chat = now
			if c := meta.FindStatusCondition(now.Status.Conditions, v1alpha1.ConditionReady); c != nil {
				note(c.Reason + ": " + c.Message)
			}
			return now.Status.ObservedGeneration >= generation && m.inForce(now), nil
		})
	})
	if err != nil {
		return err
	}
	return s.options.say(chatNamed+name, chat, " %s: %s", m.done, chat.Status.Phase)
}
