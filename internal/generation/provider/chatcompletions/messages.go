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
		switch texts := textsOf(m.Content); m.Role {
		case fantasy.MessageRoleSystem:
			all = append(all, openai.SystemMessage(strings.Join(texts, "\n")))
		case fantasy.MessageRoleAssistant:
			if reply := b.assistant(m.Content, texts); reply != nil {
				all = append(all, openai.ChatCompletionMessageParamUnion{OfAssistant: reply})
			}
		case fantasy.MessageRoleUser:
			if len(m.Content) == 1 && len(texts) == 1 {
				all = append(all, openai.UserMessage(texts[0]))
			} else {
				all = append(all, openai.UserMessage(partsOf(m.Content)))
			}
		case fantasy.MessageRoleTool:
			all = append(all, resultsOf(m.Content)...)
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

// resultsOf are the messages with the results of calls.
func resultsOf(content []fantasy.MessagePart) (all []openai.ChatCompletionMessageParamUnion) {
	for _, part := range content {
		if result, ok := part.(fantasy.ToolResultPart); ok {
			output := ""
			switch value := result.Output.(type) {
			case fantasy.ToolResultOutputContentText:
				output = value.Text
			case fantasy.ToolResultOutputContentError:
				output = value.Error.Error()
			}
			all = append(all, openai.ToolMessage(output, result.ToolCallID))
		}
	}
	return all
}

// partsOf are the parts of a user's message.
func partsOf(content []fantasy.MessagePart) (parts []openai.ChatCompletionContentPartUnionParam) {
	for _, part := range content {
		switch part := part.(type) {
		case fantasy.TextPart:
			parts = append(parts, openai.TextContentPart(part.Text))
		case fantasy.FilePart:
			parts = append(parts, partOf(part))
		}
	}
	return parts
}

// partOf is the part with a file, by its URL if the provider fetches it.
func partOf(file fantasy.FilePart) openai.ChatCompletionContentPartUnionParam {
	_, from, fetched := prompt.URLOf(file)
	if !fetched {
		from = "data:" + file.MediaType + ";base64," + base64.StdEncoding.EncodeToString(file.Data)
	}
	switch {
	case strings.HasPrefix(file.MediaType, "image/"):
		return openai.ImageContentPart(openai.ChatCompletionContentPartImageImageURLParam{URL: from})
	case file.MediaType == "application/pdf":
		return openai.FileContentPart(openai.ChatCompletionContentPartFileFileParam{
			Filename: openai.String(cmp.Or(file.Filename, "file.pdf")), FileData: openai.String(from)})
	}
	return openai.TextContentPart(prompt.Absent(file.Filename, file.MediaType, "the provider takes no such files").Text)
}

// assistant is a reply of the model; nil if that is nothing but reasoning, which providers refuse.
func (b *builder) assistant(content []fantasy.MessagePart,
	texts []string) *openai.ChatCompletionAssistantMessageParam {
	var message openai.ChatCompletionAssistantMessageParam
	for _, part := range content {
		if call, ok := part.(fantasy.ToolCallPart); ok {
			made := openai.ChatCompletionMessageFunctionToolCallParam{ID: call.ToolCallID,
				Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: call.ToolName, Arguments: call.Input}}
			if state := wire.StateOf(call); state.Item != nil {
				made.SetExtraFields(object{extraContent: state.Item})
			}
			message.ToolCalls = append(message.ToolCalls, openai.ChatCompletionMessageToolCallUnionParam{OfFunction: &made})
		}
	}
	if len(texts) > 0 {
		message.Content.OfString = openai.String(strings.Join(texts, "\n"))
	} else if len(message.ToolCalls) == 0 {
		return nil
	}
	if !b.ofOpenAI() {
		message.SetExtraFields(b.thoughts(content, len(message.ToolCalls) > 0))
	}
	return &message
}
