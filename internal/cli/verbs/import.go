// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/prior"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// maxImport is the most bytes of a file that is imported: exports have more than what fits a history.
const maxImport = 64 << 20

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
		Short: "Create a chat that continues from an export, or from messages of OpenAI's protocol",
		Long: "Creates a Chat whose first message is an earlier conversation. FILE, or - for standard input, is an export " +
			"in JSON Lines, or messages of OpenAI's Chat Completions in JSON: a list of them, or an object with messages. It " +
			"has at most 64 MiB. Nothing in it is run again. Without a NAME the API server generates one.\n\nThe chat waits " +
			"for your next message, or takes it from --prompt. A conversation whose last message is not the model's is " +
			"refused without --answer, because the model would answer at once.\n\nThe import takes what the model saw last: " +
			"after a clear or compact what followed it, with the summary as a User message. It omits reasoning, notes, " +
			"messages of a system, and the content of files that are elsewhere, and reports all but reasoning on standard " +
			"error. A conversation of more than 1024 messages or 1 MiB of JSON is refused; --truncate omits the oldest " +
			"messages, so that the rest begins with a User message.",
		Example: "  kubectl chat export triage -o jsonl | kubectl chat import - triage-2\n" +
			"  kubectl chat import messages.json --prompt \"Go on, please\"",
		Args: cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			switch {
			case im.answer && im.prompt != "":
				return usageError{errors.New("--answer and --prompt exclude each other: the model answers what was said last")}
			case len(im.new.files) > 0 && im.prompt == "":
				return usageError{errors.New("--file is attached to the message of --prompt: give one")}
			}
			c, err := o.conversation(args[0])
			if err != nil {
				return err
			}
			return im.run(cmd.Context(), o, c, args[1:])
		},
	}
	im.new.addFlags(cmd)
	im.new.addFollowFlag(cmd)
	flags := cmd.Flags()
	flags.Lookup("file").Usage = "a file to attach to the message of --prompt, of at most 3.5 MiB; it can be repeated"
	flags.BoolVar(&im.truncate, "truncate", false, "leave the oldest messages out if there are too many")
	flags.BoolVar(&im.answer, "answer", false, "have the model answer what was said last, and show the reply")
	flags.StringVar(&im.prompt, "prompt", "", "what is said next; the reply is shown")
	return cmd
}

// conversation reads the conversation in a file, or on standard input for "-".
func (o *options) conversation(file string) (*prior.Conversation, error) {
	raw, err := readInput(o, file, maxImport)
	if err != nil {
		return nil, fmt.Errorf("reading the conversation: %w", err)
	}
	c, err := prior.Read(raw)
	if err != nil {
		return nil, fmt.Errorf("%s cannot be imported: %w", inputName(file), err)
	}
	return c, nil
}

// run creates the chat, unless the conversation is unusable.
func (im *importOptions) run(ctx context.Context, o *options, c *prior.Conversation, name []string) error {
	if err := c.Fit(im.truncate); err != nil {
		return err
	}
	if !c.EndsWithReply() && !im.answer {
		return usageError{errors.New("the conversation does not end with a reply, so the model would be asked at once: " +
			"--answer lets it")}
	}
	if im.new.title == "" {
		im.new.title = clip.Ellipsis(printable.Line(c.Title), v1beta1.MaxTitleRunes)
	}
	s, err := o.connect(outputsOf(im.unfollowed())...)
	if err != nil {
		return err
	}
	printLeft(s, &c.Left)
	chat, err := im.new.named(append(name, generatedNamePrefix)[0])
	if err != nil {
		return err
	}
	return importChat(ctx, s, chat, c, im)
}

func (im *importOptions) unfollowed() bool { return im.new.noFollow || !im.answer && im.prompt == "" }

func printLeft(s *session, left *prior.Left) {
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

// importChat creates a chat that continues from a conversation, and shows the reply, if there is one.
func importChat(ctx context.Context, s *session, chat *v1beta1.Chat, c *prior.Conversation, im *importOptions) error {
	files, err := im.new.prepare(ctx, s)
	if err != nil {
		return err
	}
	var from cluster.Source
	if !im.unfollowed() {
		if from, err = openSource(ctx, s); err != nil {
			return err
		}
		defer from.Close()
	}
	created, err := s.Chats().Create(ctx, chat)
	if err != nil {
		return fmt.Errorf("creating the chat: %w", err)
	}
	b := beginning{chat: created, summary: " created from " + render.Plural(len(c.Messages), "message")}
	b.messages = append(b.messages, func(ctx context.Context) (string, error) {
		m, err := s.CreateMessage(ctx, created.Name, v1beta1.ChatMessageSpec{History: c.Messages})
		if err != nil {
			return "", fmt.Errorf("telling the chat its conversation: %w", err)
		}
		return m.Name, nil
	})
	if im.prompt != "" {
		b.messages = append(b.messages, func(ctx context.Context) (string, error) {
			return sayFirst(ctx, s, created.Name, im.prompt, files)
		})
	}
	return b.show(ctx, s, from, question{timeout: im.new.timeout})
}

// What an export can be.
const (
	outMarkdown = "md"
	outLines    = "jsonl"
)

func newExport(o *options) *cobra.Command {
	return &cobra.Command{
		Use:   "export CHAT",
		Short: "Print the whole conversation, as Markdown or JSON Lines",
		Long: "Prints a chat with its messages and notes, in order. Markdown (-o md, the default) is for people: text of " +
			"others is in fences that are longer than all within it, and messages for the model alone are omitted. JSON Lines " +
			"(-o jsonl) contain the chat in the first line (type chat), then each message and note (type message or note, " +
			"with its index); the other fields are those of the stream. The same chat is always printed in the same way.",
		Example: "  kubectl chat export triage > triage.md\n  kubectl chat export triage -o jsonl > triage.jsonl",
		Args:    cobra.ExactArgs(1),
		RunE: o.connected(func(ctx context.Context, s *session, args []string) error {
			return exportChat(ctx, s, args[0])
		}, outMarkdown, outLines),
	}
}

func exportChat(ctx context.Context, s *session, name string) error {
	t, err := s.Snapshot(ctx, name, 0)
	if err != nil {
		return err
	}
	children, err := s.Chats().List(ctx, metav1.ListOptions{})
	if err != nil {
		return fmt.Errorf("listing the sub-chats: %w", err)
	}
	e := render.NewExport(t.Chat, children.Items)
	for _, event := range t.Events {
		if err := e.Add(event); err != nil {
			return err
		}
	}
	if s.Format == outLines {
		return e.PrintLines(s.Out)
	}
	_, err = fmt.Fprint(s.Out, e.Markdown())
	return err
}
