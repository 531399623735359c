// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"encoding/base64"
	"encoding/json"
	"strings"

	"charm.land/fantasy"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider/wire"
)

type (
	item     = responses.ResponseInputItemUnionParam
	content  = responses.ResponseInputContentUnionParam
	contents = responses.ResponseInputMessageContentListParam
)

// input are the items of a prompt. Reasoning goes back unless the provider has stored it.
func input(messages fantasy.Prompt, thinks, stored bool) (items []item) {
	system := responses.EasyInputMessageRoleSystem
	if thinks {
		system = responses.EasyInputMessageRoleDeveloper
	}
	for _, m := range messages {
		switch m.Role {
		case fantasy.MessageRoleSystem:
			items = append(items, responses.ResponseInputItemParamOfMessage(textOf(m.Content), system))
		case fantasy.MessageRoleUser:
			if all := contentsOf(m.Content...); len(all) > 0 {
				items = append(items, responses.ResponseInputItemParamOfMessage(all, responses.EasyInputMessageRoleUser))
			}
		case fantasy.MessageRoleAssistant:
			items = append(items, replied(m.Content, stored)...)
		case fantasy.MessageRoleTool:
			items = append(items, results(m.Content)...)
		}
	}
	return items
}

// textOf are the texts of a message as one.
func textOf(parts []fantasy.MessagePart) string {
	var all strings.Builder
	for _, part := range parts {
		if text, ok := part.(fantasy.TextPart); ok {
			all.WriteString(text.Text)
		}
	}
	return all.String()
}

// contentsOf are the texts and files of a message that the protocol takes.
func contentsOf(parts ...fantasy.MessagePart) (all contents) {
	for _, part := range parts {
		if text, ok := part.(fantasy.TextPart); ok {
			all = append(all, content{OfInputText: &responses.ResponseInputTextParam{Text: text.Text}})
			continue
		}
		file, at, byURL := prompt.URLOf(part)
		pdf := &responses.ResponseInputFileParam{FileURL: text(at)}
		if !byURL {
			at = "data:" + file.MediaType + ";base64," + base64.StdEncoding.EncodeToString(file.Data)
			pdf.FileData, pdf.Filename = param.NewOpt(at), param.NewOpt(cmp.Or(file.Filename, "file.pdf"))
		}
		switch {
		case strings.HasPrefix(file.MediaType, "image/"):
			all = append(all, content{OfInputImage: &responses.ResponseInputImageParam{ImageURL: param.NewOpt(at)}})
		case file.MediaType == "application/pdf":
			all = append(all, content{OfInputFile: pdf})
		}
	}
	return all
}

// replied are the items of a reply. One that is nothing but reasoning is refused.
func replied(parts []fantasy.MessagePart, stored bool) (items []item) {
	hasContent := false
	for _, part := range parts {
		switch part := part.(type) {
		case fantasy.TextPart:
			message := responses.ResponseInputItemParamOfMessage(part.Text, responses.EasyInputMessageRoleAssistant)
			var marked phase
			_ = json.Unmarshal(wire.StateOf(part).Item, &marked) // Most texts are not.
			message.OfMessage.Phase = marked.Phase
			items, hasContent = append(items, message), true
		case fantasy.ToolCallPart:
			if !part.ProviderExecuted {
				call := responses.ResponseInputItemParamOfFunctionCall(part.Input, part.ToolCallID, part.ToolName)
				items, hasContent = append(items, call), true
			}
		case fantasy.ReasoningPart:
			if sealed := wire.StateOf(part).Item; sealed != nil && !stored {
				items = append(items, param.Override[item](sealed))
			}
		}
	}
	if !hasContent {
		return nil
	}
	return items
}

// results are the results of tools that Parley has run: each is a text, or a list of a text and a file.
func results(parts []fantasy.MessagePart) (items []item) {
	for _, part := range parts {
		part, ok := part.(fantasy.ToolResultPart)
		if !ok || part.ProviderExecuted {
			continue
		}
		result := &responses.ResponseInputItemFunctionCallOutputParam{CallID: param.NewOpt(part.ToolCallID)}
		switch output := part.Output.(type) {
		case fantasy.ToolResultOutputContentText:
			result.Output.OfString = param.NewOpt(output.Text)
		case fantasy.ToolResultOutputContentError:
			result.Output.OfString = param.NewOpt(output.Error.Error())
		case fantasy.ToolResultOutputContentMedia:
			data, _ := base64.StdEncoding.DecodeString(output.Data) // Whoever made it has encoded it.
			caption := cmp.Or(output.Text, "The tool returned "+output.MediaType+".")
			result.Output = param.Override[responses.ResponseInputItemFunctionCallOutputOutputUnionParam](contentsOf(
				fantasy.TextPart{Text: caption}, fantasy.FilePart{MediaType: output.MediaType, Data: data}))
		}
		items = append(items, item{OfFunctionCallOutput: result})
	}
	return items
}
