// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package responses

import (
	"cmp"
	"encoding/base64"
	"fmt"
	"strings"

	"charm.land/fantasy"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"

	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider/wire"
)

type (
	item    = responses.ResponseInputItemUnionParam
	content = responses.ResponseInputContentUnionParam
)

// input are the items of a prompt. Reasoning goes back unless the provider has stored it.
func input(messages fantasy.Prompt, reasons, stored bool) (items []item) {
	system := responses.EasyInputMessageRoleSystem
	if reasons {
		system = responses.EasyInputMessageRoleDeveloper
	}
	for i := range messages {
		switch m := &messages[i]; m.Role {
		case fantasy.MessageRoleSystem:
			if text := textOf(m); text != "" {
				items = append(items, responses.ResponseInputItemParamOfMessage(text, system))
			}
		case fantasy.MessageRoleUser:
			if parts := contentOf(m); len(parts) > 0 {
				items = append(items, responses.ResponseInputItemParamOfMessage(parts, responses.EasyInputMessageRoleUser))
			}
		case fantasy.MessageRoleAssistant:
			items = append(items, replyOf(m, stored)...)
		case fantasy.MessageRoleTool:
			for _, part := range m.Content {
				if result, ok := part.(fantasy.ToolResultPart); ok && !result.ProviderExecuted {
					items = append(items, resultOf(&result))
				}
			}
		}
	}
	return items
}

// textOf is the text of a message.
func textOf(m *fantasy.Message) string {
	var all strings.Builder
	for _, part := range m.Content {
		if text, ok := part.(fantasy.TextPart); ok && strings.TrimSpace(text.Text) != "" {
			all.WriteString(text.Text)
		}
	}
	return all.String()
}

// contentOf is what a user says.
func contentOf(m *fantasy.Message) (all responses.ResponseInputMessageContentListParam) {
	for i, part := range m.Content {
		if text, ok := part.(fantasy.TextPart); ok {
			all = append(all, content{OfInputText: &responses.ResponseInputTextParam{Text: text.Text}})
			continue
		}
		file, at, handed := prompt.URLOf(part)
		name := ""
		if !handed {
			at = dataURL(file.MediaType, base64.StdEncoding.EncodeToString(file.Data))
			name = cmp.Or(file.Filename, fmt.Sprintf("part-%d.pdf", i))
		}
		if shown, ok := fileOf(file.MediaType, name, at); ok {
			all = append(all, shown)
		}
	}
	return all
}

func dataURL(mediaType, data string) string { return "data:" + mediaType + ";base64," + data }

// fileOf is a file at a URL, which is one of data if the file has a name; false: the protocol does not take it.
func fileOf(mediaType, name, at string) (content, bool) {
	switch {
	case strings.HasPrefix(mediaType, "image/"):
		return content{OfInputImage: &responses.ResponseInputImageParam{ImageURL: param.NewOpt(at)}}, true
	case mediaType == "application/pdf" && name == "":
		return content{OfInputFile: &responses.ResponseInputFileParam{FileURL: param.NewOpt(at)}}, true
	case mediaType == "application/pdf":
		return content{OfInputFile: &responses.ResponseInputFileParam{FileData: param.NewOpt(at),
			Filename: param.NewOpt(name)}}, true
	}
	return content{}, false
}

// replyOf are the items of a reply. One that is nothing but reasoning is refused.
func replyOf(m *fantasy.Message, stored bool) (items []item) {
	says := false
	for _, part := range m.Content {
		switch part := part.(type) {
		case fantasy.TextPart:
			said := responses.ResponseInputItemParamOfMessage(part.Text, responses.EasyInputMessageRoleAssistant)
			items, says = append(items, said), true
		case fantasy.ToolCallPart:
			if !part.ProviderExecuted {
				call := responses.ResponseInputItemParamOfFunctionCall(part.Input, part.ToolCallID, part.ToolName)
				items, says = append(items, call), true
			}
		case fantasy.ReasoningPart:
			if sealed := wire.StateOf(part).Item; sealed != nil && !stored {
				items = append(items, param.Override[item](sealed))
			}
		}
	}
	if !says {
		return nil
	}
	return items
}

// resultOf is the result of a tool.
func resultOf(part *fantasy.ToolResultPart) item {
	result := &responses.ResponseInputItemFunctionCallOutputParam{CallID: param.NewOpt(part.ToolCallID)}
	said := ""
	switch output := part.Output.(type) {
	case fantasy.ToolResultOutputContentText:
		said = output.Text
	case fantasy.ToolResultOutputContentError:
		said = output.Error.Error()
	case fantasy.ToolResultOutputContentMedia:
		if said = output.Text; said == "" {
			said = fmt.Sprintf("The tool returned %s content.", output.MediaType)
		}
		if file, ok := fileOf(output.MediaType, "result.pdf", dataURL(output.MediaType, output.Data)); ok {
			result.Output = param.Override[responses.ResponseInputItemFunctionCallOutputOutputUnionParam](
				[]content{{OfInputText: &responses.ResponseInputTextParam{Text: said}}, file})
			return item{OfFunctionCallOutput: result}
		}
	}
	result.Output.OfString = param.NewOpt(said)
	return item{OfFunctionCallOutput: result}
}
