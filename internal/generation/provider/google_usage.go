// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"sync"

	"charm.land/fantasy"
)

// countedModel corrects the usage that fantasy tells of a Gemini stream. Each chunk of one carries the counts so far;
// fantasy adds them up. The right counts are those of the last chunk, which are read from the response on its way.
type countedModel struct {
	fantasy.LanguageModel
}

// Stream implements fantasy.LanguageModel.
func (m countedModel) Stream(ctx context.Context, call fantasy.Call) (fantasy.StreamResponse, error) {
	counts := &geminiCounts{}
	stream, err := m.LanguageModel.Stream(context.WithValue(ctx, countsKey{}, counts), call)
	if err != nil {
		return nil, err
	}
	return func(yield func(fantasy.StreamPart) bool) {
		for part := range stream {
			if part.Type == fantasy.StreamPartTypeFinish {
				part.Usage = counts.last(part.Usage)
			}
			if !yield(part) {
				return
			}
		}
	}, nil
}

// countsKey is where the counts of a call are in its context.
type countsKey struct{}

// geminiCounts are the newest counts of one call.
type geminiCounts struct {
	mu    sync.Mutex
	usage *geminiUsage
}

// geminiUsage is what the protocol tells. The prompt includes what came from the cache; the candidates do not include the
// thoughts, and what Gemini's own tools brought to read is part of neither.
type geminiUsage struct {
	Prompt     int64 `json:"promptTokenCount"`
	ToolPrompt int64 `json:"toolUsePromptTokenCount"`
	Cached     int64 `json:"cachedContentTokenCount"`
	Candidates int64 `json:"candidatesTokenCount"`
	Thoughts   int64 `json:"thoughtsTokenCount"`
	Total      int64 `json:"totalTokenCount"`
}

// last is the newest counts, or else those that are known otherwise.
func (c *geminiCounts) last(otherwise fantasy.Usage) fantasy.Usage {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.usage == nil {
		return otherwise
	}
	return fantasy.Usage{
		InputTokens: c.usage.Prompt + c.usage.ToolPrompt, CacheReadTokens: c.usage.Cached, OutputTokens: c.usage.Candidates,
		ReasoningTokens: c.usage.Thoughts, TotalTokens: c.usage.Total,
	}
}

// read takes a line of the stream.
func (c *geminiCounts) read(line []byte) {
	data, ok := bytes.CutPrefix(line, []byte("data:"))
	if !ok || !bytes.Contains(data, []byte(`"usageMetadata"`)) {
		return
	}
	var chunk struct {
		Usage *geminiUsage `json:"usageMetadata"`
	}
	if json.Unmarshal(data, &chunk) != nil || chunk.Usage == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.usage = chunk.Usage
}

// countingTransport reads the counts from the responses of those calls that want them.
type countingTransport struct {
	next http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t countingTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(r)
	if counts, ok := r.Context().Value(countsKey{}).(*geminiCounts); ok && err == nil {
		response.Body = &countedBody{ReadCloser: response.Body, counts: counts}
	}
	return response, err
}

// counting is the client with a countingTransport.
func counting(client *http.Client) *http.Client {
	return through(client, func(next http.RoundTripper) http.RoundTripper { return countingTransport{next} })
}

// maxCountedLine is the longest line that is looked at: 16 MiB, more than a chunk with an image has.
const maxCountedLine = 16 << 20

// countedBody looks at each whole line that is read from it.
type countedBody struct {
	io.ReadCloser
	counts *geminiCounts
	line   []byte
	// skip is true until the end of a line that is too long.
	skip bool
}

// Read implements io.Reader.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	for rest := p[:n]; len(rest) > 0; {
		part, after, ended := bytes.Cut(rest, []byte("\n"))
		b.collect(part)
		if ended {
			b.counts.read(b.line)
			b.line, b.skip = b.line[:0], false
		}
		rest = after
	}
	if err != nil {
		b.counts.read(b.line)
		b.line = nil
	}
	return n, err
}

func (b *countedBody) collect(part []byte) {
	if b.skip || len(b.line)+len(part) > maxCountedLine {
		b.line, b.skip = b.line[:0], true
		return
	}
	b.line = append(b.line, part...)
}
