// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package recordings_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
)

// said is one thing that is said in a request, in its order.
type said struct {
	// Role is system, user, assistant or tool.
	Role string
	// Kind is text, file, call, result, or what the protocol calls anything else.
	Kind string
	// ID is a call's, Body the text, the arguments, the output or the content.
	ID, Name, Body string
}

// request is what a request says, in no protocol's shape.
type request struct {
	Said []said
	// Sealed is the state of the model that the request gives back.
	Sealed []string
	Tools  []v1beta1.ClientTool
}

// parse reads a request of a protocol.
func parse(protocol, body string) (r request) {
	root := object{}
	if err := json.Unmarshal([]byte(body), &root); err != nil {
		panic(fmt.Sprintf("the request is no JSON: %v", err))
	}
	switch protocol {
	case "anthropic":
		r.anthropic(root)
	case "gemini":
		r.gemini(root)
	case "responses":
		r.responses(root)
	default:
		r.chat(root)
	}
	r.sealed(root)
	return r
}

func (r *request) add(role, kind, id, name, body string) {
	r.Said = append(r.Said, said{role, kind, id, name, body})
}

// texts adds a content that is a text or a list of parts.
func (r *request) texts(role string, content any) {
	if s, ok := content.(string); ok {
		if s != "" {
			r.add(role, "text", "", "", s)
		}
		return
	}
	for _, part := range list(content) {
		if s := text(part, "text"); s != "" {
			r.add(role, "text", "", "", s)
		}
		for _, file := range []string{text(part, "image_url", "url"), text(part, "image_url")} {
			if _, data, ok := strings.Cut(file, ";base64,"); ok {
				r.add(role, "file", "", "", data)
			}
		}
	}
}

func (r *request) tool(declared any, schema any) {
	tool := v1beta1.ClientTool{Name: text(declared, "name"), Description: text(declared, "description")}
	if schema == nil {
		return // A tool of the provider's own.
	}
	raw, _ := json.Marshal(lowerTypes(schema))
	tool.InputSchema = &runtime.RawExtension{Raw: raw}
	r.Tools = append(r.Tools, tool)
}

// lowerTypes writes Gemini's types as JSON schemas do.
func lowerTypes(value any) any {
	switch value := value.(type) {
	case object:
		out := object{}
		for name, each := range value {
			if s, ok := each.(string); ok && name == "type" {
				each = strings.ToLower(s)
			}
			out[name] = lowerTypes(each)
		}
		return out
	case []any:
		for i := range value {
			value[i] = lowerTypes(value[i])
		}
	}
	return value
}

func (r *request) chat(root object) {
	for _, m := range list(root, "messages") {
		role := text(m, "role")
		if role == "tool" {
			body := text(m, "content")
			for _, part := range list(m, "content") {
				body += text(part, "text")
			}
			r.add("tool", "result", text(m, "tool_call_id"), "", body)
			continue
		}
		r.texts(strings.Replace(role, "developer", "system", 1), at(m, "content"))
		for _, call := range list(m, "tool_calls") {
			r.add(role, "call", text(call, "id"), text(call, "function", "name"), compact(text(call, "function", "arguments")))
		}
	}
	for _, tool := range list(root, "tools") {
		r.tool(at(tool, "function"), at(tool, "function", "parameters"))
	}
}

func (r *request) anthropic(root object) {
	r.texts("system", at(root, "system"))
	for _, m := range list(root, "messages") {
		role := text(m, "role")
		for _, block := range list(m, "content") {
			switch kind := text(block, "type"); kind {
			case "text":
				r.add(role, "text", "", "", text(block, "text"))
			case "image":
				r.add(role, "file", "", "", text(block, "source", "data"))
			case "tool_use", "server_tool_use":
				input, _ := json.Marshal(at(block, "input"))
				r.add(role, "call", text(block, "id"), text(block, "name"), string(input))
			case "tool_result":
				output := ""
				for _, part := range list(block, "content") {
					output += text(part, "text")
				}
				r.add("tool", "result", text(block, "tool_use_id"), "", output)
			case "thinking", "redacted_thinking":
			default:
				content, _ := json.Marshal(at(block, "content"))
				r.add(role, kind, text(block, "tool_use_id"), "", string(content))
			}
		}
	}
	for _, tool := range list(root, "tools") {
		r.tool(tool, at(tool, "input_schema"))
	}
}

func (r *request) gemini(root object) {
	for _, part := range list(root, "systemInstruction", "parts") {
		r.add("system", "text", "", "", text(part, "text"))
	}
	for _, content := range list(root, "contents") {
		role := strings.Replace(text(content, "role"), "model", "assistant", 1)
		for _, part := range list(content, "parts") {
			call, result := at(part, "functionCall"), at(part, "functionResponse")
			switch {
			case call != nil:
				args, _ := json.Marshal(at(call, "args"))
				r.add(role, "call", text(call, "id"), text(call, "name"), compact(string(args)))
			case result != nil:
				r.add("tool", "result", text(result, "id"), text(result, "name"), text(result, "response", "result"))
			case at(part, "inlineData") != nil:
				r.add(role, "file", "", "", text(part, "inlineData", "data"))
			default:
				r.add(role, "text", "", "", text(part, "text"))
			}
		}
	}
	for _, tools := range list(root, "tools") {
		for _, tool := range list(tools, "functionDeclarations") {
			if schema := at(tool, "parametersJsonSchema"); schema != nil {
				r.tool(tool, schema)
			} else {
				r.tool(tool, at(tool, "parameters"))
			}
		}
	}
}

func (r *request) responses(root object) {
	for _, item := range list(root, "input") {
		switch text(item, "type") {
		case "function_call":
			r.add("assistant", "call", text(item, "call_id"), text(item, "name"), compact(text(item, "arguments")))
		case "function_call_output":
			r.add("tool", "result", text(item, "call_id"), "", text(item, "output"))
		case "reasoning":
		default:
			r.texts(strings.Replace(text(item, "role"), "developer", "system", 1), at(item, "content"))
		}
	}
	for _, tool := range list(root, "tools") {
		r.tool(tool, at(tool, "parameters"))
	}
}

// sealed collects everything that is named like a state of the model, wherever it is.
func (r *request) sealed(value any) {
	switch value := value.(type) {
	case object:
		for name, each := range value {
			s, ok := each.(string)
			if ok && s != "" && (name == "signature" || name == "thoughtSignature" || name == "encrypted_content" ||
				name == "data" && text(value, "type") == "reasoning.encrypted") {
				r.Sealed = append(r.Sealed, s)
			}
			r.sealed(each)
		}
	case []any:
		for _, each := range value {
			r.sealed(each)
		}
	}
	slices.Sort(r.Sealed)
}

// outline is what is said in comparable lines. An id that no reply has is one that was made up for it:
// it goes by its number.
func (r request) outline(replies string) string {
	made := map[string]string{}
	var lines []string
	for _, s := range r.Said {
		if s.ID != "" && !strings.Contains(replies, `"`+s.ID+`"`) {
			if made[s.ID] == "" {
				made[s.ID] = fmt.Sprint("made-up-", len(made))
			}
			s.ID = made[s.ID]
		}
		lines = append(lines, fmt.Sprintf("%s %s %s %s %s", s.Role, s.Kind, s.ID, s.Name, s.Body))
	}
	for _, tool := range r.Tools {
		lines = append(lines, fmt.Sprintf("offers %s (%s) %s", tool.Name, tool.Description,
			compact(string(tool.InputSchema.Raw))))
	}
	return strings.Join(lines, "\n")
}
