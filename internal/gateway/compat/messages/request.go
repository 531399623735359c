// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package messages translates Anthropic's Messages. It is pure.
package messages

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/compat/wire"
	"parley.dev/parley/internal/gateway/turn"
)

// request is the body of a request. Other fields are ignored.
type request struct {
	Model        string    `json:"model"`
	System       content   `json:"system"`
	Messages     []message `json:"messages"`
	Stream       bool      `json:"stream"`
	Tools        []tool    `json:"tools"`
	OutputConfig struct {
		Effort string       `json:"effort"`
		Format *wire.Format `json:"format"`
	} `json:"output_config"`
	// OutputFormat is the name that output_config.format had in the beta.
	OutputFormat *wire.Format `json:"output_format"`
	ToolChoice   struct {
		Name       string `json:"name"`
		Type       string `json:"type"`
		NoParallel bool   `json:"disable_parallel_tool_use"`
	} `json:"tool_choice"`
	StopSequences json.RawMessage `json:"stop_sequences"`
	refused
}

// refused are fields that ask for what chats cannot do.
type refused struct {
	Container  json.RawMessage `json:"container" instead:"the chat's workspace is that of its Chat"`
	MCPServers json.RawMessage `json:"mcp_servers" instead:"a chat's MCP servers are those of its Chat"`
}

type message struct {
	Role    string  `json:"role"`
	Content content `json:"content"`
}

type content = wire.Content[block]

type block struct {
	Type   string `json:"type"`
	Text   string `json:"text"`
	Title  string `json:"title"`
	Source source `json:"source"`
	// ID, Name and Input of tool_use.
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"`
	// ToolUseID, Content and IsError of tool_result.
	ToolUseID string              `json:"tool_use_id"`
	Content   wire.Content[block] `json:"content"`
	IsError   bool                `json:"is_error"`
}

// source is where an image or a document is.
type source struct {
	Type      string `json:"type"`
	MediaType string `json:"media_type"`
	Data      string `json:"data"`
	URL       string `json:"url"`
}

type tool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description"`
	InputSchema json.RawMessage `json:"input_schema"`
}

func (t *tool) offer() (kind string, f *wire.Function) {
	if kind = t.Type; kind == "" || kind == "custom" {
		kind = wire.KindFunction
	}
	return kind, &wire.Function{Name: t.Name, Description: t.Description, Parameters: t.InputSchema}
}

// Read reads the body of a request.
func Read(body []byte) (*wire.Request, error) {
	var r request
	if err := wire.Read(body, &r); err != nil {
		return nil, err
	}
	if r.ToolChoice.NoParallel {
		const field = "tool_choice.disable_parallel_tool_use"
		return nil, wire.Unsupported(field, "%s cannot be honoured: the model may make several calls", field)
	}
	if err := wire.Refuse(r.refused); err != nil {
		return nil, err
	}
	out := &wire.Request{Stream: r.Stream, Fields: settingFields}
	out.Model, out.Temporary = r.Model, true
	var err error
	if out.Settings, err = r.settings(); err != nil {
		return nil, err
	}
	if out.Tools, err = wire.Tools(r.Tools, (*tool).offer, nil); err != nil {
		return nil, err
	}
	if system := text(r.System, "\n\n"); system != "" {
		out.Items = append(out.Items, turn.Item{Kind: turn.System, Text: system})
	}
	items, err := wire.Each(r.Messages, "messages", (*message).items)
	out.Items = append(out.Items, items...)
	return out, err
}

// settingFields are the names of settings.
var settingFields = map[turn.Setting]string{
	turn.SettingOutput: "output_config.format", turn.SettingToolChoice: "tool_choice", turn.SettingStop: "stop_sequences"}

func (r *request) settings() (s turn.Settings, err error) {
	if s.Effort, err = wire.Effort("output_config.effort", r.OutputConfig.Effort); err != nil {
		return s, err
	}
	format := cmp.Or(r.OutputConfig.Format, r.OutputFormat, &wire.Format{})
	if s.Output, err = format.Output("output_config.format", "output_config.format.schema"); err != nil {
		return s, err
	}
	if s.ToolChoice, err = wire.ChoiceOf("tool_choice", r.ToolChoice.Type, r.ToolChoice.Name); err != nil {
		return s, err
	}
	s.Stop, err = wire.Stops("stop_sequences", r.StopSequences)
	return s, err
}

func (m *message) items(param string) ([]turn.Item, error) {
	switch m.Role {
	case "system":
		return []turn.Item{{Kind: turn.System, Text: text(m.Content, "\n\n")}}, nil
	case "user":
		return userItems(m.Content, param+".content")
	case "assistant":
		return replyItems(m.Content), nil
	}
	return nil, wire.Invalid(param+".role", "the role is none of system, user and assistant")
}

// text is the text of the blocks.
func text(c content, between string) string {
	var texts []string
	for i := range c {
		if c[i].Type == "text" {
			texts = append(texts, c[i].Text)
		}
	}
	return strings.Join(texts, between)
}

// replyItems are those of an earlier reply. Its thinking is omitted, since only its provider can use it.
func replyItems(c content) []turn.Item {
	items := []turn.Item{{Kind: turn.Reply, Text: text(c, "")}}
	for i := range c {
		if b := &c[i]; b.Type == "tool_use" {
			items = append(items, turn.Item{Kind: turn.ToolCall, Call: b.ID, Name: b.Name, Input: string(b.Input)})
		}
	}
	return items
}

// userItems are a message and results of calls.
func userItems(c content, param string) (items []turn.Item, err error) {
	var parts []v1beta1.MessagePart
	for i := range c {
		b, at := &c[i], fmt.Sprintf("%s[%d]", param, i)
		switch {
		case b.Type == "tool_result" && b.ToolUseID == "":
			return nil, wire.Invalid(at+".tool_use_id", "a result says by tool_use_id which call it is of")
		case b.Type == "tool_result":
			items = append(items, turn.Item{Kind: turn.ToolResult, Call: b.ToolUseID, Text: output(b.Content),
				IsError: b.IsError})
		case b.Type == "text" && strings.TrimSpace(b.Text) == "":
		default:
			part, err := b.part(at)
			if err != nil {
				return nil, err
			}
			parts = append(parts, part)
		}
	}
	if len(parts) > 0 {
		items = append(items, turn.Item{Kind: turn.User, Parts: parts})
	}
	return items, nil
}

// output is the text of a result, which cannot have images.
func output(c content) string {
	var b strings.Builder
	for i := range c {
		if c[i].Type == "text" {
			b.WriteString(c[i].Text)
		} else {
			b.WriteString(wire.NoFileInResult(c[i].Type))
		}
	}
	return b.String()
}

// part is the block as a part of a message.
func (b *block) part(at string) (v1beta1.MessagePart, error) {
	switch b.Type + " " + b.Source.Type {
	case "text ":
		return wire.Text(b.Text), nil
	case "document text":
		return wire.Text(b.Source.Data), nil
	case "image base64", "document base64":
		return wire.Data(cmp.Or(b.Title, b.Type), b.Source.MediaType, b.Source.Data), nil
	case "image url":
		return wire.Image(at+".source.url", b.Source.URL)
	case "document url":
		return wire.File(at+".source.url", cmp.Or(b.Title, b.Type), b.Source.URL)
	}
	return v1beta1.MessagePart{}, wire.Unsupported(at, "blocks of type %s cannot be honoured like this: texts, images "+
		"and documents in place or by URL, and results of calls", b.Type)
}
