// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/openai"

	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/rewrite"
	"parley.dev/parley/internal/generation/provider/transport"
)

// reasoningModel gives OpenAI's models their encrypted reasoning back, so that they need not think again after each
// tool. fantasy never sends reasoning; so that a text of random bytes stands for each, and the transport puts it in its
// place. If OpenAI cannot decrypt it, such as after a change of the organisation, or misses what it led to, the call is
// made again without.
type reasoningModel struct {
	fantasy.LanguageModel
	about fault.Subject
}

// Stream implements fantasy.LanguageModel.
func (m reasoningModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	next, items := withStandIns(call)
	if len(items) == 0 {
		return m.LanguageModel.Stream(ctx, call)
	}
	stream, err := m.LanguageModel.Stream(context.WithValue(ctx, itemsKey{}, items), next)
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		if !m.forward(stream, yield) {
			return
		}
		if stream, err = m.LanguageModel.Stream(ctx, call); err != nil {
			yield(fantasy.StreamPart{Type: fantasy.StreamPartTypeError, Error: err})
			return
		}
		stream(yield)
	}, nil
}

// forward hands the stream on. It returns true if all there is of it is a refusal of the history, which the reasoning
// can be to blame for.
func (m reasoningModel) forward(stream fantasy.StreamResponse, yield func(fantasy.StreamPart) bool) (refused bool) {
	begun := false
	for part := range stream {
		switch {
		case refused:
			continue // The end is waited for, so that the connection is given back.
		case part.Type == fantasy.StreamPartTypeError && !begun && fault.HistoryRejected(part.Error, m.about):
			refused = true
			continue
		}
		begun = begun || part.Type != fantasy.StreamPartTypeWarnings
		if !yield(part) {
			return false
		}
	}
	return refused
}

// itemsKey is where the reasoning of a call is in its context: fantasy hands that on to the transport, and nothing else
// of ours.
type itemsKey struct{}

// reasoningItem is a reasoning as the protocol has it.
type reasoningItem struct {
	Type      string        `json:"type"`
	ID        string        `json:"id"`
	Summary   []summaryText `json:"summary"`
	Encrypted string        `json:"encrypted_content"`
}

type summaryText struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// withStandIns is the call with a text in place of each encrypted reasoning, and what the texts stand for. Where OpenAI
// stores the replies, it has the reasoning.
func withStandIns(call fantasy.Call) (fantasy.Call, map[string]reasoningItem) {
	if o, ok := call.ProviderOptions[openai.Name].(*openai.ResponsesProviderOptions); ok && o.Store != nil && *o.Store {
		return call, nil
	}
	items := map[string]reasoningItem{}
	call.Prompt = slices.Clone(call.Prompt)
	for i := range call.Prompt {
		content := slices.Clone(call.Prompt[i].Content)
		for j, part := range content {
			m, ok := part.Options()[openai.Name].(*openai.ResponsesReasoningMetadata)
			if !ok || part.GetType() != fantasy.ContentTypeReasoning || m.EncryptedContent == nil || *m.EncryptedContent == "" {
				continue
			}
			random := make([]byte, 32)
			_, _ = rand.Read(random) // It never fails.
			text := base64.StdEncoding.EncodeToString(random)
			items[text] = itemOf(m)
			content[j] = fantasy.TextPart{Text: text}
		}
		call.Prompt[i].Content = content
	}
	return call, items
}

func itemOf(m *openai.ResponsesReasoningMetadata) reasoningItem {
	item := reasoningItem{Type: "reasoning", ID: m.ItemID, Encrypted: *m.EncryptedContent, Summary: []summaryText{}}
	for _, text := range m.Summary {
		if text != "" {
			item.Summary = append(item.Summary, summaryText{"summary_text", text})
		}
	}
	return item
}

// errReasoning means that a request does not have what stands for reasoning. It is not sent: the model would read
// random letters.
var errReasoning = errors.New("the reasoning cannot be written into the request")

// reasoningTransport writes the reasoning into requests.
type reasoningTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t reasoningTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	items, ok := r.Context().Value(itemsKey{}).(map[string]reasoningItem)
	if !ok || r.Body == nil {
		return t.next.RoundTrip(r)
	}
	r, err := rewrite.Request(r, func(body []byte) ([]byte, error) { return writeItems(body, items) })
	if err != nil {
		return nil, err
	}
	return t.next.RoundTrip(r)
}

// maxStandInText is the longest message that is looked at: one that stands for reasoning has nothing but 44 letters.
const maxStandInText = 256

func writeItems(body []byte, items map[string]reasoningItem) ([]byte, error) {
	found := 0
	written, err := rewrite.Elements(body, "input", func(raw []byte) ([]byte, error) {
		item, ok := items[contentOf(raw)]
		if !ok {
			return nil, nil
		}
		found++
		return rewrite.Encode(item)
	})
	if err == nil && found != len(items) {
		err = errReasoning
	}
	return written, err
}

// contentOf is the content of a short message; empty if it is no text.
func contentOf(raw []byte) string {
	var message struct {
		Content string `json:"content"`
	}
	if len(raw) > maxStandInText || json.Unmarshal(raw, &message) != nil {
		return ""
	}
	return message.Content
}

// Client returns the client, which writes reasoning into the requests of calls that give some back.
func Client(client *http.Client) *http.Client {
	return transport.Wrap(client, func(next http.RoundTripper) http.RoundTripper { return reasoningTransport{next} })
}
