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

	"parley.dev/parley/internal/generation/provider/intercept"
)

// interceptor keeps what a text cites, which fantasy drops: as sources right behind the text.
type interceptor struct {
	// cited are the sources by the index of the text's block, each once.
	cited map[string][]citation
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

var citationsDelta = []byte(`"citations_delta"`)

// Line implements intercept.Interceptor.
func (i *interceptor) Line(line []byte) []byte {
	if !bytes.Contains(line, citationsDelta) {
		return line
	}
	data, _ := intercept.EventData(line)
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
	return line
}

// Part implements intercept.Interceptor.
func (i *interceptor) Part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
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
