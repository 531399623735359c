// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/json"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/openai"
)

// responsesEar keeps what the items of a reply are when they are done: the encrypted reasoning, of which fantasy keeps what there
// was when it began, and what OpenAI's own tools were asked, which it drops. It leaves out the line feed that fantasy puts in front
// of the first paragraph of a reasoning.
type responsesEar struct {
	done map[string]doneItem
	// begun are the reasonings that have text.
	begun map[string]bool
}

func newResponsesEar() ear {
	return &responsesEar{done: map[string]doneItem{}, begun: map[string]bool{}}
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

// line implements ear.
func (e *responsesEar) line(line []byte) []byte {
	data, ok := eventData(line)
	if !ok || !bytes.Contains(data, itemDone) {
		return line
	}
	var event struct {
		Type string   `json:"type"`
		Item doneItem `json:"item"`
	}
	if json.Unmarshal(data, &event) == nil && event.Type == "response.output_item.done" && (event.Item.Encrypted != "" || len(event.Item.Action) > 0) {
		e.done[event.Item.ID] = event.Item
	}
	return line
}

// part implements ear.
func (e *responsesEar) part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	switch part.Type {
	case fantasy.StreamPartTypeReasoningDelta:
		if !e.begun[part.ID] && part.Delta == "\n" {
			part.Delta = ""
		}
		e.begun[part.ID] = true
	case fantasy.StreamPartTypeReasoningEnd:
		if item := e.done[part.ID]; item.Encrypted != "" {
			part.ProviderMetadata = fantasy.ProviderMetadata{openai.Name: item.reasoning()}
		}
	case fantasy.StreamPartTypeToolCall:
		if part.ProviderExecuted && part.ToolCallInput == "" {
			part.ToolCallInput = string(e.done[part.ID].Action)
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
