// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
)

// Summary is the data of EventAdded and EventModified: what a list shows of a chat.
type Summary struct {
	// Name of the Chat.
	Name string `json:"name"`
	// UID of the Chat.
	UID types.UID `json:"uid"`
	// CreatedAt is when the Chat was created.
	CreatedAt metav1.Time `json:"createdAt"`
	// CreatedBy is who created the Chat, where the cluster stamps that.
	CreatedBy string `json:"createdBy,omitempty"`
	// Class is the name of the ChatClass that the chat uses.
	Class string `json:"class,omitempty"`
	// Parent is the name of the chat above; absent for a root chat.
	Parent string `json:"parent,omitempty"`
	// ForkOf is the name of the chat that this one continues; absent for a chat that is no fork.
	ForkOf string `json:"forkOf,omitempty"`
	// Root is the chat at the top of the family: its name and uid, and the workspace that the family shares.
	Root *v1beta1.FamilyRoot `json:"root,omitempty"`

	// Phase of the chat.
	Phase v1beta1.ChatPhase `json:"phase,omitempty"`
	// Ready is the status of the chat's Ready condition.
	Ready metav1.ConditionStatus `json:"ready,omitempty"`
	// Reason of the Ready condition.
	Reason string `json:"reason,omitempty"`
	// Message of the Ready condition.
	Message string `json:"message,omitempty"`
	// Since is when the Ready condition changed.
	Since *metav1.Time `json:"since,omitempty"`

	// Title of the chat.
	Title string `json:"title,omitempty"`
	// LastReply is how the newest reply begins.
	LastReply string `json:"lastReply,omitempty"`
	// Model that answered.
	Model string `json:"model,omitempty"`
	// Length is the number of committed messages.
	Length int64 `json:"length"`
	// Queued is the number of messages that wait.
	Queued int `json:"queued,omitempty"`
	// Turn is the turn under way, or else the last one.
	Turn *Turn `json:"turn,omitempty"`
	// Cost is what all messages cost, by currency.
	Cost []v1beta1.Cost `json:"cost,omitempty"`
	// Archived is true once the chat is archived.
	Archived bool `json:"archived,omitempty"`
	// Suspended is true while the chat starts no step.
	Suspended bool `json:"suspended,omitempty"`
}

// Turn is what a list shows of a turn.
type Turn struct {
	// Message is the name of the User message that began it.
	Message string `json:"message"`
	// StartedAt is when it began.
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	// Result is how it ended; absent while it is under way.
	Result v1beta1.TurnResult `json:"result,omitempty"`
	// Summary says in a few words what became of it.
	Summary string `json:"summary,omitempty"`
}

// Deleted is the data of EventDeleted.
type Deleted struct {
	// Name of the deleted chat.
	Name string `json:"name"`
	// UID of the deleted chat.
	UID types.UID `json:"uid"`
}
