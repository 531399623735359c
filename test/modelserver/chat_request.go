// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"slices"
	"strings"
)

// maxOpenAIToolName is the longest name of a function, from the reference of the chat completions API.
const maxOpenAIToolName = 64

// maxChatCallID is the longest id of a call, from the API's refusals.
const maxChatCallID = 40

var openAIToolName = regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)

type chatRequest struct {
	Model         string          `json:"model"`
	Messages      *[]chatMessage  `json:"messages"`
	Tools         *[]chatTool     `json:"tools"`
	ToolChoice    json.RawMessage `json:"tool_choice"`
	Stream        bool            `json:"stream"`
	StreamOptions *struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
}

type chatMessage struct {
	Role       string          `json:"role"`
	Content    json.RawMessage `json:"content"`
	ToolCalls  []chatCall      `json:"tool_calls"`
	ToolCallID string          `json:"tool_call_id"`
}

type chatTool struct {
	Type     string `json:"type"`
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

type chatCall struct {
	Index    *int             `json:"index,omitempty"`
	ID       string           `json:"id,omitempty"`
	Type     string           `json:"type,omitempty"`
	Function chatCallFunction `json:"function"`
}

type chatCallFunction struct {
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments"`
}

type chatDialect struct {
	// fileURLs is whether file_data may be a URL.
	fileURLs bool
}

func (chatDialect) protocol() Protocol                   { return OpenAIChat }
func (chatDialect) requestIDHeader() string              { return "X-Request-Id" }
func (chatDialect) errorShape(e apiError, id string) any { return openAIErrorShape(e, id) }

func (chatDialect) wrongKey(key string) apiError       { return openAIWrongKey(key) }
func (chatDialect) unknownModel(model string) apiError { return openAIUnknownModel(model) }

func (chatDialect) contextTooLong() apiError {
	return *badRequest("messages", "context_length_exceeded",
		"This model's maximum context length is %d tokens. However, your messages resulted in %d tokens. Please reduce "+
			"the length of the messages.", maxTokens, usedTokens)
}

func (d chatDialect) decode(body []byte, _ http.Header) (*request, *apiError) {
	var in chatRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, openAIParseError(err)
	}
	if in.Model == "" {
		return nil, badRequest("", "", "you must provide a model parameter")
	}
	if err := in.validate(); err != nil {
		return nil, err
	}
	for i, m := range *in.Messages {
		if err := validateOpenAIFiles(fmt.Sprintf("messages[%d]", i), m.Content, d.fileURLs); err != nil {
			return nil, err
		}
	}
	r := &request{
		protocol: OpenAIChat, model: in.Model, stream: in.Stream, entries: len(*in.Messages),
		includeUsage: in.StreamOptions != nil && in.StreamOptions.IncludeUsage,
	}
	for _, m := range *in.Messages {
		r.turns = append(r.turns, m.turns()...)
	}
	if in.Tools != nil {
		for _, t := range *in.Tools {
			r.tools = append(r.tools, t.Function.Name)
		}
	}
	return r, nil
}

func openAIParseError(err error) *apiError {
	return badRequest("", "", "We could not parse the JSON body of your request. (%v)", err)
}

func (in chatRequest) validate() *apiError {
	if in.Messages == nil {
		return badRequest("messages", "missing_required_parameter", "Missing required parameter: 'messages'.")
	}
	if len(*in.Messages) == 0 {
		return emptyArray("messages")
	}
	if in.StreamOptions != nil && !in.Stream {
		return badRequest("stream_options", "", "The 'stream_options' parameter is only allowed when 'stream' is enabled.")
	}
	if err := in.validateTools(); err != nil {
		return err
	}
	for i, m := range *in.Messages {
		if err := m.validate(i); err != nil {
			return err
		}
	}
	return chatPairing(*in.Messages)
}

func emptyArray(param string) *apiError {
	return badRequest(param, "empty_array",
		"Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", param)
}

func (in chatRequest) validateTools() *apiError {
	if in.Tools == nil {
		if len(in.ToolChoice) > 0 && string(in.ToolChoice) != "null" {
			return badRequest("tool_choice", "",
				"Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.")
		}
		return nil
	}
	if len(*in.Tools) == 0 {
		return emptyArray("tools")
	}
	for i, t := range *in.Tools {
		if err := checkOpenAIToolName(fmt.Sprintf("tools[%d].function.name", i), t.Function.Name); err != nil {
			return err
		}
	}
	return nil
}

func checkOpenAIToolName(param, name string) *apiError {
	switch {
	case name == "":
		return badRequest(param, "missing_required_parameter", "Missing required parameter: '%s'.", param)
	case !openAIToolName.MatchString(name):
		return badRequest(param, "invalid_value",
			"Invalid '%s': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.", param)
	case len(name) > maxOpenAIToolName:
		return badRequest(param, "string_above_max_length",
			"Invalid '%s': string too long. Expected a string with maximum length %d, but got a string with length %d instead.",
			param, maxOpenAIToolName, len(name))
	}
	return nil
}

var chatRoles = []string{"system", "assistant", "user", "function", "tool", "developer"}

func (m chatMessage) validate(i int) *apiError {
	if !slices.Contains(chatRoles, m.Role) {
		return badRequest(fmt.Sprintf("messages[%d].role", i), "invalid_value",
			"Invalid value: '%s'. Supported values are: 'system', 'assistant', 'user', 'function', 'tool', and 'developer'.",
			m.Role)
	}
	empty := len(m.Content) == 0 || string(m.Content) == "null"
	if empty && (m.Role != "assistant" || len(m.ToolCalls) == 0) {
		return badRequest(fmt.Sprintf("messages.[%d].content", i), "",
			"Invalid value for 'content': expected a string, got null.")
	}
	for j, c := range m.ToolCalls {
		at := fmt.Sprintf("messages[%d].tool_calls[%d]", i, j)
		if c.ID == "" {
			return badRequest(at+".id", "missing_required_parameter", "Missing required parameter: '%s.id'.", at)
		}
		if len(c.ID) > maxChatCallID {
			return badRequest(at+".id", "string_above_max_length",
				"Invalid '%s.id': string too long. Expected a string with maximum length %d, but got a string with length %d "+
					"instead.", at, maxChatCallID, len(c.ID))
		}
		if err := checkOpenAIToolName(at+".function.name", c.Function.Name); err != nil {
			return err
		}
	}
	return nil
}

// chatPairing holds that the tool messages right after an assistant message answer exactly its tool calls.
func chatPairing(messages []chatMessage) *apiError {
	var asked []string
	open := map[string]bool{}
	for i, m := range messages {
		if m.Role == "tool" {
			if !slices.Contains(asked, m.ToolCallID) {
				return badRequest(fmt.Sprintf("messages.[%d].role", i), "",
					"Invalid parameter: messages with role 'tool' must be a response to a "+
						"preceeding message with 'tool_calls'.") //nolint:misspell // The provider's own spelling.
			}
			delete(open, m.ToolCallID)
			continue
		}
		if err := unanswered(asked, open, i); err != nil {
			return err
		}
		asked = nil
		for _, c := range m.ToolCalls {
			asked, open[c.ID] = append(asked, c.ID), true
		}
	}
	return unanswered(asked, open, len(messages))
}

func unanswered(asked []string, open map[string]bool, at int) *apiError {
	var ids []string
	for _, id := range asked {
		if open[id] {
			ids = append(ids, id)
		}
	}
	if len(ids) == 0 {
		return nil
	}
	return badRequest(fmt.Sprintf("messages.[%d].role", at), "",
		"An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The "+
			"following tool_call_ids did not have response messages: %s", strings.Join(ids, ", "))
}

func (m chatMessage) turns() []turn {
	text := contentText(m.Content)
	switch m.Role {
	case "system", "developer":
		return []turn{{kind: turnSystem, text: text}}
	case "user":
		return []turn{{kind: turnUser, text: text}}
	case "tool", "function":
		return []turn{{kind: turnResult, text: text, id: m.ToolCallID}}
	}
	out := []turn{{kind: turnAssistant, text: text}}
	for _, c := range m.ToolCalls {
		out = append(out, turn{kind: turnCall, id: c.ID, name: c.Function.Name, text: c.Function.Arguments})
	}
	return out
}
