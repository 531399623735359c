// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/step"
)

// withdrawn ends the attempt of a chat that this pod has no longer, or that is deleted.
func (r *Runner) withdrawn(ctx context.Context, o any) {
	if last, ok := o.(cache.DeletedFinalStateUnknown); ok {
		o = last.Obj
	}
	chat, ok := o.(*v1alpha1.Chat)
	if !ok {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	current := r.attempts[string(chat.UID)]
	if current == nil {
		return
	}
	delete(r.attempts, string(chat.UID))
	if current.chat.Status.Generation.Action != v1alpha1.ActionExecuteTools {
		current.abandon(errMovedOn)
		return
	}
	r.running.Go(func() { current.leaveCalls(ctx) })
}

// leaveCalls ends an attempt that runs calls of tools. The watch does not tell a chat that another pod has now from one
// that is deleted: the next attempt takes up what the calls of the former have begun, and nobody does so for the
// latter, so that these are interrupted. Nothing is written of either.
func (a *attempt) leaveCalls(ctx context.Context) {
	cause := errMovedOn
	if a.chatIsGone(ctx) {
		cause = step.ErrInterrupted
	}
	a.abandon(cause)
}

// goneTimeout bounds the question whether a chat is gone: 2 s. Without an answer it is taken for another pod's, since
// that one's calls must not be ended.
const goneTimeout = 2 * time.Second

// chatIsGone reports whether the chat of the attempt is deleted, or is being deleted.
func (a *attempt) chatIsGone(ctx context.Context) bool {
	asking, cancel := context.WithTimeout(ctx, goneTimeout)
	defer cancel()
	o := &a.runner.options
	now, err := o.Client.Chats(o.Namespace).Get(asking, a.chat.Name)
	switch {
	case apierrors.IsNotFound(err):
		return true
	case err != nil:
		a.log.DebugContext(ctx, "whether the chat is gone is not known", slog.Any("error", err))
		return false
	}
	return now.UID != a.chat.UID || !now.DeletionTimestamp.IsZero()
}
