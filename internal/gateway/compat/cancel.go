// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/history"
	"parley.dev/parley/internal/text/compose"
)

// cancel stops the turn that a message has begun, or withdraws a message that the chat has not started. It does nothing
// to a turn that has ended, or to another one.
func (b *backend) cancel(ctx context.Context, e exchange) (withdrawn bool, err error) {
	for range maxConflicts {
		withdrawn = history.Waits(e.chat, e.message)
		switch {
		case withdrawn:
			err = wrapped("withdrawing the message", b.withdraw(ctx, e.message))
		case e.isRunning():
			err = wrapped("interrupting the turn", b.interrupt(ctx, e.chat))
		}
		if !apierrors.IsConflict(err) {
			return withdrawn, err
		}
		if e, err = b.find(ctx, e.chat.Namespace, e.message.Name); err != nil {
			return false, err
		}
	}
	return false, conflict("chat %s is changed all the time, try again", e.chat.Name)
}

// withdraw deletes a message that is unchanged.
func (b *backend) withdraw(ctx context.Context, m *v1beta1.ChatMessage) error {
	return b.Client.Messages(m.Namespace).Delete(ctx, m.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion}})
}

// interrupt stops the turn of a chat that is unchanged.
func (b *backend) interrupt(ctx context.Context, chat *v1beta1.Chat) error {
	patch := compose.Request(v1beta1.RequestInterrupt, b.Now().UTC().Format(time.RFC3339Nano))
	patch["metadata"].(map[string]any)["resourceVersion"] = chat.ResourceVersion
	_, err := b.Client.Chats(chat.Namespace).MergePatch(ctx, chat.Name, patch)
	return err
}

// isRunning reports whether the running turn is that of the message, or has its results.
func (e exchange) isRunning() bool {
	t, results := e.chat.Status.Turn, e.chat.Status.Internal.Turn.Results
	return t != nil && t.Result == "" &&
		(t.Message == e.message.Name || results != nil && results.Message == e.message.Name)
}

// remove deletes the message of the newest answer of a chat, or the chat if it is the only one. Later messages would be
// deleted with an older one.
func (b *backend) remove(ctx context.Context, e exchange) error {
	t, results := e.chat.Status.Turn, e.chat.Status.Internal.Turn.Results
	isNewest := t != nil && t.Message == e.message.Name && results == nil && len(e.chat.Status.Queue) == 0
	if !isNewest {
		return conflict("later messages follow this answer: delete chat %s, or message %s with kubectl",
			e.chat.Name, e.message.Name)
	}
	if t.Index > 0 {
		return wrapped("deleting the message", b.Client.Messages(e.message.Namespace).Delete(ctx, e.message.Name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &e.message.UID}}))
	}
	return wrapped("deleting the chat", b.Client.Chats(e.chat.Namespace).Delete(ctx, e.chat.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &e.chat.UID, ResourceVersion: &e.chat.ResourceVersion}}))
}
