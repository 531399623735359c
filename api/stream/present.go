// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// QueueUpdate is the data of EventQueueUpdate.
type QueueUpdate struct {
	// Queue has the messages that wait, next first.
	Queue []QueuedMessage `json:"queue"`
}

// QueuedMessage is a message that waits for the turn to end.
type QueuedMessage struct {
	// Name of the ChatMessage.
	Name string `json:"name"`
	// Interrupts is true for a message that interrupts.
	Interrupts bool `json:"interrupts,omitempty"`
	// Preview is how the message begins: one line of at most 100 characters, an ellipsis at its end if it continues,
	// without control characters. Absent for a message of files alone or for the model alone,
	// and if it cannot be read now.
	Preview string `json:"preview,omitempty"`
	// Model is the name of the ChatModelConfig that it names for its turn; absent: the chat's.
	Model string `json:"model,omitempty"`
	// WhenBusy is what it does to the running turn; absent: Queue.
	WhenBusy v1beta1.WhenBusy `json:"whenBusy,omitempty"`
	// CreatedAt is when it was created; absent if the message cannot be read now.
	CreatedAt *metav1.Time `json:"createdAt,omitempty"`
	// HeldUntil is when it is released at the latest, while someone edits it; absent if no one does.
	HeldUntil *metav1.Time `json:"heldUntil,omitempty"`
}

// Status is the data of EventStatus.
type Status struct {
	// Phase of the chat.
	Phase v1beta1.ChatPhase `json:"phase,omitempty"`
	// Ready is the status of the chat's Ready condition.
	Ready metav1.ConditionStatus `json:"ready,omitempty"`
	// Reason of the Ready condition.
	Reason string `json:"reason,omitempty"`
	// Message of the Ready condition.
	Message string `json:"message,omitempty"`

	// Parent is the name of the chat above; absent for a root chat.
	Parent string `json:"parent,omitempty"`
	// Root is the chat at the top of the family: its name and uid, and the workspace that the family shares.
	Root *v1beta1.FamilyRoot `json:"root,omitempty"`

	// HistoryVersion is the version of the history.
	HistoryVersion int64 `json:"historyVersion"`
	// Attempt under way.
	Attempt int32 `json:"attempt,omitempty"`
	// Action is what the attempt does.
	Action v1beta1.GenerationAction `json:"action,omitempty"`
	// Pod is the generation pod that has the attempt.
	Pod string `json:"pod,omitempty"`
	// Length is the number of committed messages.
	Length int64 `json:"length"`
	// Model that answered last, or is answering.
	Model string `json:"model,omitempty"`
	// Mode restricts what the model may do now; absent: nothing does, or the plan is approved.
	Mode v1beta1.ChatMode `json:"mode,omitempty"`
	// ContextStart is the index of the first message that the model sees.
	ContextStart int64 `json:"contextStart,omitempty"`
	// Turn is the name of the User message whose turn is under way, or was the last one. A message is answered once turn
	// is its name and result is present. Just after that, ready may still describe the turn before.
	Turn string `json:"turn,omitempty"`
	// Result is how it ended; absent while it is under way.
	Result v1beta1.TurnResult `json:"result,omitempty"`
	// CallsCanceledReason is why calls of the turn's newest reply have no result, until something follows that says it.
	CallsCanceledReason v1beta1.CallsCanceledReason `json:"callsCanceledReason,omitempty"`
	// Wait is what the chat waits for; absent while it waits for nothing but messages.
	Wait *v1beta1.ChatWait `json:"wait,omitempty"`
	// Warnings are the other conditions of the chat that are True, such as MCPServersUnavailable.
	Warnings []Warning `json:"warnings,omitempty"`
}

// Warning is a condition that keeps no turn from continuing.
type Warning struct {
	// Type of the condition.
	Type string `json:"type"`
	// Reason of the condition.
	Reason string `json:"reason"`
	// Message of the condition.
	Message string `json:"message,omitempty"`
}

// Error is the data of EventError.
type Error struct {
	// HistoryVersion that the turn failed at.
	HistoryVersion int64 `json:"historyVersion"`
	// Reason is one of docs/reference/errors.md.
	Reason v1beta1.ErrorReason `json:"reason"`
	// Message says what is wrong.
	Message string `json:"message,omitempty"`
	// Advice says what to do about it.
	Advice string `json:"advice,omitempty"`
	// Provider that answered.
	Provider string `json:"provider,omitempty"`
	// StatusCode is the HTTP status of its answer.
	StatusCode int32 `json:"statusCode,omitempty"`
	// Action that failed, such as Compact; empty where the turn failed before it had a next action.
	Action v1beta1.GenerationAction `json:"action,omitempty"`
	// Retryable is whether the same call may succeed later, with nothing changed.
	Retryable bool `json:"retryable"`
}

// Text is the message and the advice, as people read them together.
func (e *Error) Text() string {
	return (&v1beta1.GenerationError{Message: e.Message, Advice: e.Advice}).Text()
}

// RequiresAction is the data of EventRequiresAction.
type RequiresAction struct {
	// HistoryVersion that the turn waits at.
	HistoryVersion int64 `json:"historyVersion"`
	// Deadline is when the calls are cancelled.
	Deadline metav1.Time `json:"deadline"`
	// Message is the name of the reply that made the calls. It has the input that is too large for toolCalls.
	Message string `json:"message,omitempty"`
	// ToolCalls that wait, with what was decided about them so far, as in status.requiresAction.toolCalls.
	ToolCalls []v1beta1.PendingToolCall `json:"toolCalls"`
}

// Retry is the data of EventRetry: an attempt has failed, and what was shown of it is void once the next one begins.
type Retry struct {
	// HistoryVersion that the attempt began at.
	HistoryVersion int64 `json:"historyVersion"`
	// Attempt that failed.
	Attempt int32 `json:"attempt"`
	// Action is what the attempt did.
	Action v1beta1.GenerationAction `json:"action,omitempty"`
	// At is when the next attempt begins.
	At metav1.MicroTime `json:"at"`
	// DelayMS is how long after the failure that is, in milliseconds.
	DelayMS int64 `json:"delayMs"`
	// Reason of the failure.
	Reason v1beta1.ErrorReason `json:"reason"`
	// Message says why the attempt failed.
	Message string `json:"message,omitempty"`
	// Provider that answered.
	Provider string `json:"provider,omitempty"`
	// StatusCode is the HTTP status of its answer, if there was one.
	StatusCode int32 `json:"statusCode,omitempty"`
	// ModelConfig is the name of the ChatModelConfig that is asked next.
	ModelConfig string `json:"modelConfig,omitempty"`
}

// PreviewReset is the data of EventPreviewReset.
type PreviewReset struct {
	// HistoryVersion that the attempt began at.
	HistoryVersion int64 `json:"historyVersion"`
	// Attempt whose parts are void.
	Attempt int32 `json:"attempt"`
}
