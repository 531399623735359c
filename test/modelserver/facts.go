// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"slices"
	"strings"
)

// Protocol is the wire protocol of a request.
type Protocol string

const (
	// OpenAIChat is POST /v1/chat/completions.
	OpenAIChat Protocol = "openai-chat"
	// OpenAIResponses is POST /v1/responses.
	OpenAIResponses Protocol = "openai-responses"
	// Anthropic is POST /v1/messages.
	Anthropic Protocol = "anthropic"
)

// Facts are what rules match on, and what templates can contain. There is no header value among them.
type Facts struct {
	Protocol Protocol
	Model    string
	// System is the text of all system and developer messages.
	System string
	// FirstUserText and LastUserText are the texts of those messages; "" if there is none.
	FirstUserText, LastUserText string
	// MessageCount is the number of messages, or of input items, on the wire.
	MessageCount int
	// Tools are the names of the tools that the request offers, in its order.
	Tools []string
	// ToolResults are the results since the last user message, in order.
	ToolResults []ToolResult
	// Conversation tells conversations apart, by their first user texts. It is a digest, so that it reveals no text.
	Conversation string
	// Call is the number of the request within its conversation, from 1.
	Call int
}

// ToolResult is the result of a tool call as the request brought it.
type ToolResult struct {
	ID, Name, Text string
	// Failed is whether the result is marked as an error; only Anthropic's protocol can say so.
	Failed bool
}

// ToolResultsText is the text of all results, one a line.
func (f Facts) ToolResultsText() string {
	texts := make([]string, 0, len(f.ToolResults))
	for _, r := range f.ToolResults {
		texts = append(texts, r.Text)
	}
	return strings.Join(texts, "\n")
}

// turn is one entry of a request in the one form that all protocols are brought to.
type turn struct {
	kind turnKind
	text string
	// id and name are those of a tool call or of a tool result.
	id, name string
	failed   bool
}

type turnKind int

const (
	turnSystem turnKind = iota
	turnUser
	turnAssistant
	turnCall
	turnResult
)

// request is a valid request.
type request struct {
	protocol Protocol
	model    string
	stream   bool
	// includeUsage is whether an OpenAI chat stream shall end with the usage.
	includeUsage bool
	// encryptedReasoning is whether the caller of the responses protocol asked for it.
	encryptedReasoning bool
	// entries is the number of messages or input items.
	entries int
	turns   []turn
	tools   []string
}

func (r *request) facts() Facts {
	f := Facts{Protocol: r.protocol, Model: r.model, MessageCount: r.entries, Tools: r.tools}
	names := map[string]string{}
	for i, t := range r.turns {
		switch t.kind {
		case turnSystem:
			f.System = strings.TrimPrefix(f.System+"\n"+t.text, "\n")
		case turnUser:
			// A picture that a tool returned follows its result as a user message without text.
			if t.text == "" && i > 0 && r.turns[i-1].kind == turnResult {
				continue
			}
			if f.FirstUserText == "" {
				f.FirstUserText = t.text
			}
			f.LastUserText, f.ToolResults = t.text, nil
		case turnCall:
			names[t.id] = t.name
		case turnResult:
			f.ToolResults = append(f.ToolResults, ToolResult{ID: t.id, Name: names[t.id], Text: t.text, Failed: t.failed})
		}
	}
	sum := sha256.Sum256([]byte(f.FirstUserText))
	f.Conversation = hex.EncodeToString(sum[:8])
	return f
}

func (m Match) holds(f Facts, header http.Header) bool {
	switch {
	case m.Protocol != "" && m.Protocol != f.Protocol,
		m.Model != "" && m.Model != f.Model,
		m.Call != 0 && m.Call != f.Call,
		m.Header != "" && len(header.Values(m.Header)) == 0:
		return false
	}
	return m.holdsForContent(f)
}

func (m Match) holdsForContent(f Facts) bool {
	if m.ToolResults != nil && *m.ToolResults != len(f.ToolResults) || len(f.ToolResults) < m.MinToolResults {
		return false
	}
	if m.ToolOffered != "" && !slices.Contains(f.Tools, m.ToolOffered) {
		return false
	}
	return strings.Contains(strings.ToLower(f.LastUserText), strings.ToLower(m.LastUserText))
}
