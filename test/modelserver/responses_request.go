// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
)

type responsesRequest struct {
	Model        string          `json:"model"`
	Stream       bool            `json:"stream"`
	Instructions string          `json:"instructions"`
	Input        json.RawMessage `json:"input"`
	Include      []string        `json:"include"`
	PreviousID   string          `json:"previous_response_id"`
	Tools        []struct {
		Type string `json:"type"`
		Name string `json:"name"`
	} `json:"tools"`
}

type responsesItem struct {
	Type      string          `json:"type"`
	Role      string          `json:"role"`
	Content   json.RawMessage `json:"content"`
	ID        string          `json:"id"`
	CallID    string          `json:"call_id"`
	Name      string          `json:"name"`
	Arguments string          `json:"arguments"`
	Output    json.RawMessage `json:"output"`
}

type responsesDialect struct{}

func (responsesDialect) protocol() Protocol                   { return OpenAIResponses }
func (responsesDialect) requestIDHeader() string              { return "X-Request-Id" }
func (responsesDialect) errorShape(e apiError, id string) any { return openAIErrorShape(e, id) }

func (responsesDialect) wrongKey(key string) apiError       { return openAIWrongKey(key) }
func (responsesDialect) unknownModel(model string) apiError { return openAIUnknownModel(model) }

// contextTooLong has the words of the chat protocol. The provider also says "Your input exceeds the context window of
// this model. Please adjust your input and try again.", which a script can have with a Status fault.
func (responsesDialect) contextTooLong() apiError {
	e := chatDialect{}.contextTooLong()
	e.param = "input"
	return e
}

func (responsesDialect) decode(body []byte, _ http.Header) (*request, *apiError) {
	var in responsesRequest
	if err := json.Unmarshal(body, &in); err != nil {
		return nil, openAIParseError(err)
	}
	items, refused := in.items()
	if refused == nil {
		refused = in.validate(items)
	}
	if refused != nil {
		return nil, refused
	}
	r := &request{
		protocol: OpenAIResponses, model: in.Model, stream: in.Stream, entries: len(items),
		encryptedReasoning: slices.Contains(in.Include, "reasoning.encrypted_content"),
	}
	if in.Instructions != "" {
		r.turns = append(r.turns, turn{kind: turnSystem, text: in.Instructions})
	}
	for _, item := range items {
		if t, ok := item.turn(); ok {
			r.turns = append(r.turns, t)
		}
	}
	for _, t := range in.Tools {
		switch t.Type {
		case "function":
			r.tools = append(r.tools, t.Name)
		case webSearch:
			r.tools = append(r.tools, webSearch)
		}
	}
	return r, nil
}

// items are the input; a plain string is one user message.
func (in responsesRequest) items() ([]responsesItem, *apiError) {
	var text string
	if json.Unmarshal(in.Input, &text) == nil {
		return []responsesItem{{Role: "user", Content: in.Input}}, nil
	}
	var items []responsesItem
	if len(in.Input) == 0 || json.Unmarshal(in.Input, &items) == nil {
		return items, nil
	}
	return nil, badRequest("input", "invalid_type",
		"Invalid type for 'input': expected one of an array of objects or string.")
}

func (in responsesRequest) validate(items []responsesItem) *apiError {
	switch {
	case in.Model == "":
		return badRequest("model", "missing_required_parameter", "Missing required parameter: 'model'.")
	case in.PreviousID != "":
		// This server stores no response, as the provider does not where a caller asks it not to.
		return badRequest("previous_response_id", "previous_response_not_found", "Previous response with id '%s' not found.",
			in.PreviousID)
	case len(items) == 0:
		return badRequest("input", "missing_required_parameter", "Missing required parameter: 'input'.")
	}
	for i, t := range in.Tools {
		if t.Type != "function" {
			continue
		}
		if err := checkOpenAIToolName(fmt.Sprintf("tools[%d].name", i), t.Name); err != nil {
			return err
		}
	}
	for i, item := range items {
		if err := item.validate(i); err != nil {
			return err
		}
	}
	return responsesPairing(items)
}

func (item responsesItem) isMessage() bool { return item.Type == "" || item.Type == "message" }

func (item responsesItem) validate(i int) *apiError {
	if item.isMessage() && !slices.Contains([]string{"assistant", "system", "developer", "user"}, item.Role) {
		return badRequest(fmt.Sprintf("input[%d].role", i), "invalid_value",
			"Invalid value: '%s'. Supported values are: 'assistant', 'system', 'developer', and 'user'.", item.Role)
	}
	if item.isMessage() && item.Role == "user" {
		return validateOpenAIFiles(fmt.Sprintf("input[%d]", i), item.Content, false)
	}
	if item.Type == "item_reference" {
		return badRequest("input", "", "Item with id '%s' not found. Items are not persisted when `store` is set to false. "+
			"Try again with `store` set to true, or remove this item from your input.", item.ID)
	}
	if item.Type == "function_call" {
		return checkOpenAIToolName(fmt.Sprintf("input[%d].name", i), item.Name)
	}
	return nil
}

// responsesPairing holds that each call has its output somewhere behind it, each output its call somewhere before it,
// and each reasoning item the item that it led to right behind it.
func responsesPairing(items []responsesItem) *apiError {
	asked, open := map[string]bool{}, []string{}
	for i, item := range items {
		switch item.Type {
		case "function_call":
			asked[item.CallID] = true
			open = append(open, item.CallID)
		case "function_call_output":
			if !asked[item.CallID] {
				return badRequest("input", "", "No tool call found for function call output with call_id %s.", item.CallID)
			}
			open = slices.DeleteFunc(open, func(id string) bool { return id == item.CallID })
		case "reasoning":
			if i+1 == len(items) || items[i+1].Type == "reasoning" || items[i+1].isMessage() && items[i+1].Role != "assistant" {
				return badRequest("input", "", "Item '%s' of type 'reasoning' was provided without its required following item.",
					item.ID)
			}
		}
	}
	if len(open) > 0 {
		return badRequest("input", "", "No tool output found for function call %s.", open[0])
	}
	return nil
}

func (item responsesItem) turn() (turn, bool) {
	switch {
	case item.Type == "function_call":
		return turn{kind: turnCall, id: item.CallID, name: item.Name, text: item.Arguments}, true
	case item.Type == "function_call_output":
		return turn{kind: turnResult, id: item.CallID, text: contentText(item.Output)}, true
	case !item.isMessage():
		return turn{}, false
	}
	kinds := map[string]turnKind{"system": turnSystem, "developer": turnSystem, "user": turnUser,
		"assistant": turnAssistant}
	return turn{kind: kinds[item.Role], text: contentText(item.Content)}, true
}
