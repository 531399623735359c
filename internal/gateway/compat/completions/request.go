// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package completions translates OpenAI's Chat Completions. It is pure.
package completions

import (
	"encoding/json"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
)

// request is the body of a request. Other fields are ignored.
type request struct {
	Model           string            `json:"model"`
	Messages        []message         `json:"messages"`
	Stream          bool              `json:"stream"`
	Tools           []tool            `json:"tools"`
	ReasoningEffort string            `json:"reasoning_effort"`
	Metadata        map[string]string `json:"metadata"`
	StreamOptions   struct {
		IncludeUsage bool `json:"include_usage"`
	} `json:"stream_options"`
	ResponseFormat struct {
		Type       string      `json:"type"`
		JSONSchema wire.Format `json:"json_schema"`
	} `json:"response_format"`
	Stop       json.RawMessage `json:"stop"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	refused
}

// refused are fields that ask for what chats cannot do.
type refused struct {
	N            json.RawMessage `json:"n" instead:"there is one answer" harmless:"1"`
	Logprobs     json.RawMessage `json:"logprobs" instead:"probabilities are not known" harmless:"false"`
	TopLogprobs  json.RawMessage `json:"top_logprobs" instead:"probabilities are not known" harmless:"0"`
	Audio        json.RawMessage `json:"audio" instead:"chats have no audio"`
	Modalities   json.RawMessage `json:"modalities" instead:"answers are text" harmless:"[\"text\"]"`
	LogitBias    json.RawMessage `json:"logit_bias" instead:"leave it out"`
	Parallel     json.RawMessage `json:"parallel_tool_calls" instead:"the model may make several calls" harmless:"true"`
	Functions    json.RawMessage `json:"functions" instead:"use tools"`
	FunctionCall json.RawMessage `json:"function_call" instead:"use tools"`
	WebSearch    json.RawMessage `json:"web_search_options" instead:"tools of the chat's own are those of its Chat"`
}

type message struct {
	Role       string  `json:"role"`
	Content    content `json:"content"`
	ToolCallID string  `json:"tool_call_id"`
	ToolCalls  []struct {
		ID       string `json:"id"`
		Function struct {
			Name      string `json:"name"`
			Arguments string `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type content = wire.Content[part]

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	Refusal  string `json:"refusal"`
	ImageURL struct {
		URL string `json:"url"`
	} `json:"image_url"`
	File struct {
		Name string `json:"filename"`
		Data string `json:"file_data"`
		ID   string `json:"file_id"`
	} `json:"file"`
}

type tool struct {
	Type     string        `json:"type"`
	Function wire.Function `json:"function"`
}

func (t *tool) offer() (kind string, f *wire.Function) { return t.Type, &t.Function }

// Read reads the body of a request.
func Read(body []byte) (*wire.Request, error) {
	var r request
	if err := wire.Read(body, &r); err != nil {
		return nil, err
	}
	if err := wire.Refuse(r.refused); err != nil {
		return nil, err
	}
	out := &wire.Request{Stream: r.Stream, Usage: r.StreamOptions.IncludeUsage, Fields: settingFields}
	out.Metadata = r.Metadata
	out.Model, out.Temporary = r.Model, true
	var err error
	if out.Settings, err = r.settings(); err != nil {
		return nil, err
	}
	if out.Tools, err = wire.Tools(r.Tools, (*tool).offer, nil); err != nil {
		return nil, err
	}
	out.Items, err = wire.Each(r.Messages, "messages", (*message).items)
	return out, err
}

// settingFields are the names of settings.
var settingFields = map[turn.Setting]string{
	turn.SettingOutput: "response_format", turn.SettingToolChoice: "tool_choice", turn.SettingStop: "stop"}

func (r *request) settings() (s turn.Settings, err error) {
	if s.Effort, err = wire.Effort("reasoning_effort", r.ReasoningEffort); err != nil {
		return s, err
	}
	format := r.ResponseFormat.JSONSchema
	format.Type = r.ResponseFormat.Type
	if s.Output, err = format.Output("response_format", "response_format.json_schema.schema"); err != nil {
		return s, err
	}
	if s.ToolChoice, err = wire.Choice("tool_choice", r.ToolChoice); err != nil {
		return s, err
	}
	s.Stop, err = wire.Stops("stop", r.Stop)
	return s, err
}

func (m *message) items(param string) (items []turn.Item, err error) {
	switch m.Role {
	case "system", "developer":
		return []turn.Item{{Kind: turn.System, Text: text(m.Content)}}, nil
	case "user":
		parts, err := m.Content.Parts(param+".content", (*part).message)
		return []turn.Item{{Kind: turn.User, Parts: parts}}, err
	case "assistant":
		items = append(items, turn.Item{Kind: turn.Reply, Text: text(m.Content)})
		for _, call := range m.ToolCalls {
			items = append(items, turn.Item{Kind: turn.ToolCall, Call: call.ID, Name: call.Function.Name,
				Input: call.Function.Arguments})
		}
		return items, nil
	case "tool":
		if m.ToolCallID == "" {
			return nil, wire.Invalid(param+".tool_call_id", "a message of the role tool says which call it is of")
		}
		return []turn.Item{{Kind: turn.ToolResult, Call: m.ToolCallID, Text: text(m.Content)}}, nil
	}
	return nil, wire.Invalid(param+".role", "the role is none of system, developer, user, assistant and tool")
}

// text is the text of the parts.
func text(c content) string {
	var b strings.Builder
	for i := range c {
		b.WriteString(c[i].Text + c[i].Refusal)
	}
	return b.String()
}

// message is the part as that of a ChatMessage.
func (p *part) message(at string) (v1beta1.MessagePart, error) {
	switch {
	case p.Type == "text":
		return wire.Text(p.Text), nil
	case p.Type == "image_url":
		return wire.Image(at+".image_url.url", p.ImageURL.URL)
	case p.Type == "file" && p.File.Data != "":
		return wire.File(at+".file.file_data", p.File.Name, p.File.Data)
	}
	return v1beta1.MessagePart{}, wire.Unsupported(at,
		"parts of type %s cannot be honoured: texts, images, and files in place", p.Type)
}
