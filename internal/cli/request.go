// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1alpha1"
)

// request is what an annotation on a chat asks for.
type request struct {
	kind v1alpha1.RequestKind
	// done is what happened to the chat when it was granted.
	done string
}

var (
	interruptRequest = request{v1alpha1.RequestInterrupt, "interrupted"}
	clearRequest     = request{v1alpha1.RequestClear, "cleared"}
	compactRequest   = request{v1alpha1.RequestCompact, "is being compacted"}
	titleRequest     = request{v1alpha1.RequestTitle, "gets another title with its next reply"}
	refreshRequest   = request{v1alpha1.RequestRefreshContext,
		"reads the context of its workspace again with its next calls there"}
)

func newInterrupt(o *options) *cobra.Command {
	return newRequest(o, interruptRequest, &cobra.Command{
		Use:   "interrupt CHAT",
		Short: "Stop the turn of a chat and keep what was said so far",
		Long: "Annotates the chat with parley.dev/interrupt and waits until it has acted on it. What was said so far " +
			"is kept; calls that wait for people are cancelled. Ends with 1 if there was nothing to interrupt.",
		Example: "  kubectl chat interrupt triage",
	})
}

func newClear(o *options) *cobra.Command {
	return newRequest(o, clearRequest, &cobra.Command{
		Use:   "clear CHAT",
		Short: "Begin a new context: the model sees nothing of what came before",
		Long: "Annotates the chat with parley.dev/clear and waits until it has acted on it. The messages stay; the " +
			"model no longer sees them. Ends with 1 if a turn is under way, or nothing was said since the last time.",
		Example: "  kubectl chat clear triage",
	})
}

func newCompact(o *options) *cobra.Command {
	return newRequest(o, compactRequest, &cobra.Command{
		Use:   "compact CHAT",
		Short: "Replace what the model sees of a chat by a summary",
		Long: "Annotates the chat with parley.dev/compact and waits until it has acted on it: a model is asked for a " +
			"summary. The messages stay; the model sees the summary in their place. Ends with 1 if a turn is under way, or " +
			"the model has said nothing since the last time.",
		Example: "  kubectl chat compact triage",
	})
}

func newTitle(o *options) *cobra.Command {
	return newRequest(o, titleRequest, &cobra.Command{
		Use:   "title CHAT",
		Short: "Have a model write another title with the next reply",
		Long: "Annotates the chat with parley.dev/title and waits until it has acted on it: with the next reply comes " +
			"another title, of the whole conversation. Ends with 1 if no model writes titles for the chat (spec.titles of " +
			"its ChatModelConfig), or spec.title says the title.",
		Example: "  kubectl chat title triage",
	})
}

func newRefreshContext(o *options) *cobra.Command {
	return newRequest(o, refreshRequest, &cobra.Command{
		Use:   "refresh-context CHAT",
		Short: "Have AGENTS.md and the index of skills of the workspace read again",
		Long: "Annotates the chat with parley.dev/refresh-context and waits until it has acted on it: with the results of " +
			"the next calls that work in the workspace, the model is shown again what that says about how to work in it. " +
			"Ends with 1 if the chat has no workspace.",
		Example: "  kubectl chat refresh-context fix-the-build",
	})
}

func newRequest(o *options, r request, cmd *cobra.Command) *cobra.Command {
	return newAwaited(o, cmd, func(ctx context.Context, s *session, chat string, w waiting) error {
		return s.request(ctx, r, chat, w)
	})
}

// request makes a request with a token of its own, and waits for what becomes of it.
func (s *session) request(ctx context.Context, r request, chat string, w waiting) error {
	if err := s.objects.checkChat(ctx, chat); err != nil {
		return err
	}
	token := time.Now().UTC().Format(time.RFC3339Nano)
	if err := s.objects.request(ctx, chat, r.kind, token); err != nil {
		return err
	}
	if !w.wait {
		return s.options.say(chatNamed+chat, map[string]string{"annotation": r.kind.Annotation(), "token": token},
			" annotated")
	}
	var handled v1alpha1.HandledRequest
	var phase v1alpha1.ChatPhase
	err := w.until(ctx, "chat "+chat+" to act on "+r.kind.Annotation(), func(ctx context.Context, _ func(string)) error {
		return await(ctx, s.objects.chats().Watch, chat, func(c *v1alpha1.Chat) (bool, error) {
			phase = c.Status.Phase
			i := slices.IndexFunc(c.Status.Requests,
				func(h v1alpha1.HandledRequest) bool { return h.Kind == r.kind && h.Token == token })
			if i >= 0 {
				handled = c.Status.Requests[i]
				return true, nil
			}
			if c.Annotations[r.kind.Annotation()] != token {
				return true,
					fmt.Errorf("another person has annotated chat %s with %s meanwhile: look at status.requests for what became "+
						"of that", chat, r.kind.Annotation())
			}
			return false, nil
		})
	})
	switch {
	case err != nil:
		return err
	case handled.Outcome == v1alpha1.RequestRefused:
		return fmt.Errorf("%s: %s; chat %s is %s", handled.Outcome, handled.Message, chat, phase)
	}
	return s.options.say(chatNamed+chat, handled, " %s: %s", r.done, handled.Outcome)
}
