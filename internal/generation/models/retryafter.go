// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"context"
	"fmt"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/netguard/retry"
)

// retryAfter is a wait that a provider asked for.
type retryAfter struct {
	until time.Time
	// generation of the ChatModelConfig that was called: a changed one may lead elsewhere.
	generation int64
}

// shortWait is how long a call waits in the pod for the time to come: 2 s. The clocks of pod and manager differ.
const shortWait = 2 * time.Second

// NoteFailure remembers that the provider asked to wait, if the error of a call says so: no chat of this pod calls it
// before. Other pods have it from the status of the ChatModelConfig.
func (t *Target) NoteFailure(e *v1alpha1.GenerationError) {
	if e == nil || e.RetryAfter() == 0 || t.models == nil { // Tests make targets of their own.
		return
	}
	m, until := t.models, t.models.options.Now().Add(e.RetryAfter())
	m.mu.Lock()
	defer m.mu.Unlock()
	if until.After(m.retryAfter[t.Config.Name].until) {
		m.retryAfter[t.Config.Name] = retryAfter{until, t.Config.Generation}
	}
}

// MayCall is the error of a call that is not made because the provider asked to wait; nil if it may be made. An attempt
// can reach the pod after another one has failed. One of each ChatModelConfig waits if that is a matter of seconds. The
// others fail, so that they do not start at once: the manager lets calls start slowly after a wait.
func (t *Target) MayCall(ctx context.Context) *v1alpha1.GenerationError {
	if t.models == nil {
		return nil
	}
	until := t.models.waitUntil(t.Config)
	left := until.Sub(t.models.options.Now())
	if left <= 0 {
		return nil
	}
	if left < shortWait && t.models.beginWait(t.Config.Name) {
		_ = retry.Sleep(ctx, left) // If ctx is done, the call fails by that.
		t.models.endWait(t.Config.Name)
		return nil
	}
	e := &v1alpha1.GenerationError{
		Reason: v1alpha1.ErrorRateLimited, Provider: string(t.Config.Spec.Provider), Retryable: true,
		Message: fmt.Sprintf("The provider of ChatModelConfig %s asked to wait until %s", t.Config.Name,
			until.UTC().Format(time.RFC3339)),
	}
	if seconds := int32(left / time.Second); seconds > 0 { // Rounded down: it must not prolong the wait.
		e.RetryAfterSeconds = &seconds
	}
	return e
}

// beginWait reports whether no call of the ChatModelConfig waits yet; then this one does, until endWait.
func (m *Models) beginWait(config string) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiting[config] {
		return false
	}
	m.waiting[config] = true
	return true
}

func (m *Models) endWait(config string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.waiting, config)
}

// waitUntil is the time before which the model is not called, by this pod's calls and by the newest status.
func (m *Models) waitUntil(config *v1alpha1.ChatModelConfig) time.Time {
	if object, ok, err := m.options.Configs.GetByKey(m.options.Namespace + "/" + config.Name); err == nil && ok {
		if newest, ok := object.(*v1alpha1.ChatModelConfig); ok {
			config = newest
		}
	}
	m.mu.Lock()
	known := m.retryAfter[config.Name]
	m.mu.Unlock()
	until := time.Time{}
	if known.generation == config.Generation {
		until = known.until
	}
	if after := config.RetryAfter(); after.After(until) {
		until = after
	}
	return until
}
