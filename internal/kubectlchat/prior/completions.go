// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prior

import (
	"bytes"
	"encoding/json"
	"errors"

	"parley.dev/parley/internal/gateway/compat/completions"
	"parley.dev/parley/internal/gateway/turn"
)

// readCompletions reads messages as clients of OpenAI's Chat Completions send them.
func readCompletions(raw []byte) (*Conversation, error) {
	var body struct {
		Messages json.RawMessage `json:"messages"`
	}
	if raw[0] == '[' {
		body.Messages = raw
	} else if err := json.NewDecoder(bytes.NewReader(raw)).Decode(&body); err != nil || len(body.Messages) == 0 {
		return nil, errors.New("it is JSON, but neither a list of messages nor an object with messages")
	} else if !json.Valid(raw) {
		return nil, errors.New("it has several conversations: give one of them")
	}
	wrapped, err := json.Marshal(body)
	if err != nil {
		return nil, errors.New("it is no JSON")
	}
	read, err := completions.Read(wrapped)
	if err != nil {
		return nil, err
	}
	c := &Conversation{Messages: turn.Prior(read.Items)}
	for i := range read.Items {
		switch item := &read.Items[i]; item.Kind {
		case turn.System:
			c.Left.System++
		case turn.Said:
			for j := range item.Parts {
				if f := item.Parts[j].File; f != nil && f.Data == "" {
					c.Left.Files++
				}
			}
		}
	}
	return c, nil
}
