// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"cmp"
	"encoding/json"
	"slices"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/internal/text/jsonschema"
)

const (
	// maxStops is how many texts may stop a reply, and maxStop how many characters each has.
	maxStops, maxStop = 4, 256
	// maxToolName is the most characters of the name of a tool.
	maxToolName = 64
)

// Types of formats.
const (
	formatText       = "text"
	formatJSONObject = "json_object"
	formatJSONSchema = "json_schema"
)

// Format is the form of an answer, as OpenAI's Responses and Anthropic's Messages have it.
type Format struct {
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"schema"`
}

// Output is the format as a message has it; nil for text. Field and schema are the names of the format and of its
// schema in the request.
func (f *Format) Output(field, schema string) (*v1beta1.OutputFormat, error) {
	raw := f.Schema
	switch f.Type {
	case "", formatText:
		return nil, nil
	case formatJSONObject:
		raw = turn.AnyObject()
	case formatJSONSchema:
		if text := string(raw); text == "" || text == "null" {
			return nil, Invalid(schema, "%s is missing: set it, or use json_object for any object", schema)
		}
	default:
		return nil, Unsupported(field, "%s of type %.64q is not supported: use text, json_object or json_schema",
			field, f.Type)
	}
	_, object, err := jsonschema.CompileOutput(raw)
	if err != nil {
		return nil, Invalid(schema, "%s cannot be used: %v", schema, err)
	}
	if f.Description != "" && object["description"] == nil { // The model reads it there.
		object["description"] = f.Description
		if raw, err = json.Marshal(object); err != nil {
			return nil, Invalid(schema, "%s cannot be used: %v", schema, err)
		}
	}
	return &v1beta1.OutputFormat{Schema: runtime.RawExtension{Raw: raw}}, nil
}

// Stops reads texts at which the model stops: one, or a list. Param is the name of the field.
func Stops(param string, raw json.RawMessage) ([]string, error) {
	if !IsSet(raw) {
		return nil, nil
	}
	var one string
	var stops []string
	if json.Unmarshal(raw, &one) == nil {
		stops = []string{one}
	} else if json.Unmarshal(raw, &stops) != nil {
		return nil, Invalid(param, "%s is neither a text nor a list of texts", param)
	}
	outside := func(stop string) bool { return stop == "" || utf8.RuneCountInString(stop) > maxStop }
	if len(stops) > maxStops || slices.ContainsFunc(stops, outside) {
		return nil, Invalid(param, "%s may have %d texts of 1 to %d characters", param, maxStops, maxStop)
	}
	return stops, nil
}

// Choice reads which tools the first reply calls, as OpenAI's two protocols write it; nil: the model decides. Param is
// the name of the field.
func Choice(param string, raw json.RawMessage) (*v1beta1.ToolChoice, error) {
	if !IsSet(raw) {
		return nil, nil
	}
	var choice struct {
		Type     string `json:"type"`
		Name     string `json:"name"`
		Function struct {
			Name string `json:"name"`
		} `json:"function"`
	}
	if json.Unmarshal(raw, &choice.Type) != nil && json.Unmarshal(raw, &choice) != nil {
		return nil, Invalid(param, "%s is neither a text nor an object with a type", param)
	}
	return ChoiceOf(param, choice.Type, cmp.Or(choice.Function.Name, choice.Name))
}

// choices are the types by the words of the protocols.
var choices = map[string]v1beta1.ToolChoiceType{
	"none": v1beta1.ToolChoiceNone, "required": v1beta1.ToolChoiceRequired, "any": v1beta1.ToolChoiceRequired,
	KindFunction: v1beta1.ToolChoiceTool, "tool": v1beta1.ToolChoiceTool,
}

// ChoiceOf is the choice that a word of a protocol means, with the name of the tool if it means one; nil: the model
// decides. Param is the name of the field.
func ChoiceOf(param, word, tool string) (*v1beta1.ToolChoice, error) {
	if word == "" || word == "auto" {
		return nil, nil
	}
	kind, ok := choices[word]
	if !ok {
		return nil, Unsupported(param, "%s of type %.64q is not supported: let the model choose (auto), require or "+
			"exclude calls, or name one tool; to allow some tools only, offer these alone", param, word)
	}
	if kind != v1beta1.ToolChoiceTool {
		return &v1beta1.ToolChoice{Type: kind}, nil
	}
	if tool == "" || utf8.RuneCountInString(tool) > maxToolName {
		return nil, Invalid(param, "%s names no tool: a name has 1 to %d characters", param, maxToolName)
	}
	return &v1beta1.ToolChoice{Type: kind, Tool: tool}, nil
}
