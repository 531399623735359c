// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"parley.dev/parley/test/kit/providertest"
)

func TestWhatATextOfAnthropicCitesStandsBehindIt(t *testing.T) {
	cite := func(url string) string {
		return `{"type":"content_block_delta","index":1,"delta":{"type":"citations_delta","citation":{"type":"web_search_result_location","url":"` + url + `","title":"T","cited_text":"x","encrypted_index":"e"}}}`
	}
	server := &providertest.Scripted{
		Replies: providertest.Events(
			`{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","content":[],"usage":{"input_tokens":1,"output_tokens":1}}}`,
			`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"a"}}`,
			`{"type":"content_block_stop","index":0}`,
			`{"type":"content_block_start","index":1,"content_block":{"citations":[],"type":"text","text":""}}`,
			cite("https://a.example.com"), `{"type":"content_block_delta","index":1,"delta":{"type":"text_delta","text":"b"}}`,
			cite("https://b.example.com"), cite("https://a.example.com"), `{"type":"content_block_stop","index":1}`,
			`{"type":"content_block_start","index":2,"content_block":{"type":"text","text":""}}`,
			`{"type":"content_block_delta","index":2,"delta":{"type":"text_delta","text":"c"}}`,
			`{"type":"content_block_stop","index":2}`,
			`{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}`,
			`{"type":"message_stop"}`)}
	got, err := server.Ask(t, providertest.Specs["anthropic"], nil)
	if err != nil {
		t.Fatal(err)
	}
	var outline []string
	for _, part := range got.Parts {
		if part.Source != nil {
			outline = append(outline, part.Source.URL+" "+part.Source.Title)
		} else {
			outline = append(outline, *part.Text)
		}
	}
	if want := []string{"a", "b", "https://a.example.com T", "https://b.example.com T", "c"}; !cmp.Equal(outline, want) {
		t.Errorf("got %q", outline)
	}
}
