// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/cli/terminal"
)

// undoTimeout bounds the deletion of a chat whose first message could not be created.
const undoTimeout = 10 * time.Second

// createChat creates a chat, and then calls remark and shows the first reply, if there is one.
func createChat(ctx context.Context, s *session, chat *v1beta1.Chat, no newOptions, remark func()) error {
	asks := no.asks(chat)
	files, err := no.prepare(ctx, s)
	if err != nil {
		return err
	}
	var from cluster.Source
	if asks && !no.noFollow {
		if from, err = openSource(ctx, s); err != nil {
			return err
		}
		defer from.Close()
	}
	created, first, err := no.create(ctx, s, chat, files)
	if err != nil {
		return err
	}
	remark()
	b := beginning{chat: created, summary: " created"}
	if asks {
		b.messages = append(b.messages, first)
	}
	return b.show(ctx, s, from, question{first: true, timeout: no.timeout})
}

// beginning is a chat that was created, with what creates its first messages and returns their names.
type beginning struct {
	chat     *v1beta1.Chat
	summary  string
	messages []func(context.Context) (string, error)
}

// show creates the first messages, and shows the reply to the last one as the source has it; nil: it shows the chat. If
// a message cannot be created, the chat is deleted.
func (b *beginning) show(ctx context.Context, s *session, from cluster.Source, q question) error {
	at := len(b.messages)
	if from != nil {
		at--
		announce(s, b.chat, b.summary)
	}
	for _, create := range b.messages[:at] {
		if _, err := create(ctx); err != nil {
			undoChat(ctx, s, b.chat)
			return err
		}
	}
	if from == nil {
		return s.Say(render.ChatPrefix+b.chat.Name, b.chat, "%s", b.summary)
	}
	q.ask = b.messages[at]
	return askNew(ctx, s, from, b.chat, q)
}

// askNew shows the reply to the first message of a chat. If the message cannot be created, the chat is deleted. A
// prompt was created with the chat.
func askNew(ctx context.Context, s *session, from cluster.Source, chat *v1beta1.Chat, q question) error {
	create, asked := q.ask, chat.Spec.Prompt != ""
	q.chat = chat.Name
	q.ask = func(ctx context.Context) (string, error) {
		name, err := create(ctx)
		asked = asked || err == nil
		return name, err
	}
	err := askFrom(ctx, s, from, q)
	if !asked {
		undoChat(ctx, s, chat)
	}
	return err
}

func announce(s *session, chat *v1beta1.Chat, words string) {
	terminal.NewScreen(s.ErrOut).Line("[%s%s%s]", render.ChatPrefix, chat.Name, words)
}

// undoChat deletes a chat whose first message could not be created.
func undoChat(ctx context.Context, s *session, chat *v1beta1.Chat) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), undoTimeout)
	defer cancel()
	outcome := "was deleted, because its first message could not be created"
	if err := s.Chats().Delete(ctx, chat.Name,
		metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &chat.UID}}); err != nil {
		outcome = fmt.Sprintf("is left, and incomplete: %v", err)
	}
	terminal.NewScreen(s.ErrOut).Line("[%s%s %s]", render.ChatPrefix, chat.Name, outcome)
}

// create creates the chat. first returns the name of its first message: that of the prompt, or one with the files,
// which it creates, since files can only be uploaded for a chat that exists.
func (no *newOptions) create(ctx context.Context, s *session, chat *v1beta1.Chat, files []localFile) (
	created *v1beta1.Chat, first func(context.Context) (string, error), err error) {
	prompt := chat.Spec.Prompt
	if len(files) > 0 {
		chat.Spec.Prompt = ""
	}
	if created, err = s.Chats().Create(ctx, chat); err != nil {
		return nil, nil, fmt.Errorf("creating the chat: %w", err)
	}
	return created, func(ctx context.Context) (string, error) {
		if len(files) == 0 {
			return created.Name + plan.PromptSuffix, nil
		}
		return sayFirst(ctx, s, created.Name, prompt, files)
	}, nil
}

// sayFirst creates a message with files in a new chat, and returns its name.
func sayFirst(ctx context.Context, s *session, chat, text string, files []localFile) (string, error) {
	spec := v1beta1.ChatMessageSpec{Content: text}
	if err := attach(ctx, s, chat, &spec, files); err != nil {
		return "", err
	}
	m, err := s.CreateMessage(ctx, chat, spec)
	if err != nil {
		return "", err
	}
	return m.Name, nil
}
