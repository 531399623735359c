// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prior

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"parley.dev/parley/internal/gateway/compat/completions"
	"parley.dev/parley/internal/gateway/turn"
)

// readCompletions reads messages as clients of OpenAI's Chat Completions send them.
func readCompletions(raw []byte) (*Conversation, error) {
	var body struct {
		Messages json.RawMessage `json:"messages"`
	}
	switch {
	case raw[0] == '[':
		body.Messages = raw
	case json.NewDecoder(bytes.NewReader(raw)).Decode(&body) != nil, len(body.Messages) == 0:
		return nil, errors.New("it is JSON, but neither a list of messages nor an object with messages")
	case !json.Valid(raw):
		return nil, errors.New("it has several conversations: give one of them")
	}
	wrapped, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("it is no JSON: %w", err)
	}
	read, err := completions.Read(wrapped)
	if err != nil {
		return nil, err
	}
	c := &Conversation{Messages: turn.Prior(read.Items)}
	for i := range read.Items {
		c.Left.leave(&read.Items[i])
	}
	return c, nil
}

// leave counts what of an item is no part of a history.
func (l *Left) leave(item *turn.Item) {
	if item.Kind == turn.System {
		l.System++
	}
	for i := range item.Parts {
		if f := item.Parts[i].File; f != nil && f.Data == "" {
			l.Files++
		}
	}
}
