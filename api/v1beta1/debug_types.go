// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"strconv"
	"strings"
	"time"
)

// DefaultDebugExpiry is how long a recording is kept unless expireAfterSeconds says otherwise: 24 hours.
const DefaultDebugExpiry = 24 * time.Hour

// AnnotationExpiresAt is when a ChatDebugStep is deleted, as RFC 3339. It is an annotation, so that the operator can
// delete recordings without ever reading one, and so that a person can keep one for longer. Without it a recording goes
// DefaultDebugExpiry after it was created.
const AnnotationExpiresAt = "parley.dev/expires-at"

// AnnotationInProgress stands on a ChatDebugStep while its newest attempt is under way: the generation pod that makes
// it, the number of the attempt and when it was written, as RFC 3339. The operator ends a recording whose pod is gone.
const AnnotationInProgress = "parley.dev/in-progress"

// AnnotationHistory is the version of the history that a ChatDebugStep was made for, and how many messages that had, as
// VERSION/LENGTH. The operator deletes a recording of messages that have left the history.
const AnnotationHistory = "parley.dev/history"

// ParseDebugHistory reads the value of AnnotationHistory. It reports false for what is none.
func ParseDebugHistory(value string) (version, length int64, ok bool) {
	before, after, _ := strings.Cut(value, "/")
	version, err := strconv.ParseInt(before, 10, 64)
	length, wrong := strconv.ParseInt(after, 10, 64)
	return version, length, err == nil && wrong == nil
}

// LabelRecordings on a Namespace says whether its chats may be recorded: RecordingsDisabled keeps every ChatDebugStep
// out, whatever Chats and ChatModelConfigs ask for.
const LabelRecordings = "parley.dev/recordings"

// RecordingsDisabled is the value of LabelRecordings that keeps recordings out of a namespace.
const RecordingsDisabled = "disabled"

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

// On reports whether calls are recorded. Settings that are not there record nothing.
func (s *DebugSettings) On() bool { return s != nil && s.Enabled }

// ExpireAfter is expireAfterSeconds, or DefaultDebugExpiry.
func (s *DebugSettings) ExpireAfter() time.Duration {
	if s == nil || s.ExpireAfterSeconds == nil {
		return DefaultDebugExpiry
	}
	return time.Duration(*s.ExpireAfterSeconds) * time.Second
}
