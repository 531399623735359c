// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/render"
)

// asks is the call that the first of the arguments answers, and the answer, if it is one that asks for input; else nil.
func inputCall(ctx context.Context, s *session, chat string, args []string) (*v1alpha1.PendingToolCall, string, error) {
	found, err := s.Chat(ctx, chat)
	if err != nil || found.Status.RequiresAction == nil {
		return nil, "", err
	}
	var calls []v1alpha1.PendingToolCall
	for _, call := range found.Status.RequiresAction.ToolCalls {
		if call.Kind == v1alpha1.RequiresClient || call.ApprovalCause == v1alpha1.ApprovalInputRequired {
			calls = append(calls, call)
		}
	}
	call, content, err := callIn(calls, args[0])
	if err != nil || call == nil || call.Kind == v1alpha1.RequiresClient {
		return nil, "", err
	}
	return call, content, nil
}

// answerOf is what a person answers, and the digest of what was asked.
type answerOf struct{ content, digest string }

// input gives a call the input that it asks for.
func giveInput(ctx context.Context, s *session, chat string, call *v1alpha1.PendingToolCall, answer answerOf, w waiting,
) error {
	content := answerTo(call.InputRequests, answer.content)
	object := map[string]any{}
	if json.Unmarshal([]byte(content), &object) != nil {
		return fmt.Errorf("the input for call %s is not a JSON object: %s; give one such as %s='{\"name\": \"x\"}'", call.ID,
			render.OneLine(content), call.ID)
	}
	if _, err := undecidedCall(ctx, s, chat, call.ID); err != nil {
		return err
	}
	if err := reviewCall(s, chat, call, answer.digest, "Answer with "+render.OneLine(content)+"?"); err != nil {
		return err
	}
	return decideCall(ctx, s, chat, call, v1alpha1.ToolApprovalSpec{Decision: v1alpha1.DecisionApprove, Content: content}, w)
}

// answerTo is what a person says as a JSON object. Words alone answer a request for a single text.
func answerTo(requests, said string) string {
	var asked map[string]render.InputRequest
	if strings.HasPrefix(strings.TrimSpace(said), "{") || json.Unmarshal([]byte(requests), &asked) != nil {
		return said
	}
	fields := map[string]render.InputField{}
	for _, request := range asked {
		maps.Copy(fields, request.Params.Schema.Properties)
	}
	for name, field := range fields {
		if len(asked)*len(fields) != 1 || field.Type != "string" {
			break
		}
		var words string
		if json.Unmarshal([]byte(said), &words) != nil {
			words = said
		}
		if raw, err := json.Marshal(map[string]string{name: words}); err == nil {
			return string(raw)
		}
	}
	return said
}
