// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package models

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/budget"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/netguard/retry"
)

// retryAfter is the time before which a provider refuses calls.
type retryAfter struct {
	until      time.Time
	generation int64 // of the ChatModelConfig: a changed one may have another provider
}

// shortWait is how long a call waits in the pod. The clocks of pod and manager differ.
const shortWait = 2 * time.Second

// NoteFailure remembers the time to retry after, if the error has one, for all chats of this pod. Other pods read it
// from the status of the ChatModelConfig.
func (t *Target) NoteFailure(e *v1beta1.GenerationError) {
	if e == nil || e.RetryAfter() == 0 || t.models == nil { // Tests make targets without models.
		return
	}
	m, now := t.models, t.models.options.Now()
	next := retryAfter{now.Add(e.RetryAfter()), t.Config.Generation}
	m.mu.Lock()
	defer m.mu.Unlock()
	known := m.retryAfter[t.Config.Name]
	// A ChatModelConfig that is created again has generation 1: it waits for what is known to pass.
	isLater := next.generation == known.generation && next.until.After(known.until)
	if isLater || next.generation > known.generation || known.until.Before(now) {
		m.retryAfter[t.Config.Name] = next
	}
}

// MayCall is the error of a call before the time to retry after; nil if it may be made. If that time is near, one call
// of each ChatModelConfig waits for it. The others fail, so that they do not start at once: the manager spreads them.
func (t *Target) MayCall(ctx context.Context) *v1beta1.GenerationError {
	if t.models == nil {
		return nil
	}
	until := t.models.waitUntil(t.Config)
	left := until.Sub(t.models.options.Now())
	if left <= 0 {
		return nil
	}
	if left < shortWait && t.models.beginWait(t.Config.Name) {
		_ = retry.Sleep(ctx, left) // If ctx is done, so is the call.
		t.models.endWait(t.Config.Name)
		return nil
	}
	e := &v1beta1.GenerationError{
		Reason: v1beta1.ErrorRateLimited, Provider: string(t.Config.Spec.Provider), Retryable: true,
		Message: fmt.Sprintf("The provider of ChatModelConfig %s asked to wait until %s", t.Config.Name,
			until.UTC().Format(time.RFC3339)),
	}
	if seconds := int32(left / time.Second); seconds > 0 { // It is rounded down, not to prolong the wait.
		e.RetryAfterSeconds = &seconds
	}
	return e
}

// beginWait reports whether a call of the ChatModelConfig may wait, until endWait: only one does.
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

// waitUntil is the time to retry after, from this pod's calls and the newest status.
func (m *Models) waitUntil(config *v1beta1.ChatModelConfig) time.Time {
	config = cmp.Or(m.cachedConfig(config.Name), config)
	m.mu.Lock()
	known := m.retryAfter[config.Name]
	m.mu.Unlock()
	until := config.RetryAfter()
	if known.generation == config.Generation && known.until.After(until) {
		until = known.until
	}
	return until
}

// OverBudget is the error of a call that exceeds the budgets of the chat and its parents, when the chat itself has cost
// so much; nil if it may be made. The costs of other chats are those at the beginning of the attempt.
func (t *Target) OverBudget(chat *v1beta1.Chat, spent []v1beta1.Cost) *v1beta1.GenerationError {
	return budget.Refuse(chat.Status.Internal.Budgets, spent, budget.CallOf(t.Config))
}

// ErrSilent cancels a call whose provider sends nothing.
var ErrSilent = errors.New("the provider sent nothing for too long")

// GuardSilence cancels the call of the notes with ErrSilent once its provider has sent nothing for the timeout. It
// returns then, or when ctx, the call's, is done.
func GuardSilence(ctx context.Context, notes *httpguard.Notes, timeout time.Duration, cancel context.CancelCauseFunc) {
	for left := timeout; left > 0; left = timeout - notes.Silence() {
		if retry.Sleep(ctx, left) != nil {
			return
		}
	}
	cancel(ErrSilent)
}
