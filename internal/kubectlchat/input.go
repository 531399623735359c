// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	"parley.dev/parley/api/v1alpha1"
)

// asks is the call that the first of the arguments answers, if it is one that asks for input; else nil.
func (s *session) asks(ctx context.Context, chat string, args []string) (*v1alpha1.PendingToolCall, error) {
	found, err := s.objects.chat(ctx, chat)
	if err != nil || found.Status.RequiresAction == nil {
		return nil, err
	}
	calls := found.Status.RequiresAction.ToolCalls
	id, _ := callIn(calls, args[0])
	for i := range calls {
		if calls[i].ID == id && calls[i].ApprovalCause == v1alpha1.ApprovalInputRequired {
			return &calls[i], nil
		}
	}
	return nil, nil
}

// input gives a call the input that it asks for.
func (s *session) input(ctx context.Context, chat string, call *v1alpha1.PendingToolCall, args []string, w waiting,
	err error) error {
	if err != nil {
		return err
	}
	_, content := callIn([]v1alpha1.PendingToolCall{*call}, args[0])
	content = answerTo(call.InputRequests, content)
	object := map[string]any{}
	switch {
	case len(args) > 1:
		return fmt.Errorf("call %s asks for input: answer it alone", call.ID)
	case json.Unmarshal([]byte(content), &object) != nil:
		return fmt.Errorf("the input for call %s is not a JSON object: %s; give one such as %s='{\"name\": \"x\"}'", call.ID,
			oneLine(content), call.ID)
	}
	fmt.Fprintln(s.options.ErrOut, strings.Join(described(call), "\n"))
	if _, err := s.undecided(ctx, chat, call.ID); err != nil {
		return err
	}
	return s.decide(ctx, chat, call, v1alpha1.ToolApprovalSpec{Decision: v1alpha1.DecisionApprove, Content: content}, w)
}

// answerTo is what a person says as a JSON object. Words alone answer a request for a single text.
func answerTo(requests, said string) string {
	var asked map[string]inputRequest
	if strings.HasPrefix(strings.TrimSpace(said), "{") || json.Unmarshal([]byte(requests), &asked) != nil {
		return said
	}
	fields := map[string]inputField{}
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
