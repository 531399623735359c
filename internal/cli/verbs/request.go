// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/text/compose"
)

type waiting struct {
	wait    bool
	timeout time.Duration
}

// newAwaited completes the command of a verb that waits for the outcome. The outputs are forms by default.
func newAwaited(o *options, cmd *cobra.Command,
	run func(ctx context.Context, s *session, args []string, w waiting) error, outputs ...string) *cobra.Command {
	if len(outputs) == 0 {
		outputs = forms
	}
	var w waiting
	cmd.RunE = o.connected(func(ctx context.Context, s *session, args []string) error {
		return run(ctx, s, args, w)
	}, outputs...)
	cmd.Flags().BoolVar(&w.wait, "wait", true, "wait until the request was acted on, and fail if it was refused")
	cmd.Flags().DurationVar(&w.timeout, "timeout", time.Minute, "how long to wait")
	return cmd
}

// settle waits until done returns true for an object, and returns that state of the object.
func settle[T any](ctx context.Context, w waiting, what string, watch cluster.Watcher, name string,
	done func(now *T, note func(string)) (bool, error)) (last *T, err error) {
	err = w.until(ctx, what, func(ctx context.Context, note func(string)) error {
		lost := func(err error) { note(err.Error()) }
		return cluster.Await(ctx, watch, name, lost, func(now *T) (bool, error) {
			last = now
			return done(now, note)
		})
	})
	return last, err
}

// until waits within the timeout. Its error at the timeout has the last note.
func (w *waiting) until(ctx context.Context, what string,
	wait func(ctx context.Context, note func(string)) error) error {
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	known := "nothing was heard of it; is Parley's manager running?"
	err := wait(ctx, func(s string) { known = s })
	if errors.Is(err, context.DeadlineExceeded) {
		return timeoutError{waited: w.timeout, what: what, known: known}
	}
	return err
}

// request is a verb that makes a request by an annotation on a chat.
type request struct {
	name, short string
	kind        v1beta1.RequestKind
	// done is what has happened to the chat when the request is granted.
	done string
	// effect follows the description of the annotation. chat is that of the example.
	effect, chat string
}

var requests = []request{
	{"interrupt", "Stop the running turn and keep its text", v1beta1.RequestInterrupt,
		"interrupted",
		". The text so far is kept, and the next message in the queue starts. Calls that wait for people or " +
			"clients are cancelled. Ends with 1 if there is nothing to interrupt.", "triage"},
	{"clear", "Start a new context: the model no longer sees earlier messages", v1beta1.RequestClear,
		"cleared",
		". The messages stay, but the model sees only later ones. Ends with 1 if a turn is running, or there is " +
			"nothing to clear.", "triage"},
	{"compact", "Replace what the model sees by a summary", v1beta1.RequestCompact,
		"is being compacted",
		". A model writes a summary of the conversation; from then on the model sees the summary in its place. Ends " +
			"with 1 if a turn is running, or the model has not replied since the last time.", "triage"},
	{"title", "Set the title of a chat, or have a model write another one", v1beta1.RequestTitle,
		"gets another title with its next reply",
		". The next reply comes with another title. Until then status.title keeps its value, with titleSource " +
			"Outdated. Ends with 1 if no model writes titles for the chat (spec.titles of its ChatModelConfig), or spec.title " +
			"sets the title.", "triage"},
	{"refresh-context", "Have AGENTS.md and the skill index of the workspace read again", v1beta1.RequestRefreshContext,
		"reads the context of its workspace again with its next calls there",
		". With the results of its next calls in the workspace, the model is shown again how to work there. " +
			"Ends with 1 if the chat has no workspace.", "fix-the-build"},
}

func newRequest(o *options, r request) *cobra.Command {
	cmd := &cobra.Command{
		Use: r.name + " CHAT", Args: cobra.ExactArgs(1), Short: r.short,
		Example: "  kubectl chat " + r.name + " " + r.chat + "\n  kubectl chat " + r.name + " " + r.chat + " --wait=false",
		Long:    "Annotates the chat with " + r.kind.Annotation() + " and waits until it has acted on it" + r.effect,
	}
	if r.kind == v1beta1.RequestTitle {
		cmd.Use, cmd.Aliases, cmd.Args = "title CHAT [TITLE...]", []string{"rename"}, titleArguments
		cmd.Long = "With a TITLE, sets spec.title and waits until the chat has read it.\n\nWithout one, annotates" +
			strings.TrimPrefix(cmd.Long, "Annotates")
		cmd.Example = "  kubectl chat title triage \"Node 7 is not ready\"\n" + cmd.Example
	}
	return newAwaited(o, cmd, r.make)
}

// titleArguments checks those of title. Who renames a chat has a title for it.
func titleArguments(cmd *cobra.Command, args []string) error {
	if err := cobra.MinimumNArgs(1)(cmd, args); err != nil {
		return err
	}
	needsTitle := len(args) > 1 || cmd.CalledAs() == "rename"
	if needsTitle && strings.TrimSpace(strings.Join(args[1:], " ")) == "" {
		return errors.New("TITLE is empty: \"kubectl chat title CHAT\" has a model write one")
	}
	return nil
}

// make makes the request with a new token, and waits for the outcome. Further words are a title to set.
func (r *request) make(ctx context.Context, s *session, args []string, w waiting) error {
	if len(args) > 1 {
		title := field{path: "title", value: strings.Join(args[1:], " "), done: "titled", inForce: anyChat}
		return title.set(ctx, s, args[:1], w)
	}
	chat := args[0]
	if err := s.CheckChat(ctx, chat); err != nil {
		return err
	}
	annotation, token := r.kind.Annotation(), time.Now().UTC().Format(time.RFC3339Nano)
	if err := s.Request(ctx, chat, r.kind, token); err != nil {
		return err
	}
	if !w.wait {
		return s.Say(render.ChatPrefix+chat, map[string]string{"annotation": annotation, "token": token}, " annotated")
	}
	var handled v1beta1.HandledRequest
	last, err := settle(ctx, w, "chat "+chat+" to act on "+annotation, s.Chats().Watch, chat,
		func(c *v1beta1.Chat, _ func(string)) (bool, error) {
			i := slices.IndexFunc(c.Status.Requests,
				func(h v1beta1.HandledRequest) bool { return h.Kind == r.kind && h.Token == token })
			if i >= 0 {
				handled = c.Status.Requests[i]
			} else if c.Annotations[annotation] != token {
				return true, fmt.Errorf("another person has annotated chat %s with %s meanwhile: look at status.requests for "+
					"what became of that", chat, annotation)
			}
			return i >= 0, nil
		})
	switch {
	case err != nil:
		return err
	case handled.Outcome == v1beta1.RequestRefused:
		return fmt.Errorf("%s: %s; chat %s is %s", handled.Outcome, handled.Message, chat, stateOf(last))
	}
	return s.Say(render.ChatPrefix+chat, handled, " %s: %s", r.done, handled.Outcome)
}

// field is a verb that sets a field of a chat and waits until it is in force.
type field struct {
	name, short string
	// path of the field in the spec, and its new value.
	path  string
	value any
	// done is what has happened to the chat.
	done string
	// applies reports whether the verb would change the chat, and inForce whether a status that describes the change
	// has it.
	applies, inForce func(*v1beta1.Chat) bool
	effect           string
}

func anyChat(*v1beta1.Chat) bool      { return true }
func isOpen(c *v1beta1.Chat) bool     { return !c.Status.Archived }
func isArchived(c *v1beta1.Chat) bool { return c.Status.Archived }

var fields = []field{
	{"suspend", "Hold the work of a chat and its sub-chats", "suspend", true, "suspended", isOpen, anyChat,
		"Sets spec.suspend and waits until the chat has read it. The running step is finished and committed, no further " +
			"one starts, and messages wait."},
	{"resume", "Let a suspended chat continue", "suspend", false, "resumed",
		func(c *v1beta1.Chat) bool { return c.Spec.Suspend }, anyChat,
		"Sets spec.suspend to false and waits until the chat has read it."},
	{"archive", "Archive a chat and its sub-chats", "archived", true, "archived", isOpen, isArchived,
		"Sets spec.archived and waits until the chat is archived, as soon as all of its family are idle. An archived chat " +
			"accepts no messages, and ls omits it."},
	{"unarchive", "Unarchive a chat", "archived", false, "unarchived",
		func(c *v1beta1.Chat) bool { return c.Spec.Archived }, isOpen,
		"Sets spec.archived to false and waits until the chat accepts messages."},
}

func newField(o *options, f field) *cobra.Command {
	return newAwaited(o, &cobra.Command{
		Use: f.name + " CHAT...", Args: cobra.MinimumNArgs(1), Short: f.short, Long: f.effect,
		Example: "  kubectl chat " + f.name + " triage\n  kubectl chat " + f.name + " triage deploy --timeout 30s",
	}, f.set)
}

// set sets the field of all chats, and then waits until it is in force. If one fails, the others are set.
func (f *field) set(ctx context.Context, s *session, names []string, w waiting) error {
	var changed []*v1beta1.Chat
	var failed error
	for _, name := range names {
		chat, err := f.change(ctx, s, name)
		if errors.Is(err, context.Canceled) {
			return err
		}
		if failed = errors.Join(failed, err); err == nil {
			changed = append(changed, chat)
		}
	}
	ctx, cancel := context.WithTimeout(ctx, w.timeout)
	defer cancel()
	for _, chat := range changed {
		if ctx.Err() != nil { // The chat before has reported it.
			break
		}
		failed = errors.Join(failed, f.await(ctx, s, chat, w))
	}
	return failed
}

func (f *field) change(ctx context.Context, s *session, name string) (*v1beta1.Chat, error) {
	if err := s.CheckChat(ctx, name); err != nil {
		return nil, err
	}
	chat, err := s.Chats().MergePatch(ctx, name, map[string]any{"spec": map[string]any{f.path: f.value}})
	if err != nil {
		return nil, fmt.Errorf("changing chat %s: %w", name, err)
	}
	return chat, nil
}

// await waits until the field of a chat is in force, if w says so.
func (f *field) await(ctx context.Context, s *session, chat *v1beta1.Chat, w waiting) error {
	name, generation := chat.Name, chat.Generation
	if !w.wait {
		return s.Say(render.ChatPrefix+name, chat, " changed")
	}
	chat, err := settle(ctx, w, "chat "+name+" to be "+f.done, s.Chats().Watch, name,
		func(now *v1beta1.Chat, note func(string)) (bool, error) {
			if c := meta.FindStatusCondition(now.Status.Conditions, v1beta1.ConditionReady); c != nil {
				note(c.Reason + ": " + c.Message)
			}
			return now.Status.ObservedGeneration >= generation && f.inForce(now), nil
		})
	if err != nil {
		return err
	}
	return s.Say(render.ChatPrefix+name, chat, " %s", f.done)
}

func newPromote(o *options) *cobra.Command {
	return newAwaited(o, &cobra.Command{
		Use:   "promote CHAT MESSAGE",
		Short: "Make a queued message next",
		Long: "Sets spec.whenBusy of the ChatMessage to Interrupt and waits until it is being answered, as if it had been " +
			"sent with --interrupt: the running turn stops, and the text so far is kept. Ends with 1 if the message is not " +
			"queued.",
		Example: "  kubectl chat promote triage triage-x7k2p\n  kubectl chat promote triage triage-x7k2p --wait=false",
		Args:    cobra.ExactArgs(2),
	}, promoteMessage)
}

func promoteMessage(ctx context.Context, s *session, args []string, w waiting) error {
	name, message := args[0], args[1]
	if err := checkQueued(ctx, s, name, message); err != nil {
		return err
	}
	promoted, err := s.Messages().MergePatch(ctx, message, compose.Promotion())
	if err != nil {
		return fmt.Errorf("changing ChatMessage %s: %w", message, err)
	}
	if !w.wait {
		return s.Say(render.MessagePrefix+message, promoted, " promoted")
	}
	promoted, err = settle(ctx, w, "ChatMessage "+message+" to be next", s.Messages().Watch, message,
		func(now *v1beta1.ChatMessage, note func(string)) (bool, error) {
			if now.Status.State == v1beta1.MessageCommitted {
				return true, nil
			}
			return cluster.IsReady(now.Status.Conditions, note)
		})
	if err != nil {
		return err
	}
	return s.Say(render.MessagePrefix+message, promoted, " promoted: %s", promoted.Status.State)
}

// checkQueued fails unless the message waits in the chat's queue, and says which do.
func checkQueued(ctx context.Context, s *session, name, message string) error {
	chat, err := s.Chat(ctx, name)
	if err != nil {
		return err
	}
	waits := make([]string, 0, len(chat.Status.Queue))
	for _, queued := range chat.Status.Queue {
		if queued.Name == message {
			return nil
		}
		waits = append(waits, queued.Name)
	}
	there := "none does"
	if len(waits) > 0 {
		there = "there is " + strings.Join(waits, ", ")
	}
	return fmt.Errorf("message %s does not wait in the queue of chat %s, which is %s: %s", message, name,
		stateOf(chat), there)
}

// phaseWords describe a chat in each phase.
var phaseWords = map[v1beta1.ChatPhase]string{v1beta1.ChatWaiting: "idle", v1beta1.ChatRunning: "busy",
	v1beta1.ChatInterrupting: "being interrupted", v1beta1.ChatRequiresAction: "waiting for people or clients",
	v1beta1.ChatError: "idle after an error"}

// stateOf says in plain words what a chat does.
func stateOf(chat *v1beta1.Chat) string { return cmp.Or(phaseWords[chat.Status.Phase], "new") }
