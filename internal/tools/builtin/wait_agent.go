// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/tools"
)

// WaitAgent waits for a sub-chat and tells what it said last. The wait itself is the operator's: no attempt is under
// way meanwhile, and Run answers at once with how the sub-chat is when the wait is over.
type WaitAgent struct {
	// Chat and Message read one of the namespace. Errors are the API server's own.
	Chat    func(ctx context.Context, name string) (*v1alpha1.Chat, error)
	Message func(ctx context.Context, name string) (*v1alpha1.ChatMessage, error)
}

// hasAgents reports whether the chat has sub-chats, or its model may start some.
func hasAgents(chat *v1alpha1.Chat) bool {
	return chat.Status.Internal.Attempt.HasSubChats || chat.Spec.SubAgents.On() && chat.Spec.ParentRef == nil
}

type waitArguments struct {
	Chat           string   `json:"chat"`
	TimeoutSeconds *float64 `json:"timeout_seconds"`
}

// maxName is the most characters that the name of a Kubernetes object has.
const maxName = 253

func waitArgumentsOf(input string) (waitArguments, error) {
	var arguments waitArguments
	if err := json.Unmarshal([]byte(input), &arguments); err != nil {
		return arguments, fmt.Errorf("reading the arguments: %w", err)
	}
	if arguments.Chat == "" || len(arguments.Chat) > maxName {
		return arguments, errors.New("the argument chat must be the name of a sub-chat")
	}
	return arguments, nil
}

// waitsFor is the sub-chat of the call, and its time within 0 and v1alpha1.MaxWaitSeconds.
func waitsFor(input string) (chat string, seconds int32) {
	arguments, err := waitArgumentsOf(input)
	if err != nil {
		return "", 0
	}
	if arguments.TimeoutSeconds == nil {
		return arguments.Chat, v1alpha1.DefaultWaitSeconds
	}
	return arguments.Chat, int32(min(max(*arguments.TimeoutSeconds, 0), v1alpha1.MaxWaitSeconds))
}

// waitResult is what the model reads.
type waitResult struct {
	Chat  string             `json:"chat" doc:"The sub-chat."`
	Phase v1alpha1.ChatPhase `json:"phase" doc:"Its phase: see status.md."`
	// Turn is how the last turn ended.
	Turn v1alpha1.TurnResult `json:"turn,omitempty" doc:"How its last turn ended."`
	// Report is the text of the last reply.
	Report string `json:"report,omitempty" doc:"The text of its last reply."`
	// TimedOut is true for a sub-chat that is still at work.
	TimedOut bool `json:"timed_out,omitempty" doc:"Whether it is still at work: the time was up."`
	// Error says what is wrong and what a person has to do, Reason what it is, or what the sub-chat is doing.
	Error  string `json:"error,omitempty" doc:"Why it failed, and what a person has to do."`
	Reason string `json:"reason,omitempty" doc:"The reason of its condition Ready: why it failed, or what it is doing."`
}

// Definition implements tools.Tool.
func (WaitAgent) Definition() tools.Definition {
	return tools.Definition{
		Name: string(v1alpha1.BuiltInWaitAgent),
		Description: "Waits until a sub-chat of this chat has nothing left to do, and returns its last reply as report. " +
			"If it is still at work when the time is up, the result says timed_out; call the tool again to wait longer. " +
			"Calls in one reply wait at the same time.",
		InputSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"chat": map[string]any{"type": "string", "description": "Name of the sub-chat."},
				"timeout_seconds": map[string]any{
					"type": "integer", "minimum": 0, "maximum": v1alpha1.MaxWaitSeconds, "default": v1alpha1.DefaultWaitSeconds,
					"description": "How many seconds to wait at most; 0 only looks.",
				},
			},
			"required": []string{"chat"},
		},
		Traits: tools.Traits{Plan: tools.Free, Explore: tools.Free, UsefulTo: hasAgents, Repeatable: true,
			WaitsFor: waitsFor},
		Reference: tools.Reference{
			Offered: "chats that have sub-chats, or may start some, and those that name it in `spec.tools.allow`",
			Result:  waitResult{},
			Errors: []string{
				"There is no such chat below the one that calls. Of others the model learns nothing.",
				"The sub-chat or its reply cannot be read at the moment.",
			},
			Limits: []string{
				"While a call waits no attempt is under way: waiting takes no place in a generation pod.",
				fmt.Sprintf("%d calls of a reply wait, all at the same time; others look and do not wait.",
					v1alpha1.MaxWaitingCalls),
			},
		},
	}
}

// Run tells how the sub-chat is.
func (t WaitAgent) Run(ctx context.Context, call tools.Call) (string, error) {
	arguments, err := waitArgumentsOf(call.Input)
	if err != nil {
		return "", err
	}
	sub, err := t.subChat(ctx, call.Chat, arguments.Chat)
	if err != nil {
		return "", err
	}
	result := waitResult{Chat: sub.Name, Phase: sub.Status.Phase}
	ready := meta.FindStatusCondition(sub.Status.Conditions, v1alpha1.ConditionReady)
	switch {
	case !tree.Settled(sub):
		result.TimedOut = true
		if ready != nil {
			result.Reason = ready.Reason
		}
	case ready.Status == metav1.ConditionFalse:
		result.Error, result.Reason = ready.Message, ready.Reason
	default:
		if sub.Status.Turn != nil {
			result.Turn = sub.Status.Turn.Result
		}
		if result.Report, err = t.lastReply(ctx, sub); err != nil {
			return "", err
		}
	}
	return encode(result)
}

// subChat reads a chat below the one that calls. Of others the model learns nothing, not even whether they exist.
func (t WaitAgent) subChat(ctx context.Context, caller *v1alpha1.Chat, name string) (*v1alpha1.Chat, error) {
	if caller == nil {
		return nil, errors.New("no chat calls")
	}
	sub, err := tree.Descendant(name, caller.Name,
		func(name string) (*v1alpha1.Chat, error) { return t.Chat(ctx, name) })
	switch {
	case err != nil:
		return nil, tools.Unread(ctx, "sub-chat "+name)
	case sub == nil:
		return nil, fmt.Errorf("there is no chat %q below this one, and only sub-chats can be waited for", name)
	}
	return sub, nil
}

// found makes nil of what does not exist.
func found[T any](o *T, err error) (*T, error) {
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	return o, err
}

// maxLook is how many messages are looked at for a reply with a text:
// a turn that was cut short can end in results of calls.
const maxLook = 4

// lastReply is the text of the newest reply of the last turn that has one.
func (t WaitAgent) lastReply(ctx context.Context, sub *v1alpha1.Chat) (string, error) {
	name := sub.Status.History.Head
	for look := 0; look < maxLook && name != ""; look++ {
		message, err := found(t.Message(ctx, name))
		switch {
		case err != nil:
			return "", tools.Unread(ctx, "the reply of sub-chat "+sub.Name)
		case message == nil || message.Spec.Role == v1alpha1.RoleUser:
			return "", nil
		case message.Spec.Role == v1alpha1.RoleAssistant && message.Spec.Text() != "":
			return message.Spec.Text(), nil
		}
		name = history.Of(sub, message).Parent
	}
	return "", nil
}

// encode shortens a long report until the whole fits into a result: one that is cut elsewhere is no JSON.
func encode(result waitResult) (string, error) {
	report := result.Report
	for limit := tools.MaxResultBytes; ; limit /= 2 {
		result.Report = tools.Truncate(report, limit)
		out, err := json.Marshal(result)
		if err != nil {
			return "", fmt.Errorf("writing the result: %w", err)
		}
		if len(out) <= tools.MaxResultBytes || limit == 0 {
			return string(out), nil
		}
	}
}
