// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/toolpolicy"
)

// Selective is a Tool that is not of use to every chat.
type Selective interface {
	Tool
	// Suits reports whether the chat has a use for it. The model of another chat is not told of it.
	Suits(chat *v1alpha1.Chat) bool
}

// Suited are those of the tools that the chat has turned on, has a use for, or names itself in spec.tools.allow.
func Suited(all []Tool, chat *v1alpha1.Chat) []Tool {
	return slices.DeleteFunc(all, func(tool Tool) bool {
		if switched, ok := tool.(Switched); ok {
			return !switched.On(chat)
		}
		selective, ok := tool.(Selective)
		return ok && !selective.Suits(chat) && !toolpolicy.Names(chat.Spec.Tools, tool.Name())
	})
}

// Waiter is a Tool whose calls may wait for a sub-chat. A generation pod runs such a call when the wait is over, not
// before: a chat that waits has no attempt.
type Waiter interface {
	Tool
	// WaitingFor is the sub-chat that a call with these arguments waits for,
	// and for how many seconds; 0: it does not wait.
	WaitingFor(input string) (chat string, seconds int32)
}

// WaitingCalls are those of the calls that wait for sub-chats, that the chat allows and that are not refused, at most
// v1alpha1.MaxWaitingCalls.
func (r *Registry) WaitingCalls(spec *v1alpha1.ChatTools, calls []v1alpha1.ToolCall) (waiting []v1alpha1.WaitingCall) {
	for _, call := range calls {
		waiter, ok := r.tools[call.Name].(Waiter)
		if !ok || call.Refusal != "" || !toolpolicy.Allows(spec, call.Name) || len(waiting) == v1alpha1.MaxWaitingCalls {
			continue
		}
		if chat, seconds := waiter.WaitingFor(call.Input); seconds > 0 {
			waiting = append(waiting, v1alpha1.WaitingCall{ID: call.ID, Chat: chat, TimeoutSeconds: seconds,
				RequiresAction: call.RequiresAction})
		}
	}
	return waiting
}
