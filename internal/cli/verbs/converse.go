// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/rand"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/chat/modelconfig"
	"parley.dev/parley/internal/cli"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/converse"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/compose"
)

const (
	sendTimeout = 20 * time.Second
	// interruptTimeout bounds an interruption, also for a person who leaves meanwhile.
	interruptTimeout = 5 * time.Second
)

// conversation does at the API server what a person at a terminal asks for. It implements converse.Chat.
type conversation struct {
	s    *session
	chat string
	from cluster.Source
}

// converse checks that there is a terminal, and talks to a chat there.
func (o *options) converse(cmd *cobra.Command, chat string, plain bool) error {
	only := ""
	cmd.LocalNonPersistentFlags().Visit(func(f *pflag.Flag) {
		if f.Name != "plain" {
			only = "--" + f.Name
		}
	})
	switch {
	case !terminal.OnTerminal(o.In) || !terminal.OnTerminal(o.Out):
		return usageError{errors.New("without a TEXT a person types at a terminal, and there is none: give a TEXT, or - " +
			"for standard input")}
	case only != "":
		return usageError{fmt.Errorf("%s is about one message: give its TEXT", only)}
	}
	s, err := o.connect()
	if err != nil {
		return err
	}
	if err := s.CheckChat(cmd.Context(), chat); err != nil {
		return err
	}
	from, err := openSource(cmd.Context(), s)
	if err != nil {
		return err
	}
	defer from.Close()
	c := &conversation{s: s, chat: chat, from: from}
	if plain || os.Getenv("TERM") == "dumb" {
		return c.inLines(cmd.Context())
	}
	return c.onScreen(cmd.Context())
}

// onScreen talks to a chat, and to those that the person switches to, until they leave or the chat is deleted.
func (c *conversation) onScreen(ctx context.Context) error {
	in, _ := terminal.FileOf(c.s.In)
	out, _ := terminal.FileOf(c.s.Out)
	for drafts := map[string]map[string]string{}; ; {
		end, err := converse.Run(ctx, in, out, c, c.chat, drafts[c.chat])
		if end.Busy && end.Next == "" {
			terminal.NewScreen(c.s.ErrOut).Line("[the turn continues: %s shows it]", c.s.command("tail", c.chat))
		}
		drafts[c.chat] = end.Drafts
		if end.Next == "" || err != nil {
			printDrafts(terminal.NewScreen(c.s.ErrOut), drafts)
			return err
		}
		c = &conversation{s: c.s, chat: end.Next, from: c.from} // Requests of the last chat may still run.
	}
}

// printDrafts prints what was typed in chats and not sent.
func printDrafts(to *terminal.Screen, drafts map[string]map[string]string) {
	for _, chat := range slices.Sorted(maps.Keys(drafts)) {
		for _, purpose := range slices.Sorted(maps.Keys(drafts[chat])) {
			to.Line("[not sent to chat %s:]", chat)
			to.Foreign(drafts[chat][purpose] + "\n")
		}
	}
}

// Chats implements converse.Chat. It lists the chats that changed last first.
func (c *conversation) Chats(ctx context.Context) ([]converse.Listed, error) {
	all, err := chatsToList(ctx, c.s, listOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the chats: %w", err)
	}
	slices.SortStableFunc(all.Items, func(a, b v1beta1.Chat) int { return changedAt(&b).Compare(changedAt(&a)) })
	chats := make([]converse.Listed, len(all.Items))
	for i := range all.Items {
		chats[i] = converse.Listed{Name: all.Items[i].Name, Line: render.ChatLine(&all.Items[i])}
	}
	return chats, nil
}

// changedAt is when a chat began to be as it is.
func changedAt(chat *v1beta1.Chat) time.Time {
	if ready := meta.FindStatusCondition(chat.Status.Conditions, v1beta1.ConditionReady); ready != nil {
		return ready.LastTransitionTime.Time
	}
	return chat.CreationTimestamp.Time
}

// Follow implements converse.Chat.
func (c *conversation) Follow(ctx context.Context, lost func(error)) iter.Seq2[stream.Event, error] {
	return c.from.Follow(ctx, c.s.Namespace, c.chat, true, lost)
}

// NewName implements converse.Chat.
func (c *conversation) NewName() string { return c.chat + "-message-" + rand.String(8) }

// Send implements converse.Chat.
func (c *conversation) Send(ctx context.Context, name, text string) error {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	m := compose.Message(c.s.Namespace, c.chat, name, v1beta1.ChatMessageSpec{Content: text})
	if _, err := c.s.Messages().Create(within, m); err != nil {
		return fmt.Errorf("the message is not sent: %w", err)
	}
	return nil
}

// Await implements converse.Chat. A message whose outcome cannot be read was sent all the same. The events of the chat
// report outages.
func (c *conversation) Await(ctx context.Context, name string) error {
	v := c.s.AwaitVerdict(ctx, name, func(error) {})
	_, isRefused := errors.AsType[cli.NotReadyError](v.Err)
	_, isDeleted := errors.AsType[cli.NotFoundError](v.Err)
	if (isDeleted || isRefused) && !v.Committed {
		return v.Err
	}
	return nil
}

// Open implements converse.Chat.
func (c *conversation) Open(ctx context.Context) (open []v1beta1.ChatMessage, err error) {
	chat, err := c.s.Chats().Get(ctx, c.chat)
	if err == nil {
		err = cluster.Each(ctx, cluster.MessagesOf(c.chat), c.s.Messages().List, func(m *v1beta1.ChatMessage) {
			visible := m.Spec.Visibility == "" || m.Spec.Visibility == v1beta1.VisibleToAll
			if m.Spec.Generation == nil && m.Spec.Role == v1beta1.RoleUser && visible && history.Waits(chat, m) {
				open = append(open, *m)
			}
		})
	}
	if err != nil {
		return nil, fmt.Errorf("listing the messages that wait: %w", err)
	}
	slices.SortStableFunc(open, func(a, b v1beta1.ChatMessage) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return open, nil
}

// Interrupt implements converse.Chat: it makes the request that kubectl chat interrupt makes.
func (c *conversation) Interrupt(ctx context.Context) error {
	within, cancel := context.WithTimeout(context.WithoutCancel(ctx), interruptTimeout)
	defer cancel()
	err := c.s.Request(within, c.chat, v1beta1.RequestInterrupt, time.Now().UTC().Format(time.RFC3339Nano))
	if err != nil {
		return fmt.Errorf("the turn is not interrupted: %w", err)
	}
	return nil
}

// Decide implements converse.Chat. It decides as approve, deny and answer do: about the call with the digest that the
// person has seen, and no other. It computes that digest, because the event may have another one. What is shown of a
// call depends on its kind and cause, too. The input of a call that is denied is a comment.
func (c *conversation) Decide(ctx context.Context, seen v1beta1.PendingToolCall, decision v1beta1.ApprovalDecision,
	input string) error {
	s, w := c.s.printingTo(io.Discard), waiting{wait: true, timeout: time.Minute}
	call, err := undecidedCall(ctx, s, c.chat, seen.ID)
	if err != nil {
		return err
	}
	digest := seen.CallDigest()
	if call.ID != seen.ID || call.Digest != digest || call.Kind != seen.Kind || call.ApprovalCause != seen.ApprovalCause {
		return fmt.Errorf("call %s does not wait as it was shown: read it with %s", seen.ID, s.command("calls", c.chat))
	}
	if input != "" && decision == v1beta1.DecisionApprove {
		return sendInput(ctx, s, c.chat, call, input, digest, w)
	}
	return decideCall(ctx, s, c.chat, call, v1beta1.ToolApprovalSpec{Decision: decision, Comment: input}, w)
}

// printingTo returns a session that prints there.
func (s *session) printingTo(out io.Writer) *session {
	other, o := *s, *s.options
	o.Output = render.Output{}
	o.In, o.Out, o.ErrOut = s.In, out, out
	other.options = &o
	return &other
}

// Read implements converse.Chat.
func (c *conversation) Read(ctx context.Context, message string) (*v1beta1.ChatMessage, error) {
	return editableMessage(ctx, c.s, c.chat, message)
}

// Hold implements converse.Chat. It does not wait for the request, as a person types meanwhile. If it fails, a message
// that was started is not overwritten: Edit refuses that.
func (c *conversation) Hold(ctx context.Context, message *v1beta1.ChatMessage) (release func()) {
	held := make(chan func(), 1)
	go func() {
		release, _ := hold(ctx, c.s, message)
		held <- release
	}()
	return func() { (<-held)() }
}

// Edit implements converse.Chat.
func (c *conversation) Edit(ctx context.Context, read *v1beta1.ChatMessage, text string) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), sendTimeout)
	defer cancel()
	if strings.TrimSpace(text) == "" {
		return withdraw(ctx, c.s, read)
	}
	if err := checkQueued(ctx, c.s, c.chat, read.Name); err != nil {
		return err
	}
	return changeMessage(ctx, c.s.printingTo(io.Discard), read, text)
}

// Command implements converse.Chat: requests and forks as their verbs do, and settings as the page does.
func (c *conversation) Command(ctx context.Context, name, argument string) (lines []string, err error) {
	var out strings.Builder
	s := c.s.printingTo(&out)
	if name == "fork" {
		fork := forkOptions{}
		fork.new.noFollow = true
		err := fork.run(ctx, s, append([]string{c.chat}, strings.Fields(argument)...))
		for line := range strings.Lines(out.String()) { // Remarks have a mark and brackets.
			line = strings.Trim(line, terminal.Mark+"[]\n")
			lines = append(lines, line)
			if object, made := strings.CutSuffix(line, " created"); made {
				lines = append(lines, "talk there: "+s.command("send", strings.TrimPrefix(object, render.ChatPrefix)))
			}
		}
		return lines, err
	}
	for _, r := range requests {
		if r.name == name {
			err := r.make(ctx, s, []string{c.chat}, waiting{wait: true, timeout: time.Minute})
			return []string{strings.TrimSpace(out.String())}, err
		}
	}
	if name == "model" && argument == "" {
		return listModels(ctx, c)
	}
	words, err := c.set(ctx, name, argument)
	return []string{words}, err
}

// listModels lists the models that the chat can use, with a mark at the one that it uses.
func listModels(ctx context.Context, c *conversation) (lines []string, err error) {
	configs, err := c.s.Client.ModelConfigs(c.s.Namespace).List(ctx, metav1.ListOptions{})
	if err != nil {
		return nil, fmt.Errorf("listing the ChatModelConfigs: %w", err)
	}
	chat, err := c.s.Chat(ctx, c.chat)
	if err != nil {
		return nil, err
	}
	if classes, err := c.s.Client.Classes(c.s.Namespace).List(ctx, metav1.ListOptions{}); err == nil {
		chat = chatclass.Of(chat, classes.Items)
	}
	used, missing := modelconfig.Resolve(configs.Items, &chat.Spec, modelconfig.ByChat)
	for i := range configs.Items {
		config := &configs.Items[i]
		line := config.Name + ": " + config.Spec.Model
		switch {
		case used != nil && used.Name == config.Name:
			line += " (the chat uses it)"
		case config.Spec.Disabled:
			line += " (disabled)"
		}
		lines = append(lines, line)
	}
	if missing != nil {
		lines = append(lines, missing.Message)
	}
	return lines, nil
}

// set changes a setting of the chat from the next step on.
func (c *conversation) set(ctx context.Context, name, value string) (string, error) {
	var said any = value
	if name != "model" && value == converse.DefaultValue {
		said = nil
	}
	settings := map[string]map[string]any{"model": {"modelConfigRef": map[string]any{"name": value}},
		"mode": {"mode": said}, "effort": {"reasoningEffort": said}}
	if name == "model" {
		if err := checkModel(ctx, c.s, value); err != nil {
			return "", err
		}
	}
	if _, err := c.s.Chats().MergePatch(ctx, c.chat, map[string]any{"spec": settings[name]}); err != nil {
		return "", fmt.Errorf("changing the %s of chat %s: %w", name, c.chat, err)
	}
	return fmt.Sprintf("the %s of the chat is now %s", name, value), nil
}
