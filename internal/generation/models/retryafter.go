// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"fmt"
	"time"

	"parley.dev/parley/api/v1alpha1"
)

// NoteFailure remembers that the provider asked to wait, if the error of a call says so: no chat of this pod calls it
// before. Other pods have it from the status of the ChatModelConfig.
func (t *Target) NoteFailure(e *v1alpha1.GenerationError) {
	if e == nil || e.RetryAfter() == 0 || t.models == nil {
		return
	}
	m, until := t.models, t.models.options.Now().Add(e.RetryAfter())
	m.mu.Lock()
	defer m.mu.Unlock()
	if until.After(m.retryAfter[t.Config.Name]) {
		m.retryAfter[t.Config.Name] = until
	}
}

// askedToWait is the error of a call that is not made because the provider asked to wait; nil if it may be made. An
// attempt can reach the pod after another one has failed. The wait is rounded down, so that such attempts do not make
// it longer.
func (m *Models) askedToWait(config *v1alpha1.ChatModelConfig) *v1alpha1.GenerationError {
	m.mu.Lock()
	until := m.retryAfter[config.Name]
	m.mu.Unlock()
	if after := config.Status.RetryAfter; after != nil && after.After(until) {
		until = after.Time
	}
	left := until.Sub(m.options.Now())
	if left <= 0 {
		return nil
	}
	return &v1alpha1.GenerationError{
		Reason: v1alpha1.ErrorRateLimited, Provider: string(config.Spec.Provider), Retryable: true,
		Message: fmt.Sprintf("The provider of ChatModelConfig %s asked to wait until %s", config.Name,
			until.UTC().Format(time.RFC3339)),
		RetryAfterSeconds: new(int32(max(1, left/time.Second))),
	}
}
