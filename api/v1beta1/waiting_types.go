// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	// MaxWaitingCalls is how many calls of one reply can wait for sub-chats: 64. Further ones are answered at once.
	MaxWaitingCalls = 64
	// DefaultWaitSeconds is how long a call waits for a sub-chat unless it says otherwise: 300.
	DefaultWaitSeconds = 300
	// MaxWaitSeconds is the longest that a call may wait for a sub-chat: 3600.
	MaxWaitSeconds = 3600
)

// WaitingCall is a tool call that is not run before a sub-chat is done, or the time is up.
type WaitingCall struct {
	// id of the call.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	ID string `json:"id"`

	// chat is the name of the sub-chat. A chat that does not exist, or is not below the one that calls, is not waited for.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Chat string `json:"chat"`

	// timeoutSeconds is how long the call waits, from when it could have been run.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +required
	TimeoutSeconds int32 `json:"timeoutSeconds"`

	// requiresAction is Approval for a call that must be approved first: it waits for the sub-chat from then on.
	// +optional
	RequiresAction RequiredAction `json:"requiresAction,omitempty"`
}

// WaitingCallStatus is a call that has no result yet because it waits for a sub-chat, and until when.
type WaitingCallStatus struct {
	WaitingCall `json:",inline"`

	// deadline is when the time is up; absent until the wait begins.
	// +optional
	Deadline *metav1.Time `json:"deadline,omitempty"`
}
