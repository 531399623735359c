// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package responses repairs what fantasy loses of OpenAI's Responses protocol. The encrypted reasoning of a reply goes
// back where it came from, or the call is made without it.
package responses

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/openai"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/fault"
	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/intercept"
)

// interceptor keeps what the items of a reply are when they are done: the encrypted reasoning, of which fantasy keeps
// what there was when it began, and what OpenAI's own tools were asked, which it drops. It leaves out the line feed
// that fantasy puts in front of the first paragraph of a reasoning. It makes text of a refusal, which fantasy drops.
type interceptor struct {
	done map[string]doneItem
	// begun are the reasonings that have text.
	begun map[string]bool
	// reason is why the reply ends, and refused whether it is a refusal.
	reason  string
	refused bool
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

var (
	itemDone     = []byte(`"response.output_item.done"`)
	refusalDelta = []byte(`"response.refusal.delta"`)
	textDelta    = []byte(`"response.output_text.delta"`)
	completed    = []byte(`"response.completed"`)
	incomplete   = []byte(`"response.incomplete"`)
)

// event is what is read of an event of the stream.
type event struct {
	Type     string   `json:"type"`
	Item     doneItem `json:"item"`
	Response struct {
		Status            string `json:"status"`
		IncompleteDetails struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
	} `json:"response"`
}

// Line implements intercept.Interceptor.
func (i *interceptor) Line(line []byte) []byte {
	data, ok := intercept.EventData(line)
	if !ok || !slices.ContainsFunc([][]byte{itemDone, refusalDelta, completed, incomplete}, func(name []byte) bool {
		return bytes.Contains(data, name)
	}) {
		return line
	}
	var e event
	if json.Unmarshal(data, &e) != nil {
		return line
	}
	switch e.Type {
	case "response.output_item.done":
		if e.Item.Encrypted != "" || len(e.Item.Action) > 0 {
			i.done[e.Item.ID] = e.Item
		}
	case "response.refusal.delta":
		i.refused = true
		return bytes.Replace(line, refusalDelta, textDelta, 1)
	case "response.completed", "response.incomplete":
		i.reason = cmp.Or(e.Response.IncompleteDetails.Reason, e.Response.Status)
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
	case fantasy.StreamPartTypeFinish:
		part = finish.Mark(part, finish.Last{Reason: i.reason, Refused: i.refused})
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
