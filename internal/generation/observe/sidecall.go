// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"context"
	"errors"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/debug"
	"parley.dev/parley/internal/generation/models"
)

// SideCall observes what is asked for beside an attempt, such as a title. Its calls have a recording of their own,
// named after the action.
type SideCall struct {
	observer  *Observer
	recording *debug.Recording
	purpose   purpose
}

// SideCall begins to observe an action beside the attempt that the chat's status holds. The author created the message
// of the turn.
func (o *Observer) SideCall(chat *v1alpha1.Chat, action v1alpha1.GenerationAction, author string) *SideCall {
	b := &SideCall{
		observer: o, recording: o.options.Recorder.Begin(chat, action),
		purpose: purpose{chatUID: string(chat.UID), action: action},
	}
	b.recording.By(author)
	return b
}

// Model is the target's model, whose calls are observed.
func (b *SideCall) Model(t *models.Target) fantasy.LanguageModel {
	return b.observer.model(t, b.recording, b.purpose)
}

// End ends the recording. ctx is that of the calls.
func (b *SideCall) End(ctx context.Context, failure *v1alpha1.GenerationError) {
	status := v1alpha1.DebugError
	switch {
	case failure == nil:
		status = v1alpha1.DebugCompleted
	case errors.Is(ctx.Err(), context.Canceled):
		status = v1alpha1.DebugInterrupted
	}
	b.recording.End(status, failure)
}
