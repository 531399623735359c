// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
)

// webSearch is what both protocols call the tool.
const webSearch = "web_search"

// Search is a search of the web that the provider runs itself, within its reply. The protocols Anthropic and
// OpenAIResponses have it, for requests that offer it. The forms are those of recorded conversations.
type Search struct {
	Query string `json:"query"`
	// Found is what the search finds. OpenAI tells it in citations alone, which this server does not send.
	Found []Found `json:"found,omitempty"`
}

// Found is a page that a search finds.
type Found struct {
	URL   string `json:"url"`
	Title string `json:"title"`
}

// SearchFor is a step that searches the web.
func SearchFor(query string, found ...Found) Step {
	return Step{Search: &Search{Query: query, Found: found}}
}

// blocks are the call, and with Anthropic its result.
func (s *Search) blocks(r *request) ([]block, error) {
	if !slices.Contains(r.tools, webSearch) {
		return nil, errors.New("the reply searches the web, and the request does not offer " + webSearch)
	}
	switch r.protocol {
	case Anthropic:
		call := block{kind: searchBlock, id: newID("srvtoolu_"), search: s, text: string(encode(object{"query": s.Query}))}
		call.chunks = []string{call.text}
		return []block{call, {kind: foundBlock, id: call.id, search: s, chunks: []string{""}}}, nil
	case OpenAIResponses:
		return []block{{kind: searchBlock, id: newID("ws_"), search: s, chunks: []string{""}}}, nil
	}
	return nil, fmt.Errorf("the protocol %s has no search of the web", r.protocol)
}

// sealed stands for what the provider alone can read of a page.
const sealed = "scripted:found:"

func (f *Found) anthropic() object {
	return object{"type": "web_search_result", "url": f.URL, "title": f.Title, "page_age": nil,
		"encrypted_content": base64.StdEncoding.EncodeToString([]byte(sealed + f.URL))}
}

// anthropicSearch is the block of a call, whose query follows, or of its result. The library's types have neither its
// caller nor an age that is null.
func anthropicSearch(b *block) object {
	if b.kind == searchBlock {
		return object{"type": "server_tool_use", "id": b.id, "name": webSearch, "input": object{},
			"caller": object{"type": "direct"}}
	}
	found := []object{}
	for i := range b.search.Found {
		found = append(found, b.search.Found[i].anthropic())
	}
	return object{"type": "web_search_tool_result", "tool_use_id": b.id, "content": found}
}

// anthropicSearches holds that each search of a reply that comes back has its result behind it, as it was given.
func anthropicSearches(messages []anthropicMessage) *apiError {
	for i, m := range messages {
		open := map[string]bool{}
		for j, b := range m.Content {
			switch b.Type {
			case "server_tool_use":
				open[b.ID] = true
			case "web_search_tool_result":
				if !open[b.ToolUseID] {
					return refuse("messages.%d.content.%d: unexpected `tool_use_id` found in `web_search_tool_result` blocks: %s. "+
						"Each `web_search_tool_result` block must have a corresponding `server_tool_use` block before it.", i, j,
						b.ToolUseID)
				}
				delete(open, b.ToolUseID)
				if !genuine(b.Content) {
					return refuse("messages.%d.content.%d: Invalid `encrypted_content` in `search_result` block", i, j)
				}
			}
		}
		for id := range open {
			return refuse("messages.%d: `web_search` tool use with id `%s` was found without a corresponding "+
				"`web_search_tool_result` block", i, id)
		}
	}
	return nil
}

// genuine reports whether each page of a result is as this server gave it.
func genuine(content json.RawMessage) bool {
	var pages []struct {
		URL              string `json:"url"`
		EncryptedContent string `json:"encrypted_content"`
	}
	if json.Unmarshal(content, &pages) != nil {
		return strings.Contains(string(content), `"error_code"`)
	}
	for _, page := range pages {
		plain, err := base64.StdEncoding.DecodeString(page.EncryptedContent)
		if err != nil || string(plain) != sealed+page.URL {
			return false
		}
	}
	return true
}

// responsesSearch is the item of a call: as it is when it begins, or finished.
func responsesSearch(b *block, finished bool) object {
	if !finished {
		return object{"id": b.id, "type": "web_search_call", "status": "in_progress", "action": object{"type": "search"}}
	}
	return object{"id": b.id, "type": "web_search_call", "status": "completed",
		"action": object{"type": "search", "query": b.search.Query, "queries": []string{b.search.Query}}}
}
