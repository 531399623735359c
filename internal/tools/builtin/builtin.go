// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package builtin has the tools that need neither the workspace nor the cluster.
package builtin

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"
	_ "time/tzdata" // The image has no time zones of its own.

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/internal/tools"
)

// CurrentTime is the tool that returns the time.
type CurrentTime struct {
	// Now returns the current time.
	Now func() time.Time
}

type timeResult struct {
	Time     string `json:"time" doc:"The time, RFC 3339."`
	Timezone string `json:"timezone" doc:"The time zone."`
	Weekday  string `json:"weekday" doc:"The day of the week, in English."`
}

// Definition implements tools.Tool.
func (CurrentTime) Definition() tools.Definition {
	return tools.Definition{
		Name:        string(v1beta1.BuiltInCurrentTime),
		Description: "Tells the current date and time. Call it whenever the answer depends on what time it is now.",
		InputSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"timezone": map[string]any{
					"type":        "string",
					"default":     "UTC",
					"description": "IANA name of a time zone, such as Europe/Berlin.",
				},
			},
		},
		Traits: tools.Traits{Plan: tools.Free, Explore: tools.Free, Repeatable: true},
		Reference: tools.Reference{
			Offered: "every chat", Result: timeResult{},
			Errors: []string{"The time zone is not known; the error says how names of time zones look."},
			Limits: []string{"The time is the generation pod's."},
		},
	}
}

// Run returns the time as JSON: RFC 3339, the weekday and the zone.
func (t CurrentTime) Run(_ context.Context, call tools.Call) (string, error) {
	var arguments struct {
		Timezone string `json:"timezone"`
	}
	if err := json.Unmarshal([]byte(call.Input), &arguments); err != nil {
		return "", fmt.Errorf("reading the arguments: %w", err)
	}
	zone, err := time.LoadLocation(arguments.Timezone)
	if err != nil {
		return "", fmt.Errorf("timezone %q is not known; use an IANA name such as Europe/Berlin", arguments.Timezone)
	}
	now := t.Now().In(zone)
	return tools.Encode(timeResult{
		Time: now.Format(time.RFC3339), Timezone: zone.String(), Weekday: now.Weekday().String()})
}

// WaitAgent waits for a sub-chat and returns its last reply. The operator waits, without a running attempt. Run returns
// at once, after the wait.
type WaitAgent struct {
	// Chat and Message read one of the namespace. Errors are the API server's own.
	Chat    func(ctx context.Context, name string) (*v1beta1.Chat, error)
	Message func(ctx context.Context, name string) (*v1beta1.ChatMessage, error)
}

// hasAgents reports whether the chat has sub-chats, or its model may start some.
func hasAgents(chat *v1beta1.Chat) bool {
	return chat.Status.Internal.Attempt.HasSubChats || chat.Spec.SubAgents.On() && chat.Spec.ParentRef == nil
}

const (
	// maxName is the maximum length of the name of a Kubernetes object.
	maxName = 253
	// maxLook bounds the search for a reply with text: an interrupted turn can end in results of calls.
	maxLook = 4
)

type waitArguments struct {
	Chat           string  `json:"chat"`
	TimeoutSeconds float64 `json:"timeout_seconds"`
}

func decodeWait(input string) (waitArguments, error) {
	arguments := waitArguments{TimeoutSeconds: v1beta1.DefaultWaitSeconds}
	if err := json.Unmarshal([]byte(input), &arguments); err != nil {
		return arguments, fmt.Errorf("reading the arguments: %w", err)
	}
	if arguments.Chat == "" || len(arguments.Chat) > maxName {
		return arguments, errors.New("the argument chat must be the name of a sub-chat")
	}
	return arguments, nil
}

// waitsFor is the sub-chat of the call, and its timeout from 0 to v1beta1.MaxWaitSeconds.
func waitsFor(input string) (chat string, seconds int32) {
	arguments, err := decodeWait(input)
	if err != nil {
		return "", 0
	}
	return arguments.Chat, int32(min(max(arguments.TimeoutSeconds, 0), v1beta1.MaxWaitSeconds))
}

type waitResult struct {
	Chat     string             `json:"chat" doc:"The sub-chat."`
	Phase    v1beta1.ChatPhase  `json:"phase" doc:"Its phase: see status.md."`
	Turn     v1beta1.TurnResult `json:"turn,omitempty" doc:"How its last turn ended."`
	Report   string             `json:"report,omitempty" doc:"The text of its last reply."`
	TimedOut bool               `json:"timed_out,omitempty" doc:"Whether it is still at work: the time was up."`
	Error    string             `json:"error,omitempty" doc:"Why it failed, and what a person has to do."`

	Reason string `json:"reason,omitempty" doc:"The reason of its condition Ready: why it failed, or what it is doing."`
}

// Definition implements tools.Tool.
func (WaitAgent) Definition() tools.Definition {
	return tools.Definition{
		Name: string(v1beta1.BuiltInWaitAgent),
		Description: "Waits until a sub-chat of this chat has nothing left to do, and returns its last reply as report. " +
			"If it is still at work when the time is up, the result says timed_out; call the tool again to wait longer. " +
			"Calls in one reply wait at the same time.",
		InputSchema: map[string]any{
			"type": "object",
			"properties": map[string]any{
				"chat": map[string]any{"type": "string", "description": "Name of the sub-chat."},
				"timeout_seconds": map[string]any{
					"type": "integer", "minimum": 0, "maximum": v1beta1.MaxWaitSeconds, "default": v1beta1.DefaultWaitSeconds,
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
					v1beta1.MaxWaitingCalls),
			},
		},
	}
}

// Run returns the state of the sub-chat.
func (t WaitAgent) Run(ctx context.Context, call tools.Call) (string, error) {
	arguments, err := decodeWait(call.Input)
	if err != nil {
		return "", err
	}
	sub, err := t.subChat(ctx, call.Chat, arguments.Chat)
	if err != nil {
		return "", err
	}
	result := waitResult{Chat: sub.Name, Phase: sub.Status.Phase}
	ready := meta.FindStatusCondition(sub.Status.Conditions, v1beta1.ConditionReady)
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

// subChat reads a chat below the caller. It does not reveal whether another chat exists.
func (t WaitAgent) subChat(ctx context.Context, caller *v1beta1.Chat, name string) (*v1beta1.Chat, error) {
	sub, err := tree.Descendant(name, caller.Name,
		func(name string) (*v1beta1.Chat, error) { return t.Chat(ctx, name) })
	switch {
	case err != nil:
		return nil, tools.Unread(ctx, "sub-chat "+name)
	case sub == nil:
		return nil, fmt.Errorf("there is no chat %q below this one, and only sub-chats can be waited for", name)
	}
	return sub, nil
}

// lastReply is the text of the newest reply of the last turn that has one.
func (t WaitAgent) lastReply(ctx context.Context, sub *v1beta1.Chat) (string, error) {
	name := sub.Status.History.Head
	for look := 0; look < maxLook && name != ""; look++ {
		message, err := t.Message(ctx, name)
		switch {
		case apierrors.IsNotFound(err):
			return "", nil
		case err != nil:
			return "", tools.Unread(ctx, "the reply of sub-chat "+sub.Name)
		case message.Spec.Role == v1beta1.RoleUser:
			return "", nil
		case message.Spec.Role == v1beta1.RoleAssistant && message.Spec.Text() != "":
			return message.Spec.Text(), nil
		}
		name = history.Of(sub, message).Parent
	}
	return "", nil
}

// encode shortens the report until the result fits: elsewhere it would be cut within its JSON.
func encode(result waitResult) (string, error) {
	report := result.Report
	for limit := tools.MaxResultBytes; ; limit /= 2 {
		result.Report = tools.Truncate(report, limit)
		text, err := tools.Encode(result)
		if err != nil || len(text) <= tools.MaxResultBytes || limit == 0 {
			return text, err
		}
	}
}
