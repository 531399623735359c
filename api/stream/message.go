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
	// HistoryVersion that the attempt began at.
	HistoryVersion int64 `json:"historyVersion"`
	// Attempt of the part: a message with this attempt and the next version has all of it.
	Attempt int32 `json:"attempt"`
	// Seq is the number of the part within the attempt, from 1.
	Seq int64 `json:"seq"`
	// Role of the message to be.
	Role string `json:"role"`
	// Part is the part itself.
	Part parts.Part `json:"part"`
}

// MessageCommitted is the data of EventMessage.
type MessageCommitted struct {
	// HistoryVersion is the version of the history that the commit made.
	HistoryVersion int64 `json:"historyVersion"`
	// Index is the place of the message in the history, from 0.
	Index int64 `json:"index"`
	// Message is the message itself.
	Message Message `json:"message"`
}

// Message is a committed message as clients see it: without what only providers understand.
type Message struct {
	// Name of the ChatMessage.
	Name string `json:"name"`
	// UID of the ChatMessage.
	UID string `json:"uid"`
	// Role is User, Assistant, Tool, or System for a summary that the model sees in place of what came before.
	Role v1beta1.MessageRole `json:"role"`
	// Content is the text, if a person gave it as one.
	Content string `json:"content,omitempty"`
	// Parts are those of spec.parts, without what only the provider understands.
	Parts []v1beta1.MessagePart `json:"parts,omitempty"`
	// History is an imported conversation, as in spec.history.
	History []v1beta1.PriorMessage `json:"history,omitempty"`
	// Attempt that yielded a generated message, on the history version before the message's own.
	Attempt int32 `json:"attempt,omitempty"`
	// Action is what the attempt did.
	Action v1beta1.GenerationAction `json:"action,omitempty"`
	// Outcome of the attempt is Completed or Interrupted.
	Outcome v1beta1.GenerationOutcome `json:"outcome,omitempty"`
	// ReplyOutcome is how the model's reply ended: docs/reference/errors.md.
	ReplyOutcome v1beta1.ReplyOutcome `json:"replyOutcome,omitempty"`
	// FinishReason is the provider's own word for the end of the reply.
	FinishReason string `json:"finishReason,omitempty"`
	// Truncated is true for a message that was cut at what an object holds.
	Truncated bool `json:"truncated,omitempty"`
	// Model that was called.
	Model *v1beta1.ModelIdentity `json:"model,omitempty"`
	// Usage is the tokens of the call.
	Usage *v1beta1.TokenUsage `json:"usage,omitempty"`
	// Cost of the call.
	Cost *v1beta1.Cost `json:"cost,omitempty"`
	// Context is how full the model's context was: tokens, limit, replies, compacted.
	Context *v1beta1.ContextStatus `json:"context,omitempty"`
	// Compaction is what a summary stands for, as in spec.generation.compaction.
	Compaction *v1beta1.CompactionAccount `json:"compaction,omitempty"`
	// Warnings are about settings and files that the call omitted.
	Warnings []string `json:"warnings,omitempty"`
	// Decisions are what people decided about the calls whose results are in parts.
	Decisions []v1beta1.ToolDecision `json:"decisions,omitempty"`
	// Visibility is Model for a message whose text transcripts for people omit, and Users for a note.
	Visibility v1beta1.MessageVisibility `json:"visibility,omitempty"`
	// CallsCanceledReasonBefore is why calls of the reply before the message have no result.
	CallsCanceledReasonBefore v1beta1.CallsCanceledReason `json:"callsCanceledReasonBefore,omitempty"`
	// CreatedBy is who wrote what a person said, where the cluster stamps that.
	CreatedBy string `json:"createdBy,omitempty"`
	// EditedBy is who changed it last.
	EditedBy string `json:"editedBy,omitempty"`
	// CreatedAt is when the object was created. In a fork, that is when it was copied.
	CreatedAt metav1.Time `json:"createdAt"`
	// StartedAt is when a generation pod began the message, also in a fork; absent for what people and clients wrote.
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	// FinishedAt is when the generation pod was done.
	FinishedAt *metav1.MicroTime `json:"finishedAt,omitempty"`
}

// Note is the data of EventNote.
type Note struct {
	// Index of the message of the history before which the note stands, or the end.
	Index int64 `json:"index"`
	// Generation is greater for each edit.
	Generation int64 `json:"generation"`
	// Message is the note itself.
	Message Message `json:"message"`
}

// NoteDeleted is the data of EventNoteDeleted.
type NoteDeleted struct {
	// Name of the deleted note.
	Name string `json:"name"`
	// UID of the deleted note.
	UID string `json:"uid"`
}
