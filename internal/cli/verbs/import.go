// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/prior"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

const (
	// maxImport is the most bytes of a file that is imported: exports of long chats have accounts and reasoning besides
	// what fits a history.
	maxImport = 64 << 20
	// undoing is how long it may take to delete a chat that could not be told its conversation.
	undoing = 10 * time.Second
)

// importOptions are what is said of a conversation that is imported.
type importOptions struct {
	new      newOptions
	truncate bool
	answer   bool
	prompt   string
}

func newImport(o *options) *cobra.Command {
	var im importOptions
	cmd := &cobra.Command{
		Use:   "import FILE|- [NAME]",
		Short: "Create a chat that continues from an exported conversation",
		Long: "Creates a Chat whose first message is a conversation that was led elsewhere: an export (-o jsonl), or " +
			"messages of OpenAI's Chat Completions in JSON. The model is told it with the next message; --prompt sends one. " +
			"A conversation in which the model has not said the last word is refused without --answer, since the model would " +
			"be asked at once.",
		Example: "  kubectl chat export triage -o jsonl | kubectl chat import - triage-2\n" +
			"  kubectl chat import messages.json --prompt \"Go on, please\"",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if im.answer && im.prompt != "" {
				return usageError{errors.New("--answer and --prompt exclude each other: the model answers what was said last")}
			}
			c, err := o.conversation(args[0])
			if err != nil {
				return err
			}
			return im.run(cmd.Context(), o, c, args[1:])
		},
	}
	im.new.addFlags(cmd)
	flags := cmd.Flags()
	flags.BoolVar(&im.truncate, "truncate", false, "leave the oldest messages out if there are too many")
	flags.BoolVar(&im.answer, "answer", false, "have the model answer what was said last, and show the reply")
	flags.StringVar(&im.prompt, "prompt", "", "what is said next; the reply is shown")
	return cmd
}

// conversation reads the one in a file, or on standard input for "-".
func (o *options) conversation(file string) (*prior.Conversation, error) {
	from, named := o.In, "standard input"
	if file != "-" {
		opened, err := os.Open(file)
		if err != nil {
			return nil, usageError{fmt.Errorf("reading the conversation: %w", err)}
		}
		defer func() { _ = opened.Close() }()
		from, named = opened, file
	}
	raw, err := io.ReadAll(io.LimitReader(from, maxImport+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the conversation: %w", err)
	case len(raw) > maxImport:
		return nil, fmt.Errorf("%s has more than %d bytes", named, maxImport)
	}
	c, err := prior.Read(raw)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be imported: %w", named, err)
	}
	return c, nil
}

// run creates the chat, unless the conversation will not do.
func (im *importOptions) run(ctx context.Context, o *options, c *prior.Conversation, name []string) error {
	if err := im.fit(c); err != nil {
		return err
	}
	if !c.EndsWithReply() && !im.answer {
		return usageError{errors.New("the conversation does not end with a reply, so the model would be asked at once: " +
			"--answer lets it")}
	}
	if im.new.title == "" {
		im.new.title = clip.Ellipsis(printable.Line(c.Title), v1alpha1.MaxTitleRunes)
	}
	s, err := o.connect(outputsOf(im.unfollowed())...)
	if err != nil {
		return err
	}
	remark(s, &c.Left)
	return importChat(ctx, s, im.new.named(append(name, generatedNamePrefix)[0]), c, im)
}

// fit leaves the oldest messages out if that is wanted and needed.
func (im *importOptions) fit(c *prior.Conversation) error {
	err := c.Fits()
	tooLong, ok := errors.AsType[*prior.TooLongError](err)
	switch {
	case !ok || tooLong.Oldest == 0:
		return err
	case !im.truncate:
		return fmt.Errorf("%w: --truncate leaves the oldest %d out", err, tooLong.Oldest)
	}
	c.Truncate(tooLong.Oldest)
	return nil
}

func (im *importOptions) unfollowed() bool { return im.new.noFollow || !im.answer && im.prompt == "" }

// remark tells what of the conversation the model is not told.
func remark(s *session, left *prior.Left) {
	to := terminal.NewScreen(s.ErrOut)
	for _, l := range []struct {
		number    int
		what, why string
	}{
		{left.Oldest, "message", "left out: the oldest, which do not fit"},
		{left.BeforeContext, "message", "left out: the model saw them no more"},
		{left.Notes, "note", "left out: notes are not sent to models"},
		{left.System, "system message", "left out: what they say belongs into the systemPrompt of the chat or its class"},
		{left.Files, "file", "named alone: the content is not in what is imported"},
	} {
		if l.number > 0 {
			to.Line("[%s %s]", render.Plural(l.number, l.what), l.why)
		}
	}
}

// importChat creates a chat that continues from a conversation, and shows the reply, if one is to come.
func importChat(ctx context.Context, s *session, chat *v1alpha1.Chat, c *prior.Conversation, im *importOptions) error {
	created, err := s.Chats().Create(ctx, chat)
	if err != nil {
		return fmt.Errorf("creating the chat: %w", err)
	}
	tell := func(ctx context.Context) (string, error) {
		m, err := s.CreateMessage(ctx, created.Name, v1alpha1.ChatMessageSpec{History: c.Messages})
		if err != nil {
			undoImport(ctx, s, created)
			return "", fmt.Errorf("telling the chat its conversation: %w", err)
		}
		return m.Name, nil
	}
	said := " created from " + render.Plural(len(c.Messages), "message")
	if im.answer && !im.new.noFollow {
		announce(s, created, said)
		return ask(ctx, s, question{chat: created.Name, timeout: im.new.timeout, ask: tell})
	}
	if _, err := tell(ctx); err != nil {
		return err
	}
	if im.prompt != "" && !im.new.noFollow {
		announce(s, created, said)
		return sendMessage(ctx, s, created.Name, im.prompt, sendOptions{timeout: im.new.timeout})
	}
	if im.prompt != "" {
		if _, err := s.CreateMessage(ctx, created.Name, v1alpha1.ChatMessageSpec{Content: im.prompt}); err != nil {
			return err
		}
	}
	return s.Say(render.ChatPrefix+created.Name, created, "%s", said)
}

// announce tells of a chat whose reply is shown then.
func announce(s *session, chat *v1alpha1.Chat, said string) {
	if s.Format == "" {
		terminal.NewScreen(s.ErrOut).Line("[%s%s%s]", render.ChatPrefix, chat.Name, said)
	}
}

// undoImport deletes a chat that nobody has said anything to.
func undoImport(ctx context.Context, s *session, chat *v1alpha1.Chat) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoing)
	defer cancel()
	err := s.Chats().Delete(ctx, chat.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &chat.UID}})
	if err != nil {
		terminal.NewScreen(s.ErrOut).Line("[%s%s is left, and empty: %v]", render.ChatPrefix, chat.Name, err)
	}
}
