// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import "time"

// DefaultDebugExpiry is how long a recording is kept unless expireAfterSeconds says otherwise: 24 hours.
const DefaultDebugExpiry = 24 * time.Hour

// AnnotationExpiresAt is when a ChatDebugStep is deleted, as RFC 3339. It is an annotation, so that the operator can delete
// recordings without ever reading one, and so that a person can keep one for longer. Without it a recording goes
// DefaultDebugExpiry after it was created.
const AnnotationExpiresAt = "parley.dev/expires-at"

// DebugSettings turn the recording of model calls on.
type DebugSettings struct {
	// enabled records every model call in a ChatDebugStep, with the prompt and the reply. Default false.
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// expireAfterSeconds is how long a recording is kept. Default 86400, a day.
	// +kubebuilder:validation:Minimum=60
	// +kubebuilder:validation:Maximum=2592000
	// +optional
	ExpireAfterSeconds *int32 `json:"expireAfterSeconds,omitempty"`
}

// On tells whether calls are recorded. Settings that are not there record nothing.
func (s *DebugSettings) On() bool { return s != nil && s.Enabled }

// ExpireAfter is expireAfterSeconds, or DefaultDebugExpiry.
func (s *DebugSettings) ExpireAfter() time.Duration {
	if s == nil || s.ExpireAfterSeconds == nil {
		return DefaultDebugExpiry
	}
	return time.Duration(*s.ExpireAfterSeconds) * time.Second
}
