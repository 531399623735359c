// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package prior reads conversations that were led elsewhere, and makes of each the history of one message. It is pure.
package prior

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"parley.dev/parley/api/v1alpha1"
)

// MaxBytes is the most of a history in JSON: 1 MiB. Its texts may have as many characters, and etcd takes it in any
// script.
const MaxBytes = v1alpha1.MaxContentBytes

// Conversation is what was said elsewhere.
type Conversation struct {
	// Title that it had; empty: none is known.
	Title string
	// Messages of it, oldest first.
	Messages []v1alpha1.PriorMessage
	// Left is what is no part of Messages.
	Left Left
}

// Left counts what of a conversation is not told the model.
type Left struct {
	// Notes to people.
	Notes int
	// BeforeContext are messages that the model did not see any more.
	BeforeContext int
	// System are messages that say how the model is to work.
	System int
	// Files whose content stands elsewhere: they are named alone.
	Files int
	// Oldest are messages that were too many.
	Oldest int
}

// Read reads an export (JSON Lines of kubectl chat export), or messages of OpenAI's Chat Completions: a list of them,
// or an object with messages.
func Read(raw []byte) (*Conversation, error) {
	raw = bytes.TrimSpace(bytes.TrimPrefix(raw, []byte("\ufeff")))
	var c *Conversation
	var err error
	switch first, _, _ := bytes.Cut(raw, []byte("\n")); {
	case isHeader(first):
		c, err = readExport(raw)
	case len(raw) > 0 && (raw[0] == '[' || raw[0] == '{'):
		c, err = readCompletions(raw)
	default:
		err = errors.New("it is neither an export of kubectl chat export -o jsonl, nor messages of OpenAI's Chat " +
			"Completions in JSON")
	}
	switch {
	case err != nil:
		return nil, err
	case len(c.Messages) == 0:
		return nil, errors.New("there is no message in it that a model could be told")
	}
	return c, nil
}

// EndsWithReply reports whether the model has said the last word, so that it is not asked at once.
func (c *Conversation) EndsWithReply() bool {
	return c.Messages[len(c.Messages)-1].Role == v1alpha1.RoleAssistant
}

// TooLongError means that a conversation does not fit one message.
type TooLongError struct {
	// Messages and Bytes are the conversation's.
	Messages, Bytes int
	// Oldest is how many messages must go for the rest to fit; 0 if that is not possible.
	Oldest int
}

func (e *TooLongError) Error() string {
	said := fmt.Sprintf("the conversation has %d messages and %d bytes, but one message holds a history of %d and %d",
		e.Messages, e.Bytes, v1alpha1.MaxPriorMessages, MaxBytes)
	if e.Oldest == 0 {
		return said + ", and what follows the last words of a User alone is more than that"
	}
	return said
}

// Fits fails with a *TooLongError for a conversation that does not fit one message.
func (c *Conversation) Fits() error {
	sizes := make([]int, len(c.Messages))
	total := 0
	for i := range c.Messages {
		raw, err := json.Marshal(&c.Messages[i])
		if err != nil {
			return fmt.Errorf("measuring the conversation: %w", err)
		}
		sizes[i] = len(raw) + 1 // with the comma behind it
		total += sizes[i]
	}
	if len(c.Messages) <= v1alpha1.MaxPriorMessages && total < MaxBytes {
		return nil
	}
	too := &TooLongError{Messages: len(c.Messages), Bytes: total}
	for i := range c.Messages {
		fits := len(c.Messages)-i <= v1alpha1.MaxPriorMessages && total < MaxBytes
		if fits && c.Messages[i].Role == v1alpha1.RoleUser {
			too.Oldest = i
			break
		}
		total -= sizes[i]
	}
	return too
}

// Truncate leaves the oldest messages out.
func (c *Conversation) Truncate(oldest int) {
	c.Messages = slices.Delete(c.Messages, 0, oldest)
	c.Left.Oldest += oldest
}
