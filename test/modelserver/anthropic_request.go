// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"strings"
)

var (
	anthropicToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	anthropicToolID   = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
)

type anthropicRequest struct {
	Model     string              `json:"model"`
	MaxTokens *int                `json:"max_tokens"`
	System    json.RawMessage     `json:"system"`
	Messages  *[]anthropicMessage `json:"messages"`
	Tools     []anthropicTool     `json:"tools"`
	Stream    bool                `json:"stream"`
}

type anthropicMessage struct {
	Role    string           `json:"role"`
	Content anthropicContent `json:"content"`
}

// anthropicContent is a list of blocks; a plain string is one text block.
type anthropicContent []anthropicBlock

type anthropicBlock struct {
	Type      string          `json:"type"`
	Text      string          `json:"text"`
	ID        string          `json:"id"`
	Name      string          `json:"name"`
	Input     json.RawMessage `json:"input"`
	ToolUseID string          `json:"tool_use_id"`
	Content   json.RawMessage `json:"content"`
	IsError   bool            `json:"is_error"`

	Source *anthropicSource `json:"source"`

	CacheControl json.RawMessage `json:"cache_control"`
}

type anthropicTool struct {
	// Type is empty or "custom" for a tool that the caller runs; the provider's own tools have their own types.
	Type        string `json:"type"`
	Name        string `json:"name"`
	InputSchema *struct {
		Type string `json:"type"`
	} `json:"input_schema"`
}

// UnmarshalJSON takes a string or a list of blocks.
func (c *anthropicContent) UnmarshalJSON(data []byte) error {
	var s string
	if json.Unmarshal(data, &s) == nil {
		*c = nil
		if s != "" {
			*c = anthropicContent{{Type: "text", Text: s}}
		}
		return nil
	}
	return json.Unmarshal(data, (*[]anthropicBlock)(c))
}

type anthropicDialect struct {
	// contentOnly is whether files come as content alone, as on Bedrock.
	contentOnly bool
}

func (anthropicDialect) protocol() Protocol                   { return Anthropic }
func (anthropicDialect) requestIDHeader() string              { return "Request-Id" }
func (anthropicDialect) errorShape(e apiError, id string) any { return anthropicErrorShape(e, id) }

func (anthropicDialect) unknownModel(model string) apiError {
	return apiError{status: http.StatusNotFound, message: "model: " + model}
}

func (anthropicDialect) wrongKey(key string) apiError {
	e := apiError{status: http.StatusUnauthorized}
	if key == "" {
		e.message = "x-api-key header is required"
	}
	return e
}

func (anthropicDialect) contextTooLong() apiError {
	return *badRequest("", "", "prompt is too long: %d tokens > %d maximum", usedTokens, maxTokens)
}

func (d anthropicDialect) decode(body []byte, header http.Header) (*request, *apiError) {
	if header.Get("Anthropic-Version") == "" {
		return nil, refuse("anthropic-version: header is required")
	}
	var in anthropicRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, refuse("The request body is not valid JSON: %v", err)
	}
	if err := in.validate(); err != nil {
		return nil, err
	}
	if d.contentOnly {
		if err := in.refuseURLs(); err != nil {
			return nil, err
		}
	}
	merged := mergeTurns(*in.Messages)
	if err := anthropicPairing(merged); err != nil {
		return nil, err
	}
	if err := anthropicSearches(merged); err != nil {
		return nil, err
	}
	r := &request{protocol: Anthropic, model: in.Model, stream: in.Stream, entries: len(*in.Messages)}
	if system := contentText(in.System); system != "" {
		r.turns = append(r.turns, turn{kind: turnSystem, text: system})
	}
	for _, m := range merged {
		r.turns = append(r.turns, m.turns()...)
	}
	for _, t := range in.Tools {
		r.tools = append(r.tools, t.Name)
	}
	return r, nil
}

// refuse is a 400 in the words of the message; Anthropic has neither code nor param.
func refuse(format string, args ...any) *apiError { return badRequest("", "", format, args...) }

func (in anthropicRequest) validate() *apiError {
	switch {
	case in.Model == "":
		return refuse("model: Field required")
	case in.MaxTokens == nil:
		return refuse("max_tokens: Field required")
	case *in.MaxTokens < 1:
		return refuse("max_tokens: Input should be greater than or equal to 1")
	case in.Messages == nil:
		return refuse("messages: Field required")
	case len(*in.Messages) == 0:
		return refuse("messages: at least one message is required")
	}
	if err := in.validateTools(); err != nil {
		return err
	}
	for i, m := range *in.Messages {
		if err := m.validate(i, i == len(*in.Messages)-1); err != nil {
			return err
		}
	}
	if (*in.Messages)[0].Role != "user" {
		return refuse(`messages: first message must use the "user" role`)
	}
	return in.validateContent()
}

func (in anthropicRequest) validateTools() *apiError {
	seen := map[string]bool{}
	for i, t := range in.Tools {
		if t.Type == "" || t.Type == "custom" {
			if !anthropicToolName.MatchString(t.Name) {
				return refuse("tools.%d.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", i)
			}
			if t.InputSchema == nil {
				return refuse("tools.%d.custom.input_schema: Field required", i)
			}
			if t.InputSchema.Type == "" {
				return refuse("tools.%d.custom.input_schema.type: Field required", i)
			}
		}
		if seen[t.Name] {
			return refuse("tools: Tool names must be unique.")
		}
		seen[t.Name] = true
	}
	return nil
}

func (m anthropicMessage) validate(i int, last bool) *apiError {
	if m.Role != "user" && m.Role != "assistant" {
		return refuse(`messages: Unexpected role "%s". The Messages API accepts a top-level `+"`system`"+
			` parameter, not "system" as an input message role.`, m.Role)
	}
	if len(m.Content) == 0 && (!last || m.Role == "user") {
		return refuse("messages.%d: all messages must have non-empty content except for the optional final assistant message",
			i)
	}
	for j, b := range m.Content {
		if err := b.validate(fmt.Sprintf("messages.%d.content.%d", i, j), m.Role); err != nil {
			return err
		}
	}
	if last && m.Role == "assistant" && len(m.Content) > 0 {
		end := m.Content[len(m.Content)-1]
		if end.Type == "text" && strings.TrimRight(end.Text, " \t\r\n") != end.Text {
			return refuse("messages: final assistant content cannot end with trailing whitespace")
		}
	}
	return nil
}

func (b anthropicBlock) validate(at, role string) *apiError {
	switch b.Type {
	case "text":
		if b.Text == "" {
			return refuse("messages: text content blocks must be non-empty")
		}
	case "tool_use":
		return b.validateToolUse(at, role)
	case "tool_result":
		if role != "user" {
			return refuse("%s: `tool_result` blocks can only be in `user` messages", at)
		}
	case "image", "document":
		return b.validateFile(at)
	case "":
		return refuse("%s.type: Field required", at)
	}
	return nil
}

func (b anthropicBlock) validateToolUse(at, role string) *apiError {
	if role != "assistant" {
		return refuse("%s: `tool_use` blocks can only be in `assistant` messages", at)
	}
	if !anthropicToolID.MatchString(b.ID) {
		return refuse("%s.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'", at)
	}
	if !anthropicToolName.MatchString(b.Name) {
		return refuse("%s.tool_use.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'", at)
	}
	var object map[string]any
	if json.Unmarshal(b.Input, &object) != nil || object == nil {
		return refuse("%s.tool_use.input: Input should be a valid dictionary", at)
	}
	return nil
}
