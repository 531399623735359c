// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"

	"charm.land/fantasy"
)

// anthropicEar keeps what a text cites, which fantasy drops: as sources right behind the text.
type anthropicEar struct {
	// cited are the sources by the index of the text's block, each once.
	cited map[string][]citation
}

func newAnthropicEar() ear { return &anthropicEar{cited: map[string][]citation{}} }

// citation is what a text refers to: a page that was found, or a document of the prompt.
type citation struct {
	URL           string `json:"url"`
	Title         string `json:"title"`
	DocumentTitle string `json:"document_title"`
}

var citationsDelta = []byte(`"citations_delta"`)

// line implements ear.
func (e *anthropicEar) line(line []byte) []byte {
	if !bytes.Contains(line, citationsDelta) {
		return line
	}
	data, _ := eventData(line)
	var event struct {
		Index int64 `json:"index"`
		Delta struct {
			Type     string   `json:"type"`
			Citation citation `json:"citation"`
		} `json:"delta"`
	}
	if json.Unmarshal(data, &event) == nil && event.Delta.Type == "citations_delta" {
		at := strconv.FormatInt(event.Index, 10)
		if !slices.Contains(e.cited[at], event.Delta.Citation) {
			e.cited[at] = append(e.cited[at], event.Delta.Citation)
		}
	}
	return line
}

// part implements ear.
func (e *anthropicEar) part(part fantasy.StreamPart, yield func(fantasy.StreamPart) bool) bool {
	if !yield(part) {
		return false
	}
	if part.Type != fantasy.StreamPartTypeTextEnd {
		return true
	}
	for _, c := range e.cited[part.ID] {
		source := fantasy.StreamPart{Type: fantasy.StreamPartTypeSource, SourceType: fantasy.SourceTypeURL, ID: c.URL, URL: c.URL, Title: c.Title}
		if c.URL == "" {
			source.SourceType, source.Title = fantasy.SourceTypeDocument, c.DocumentTitle
		}
		if !yield(source) {
			return false
		}
	}
	return true
}
