// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"slices"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/openai"

	"parley.dev/parley/api/v1alpha1"
)

// sealedModel gives OpenAI's models their encrypted reasoning back over the responses protocol, so that they need not think anew after
// each tool. fantasy never sends reasoning; so that a text of random bytes stands for each, and the transport puts it in its place. If
// OpenAI cannot decrypt it, such as after a change of the organisation, or misses what it led to, the call is made again without.
type sealedModel struct {
	fantasy.LanguageModel
	about Subject
}

func newSealedModel(model fantasy.LanguageModel, spec *v1alpha1.ChatModelConfigSpec) fantasy.LanguageModel {
	return sealedModel{model, Subject{Spec: spec}}
}

// Stream implements fantasy.LanguageModel.
func (m sealedModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	next, items := withSealed(call)
	if len(items) == 0 {
		return m.LanguageModel.Stream(ctx, call)
	}
	stream, err := m.LanguageModel.Stream(context.WithValue(ctx, sealedKey{}, items), next)
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

// forward hands the stream on. It returns true if all there is of it is a refusal of the history, which the reasoning can be to
// blame for.
func (m sealedModel) forward(stream fantasy.StreamResponse, yield func(fantasy.StreamPart) bool) (refused bool) {
	begun := false
	for part := range stream {
		switch {
		case refused:
			continue // The end is waited for, so that the connection is given back.
		case part.Type == fantasy.StreamPartTypeError && !begun && historyRejected(find(part.Error, m.about)):
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

// sealedKey is where the reasoning of a call is in its context.
type sealedKey struct{}

// sealedItem is a reasoning as the protocol has it.
type sealedItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Summary   []sealedSummary `json:"summary"`
	Encrypted string          `json:"encrypted_content"`
}

type sealedSummary struct {
	Type string `json:"type"`
	Text string `json:"text"`
}

// withSealed is the call with a text in place of each encrypted reasoning, and what the texts stand for. Where OpenAI stores the
// replies, it has the reasoning.
func withSealed(call fantasy.Call) (fantasy.Call, map[string]sealedItem) {
	if o, ok := call.ProviderOptions[openai.Name].(*openai.ResponsesProviderOptions); ok && o.Store != nil && *o.Store {
		return call, nil
	}
	items := map[string]sealedItem{}
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
			items[text] = sealedItemOf(m)
			content[j] = fantasy.TextPart{Text: text}
		}
		call.Prompt[i].Content = content
	}
	return call, items
}

func sealedItemOf(m *openai.ResponsesReasoningMetadata) sealedItem {
	item := sealedItem{Type: "reasoning", ID: m.ItemID, Encrypted: *m.EncryptedContent, Summary: []sealedSummary{}}
	for _, text := range m.Summary {
		if text != "" {
			item.Summary = append(item.Summary, sealedSummary{"summary_text", text})
		}
	}
	return item
}

// errNotSealed means that a request does not have what stands for reasoning. It is not sent: the model would read random letters.
var errNotSealed = errors.New("the reasoning cannot be written into the request")

// sealedTransport writes the reasoning into requests.
type sealedTransport struct{ next http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t sealedTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	items, ok := r.Context().Value(sealedKey{}).(map[string]sealedItem)
	if !ok || r.Body == nil {
		return t.next.RoundTrip(r)
	}
	r, err := rewritten(r, func(body []byte) ([]byte, error) { return writeSealed(body, items) })
	if err != nil {
		return nil, err
	}
	return t.next.RoundTrip(r)
}

// maxStandInText is the longest message that is looked at: one that stands for reasoning has nothing but 44 letters.
const maxStandInText = 256

func writeSealed(body []byte, items map[string]sealedItem) ([]byte, error) {
	found := 0
	written, err := spliceList(body, "input", func(raw []byte) ([]byte, error) {
		item, ok := items[contentOf(raw)]
		if !ok {
			return nil, nil
		}
		found++
		var out bytes.Buffer
		encoder := json.NewEncoder(&out)
		encoder.SetEscapeHTML(false)
		err := encoder.Encode(item)
		return bytes.TrimSuffix(out.Bytes(), []byte("\n")), err
	})
	if err == nil && found != len(items) {
		err = errNotSealed
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

// sealing is the client with a sealedTransport.
func sealing(client *http.Client) *http.Client {
	return through(client, func(next http.RoundTripper) http.RoundTripper { return sealedTransport{next} })
}
