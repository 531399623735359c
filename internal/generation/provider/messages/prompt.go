// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"regexp"
	"slices"
	"strings"

	"charm.land/fantasy"
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider/wire"
)

// block is one of a message.
type paramBlock = anthropic.ContentBlockParamUnion

// message adds a message of the prompt. Messages of one side that follow each other are one.
func (b *builder) message(m *fantasy.Message) {
	var content []paramBlock
	for _, part := range m.Content {
		content = append(content, b.blocks(part)...)
	}
	if n := len(content); n > 0 && wire.IsCacheMarked(m) {
		if mark := content[n-1].GetCacheControl(); mark != nil {
			*mark = anthropic.NewCacheControlEphemeralParam()
		}
	}
	role := anthropic.MessageParamRoleUser
	switch m.Role {
	case fantasy.MessageRoleSystem:
		for _, block := range content {
			if block.OfText != nil {
				b.params.System = append(b.params.System, *block.OfText)
			}
		}
		return
	case fantasy.MessageRoleAssistant:
		role = anthropic.MessageParamRoleAssistant
	}
	if n := len(b.params.Messages); n > 0 && b.params.Messages[n-1].Role == role {
		content = slices.Concat(b.params.Messages[n-1].Content, content)
		b.params.Messages = b.params.Messages[:n-1]
	}
	b.params.Messages = append(b.params.Messages, anthropic.MessageParam{Role: role, Content: content})
}

// dropUnsaid drops messages that say nothing, which the provider refuses.
func (b *builder) dropUnsaid() {
	b.params.Messages = slices.DeleteFunc(b.params.Messages, func(m anthropic.MessageParam) bool {
		return !slices.ContainsFunc(m.Content, func(block paramBlock) bool {
			return block.OfThinking == nil && block.OfRedactedThinking == nil
		})
	})
}

// blocks are what a part of the prompt is in the protocol.
func (b *builder) blocks(part fantasy.MessagePart) []paramBlock {
	switch part := part.(type) {
	case fantasy.TextPart:
		return []paramBlock{anthropic.NewTextBlock(part.Text)}
	case fantasy.FilePart:
		return []paramBlock{file(part)}
	case fantasy.ReasoningPart:
		return b.reasoning(part)
	case fantasy.ToolCallPart:
		if part.ProviderExecuted {
			return []paramBlock{itsOwn(wire.StateOf(part), map[string]any{
				"type": "server_tool_use", "name": part.ToolName, "id": part.ToolCallID, "input": input(part.Input)})}
		}
		return []paramBlock{anthropic.NewToolUseBlock(part.ToolCallID, input(part.Input), part.ToolName)}
	case fantasy.ToolResultPart:
		if part.ProviderExecuted {
			return []paramBlock{itsOwn(wire.StateOf(part), map[string]any{"tool_use_id": part.ToolCallID})}
		}
		return []paramBlock{result(part)}
	}
	return nil
}

// reasoning goes back with the signature that the provider gave it, and as it was where it is redacted.
func (b *builder) reasoning(part fantasy.ReasoningPart) []paramBlock {
	state := wire.StateOf(part)
	var redacted struct{ Data string }
	switch {
	case b.options.SendReasoning != nil && !*b.options.SendReasoning:
	case state.Signature != "":
		return []paramBlock{anthropic.NewThinkingBlock(state.Signature, part.Text)}
	case json.Unmarshal(state.Item, &redacted) == nil && redacted.Data != "":
		return []paramBlock{anthropic.NewRedactedThinkingBlock(redacted.Data)}
	}
	return nil
}

// itsOwn is a block of a tool that the provider has run: as it came, with these fields. The type and the name are those
// that it came with.
func itsOwn(state wire.State, fields map[string]any) paramBlock {
	var came map[string]any
	_ = json.Unmarshal(state.Item, &came) // A call can have come without.
	for name, value := range came {
		if _, ours := fields[name]; !ours || name == "type" || name == "name" {
			fields[name] = value
		}
	}
	return param.Override[paramBlock](fields)
}

// input are the arguments of a call, as the model wrote them. The provider takes objects alone.
func input(arguments string) json.RawMessage {
	var object map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &object) != nil || object == nil {
		return json.RawMessage("{}")
	}
	return json.RawMessage(arguments)
}

// result is the result of a call that Parley has run.
func result(part fantasy.ToolResultPart) paramBlock {
	switch output := part.Output.(type) {
	case fantasy.ToolResultOutputContentError:
		return anthropic.NewToolResultBlock(part.ToolCallID, output.Error.Error(), true)
	case fantasy.ToolResultOutputContentMedia:
		content := []anthropic.ToolResultBlockParamContentUnion{
			{OfImage: anthropic.NewImageBlockBase64(output.MediaType, output.Data).OfImage}}
		if output.Text != "" {
			content = append(content, anthropic.ToolResultBlockParamContentUnion{
				OfText: &anthropic.TextBlockParam{Text: output.Text}})
		}
		return paramBlock{OfToolResult: &anthropic.ToolResultBlockParam{ToolUseID: part.ToolCallID, Content: content}}
	case fantasy.ToolResultOutputContentText:
		block := anthropic.NewToolResultBlock(part.ToolCallID, output.Text, false)
		block.OfToolResult.IsError = param.Opt[bool]{}
		return block
	}
	return paramBlock{OfToolResult: &anthropic.ToolResultBlockParam{ToolUseID: part.ToolCallID}}
}

const pdf = "application/pdf"

// file is a file, by its URL if the provider is to fetch it. The model reads why it does not see one of another type.
func file(part fantasy.FilePart) paramBlock {
	_, from, byURL := prompt.URLOf(part)
	image := strings.HasPrefix(part.MediaType, "image/")
	content := base64.StdEncoding.EncodeToString
	switch {
	case image && byURL:
		return anthropic.NewImageBlock(anthropic.URLImageSourceParam{URL: from})
	case image:
		return anthropic.NewImageBlockBase64(part.MediaType, content(part.Data))
	case part.MediaType == pdf && byURL:
		return titled(anthropic.NewDocumentBlock(anthropic.URLPDFSourceParam{URL: from}), part.Filename)
	case part.MediaType == pdf:
		return titled(anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: content(part.Data)}), part.Filename)
	case strings.HasPrefix(part.MediaType, "text/"):
		return titled(anthropic.NewDocumentBlock(anthropic.PlainTextSourceParam{Data: string(part.Data)}), part.Filename)
	}
	return anthropic.NewTextBlock(prompt.Absent(part.Filename, part.MediaType, "the model takes no files of this type").Text)
}

// refusedInTitles is what the provider refuses in the title of a document.
var refusedInTitles = regexp.MustCompile(`[^a-zA-Z0-9()\[\]-]+`)

func titled(document paramBlock, name string) paramBlock {
	title := strings.TrimSpace(refusedInTitles.ReplaceAllString(name, " "))
	document.OfDocument.Title = param.NewOpt(cmp.Or(title, "Document"))
	return document
}
