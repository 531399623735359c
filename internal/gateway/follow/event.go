// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"encoding/json"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/parts"
)

// Names of the events.
const (
	EventMessagePart  = "message_part"
	EventMessage      = "message"
	EventQueueUpdate  = "queue_update"
	EventStatus       = "status"
	EventError        = "error"
	EventAction       = "action_required"
	EventRetry        = "retry"
	EventPreviewReset = "preview_reset"
	EventHistoryReset = "history_reset"
	EventDeleted      = "deleted"
)

// Event is one event of the stream.
type Event struct {
	// Name of the event, one of the constants above.
	Name string
	// ID to resume behind; empty for events that are not part of the story but describe the present.
	ID string
	// Data is a JSON object.
	Data json.RawMessage
}

// MessagePart is the data of EventMessagePart.
type MessagePart struct {
	HistoryVersion int64      `json:"historyVersion"`
	Attempt        int32      `json:"attempt"`
	Seq            int64      `json:"seq"`
	Role           string     `json:"role"`
	Part           parts.Part `json:"part"`
}

// MessageCommitted is the data of EventMessage.
type MessageCommitted struct {
	HistoryVersion int64   `json:"historyVersion"`
	Index          int64   `json:"index"`
	Message        Message `json:"message"`
}

// Message is a committed message as clients see it: without what only providers understand.
type Message struct {
	Name    string                 `json:"name"`
	UID     string                 `json:"uid"`
	Role    v1alpha1.MessageRole   `json:"role"`
	Content string                 `json:"content,omitempty"`
	Parts   []v1alpha1.MessagePart `json:"parts,omitempty"`
	// Attempt that yielded a generated message, on the history version before the message's own.
	Attempt      int32                      `json:"attempt,omitempty"`
	Outcome      v1alpha1.GenerationOutcome `json:"outcome,omitempty"`
	FinishReason string                     `json:"finishReason,omitempty"`
	Truncated    bool                       `json:"truncated,omitempty"`
	Model        *v1alpha1.ModelIdentity    `json:"model,omitempty"`
	Usage        *v1alpha1.TokenUsage       `json:"usage,omitempty"`
	CreatedAt    metav1.Time                `json:"createdAt"`
}

// QueueUpdate is the data of EventQueueUpdate.
type QueueUpdate struct {
	Queue []string `json:"queue"`
}

// Status is the data of EventStatus.
type Status struct {
	Phase v1alpha1.ChatPhase `json:"phase,omitempty"`
	// Ready is the status of the chat's Ready condition, with its Reason and Message.
	Ready   metav1.ConditionStatus `json:"ready,omitempty"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`

	HistoryVersion int64                     `json:"historyVersion"`
	Attempt        int32                     `json:"attempt,omitempty"`
	Action         v1alpha1.GenerationAction `json:"action,omitempty"`
	Length         int64                     `json:"length"`
	Model          string                    `json:"model,omitempty"`
	// ContextStart is the index of the first message that the model sees.
	ContextStart int64 `json:"contextStart,omitempty"`
	// Turn is the name of the User message whose turn is under way, or was the last one.
	Turn string `json:"turn,omitempty"`
	// Result is how it ended; absent while it is under way.
	Result v1alpha1.TurnResult `json:"result,omitempty"`
}

// Error is the data of EventError.
type Error struct {
	HistoryVersion int64                `json:"historyVersion"`
	Reason         v1alpha1.ErrorReason `json:"reason"`
	Message        string               `json:"message,omitempty"`
	Provider       string               `json:"provider,omitempty"`
	StatusCode     int32                `json:"statusCode,omitempty"`
}

// ActionRequired is the data of EventAction.
type ActionRequired struct {
	HistoryVersion int64 `json:"historyVersion"`
	// Deadline is when the calls are cancelled.
	Deadline metav1.Time `json:"deadline"`
	// Message is the name of the reply that made the calls; it has their whole input.
	Message string `json:"message,omitempty"`
	// ToolCalls that wait, with what was decided about them so far.
	ToolCalls []v1alpha1.PendingToolCall `json:"toolCalls"`
}

// Retry is the data of EventRetry: an attempt has failed, and what was shown of it is void once the next one begins.
type Retry struct {
	HistoryVersion int64 `json:"historyVersion"`
	// Attempt that failed.
	Attempt int32 `json:"attempt"`
	// At is when the next one begins.
	At metav1.MicroTime `json:"at"`
	// Reason and Message say why it failed.
	Reason  v1alpha1.ErrorReason `json:"reason"`
	Message string               `json:"message,omitempty"`
	// ModelConfig is the name of the ChatModelConfig that is asked next.
	ModelConfig string `json:"modelConfig,omitempty"`
}

// PreviewReset is the data of EventPreviewReset.
type PreviewReset struct {
	HistoryVersion int64 `json:"historyVersion"`
	Attempt        int32 `json:"attempt"`
}

func statusOf(chat *v1alpha1.Chat) Status {
	s := Status{
		Phase:          chat.Status.Phase,
		HistoryVersion: chat.Status.History.Version,
		Length:         chat.Status.History.Length,
		Model:          chat.Status.Model,
		ContextStart:   chat.Status.History.ContextStart,
	}
	for _, c := range chat.Status.Conditions {
		if c.Type == v1alpha1.ConditionReady {
			s.Ready, s.Reason, s.Message = c.Status, c.Reason, c.Message
		}
	}
	if g := chat.Status.Generation; g != nil {
		s.Attempt, s.Action = g.Attempt, g.Action
	}
	if chat.Status.Turn != nil {
		s.Turn, s.Result = chat.Status.Turn.Message, chat.Status.Turn.Result
	}
	return s
}

func queueOf(chat *v1alpha1.Chat) []string {
	names := make([]string, 0, len(chat.Status.Queue))
	for _, q := range chat.Status.Queue {
		names = append(names, q.Name)
	}
	return names
}

func retryOf(chat *v1alpha1.Chat) Retry {
	r := chat.Status.Retry
	return Retry{
		HistoryVersion: chat.Status.History.Version, Attempt: r.Attempt, At: r.At, Reason: r.Reason, Message: r.Message, ModelConfig: r.ModelConfig,
	}
}

func errorOf(chat *v1alpha1.Chat) Error {
	e := chat.Status.LastError
	return Error{
		HistoryVersion: chat.Status.History.Version,
		Reason:         e.Reason, Message: e.Text(), Provider: e.Provider, StatusCode: e.StatusCode,
	}
}

func actionOf(chat *v1alpha1.Chat) ActionRequired {
	required := chat.Status.RequiresAction
	a := ActionRequired{HistoryVersion: chat.Status.History.Version, Deadline: required.Deadline, ToolCalls: required.ToolCalls}
	if chat.Status.Turn != nil {
		a.Message = chat.Status.Turn.CallingMessage
	}
	return a
}
