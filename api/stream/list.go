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
	Name      string      `json:"name"`
	UID       types.UID   `json:"uid"`
	CreatedAt metav1.Time `json:"createdAt"`
	// Parent is the name of the chat above; absent for a root chat.
	Parent string `json:"parent,omitempty"`
	// Root is the chat at the top of the family, with the workspace that the family shares.
	Root *v1beta1.FamilyRoot `json:"root,omitempty"`

	Phase v1beta1.ChatPhase `json:"phase,omitempty"`
	// Ready is the status of the chat's Ready condition, with its Reason and Message and the time since it is so.
	Ready   metav1.ConditionStatus `json:"ready,omitempty"`
	Reason  string                 `json:"reason,omitempty"`
	Message string                 `json:"message,omitempty"`
	Since   *metav1.Time           `json:"since,omitempty"`

	Title string `json:"title,omitempty"`
	// LastReply is how the newest reply begins.
	LastReply string `json:"lastReply,omitempty"`
	Model     string `json:"model,omitempty"`
	// Length is the number of committed messages, and Queued of those that wait.
	Length int64 `json:"length"`
	Queued int   `json:"queued,omitempty"`
	// Turn is the turn under way, or else the last one.
	Turn *Turn `json:"turn,omitempty"`
	// Cost is what all messages cost, by currency.
	Cost []v1beta1.Cost `json:"cost,omitempty"`
	// Archived is true once the chat is archived, and Suspended while it is not to begin a step.
	Archived  bool `json:"archived,omitempty"`
	Suspended bool `json:"suspended,omitempty"`
}

// Turn is what a list shows of a turn.
type Turn struct {
	// Message is the name of the User message that began it.
	Message   string            `json:"message"`
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`
	// Result is how it ended; absent while it is under way.
	Result v1beta1.TurnResult `json:"result,omitempty"`
	// Summary says in a few words what became of it.
	Summary string `json:"summary,omitempty"`
}

// Deleted is the data of EventDeleted.
type Deleted struct {
	Name string    `json:"name"`
	UID  types.UID `json:"uid"`
}
