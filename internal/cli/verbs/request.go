// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/spf13/cobra"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/render"
)

// request is a verb that asks for something by an annotation on a chat.
type request struct {
	name, short string
	kind        v1alpha1.RequestKind
	// done is what happened to the chat when it was granted.
	done string
	// effect says more about it, behind the words about the annotation. chat is that of the example.
	effect, chat string
}

var requests = []request{
	{"interrupt", "Stop the turn of a chat and keep what was said so far", v1alpha1.RequestInterrupt, "interrupted",
		". What was said so far is kept; calls that wait for people are cancelled. Ends with 1 if there was nothing to " +
			"interrupt.", "triage"},
	{"clear", "Begin a new context: the model sees nothing of what came before", v1alpha1.RequestClear, "cleared",
		". The messages stay; the model no longer sees them. Ends with 1 if a turn is under way, or nothing was said since " +
			"the last time.", "triage"},
	{"compact", "Replace what the model sees of a chat by a summary", v1alpha1.RequestCompact, "is being compacted",
		": a model is asked for a summary. The messages stay; the model sees the summary in their place. Ends with 1 if a " +
			"turn is under way, or the model has said nothing since the last time.", "triage"},
	{"title", "Have a model write another title with the next reply", v1alpha1.RequestTitle,
		"gets another title with its next reply",
		": with the next reply comes another title, of the whole conversation. Ends with 1 if no model writes titles for " +
			"the chat (spec.titles of its ChatModelConfig), or spec.title says the title.", "triage"},
	{"refresh-context", "Have AGENTS.md and the index of skills of the workspace read again",
		v1alpha1.RequestRefreshContext, "reads the context of its workspace again with its next calls there",
		": with the results of the next calls that work in the workspace, the model is shown again what that says about " +
			"how to work in it. Ends with 1 if the chat has no workspace.", "fix-the-build"},
}

func newRequest(o *options, r request) *cobra.Command {
	return newAwaited(o, &cobra.Command{
		Use: r.name + " CHAT", Short: r.short, Example: "  kubectl chat " + r.name + " " + r.chat,
		Long: "Annotates the chat with " + r.kind.Annotation() + " and waits until it has acted on it" + r.effect,
	}, func(ctx context.Context, s *session, chat string, w waiting) error {
		return makeRequest(ctx, s, r, chat, w)
	})
}

// makeRequest makes a request with a token of its own, and waits for what becomes of it.
func makeRequest(ctx context.Context, s *session, r request, chat string, w waiting) error {
	if err := s.CheckChat(ctx, chat); err != nil {
		return err
	}
	token := time.Now().UTC().Format(time.RFC3339Nano)
	if err := s.Request(ctx, chat, r.kind, token); err != nil {
		return err
	}
	if !w.wait {
		return s.Say(render.ChatPrefix+chat, map[string]string{"annotation": r.kind.Annotation(), "token": token},
			" annotated")
	}
	var handled v1alpha1.HandledRequest
	last, err := settle(ctx, w, "chat "+chat+" to act on "+r.kind.Annotation(), s.Chats().Watch, chat,
		func(c *v1alpha1.Chat, _ func(string)) (bool, error) {
			i := slices.IndexFunc(c.Status.Requests,
				func(h v1alpha1.HandledRequest) bool { return h.Kind == r.kind && h.Token == token })
			if i >= 0 {
				handled = c.Status.Requests[i]
			} else if c.Annotations[r.kind.Annotation()] != token {
				return true, fmt.Errorf("another person has annotated chat %s with %s meanwhile: look at status.requests for "+
					"what became of that", chat, r.kind.Annotation())
			}
			return i >= 0, nil
		})
	switch {
	case err != nil:
		return err
	case handled.Outcome == v1alpha1.RequestRefused:
		return fmt.Errorf("%s: %s; chat %s is %s", handled.Outcome, handled.Message, chat, last.Status.Phase)
	}
	return s.Say(render.ChatPrefix+chat, handled, " %s: %s", r.done, handled.Outcome)
}
