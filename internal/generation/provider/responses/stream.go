// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package responses repairs what fantasy loses of OpenAI's Responses protocol. The encrypted reasoning of a reply goes
// back where it came from, or the call is made without it.
package responses

import (
	"bytes"
	"encoding/json"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/openai"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/intercept"
)

// interceptor keeps what the items of a reply are when they are done: the encrypted reasoning, of which fantasy keeps
// what there was when it began, and what OpenAI's own tools were asked, which it drops. It leaves out the line feed
// that fantasy puts in front of the first paragraph of a reasoning.
type interceptor struct {
	done map[string]doneItem
	// begun are the reasonings that have text.
	begun map[string]bool
}

// Repair returns the model of a configuration with what fantasy loses of the prompt and of a stream. Its client has to
// be one of Client.
func Repair(model fantasy.LanguageModel, spec *v1alpha1.ChatModelConfigSpec) fantasy.LanguageModel {
	return intercept.Model(reasoningModel{model, fault.Subject{Spec: spec}}, func() intercept.Interceptor {
		return &interceptor{done: map[string]doneItem{}, begun: map[string]bool{}}
	})
}

// doneItem is an item that is whole.
type doneItem struct {
	Type      string          `json:"type"`
	ID        string          `json:"id"`
	Encrypted string          `json:"encrypted_content"`
	Action    json.RawMessage `json:"action"`
	Summary   []struct {
		Text string `json:"text"`
	} `json:"summary"`
}

var itemDone = []byte(`"response.output_item.done"`)

// Line implements intercept.Interceptor.
func (i *interceptor) Line(line []byte) []byte {
	data, ok := intercept.EventData(line)
	if !ok || !bytes.Contains(data, itemDone) {
		return line
	}
	var event struct {
		Type string   `json:"type"`
		Item doneItem `json:"item"`
	}
	if json.Unmarshal(data, &event) == nil && event.Type == "response.output_item.done" &&
		(event.Item.Encrypted != "" || len(event.Item.Action) > 0) {
		i.done[event.Item.ID] = event.Item
	}
	return line
}

// Part implements intercept.Interceptor.
func (i *interceptor) Part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	switch part.Type {
	case fantasy.StreamPartTypeReasoningDelta:
		if !i.begun[part.ID] && part.Delta == "\n" {
			part.Delta = ""
		}
		i.begun[part.ID] = true
	case fantasy.StreamPartTypeReasoningEnd:
		if item := i.done[part.ID]; item.Encrypted != "" {
			part.ProviderMetadata = fantasy.ProviderMetadata{openai.Name: item.reasoning()}
		}
	case fantasy.StreamPartTypeToolCall:
		if part.ProviderExecuted && part.ToolCallInput == "" {
			part.ToolCallInput = string(i.done[part.ID].Action)
		}
	}
	return yield(part)
}

func (i doneItem) reasoning() *openai.ResponsesReasoningMetadata {
	m := &openai.ResponsesReasoningMetadata{ItemID: i.ID, EncryptedContent: &i.Encrypted, Summary: []string{}}
	for _, paragraph := range i.Summary {
		m.Summary = append(m.Summary, paragraph.Text)
	}
	return m
}
