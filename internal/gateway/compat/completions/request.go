// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package completions translates OpenAI's Chat Completions. It is pure.
package completions

import (
	"encoding/json"
	"fmt"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
)

// request is the body of a request, as far as it means something. Fields that are not here are ignored.
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
	N            json.RawMessage `json:"n"`
	Logprobs     json.RawMessage `json:"logprobs"`
	TopLogprobs  json.RawMessage `json:"top_logprobs"`
	Audio        json.RawMessage `json:"audio"`
	Modalities   json.RawMessage `json:"modalities"`
	LogitBias    json.RawMessage `json:"logit_bias"`
	Parallel     json.RawMessage `json:"parallel_tool_calls"`
	Functions    json.RawMessage `json:"functions"`
	FunctionCall json.RawMessage `json:"function_call"`
	WebSearch    json.RawMessage `json:"web_search_options"`
}

func (r *refused) check() error {
	return wire.Refuse(
		wire.Unhonoured("n", "there is one answer", r.N, "1"),
		wire.Unhonoured("logprobs", "probabilities are not known", r.Logprobs, "false"),
		wire.Unhonoured("top_logprobs", "probabilities are not known", r.TopLogprobs, "0"),
		wire.Unhonoured("audio", "chats have no audio", r.Audio),
		wire.Unhonoured("modalities", "answers are text", r.Modalities, `["text"]`),
		wire.Unhonoured("logit_bias", "leave it out", r.LogitBias),
		wire.Unhonoured("parallel_tool_calls", "the model may make several calls", r.Parallel, "true"),
		wire.Unhonoured("functions", "use tools", r.Functions),
		wire.Unhonoured("function_call", "use tools", r.FunctionCall),
		wire.Unhonoured("web_search_options", "tools of the chat's own are those of its Chat", r.WebSearch),
	)
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

// content is a text, or a list of parts.
type content struct{ parts []part }

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

// UnmarshalJSON reads either form.
func (c *content) UnmarshalJSON(raw []byte) error {
	var text *string
	if json.Unmarshal(raw, &text) == nil {
		if text != nil {
			c.parts = []part{{Type: "text", Text: *text}}
		}
		return nil
	}
	if json.Unmarshal(raw, &c.parts) != nil {
		return wire.Invalid("messages", "content is neither a text nor a list of parts")
	}
	return nil
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
	if err := r.check(); err != nil {
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
	for i := range r.Messages {
		items, err := r.Messages[i].items(fmt.Sprintf("messages[%d]", i))
		if err != nil {
			return nil, err
		}
		out.Items = append(out.Items, items...)
	}
	return out, nil
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
		return []turn.Item{{Kind: turn.System, Text: m.Content.text()}}, nil
	case "user":
		said, err := m.Content.said(param + ".content")
		return []turn.Item{{Kind: turn.Said, Parts: said}}, err
	case "assistant":
		items = append(items, turn.Item{Kind: turn.Replied, Text: m.Content.text()})
		for _, call := range m.ToolCalls {
			items = append(items, turn.Item{Kind: turn.Called, Call: call.ID, Name: call.Function.Name,
				Input: call.Function.Arguments})
		}
		return items, nil
	case "tool":
		if m.ToolCallID == "" {
			return nil, wire.Invalid(param+".tool_call_id", "a message of the role tool says which call it is of")
		}
		return []turn.Item{{Kind: turn.Returned, Call: m.ToolCallID, Text: m.Content.text()}}, nil
	}
	return nil, wire.Invalid(param+".role", "the role is none of system, developer, user, assistant and tool")
}

// text is the text of the parts.
func (c *content) text() string {
	var b strings.Builder
	for i := range c.parts {
		b.WriteString(c.parts[i].Text + c.parts[i].Refusal)
	}
	return b.String()
}

// said are the parts as those of a message.
func (c *content) said(param string) (said []v1alpha1.MessagePart, err error) {
	for i := range c.parts {
		p, at := &c.parts[i], fmt.Sprintf("%s[%d]", param, i)
		var one v1alpha1.MessagePart
		switch {
		case p.Type == "text" && strings.TrimSpace(p.Text) == "":
			continue
		case p.Type == "text":
			one = wire.Text(p.Text)
		case p.Type == "image_url":
			one, err = wire.Image(at+".image_url.url", p.ImageURL.URL)
		case p.Type == "file" && p.File.Data != "":
			one, err = wire.File(at+".file.file_data", p.File.Name, p.File.Data)
		default:
			err = wire.Unsupported(at, "parts of type %s cannot be honoured: texts, images, and files in place", p.Type)
		}
		if err != nil {
			return nil, err
		}
		said = append(said, one)
	}
	return said, nil
}
