// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package messages

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"maps"
	"regexp"
	"slices"
	"strings"

	"charm.land/fantasy"
	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/packages/param"

	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider/wire"
)

type (
	content = anthropic.ContentBlockParamUnion
	object  = map[string]any
)

// prompt adds the messages of the prompt. Those of one side that follow each other are one. The provider refuses those
// without content.
func (b *builder) prompt() {
	all := &b.params.Messages
	for i := range b.call.Prompt {
		m := &b.call.Prompt[i]
		blocks, role := b.blocks(m), anthropic.MessageParamRoleUser
		switch m.Role {
		case fantasy.MessageRoleSystem:
			for _, block := range blocks {
				if block.OfText != nil {
					b.params.System = append(b.params.System, *block.OfText)
				}
			}
			continue
		case fantasy.MessageRoleAssistant:
			role = anthropic.MessageParamRoleAssistant
		}
		if n := len(*all); n == 0 || (*all)[n-1].Role != role {
			*all = append(*all, anthropic.MessageParam{Role: role})
		}
		last := &(*all)[len(*all)-1]
		last.Content = append(last.Content, blocks...)
	}
	*all = slices.DeleteFunc(*all, func(m anthropic.MessageParam) bool {
		return !slices.ContainsFunc(m.Content, func(block content) bool {
			return block.OfThinking == nil && block.OfRedactedThinking == nil
		})
	})
}

// blocks are the content of a message. The last one has the mark up to which the provider is to keep the prompt.
func (b *builder) blocks(m *fantasy.Message) (blocks []content) {
	for _, part := range m.Content {
		if block := b.block(part); !param.IsOmitted(block) {
			blocks = append(blocks, block)
		}
	}
	if n := len(blocks); n > 0 && wire.IsCacheMarked(m) {
		if mark := blocks[n-1].GetCacheControl(); mark != nil {
			*mark = anthropic.NewCacheControlEphemeralParam()
		}
	}
	return blocks
}

func (b *builder) block(part fantasy.MessagePart) content {
	switch part := part.(type) {
	case fantasy.TextPart:
		return anthropic.NewTextBlock(part.Text)
	case fantasy.FilePart:
		return file(part)
	case fantasy.ReasoningPart:
		if send := b.options.SendReasoning; send == nil || *send {
			return reasoning(part)
		}
	case fantasy.ToolCallPart:
		if part.ProviderExecuted {
			return own(wire.StateOf(part), object{"type": "server_tool_use", "name": part.ToolName},
				object{"id": part.ToolCallID, "input": input(part.Input)})
		}
		return anthropic.NewToolUseBlock(part.ToolCallID, input(part.Input), part.ToolName)
	case fantasy.ToolResultPart:
		if part.ProviderExecuted {
			return own(wire.StateOf(part), object{}, object{"tool_use_id": part.ToolCallID})
		}
		return result(part)
	}
	return content{}
}

// reasoning goes back only as the provider signed it, or redacted it.
func reasoning(part fantasy.ReasoningPart) content {
	state := wire.StateOf(part)
	var redacted struct{ Data string }
	if json.Unmarshal(state.Item, &redacted) == nil && redacted.Data != "" {
		return anthropic.NewRedactedThinkingBlock(redacted.Data)
	}
	if state.Signature != "" {
		return anthropic.NewThinkingBlock(state.Signature, part.Text)
	}
	return content{}
}

// own is a block of a tool that the provider has run: as it came, or this one if nothing was kept of it.
func own(state wire.State, block, with object) content {
	var came object
	_ = json.Unmarshal(state.Item, &came) // What is no object was not kept.
	maps.Copy(block, came)
	maps.Copy(block, with)
	return param.Override[content](block)
}

// input are the arguments of a call, as the model wrote them. The provider takes objects alone.
func input(arguments string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(arguments), &fields) != nil || fields == nil {
		return json.RawMessage("{}")
	}
	return json.RawMessage(arguments)
}

// result is the result of a call that Parley has run.
func result(part fantasy.ToolResultPart) content {
	block, text := &anthropic.ToolResultBlockParam{ToolUseID: part.ToolCallID}, ""
	switch output := part.Output.(type) {
	case fantasy.ToolResultOutputContentText:
		text = output.Text
	case fantasy.ToolResultOutputContentError:
		text, block.IsError = output.Error.Error(), param.NewOpt(true)
	case fantasy.ToolResultOutputContentMedia:
		text = output.Text
		block.Content = append(block.Content, anthropic.ToolResultBlockParamContentUnion{
			OfImage: anthropic.NewImageBlockBase64(output.MediaType, output.Data).OfImage})
	}
	if text != "" {
		block.Content = append(block.Content, anthropic.ToolResultBlockParamContentUnion{
			OfText: anthropic.NewTextBlock(text).OfText})
	}
	return content{OfToolResult: block}
}

// refusedInTitles is what the provider refuses in the title of a document.
var refusedInTitles = regexp.MustCompile(`[^a-zA-Z0-9()\[\]-]+`)

// file is a file, by its URL if the provider is to fetch it.
func file(part fantasy.FilePart) (block content) {
	_, from, byURL := prompt.URLOf(part)
	data := base64.StdEncoding.EncodeToString(part.Data)
	image, pdf := strings.HasPrefix(part.MediaType, "image/"), part.MediaType == "application/pdf"
	switch {
	case image && byURL:
		return anthropic.NewImageBlock(anthropic.URLImageSourceParam{URL: from})
	case image:
		return anthropic.NewImageBlockBase64(part.MediaType, data)
	case pdf && byURL:
		block = anthropic.NewDocumentBlock(anthropic.URLPDFSourceParam{URL: from})
	case pdf:
		block = anthropic.NewDocumentBlock(anthropic.Base64PDFSourceParam{Data: data})
	default:
		block = anthropic.NewDocumentBlock(anthropic.PlainTextSourceParam{Data: string(part.Data)})
	}
	title := strings.TrimSpace(refusedInTitles.ReplaceAllString(part.Filename, " "))
	block.OfDocument.Title = param.NewOpt(cmp.Or(title, "Document"))
	return block
}
