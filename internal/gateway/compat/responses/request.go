// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package responses translates OpenAI's Responses. It is pure.
package responses

import (
	"encoding/json"
	"errors"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
)

// request is the body of a request. Other fields are ignored.
type request struct {
	Model        string            `json:"model"`
	Input        json.RawMessage   `json:"input"`
	Instructions string            `json:"instructions"`
	Stream       bool              `json:"stream"`
	Background   bool              `json:"background"`
	Store        *bool             `json:"store"`
	Previous     string            `json:"previous_response_id"`
	Conversation json.RawMessage   `json:"conversation"`
	Tools        []tool            `json:"tools"`
	Metadata     map[string]string `json:"metadata"`
	Reasoning    struct {
		Effort string `json:"effort"`
	} `json:"reasoning"`
	Text struct {
		Format wire.Format `json:"format"`
	} `json:"text"`
	ToolChoice json.RawMessage `json:"tool_choice"`
	refused
}

// refused are fields that ask for what chats cannot do.
type refused struct {
	Parallel     json.RawMessage `json:"parallel_tool_calls" instead:"the model may make several calls" harmless:"true"`
	Prompt       json.RawMessage `json:"prompt" instead:"prompts are stored nowhere: use instructions"`
	TopLogprobs  json.RawMessage `json:"top_logprobs" instead:"probabilities are not known" harmless:"0"`
	MaxToolCalls json.RawMessage `json:"max_tool_calls" instead:"limits.maxSteps of the Chat is the limit"`
}

// settingFields are the names of settings.
var settingFields = map[turn.Setting]string{turn.SettingOutput: "text.format", turn.SettingToolChoice: "tool_choice"}

func (r *request) settings() (s turn.Settings, err error) {
	if s.Effort, err = wire.Effort("reasoning.effort", r.Reasoning.Effort); err != nil {
		return s, err
	}
	if s.Output, err = r.Text.Format.Output("text.format", "text.format.schema"); err != nil {
		return s, err
	}
	s.ToolChoice, err = wire.Choice("tool_choice", r.ToolChoice)
	return s, err
}

// tool is a function, or of another type.
type tool struct {
	Type string `json:"type"`
	wire.Function
}

func (t *tool) offer() (kind string, f *wire.Function) { return t.Type, &t.Function }

// omitted are the types of tools that Codex offers with every provider. They belong to OpenAI's service.
var omitted = map[string]bool{"web_search": true, "namespace": true, "tool_search": true, "image_generation": true}

// Read reads the body of a request.
func Read(body []byte) (*wire.Request, error) {
	var r request
	if err := wire.Read(body, &r); err != nil {
		return nil, err
	}
	if err := wire.Refuse(r.refused); err != nil {
		return nil, err
	}
	out := &wire.Request{Stream: r.Stream, Background: r.Background, Fields: settingFields}
	out.Metadata = r.Metadata
	out.Model, out.Temporary = r.Model, r.Store != nil && !*r.Store
	if err := r.chat(out); err != nil {
		return nil, err
	}
	var err error
	if out.Settings, err = r.settings(); err != nil {
		return nil, err
	}
	if out.Tools, err = wire.Tools(r.Tools, (*tool).offer, omitted); err != nil {
		return nil, err
	}
	if r.Instructions != "" {
		out.Items = append(out.Items, turn.Item{Kind: turn.System, Text: r.Instructions})
	}
	items, err := input(r.Input)
	out.Items = append(out.Items, items...)
	return out, err
}

// chat reads which chat the request names.
func (r *request) chat(out *wire.Request) error {
	if r.Previous != "" {
		message, ok := MessageOf(r.Previous)
		if !ok {
			return wire.Invalid("previous_response_id", "previous_response_id is no id of a response of Parley")
		}
		out.Previous = message
	}
	if !wire.IsSet(r.Conversation) {
		return nil
	}
	var named struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(r.Conversation, &named.ID) != nil && json.Unmarshal(r.Conversation, &named) != nil ||
		!turn.IsChatName(named.ID) {
		return wire.Invalid("conversation", "conversation is not the name of a chat")
	}
	if r.Previous != "" {
		return wire.Invalid("conversation", "previous_response_id and conversation exclude each other")
	}
	out.Chat = named.ID
	return nil
}

// item is an item of the input.
type item struct {
	Type    string  `json:"type"`
	Role    string  `json:"role"`
	Content content `json:"content"`
	CallID  string  `json:"call_id"`
	Name    string  `json:"name"`
	Input   string  `json:"arguments"`
	Output  content `json:"output"`
}

type content = wire.Content[part]

type part struct {
	Type     string `json:"type"`
	Text     string `json:"text"`
	ImageURL string `json:"image_url"`
	FileName string `json:"filename"`
	FileData string `json:"file_data"`
	FileURL  string `json:"file_url"`
}

// input reads the input: a text, or a list of items.
func input(raw json.RawMessage) ([]turn.Item, error) {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		if strings.TrimSpace(text) == "" {
			return nil, wire.Invalid("input", "input is blank: say something")
		}
		return []turn.Item{{Kind: turn.User, Parts: []v1beta1.MessagePart{wire.Text(text)}}}, nil
	}
	var all []item
	err := json.Unmarshal(raw, &all)
	if invalid, ok := errors.AsType[*wire.Error](err); ok {
		return nil, wire.Invalid("input", "%s", invalid.Message)
	}
	if len(raw) == 0 || err != nil {
		return nil, wire.Invalid("input", "input is neither a text nor a list of items")
	}
	return wire.Each(all, "input", (*item).items)
}

func (it *item) items(param string) ([]turn.Item, error) {
	switch it.Type {
	case "", "message":
		return it.message(param)
	case "function_call":
		return []turn.Item{{Kind: turn.ToolCall, Call: it.CallID, Name: it.Name, Input: it.Input}}, nil
	case "function_call_output":
		if it.CallID == "" {
			return nil, wire.Invalid(param+".call_id", "an output says by call_id which call it is of")
		}
		if it.Output == nil {
			return nil, wire.Invalid(param+".output", "the result of the call is missing")
		}
		return []turn.Item{{Kind: turn.ToolResult, Call: it.CallID, Text: output(it.Output)}}, nil
	case "reasoning":
		return []turn.Item{{Kind: turn.Reply}}, nil
	}
	return nil, wire.Unsupported(param,
		"items of type %s cannot be honoured: messages, reasoning, calls of functions and their outputs", it.Type)
}

func (it *item) message(param string) ([]turn.Item, error) {
	switch it.Role {
	case "system", "developer":
		return []turn.Item{{Kind: turn.System, Text: text(it.Content)}}, nil
	case "assistant":
		return []turn.Item{{Kind: turn.Reply, Text: text(it.Content)}}, nil
	case "user":
		parts, err := it.Content.Parts(param+".content", (*part).message)
		return []turn.Item{{Kind: turn.User, Parts: parts}}, err
	}
	return nil, wire.Invalid(param+".role", "the role is none of system, developer, user and assistant")
}

func text(c content) string {
	var b strings.Builder
	for i := range c {
		b.WriteString(c[i].Text)
	}
	return b.String()
}

// output is the text of a result, which cannot have images.
func output(c content) string {
	for i := range c {
		if c[i].Text == "" && !c[i].isText() {
			c[i].Text = wire.NoFileInResult(c[i].Type)
		}
	}
	return text(c)
}

// isText reports whether the part is a text. One without parts becomes one of the type text.
func (p *part) isText() bool { return p.Type == "input_text" || p.Type == "text" }

// message is the part as that of a ChatMessage.
func (p *part) message(at string) (v1beta1.MessagePart, error) {
	switch {
	case p.isText():
		return wire.Text(p.Text), nil
	case p.Type == "input_image" && p.ImageURL != "":
		return wire.Image(at+".image_url", p.ImageURL)
	case p.Type == "input_file" && p.FileData != "":
		return wire.File(at+".file_data", p.FileName, p.FileData)
	case p.Type == "input_file" && p.FileURL != "":
		return wire.File(at+".file_url", p.FileName, p.FileURL)
	}
	return v1beta1.MessagePart{}, wire.Unsupported(at,
		"parts of type %s cannot be honoured like this: texts, images, files in place or by URL", p.Type)
}
