// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/stream/parts"
)

// Names of the events.
const (
	EventMessagePart    = "message_part"
	EventMessage        = "message"
	EventNote           = "note"
	EventNoteDeleted    = "note_deleted"
	EventQueueUpdate    = "queue_update"
	EventStatus         = "status"
	EventError          = "error"
	EventRequiresAction = "requires_action"
	EventRetry          = "retry"
	EventPreviewReset   = "preview_reset"
	EventHistoryReset   = "history_reset"
	EventDeleted        = "deleted"
	EventClosing        = "closing"
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
	// History is what was said before, in a conversation that was led elsewhere.
	History []v1alpha1.PriorMessage `json:"history,omitempty"`
	// Attempt that yielded a generated message, on the history version before the message's own.
	Attempt      int32                      `json:"attempt,omitempty"`
	Action       v1alpha1.GenerationAction  `json:"action,omitempty"`
	Outcome      v1alpha1.GenerationOutcome `json:"outcome,omitempty"`
	FinishReason string                     `json:"finishReason,omitempty"`
	Truncated    bool                       `json:"truncated,omitempty"`
	Model        *v1alpha1.ModelIdentity    `json:"model,omitempty"`
	Usage        *v1alpha1.TokenUsage       `json:"usage,omitempty"`
	Cost         *v1alpha1.Cost             `json:"cost,omitempty"`
	// Context is how full the model's context was.
	Context *v1alpha1.ContextStatus `json:"context,omitempty"`
	// Compaction says what a System message stands for.
	Compaction *v1alpha1.CompactionAccount `json:"compaction,omitempty"`
	// Warnings are about settings and files that were left out of the call.
	Warnings []string `json:"warnings,omitempty"`
	// Visibility is Model for a message whose text transcripts for people leave out, and People for a note.
	Visibility v1alpha1.MessageVisibility `json:"visibility,omitempty"`
	// CallsGivenUpBefore is why calls of the reply before the message have no result.
	CallsGivenUpBefore v1alpha1.CallsGivenUp `json:"callsGivenUpBefore,omitempty"`
	// CreatedBy and EditedBy are who wrote and last changed what a person said, where the cluster stamps that.
	CreatedBy string      `json:"createdBy,omitempty"`
	EditedBy  string      `json:"editedBy,omitempty"`
	CreatedAt metav1.Time `json:"createdAt"`
}

// QueueUpdate is the data of EventQueueUpdate.
type QueueUpdate struct {
	// Queue has the messages that wait, next first.
	Queue []QueuedMessage `json:"queue"`
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
	// Pod is the generation pod that has the attempt.
	Pod    string `json:"pod,omitempty"`
	Length int64  `json:"length"`
	Model  string `json:"model,omitempty"`
	// ContextStart is the index of the first message that the model sees.
	ContextStart int64 `json:"contextStart,omitempty"`
	// Turn is the name of the User message whose turn is under way, or was the last one.
	Turn string `json:"turn,omitempty"`
	// Result is how it ended; absent while it is under way.
	Result v1alpha1.TurnResult `json:"result,omitempty"`
	// CallsGivenUp is why calls of the turn's newest reply have no result, until something follows that says it.
	CallsGivenUp v1alpha1.CallsGivenUp `json:"callsGivenUp,omitempty"`
}

// Error is the data of EventError.
type Error struct {
	HistoryVersion int64                `json:"historyVersion"`
	Reason         v1alpha1.ErrorReason `json:"reason"`
	// Message says what is wrong, and Advice what to do about it.
	Message    string `json:"message,omitempty"`
	Advice     string `json:"advice,omitempty"`
	Provider   string `json:"provider,omitempty"`
	StatusCode int32  `json:"statusCode,omitempty"`
	// Retryable is whether the same call may succeed later, with nothing changed.
	Retryable bool `json:"retryable"`
}

// Text is the message and the advice, as people read them together.
func (e *Error) Text() string {
	return (&v1alpha1.GenerationError{Message: e.Message, Advice: e.Advice}).Text()
}

// RequiresAction is the data of EventRequiresAction.
type RequiresAction struct {
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
	// At is when the next one begins, and DelayMS how long after the failure that is, in milliseconds.
	At      metav1.MicroTime `json:"at"`
	DelayMS int64            `json:"delayMs"`
	// Reason and Message say why it failed.
	Reason  v1alpha1.ErrorReason `json:"reason"`
	Message string               `json:"message,omitempty"`
	// Provider that answered, and the HTTP status of its answer, if there was one.
	Provider   string `json:"provider,omitempty"`
	StatusCode int32  `json:"statusCode,omitempty"`
	// ModelConfig is the name of the ChatModelConfig that is asked next.
	ModelConfig string `json:"modelConfig,omitempty"`
}

// PreviewReset is the data of EventPreviewReset.
type PreviewReset struct {
	HistoryVersion int64 `json:"historyVersion"`
	Attempt        int32 `json:"attempt"`
}

// Closing is the data of EventClosing: the gateway ends the stream, though the chat continues. As an error it is why a
// stream ended.
type Closing struct {
	// Reason is one of the constants below.
	Reason  string `json:"reason"`
	Message string `json:"message,omitempty"`
}

// Reasons why the gateway ends a stream.
const (
	// ClosingExpired means that the token has expired.
	ClosingExpired = "TokenExpired"
	// ClosingWithdrawn means that the caller may not listen any more.
	ClosingWithdrawn = "AccessWithdrawn"
	// ClosingUnverified means that the API server has not said for a minute whether the caller may.
	ClosingUnverified = "AccessUnverified"
	// ClosingShutdown means that the gateway ends.
	ClosingShutdown = "ShuttingDown"
)

func (c *Closing) Error() string { return c.Reason + ": " + c.Message }

// Event is the event that tells a client.
func (c *Closing) Event() (Event, error) { return encoded(EventClosing, "", c) }

// encoded is an event with data.
func encoded(name, id string, data any) (Event, error) {
	raw, err := json.Marshal(data)
	if err != nil {
		return Event{}, fmt.Errorf("encoding event %s: %w", name, err)
	}
	return Event{Name: name, ID: id, Data: raw}, nil
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
		s.Attempt, s.Action, s.Pod = g.Attempt, g.Action, g.Pod
	}
	if chat.Status.Turn != nil {
		s.Turn, s.Result, s.CallsGivenUp = chat.Status.Turn.Message, chat.Status.Turn.Result, chat.Status.Turn.CallsGivenUp
	}
	return s
}

func retryOf(chat *v1alpha1.Chat) Retry {
	r := chat.Status.Retry
	retry := Retry{
		HistoryVersion: chat.Status.History.Version, Attempt: r.Attempt, At: r.At, Reason: r.Reason, Message: r.Message,
		Provider: r.Provider, StatusCode: r.StatusCode, ModelConfig: r.ModelConfig,
	}
	if !r.FailedAt.IsZero() {
		retry.DelayMS = max(0, r.At.Sub(r.FailedAt.Time).Milliseconds())
	}
	return retry
}

func errorOf(chat *v1alpha1.Chat) Error {
	e := chat.Status.LastError
	return Error{
		HistoryVersion: chat.Status.History.Version,
		Reason:         e.Reason, Message: e.Message, Advice: e.Advice, Provider: e.Provider, StatusCode: e.StatusCode,
		Retryable: e.Retryable,
	}
}

func actionOf(chat *v1alpha1.Chat) RequiresAction {
	required := chat.Status.RequiresAction
	return RequiresAction{HistoryVersion: chat.Status.History.Version, Deadline: required.Deadline,
		Message: required.Message, ToolCalls: required.ToolCalls}
}
