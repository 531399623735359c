// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"encoding/json"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

func TestGeminiTakesAnyToolName(t *testing.T) {
	for tool, function := range map[string]string{
		"weather": "weather", "_weather": "_weather", "__": "__",
		"3d__render": "_3d__render", "-x": "_-x", "_3d__render": "__3d__render",
	} {
		got, sent := ask(t, "gemini-3-pro", func(call *fantasy.Call) {
			call.Tools = []fantasy.Tool{fantasy.FunctionTool{Name: tool, InputSchema: map[string]any{"type": "object"}}}
			choice := fantasy.ToolChoice(tool)
			call.ToolChoice = &choice
			call.Prompt = append(call.Prompt, fantasy.Message{Role: fantasy.MessageRoleAssistant, Content: []fantasy.MessagePart{
				fantasy.ToolCallPart{ToolCallID: "f1", ToolName: tool, Input: "{}"}}},
				fantasy.Message{Role: fantasy.MessageRoleTool, Content: []fantasy.MessagePart{fantasy.ToolResultPart{
					ToolCallID: "f1", Output: fantasy.ToolResultOutputContentText{Text: "ok"}}}})
		}, `{"candidates":[{"content":{"role":"model","parts":[{"functionCall":{"id":"f2","name":"`+function+
			`","args":{}}}]},"finishReason":"STOP"}]}`)
		check.Equal(t, "calls", []string{"f2 " + tool + " {}"}, providertest.Calls(got))
		contents := sent["contents"].([]any)
		for what, at := range map[string][2]any{
			"declaration": {sent["tools"], `[{"functionDeclarations":[{"name":"` + function +
				`","parametersJsonSchema":{"properties":{},"type":"object"}}]}]`},
			"choice": {sent["toolConfig"], `{"functionCallingConfig":{"allowedFunctionNames":["` + function +
				`"],"mode":"ANY"}}`},
			"call": {contents[1].(map[string]any)["parts"], `[{"functionCall":{"id":"f1","name":"` + function + `"}}]`},
			"result": {contents[2].(map[string]any)["parts"], `[{"functionResponse":{"id":"f1","name":"` + function +
				`","response":{"result":"ok"}}}]`},
		} {
			text, err := json.Marshal(at[0])
			check.OK(t, err)
			check.Equal(t, what+" of "+tool, at[1].(string), string(text))
		}
	}
}
