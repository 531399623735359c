// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
)

// gemini answers as Google does, as far as a prompt goes: contents begin with a user's, each content has parts, the
// responses to calls are in the next content, and the first call of a content is signed.
func gemini(w http.ResponseWriter, body []byte) {
	if err := geminiRefuses(body); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		_ = json.NewEncoder(w).
			Encode(map[string]any{"error": map[string]any{"code": 400, "message": err.Error(), "status": "INVALID_ARGUMENT"}})
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	_, _ = io.WriteString(w,
		`data: {"candidates":[{"content":{"role":"model","parts":[{"text":"ok"}]},"finishReason":"STOP"}]}`+"\n\n")
}

type geminiContent struct {
	Role  string
	Parts []geminiPart
}

type geminiPart struct {
	Text             string
	ThoughtSignature string
	FunctionCall     *geminiCall
	FunctionResponse *geminiCall
	InlineData       *struct{ MimeType string }
}

type geminiCall struct{ ID, Name string }

func geminiRefuses(body []byte) error {
	var in struct{ Contents []geminiContent }
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	if len(in.Contents) == 0 || in.Contents[0].Role != "user" {
		return fmt.Errorf("contents do not begin with a user's")
	}
	var open []geminiCall
	for i, c := range in.Contents {
		calls, responses, err := c.check()
		if err != nil {
			return fmt.Errorf("contents[%d]: %w", i, err)
		}
		if !slices.Equal(open, responses) {
			return fmt.Errorf("contents[%d]: function responses %v to function calls %v", i, responses, open)
		}
		open = calls
	}
	if len(open) > 0 {
		return fmt.Errorf("function calls without responses: %v", open)
	}
	return nil
}

func (c geminiContent) check() (calls, responses []geminiCall, err error) {
	signed := false
	for _, p := range c.Parts {
		signed = signed || p.ThoughtSignature != ""
		switch {
		case p.FunctionCall != nil && !signed:
			return nil, nil, fmt.Errorf("function call %s is missing a thought_signature", p.FunctionCall.Name)
		case p.FunctionCall != nil:
			calls = append(calls, *p.FunctionCall)
		case p.FunctionResponse != nil:
			responses = append(responses, *p.FunctionResponse)
		case p.Text == "" && p.InlineData == nil:
			return nil, nil, fmt.Errorf("a part has no data")
		}
	}
	if len(c.Parts) == 0 {
		return nil, nil, fmt.Errorf("there are no parts")
	}
	return calls, responses, nil
}
