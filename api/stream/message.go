// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
)

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
	Name    string                `json:"name"`
	UID     string                `json:"uid"`
	Role    v1beta1.MessageRole   `json:"role"`
	Content string                `json:"content,omitempty"`
	Parts   []v1beta1.MessagePart `json:"parts,omitempty"`
	// History is what was said before, in a conversation that was led elsewhere.
	History []v1beta1.PriorMessage `json:"history,omitempty"`
	// Attempt that yielded a generated message, on the history version before the message's own.
	Attempt int32                     `json:"attempt,omitempty"`
	Action  v1beta1.GenerationAction  `json:"action,omitempty"`
	Outcome v1beta1.GenerationOutcome `json:"outcome,omitempty"`
	// ReplyOutcome is how the model's reply ended, FinishReason the provider's word for that.
	ReplyOutcome v1beta1.ReplyOutcome   `json:"replyOutcome,omitempty"`
	FinishReason string                 `json:"finishReason,omitempty"`
	Truncated    bool                   `json:"truncated,omitempty"`
	Model        *v1beta1.ModelIdentity `json:"model,omitempty"`
	Usage        *v1beta1.TokenUsage    `json:"usage,omitempty"`
	Cost         *v1beta1.Cost          `json:"cost,omitempty"`
	// Context is how full the model's context was.
	Context *v1beta1.ContextStatus `json:"context,omitempty"`
	// Compaction says what a System message stands for.
	Compaction *v1beta1.CompactionAccount `json:"compaction,omitempty"`
	// Warnings are about settings and files that were left out of the call.
	Warnings []string `json:"warnings,omitempty"`
	// Decisions are what people decided about the calls whose results are in Parts.
	Decisions []v1beta1.ToolDecision `json:"decisions,omitempty"`
	// Visibility is Model for a message whose text transcripts for people leave out, and People for a note.
	Visibility v1beta1.MessageVisibility `json:"visibility,omitempty"`
	// CallsCanceledReasonBefore is why calls of the reply before the message have no result.
	CallsCanceledReasonBefore v1beta1.CallsCanceledReason `json:"callsCanceledReasonBefore,omitempty"`
	// CreatedBy and EditedBy are who wrote and last changed what a person said, where the cluster stamps that.
	CreatedBy string      `json:"createdBy,omitempty"`
	EditedBy  string      `json:"editedBy,omitempty"`
	CreatedAt metav1.Time `json:"createdAt"`
}

// Note is the data of EventNote.
type Note struct {
	// Index of the message of the history before which the note stands.
	Index int64 `json:"index"`
	// Generation of the note's spec: one that was edited is told again, with another generation.
	Generation int64   `json:"generation"`
	Message    Message `json:"message"`
}

// NoteDeleted is the data of EventNoteDeleted.
type NoteDeleted struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}
