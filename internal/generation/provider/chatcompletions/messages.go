// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions

import (
	"cmp"
	"encoding/base64"
	"strings"

	"charm.land/fantasy"
	"github.com/openai/openai-go/v3"

	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider/wire"
)

// messages is the prompt.
func (b *builder) messages() (all []openai.ChatCompletionMessageParamUnion) {
	for _, m := range b.call.Prompt {
		switch m.Role {
		case fantasy.MessageRoleSystem:
			all = append(all, openai.SystemMessage(strings.Join(textsOf(m.Content), "\n")))
		case fantasy.MessageRoleUser:
			all = append(all, b.user(m.Content)...)
		case fantasy.MessageRoleAssistant:
			all = append(all, b.assistant(m.Content)...)
		case fantasy.MessageRoleTool:
			for _, part := range m.Content {
				if result, ok := part.(fantasy.ToolResultPart); ok {
					all = append(all, openai.ToolMessage(outputOf(result.Output), result.ToolCallID))
				}
			}
		}
	}
	return all
}

func textsOf(content []fantasy.MessagePart) (texts []string) {
	for _, part := range content {
		if text, ok := part.(fantasy.TextPart); ok {
			texts = append(texts, text.Text)
		}
	}
	return texts
}

// outputOf is the text of a result.
func outputOf(output fantasy.ToolResultOutputContent) string {
	switch output := output.(type) {
	case fantasy.ToolResultOutputContentText:
		return output.Text
	case fantasy.ToolResultOutputContentError:
		return output.Error.Error()
	}
	return ""
}

// user is the message with that content; none if nothing of it can be sent.
func (b *builder) user(content []fantasy.MessagePart) []openai.ChatCompletionMessageParamUnion {
	if texts := textsOf(content); len(content) == 1 && len(texts) == 1 {
		return []openai.ChatCompletionMessageParamUnion{openai.UserMessage(texts[0])}
	}
	var parts []openai.ChatCompletionContentPartUnionParam
	for _, part := range content {
		switch part := part.(type) {
		case fantasy.TextPart:
			parts = append(parts, openai.TextContentPart(part.Text))
		case fantasy.FilePart:
			parts = append(parts, b.file(part)...)
		}
	}
	if len(parts) == 0 {
		return nil
	}
	return []openai.ChatCompletionMessageParamUnion{openai.UserMessage(parts)}
}

// file is the file, by its URL if the provider fetches it.
func (b *builder) file(file fantasy.FilePart) []openai.ChatCompletionContentPartUnionParam {
	_, from, fetched := prompt.URLOf(file)
	if !fetched {
		from = "data:" + file.MediaType + ";base64," + base64.StdEncoding.EncodeToString(file.Data)
	}
	switch {
	case strings.HasPrefix(file.MediaType, "image/"):
		return []openai.ChatCompletionContentPartUnionParam{openai.ImageContentPart(
			openai.ChatCompletionContentPartImageImageURLParam{URL: from})}
	case file.MediaType == "application/pdf":
		return []openai.ChatCompletionContentPartUnionParam{openai.FileContentPart(
			openai.ChatCompletionContentPartFileFileParam{Filename: openai.String(cmp.Or(file.Filename, "file.pdf")),
				FileData: openai.String(from)})}
	}
	b.warn("file", "the protocol has no place for a file of type "+file.MediaType)
	return nil
}

// assistant is the message with what the model has said; none if that is nothing but reasoning, which providers refuse.
func (b *builder) assistant(content []fantasy.MessagePart) []openai.ChatCompletionMessageParamUnion {
	var m openai.ChatCompletionAssistantMessageParam
	for _, part := range content {
		if call, ok := part.(fantasy.ToolCallPart); ok {
			made := openai.ChatCompletionMessageFunctionToolCallParam{ID: call.ToolCallID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: call.ToolName, Arguments: call.Input}}
			if state := wire.StateOf(call); state.Item != nil {
				made.SetExtraFields(object{extraContent: state.Item})
			}
			m.ToolCalls = append(m.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &made})
		}
	}
	texts := textsOf(content)
	if len(texts) == 0 && len(m.ToolCalls) == 0 {
		return nil
	}
	if len(texts) > 0 {
		m.Content.OfString = openai.String(strings.Join(texts, "\n"))
	}
	if !b.ofOpenAI() {
		m.SetExtraFields(b.thoughts(content))
	}
	return []openai.ChatCompletionMessageParamUnion{{OfAssistant: &m}}
}
