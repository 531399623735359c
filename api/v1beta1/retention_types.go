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
	// one whose last turn failed. A suspended chat is kept. status.idleSince says since when it rests, status.expiresAt
	// when it is deleted. Default: it is kept.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	// +optional
	DeleteAfterSeconds *int32 `json:"deleteAfterSeconds,omitempty"`

	// deleteFailedAfterSeconds is the same for a chat whose last turn failed. Default: deleteAfterSeconds.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=315360000
	// +optional
	DeleteFailedAfterSeconds *int32 `json:"deleteFailedAfterSeconds,omitempty"`

	// archive writes the chat and all below it to object storage before it is deleted after a time at rest, or because its
	// class keeps enough others. Until that has succeeded the chat is kept, and its condition ArchiveUnavailable says why.
	// Default: false.
	// +optional
	Archive *bool `json:"archive,omitempty"`
}

// Archives reports whether the chat is archived before it is deleted by its retention.
func (r *ChatRetention) Archives() bool { return r != nil && r.Archive != nil && *r.Archive }

// DeleteAfter is how long a chat is kept at rest whose last turn failed or did not; zero: for good.
func (r *ChatRetention) DeleteAfter(failed bool) time.Duration {
	switch {
	case r == nil:
		return 0
	case failed && r.DeleteFailedAfterSeconds != nil:
		return time.Duration(*r.DeleteFailedAfterSeconds) * time.Second
	case r.DeleteAfterSeconds == nil:
		return 0
	}
	return time.Duration(*r.DeleteAfterSeconds) * time.Second
}

// Deletes reports whether some chats are deleted after a time at rest.
func (r *ChatRetention) Deletes() bool { return r.DeleteAfter(false) > 0 || r.DeleteAfter(true) > 0 }

// ChatKeep is how many chats at rest are kept. Of more, those that have rested for longest are deleted.
type ChatKeep struct {
	// chats is how many chats of the class are kept at rest. Sub-chats and suspended chats are not counted.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	Chats *int32 `json:"chats,omitempty"`

	// failedChats is how many chats of the class are kept at rest whose last turn failed. Default: chats counts them, too.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=1000000
	// +optional
	FailedChats *int32 `json:"failedChats,omitempty"`
}

// Expires reports whether the class says for how long chats are kept at rest, or how many.
func (s *ChatClassSpec) Expires() bool {
	return s.Keep != nil || s.Defaults.Retention.Deletes() || s.Restrictions != nil && s.Restrictions.Retention.Deletes()
}
