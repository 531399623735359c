// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"time"
)

// ChatRetention says for how long an unused chat is kept.
type ChatRetention struct {
	// deleteAfterSeconds is how long after it came to rest a chat is deleted, with its messages, its sub-chats and its
	// workspace, as kubectl delete would do it. At most ten years. It rests while neither it nor a chat below it has
	// anything to do: no turn is under way, no message, question or approval is open. An archived chat rests, and so does
	// one whose last turn failed. status.idleSince says since when, status.expiresAt when it goes. Default: it is kept.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	// +optional
	DeleteAfterSeconds *int32 `json:"deleteAfterSeconds,omitempty"`
}

// DeleteAfter is how long a chat is kept that rests; zero: for good.
func (r *ChatRetention) DeleteAfter() time.Duration {
	if r == nil || r.DeleteAfterSeconds == nil {
		return 0
	}
	return time.Duration(*r.DeleteAfterSeconds) * time.Second
}

// Expires reports whether the class says for how long chats are kept that rest.
func (s *ChatClassSpec) Expires() bool {
	return s.Defaults.Retention.DeleteAfter() > 0 || s.Restrictions != nil && s.Restrictions.Retention.DeleteAfter() > 0
}
