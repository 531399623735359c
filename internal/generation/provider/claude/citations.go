// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package claude repairs what fantasy loses of Anthropic's protocol: what a text cites, and the schema of a tool but
// for its properties.
package claude

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"charm.land/fantasy"

	"parley.dev/parley/internal/generation/provider/finish"
	"parley.dev/parley/internal/generation/provider/intercept"
)

// interceptor keeps what a text cites, which fantasy drops: as sources right behind the text. It keeps Anthropic's own
// word for the end of a reply.
type interceptor struct {
	// cited are the sources by the index of the text's block, each once.
	cited map[string][]citation
	// stopReason is why the reply ends; empty: it has not said so.
	stopReason string
}

// Repair returns the model with what fantasy loses of a stream.
func Repair(model fantasy.LanguageModel) fantasy.LanguageModel {
	return intercept.Model(model, func() intercept.Interceptor { return &interceptor{cited: map[string][]citation{}} })
}

// citation is what a text refers to: a page that was found, or a document of the prompt.
type citation struct {
	URL           string `json:"url"`
	Title         string `json:"title"`
	DocumentTitle string `json:"document_title"`
}

var citationsDelta, messageDelta = []byte(`"citations_delta"`), []byte(`"message_delta"`)

// Line implements intercept.Interceptor.
func (i *interceptor) Line(line []byte) []byte {
	switch data, _ := intercept.EventData(line); {
	case bytes.Contains(data, citationsDelta):
		i.cite(data)
	case bytes.Contains(data, messageDelta):
		if i.stop(data) {
			return slices.Concat(line, messageStop)
		}
	}
	return line
}

// messageStop is the event that ends a reply. fantasy takes none without it, though the stop reason has come before.
var messageStop = []byte("\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}")

// stop takes why the reply ends. It reports whether the event says so.
func (i *interceptor) stop(data []byte) bool {
	var event struct {
		Type  string `json:"type"`
		Delta struct {
			StopReason string `json:"stop_reason"`
		} `json:"delta"`
	}
	if json.Unmarshal(data, &event) != nil || event.Type != "message_delta" || event.Delta.StopReason == "" {
		return false
	}
	i.stopReason = event.Delta.StopReason
	return true
}

// cite takes a source of a text.
func (i *interceptor) cite(data []byte) {
	var event struct {
		Index int64 `json:"index"`
		Delta struct {
			Type     string   `json:"type"`
			Citation citation `json:"citation"`
		} `json:"delta"`
	}
	if json.Unmarshal(data, &event) == nil && event.Delta.Type == "citations_delta" {
		at := strconv.FormatInt(event.Index, 10)
		if !slices.Contains(i.cited[at], event.Delta.Citation) {
			i.cited[at] = append(i.cited[at], event.Delta.Citation)
		}
	}
}

// Part implements intercept.Interceptor.
func (i *interceptor) Part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	if part.Type == fantasy.StreamPartTypeFinish {
		part = finish.Mark(part, finish.Last{Reason: i.stopReason})
	}
	if !yield(part) {
		return false
	}
	if part.Type != fantasy.StreamPartTypeTextEnd {
		return true
	}
	for _, c := range i.cited[part.ID] {
		source := fantasy.StreamPart{
			Type: fantasy.StreamPartTypeSource, SourceType: fantasy.SourceTypeURL, ID: c.URL, URL: c.URL, Title: c.Title,
		}
		if c.URL == "" {
			source.SourceType, source.Title = fantasy.SourceTypeDocument, c.DocumentTitle
		}
		if !yield(source) {
			return false
		}
	}
	return true
}
