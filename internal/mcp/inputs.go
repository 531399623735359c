// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"encoding/json"
	"errors"
	"fmt"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/internal/tools"
)

// asked makes a question for people of what a server asks before it goes on.
func asked(result *sdk.CallToolResult, secrets scrubber) (q tools.Question, err error) {
	if len(result.InputRequests) == 0 {
		return q, errors.New("the server is busy: call the tool again later")
	}
	for _, request := range result.InputRequests {
		if _, ok := request.(*sdk.ElicitParams); !ok {
			return q, errors.New("the server asks for a model or for files, which Parley does not offer to servers")
		}
	}
	raw, err := json.Marshal(result.InputRequests)
	if err != nil {
		return q, errors.New("the server asks for input that cannot be read")
	}
	if secrets.scrub(result.RequestState) != result.RequestState {
		return q, errors.New("the server asks for input, and would have its own secret kept in the chat: nobody was asked")
	}
	return tools.Question{Requests: secrets.scrub(string(raw)), State: result.RequestState}, nil
}

// answered are the responses to the requests of an answer's question. A single request is answered by the content as a
// whole, several by its members of their ids.
func answered(answer *tools.Answer) (sdk.InputResponseMap, error) {
	var requests sdk.InputRequestMap
	if err := json.Unmarshal([]byte(answer.Requests), &requests); err != nil {
		return nil, errors.New("what the server asked for cannot be read any more")
	}
	var content map[string]any
	if answer.Given && answer.Content != "" {
		if err := json.Unmarshal([]byte(answer.Content), &content); err != nil {
			return nil, fmt.Errorf("the input that a person gave is no JSON object: %w", err)
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
