// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"errors"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/internal/tools"
)

// asked makes a question for people of what a server asks before it goes on.
func asked(result *sdk.CallToolResult, secrets scrubber) (q tools.Question, err error) {
	if len(result.InputRequests) == 0 {
		return q, errors.New("the server is busy: call the tool again later")
	}
	schemas := askedSchemas(raw(result.Meta))
	for id, request := range result.InputRequests {
		elicit, ok := request.(*sdk.ElicitParams)
		if !ok {
			return q, errors.New("the server asks for a model or for files, which Parley does not offer to servers")
		}
		if schema := schemas[id]; schema != nil {
			elicit.RequestedSchema = schema
		}
	}
	raw, err := json.Marshal(result.InputRequests)
	if err != nil {
		return q, errors.New("the server asks for input that cannot be read")
	}
	if secrets.scrub(result.RequestState) != result.RequestState {
		return q, errors.New("the server asks for input, and would have its own secret kept in the chat: no one was asked")
	}
	return tools.Question{Requests: secrets.scrub(string(raw)), State: result.RequestState}, nil
}

// askedSchemas are the schemas of what is asked, by its ids, with numbers as the server wrote them.
func askedSchemas(result json.RawMessage) map[string]any {
	var asked struct {
		InputRequests map[string]struct {
			Params struct {
				RequestedSchema json.RawMessage `json:"requestedSchema"`
			} `json:"params"`
		} `json:"inputRequests"`
	}
	_ = json.Unmarshal(result, &asked) // The library has read it.
	schemas := map[string]any{}
	for id, request := range asked.InputRequests {
		schemas[id], _ = decode(request.Params.RequestedSchema) // It has none, if that fails.
	}
	return schemas
}

// answered are the responses to the requests of an answer's question. A single request is answered by the content as a
// whole, several by its members of their ids.
func answered(answer *tools.Answer) (sdk.InputResponseMap, error) {
	var requests sdk.InputRequestMap
	if err := json.Unmarshal([]byte(answer.Requests), &requests); err != nil {
		return nil, errors.New("what the server asked for can no longer be read")
	}
	var content map[string]any
	if answer.Given && answer.Content != "" {
		value, _ := decode([]byte(answer.Content)) // It is no object, if that fails.
		if content, _ = value.(map[string]any); content == nil {
			return nil, errors.New("the input that a person gave is no JSON object")
		}
	}
	responses := make(sdk.InputResponseMap, len(requests))
	for id := range requests {
		response := &sdk.ElicitResult{Action: "decline"}
		if answer.Given {
			response.Action, response.Content = "accept", content
			if len(requests) > 1 {
				response.Content, _ = content[id].(map[string]any)
			}
		}
		responses[id] = response
	}
	return responses, nil
}
