// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conduct

import (
	"context"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/compose"
)

// Cancel stops the turn that a message has begun, or takes the message out of the queue, and never another one's. It
// does nothing to a turn that has ended.
func (c *Conductor) Cancel(ctx context.Context, b Begun) error {
	if b.Message.Status.State == v1alpha1.MessageQueued {
		return c.withdraw(ctx, b.Message)
	}
	for range conflicts {
		if !underWay(b) {
			return nil
		}
		patch := compose.Request(v1alpha1.RequestInterrupt, c.options.Now().UTC().Format(time.RFC3339Nano))
		patch["metadata"].(map[string]any)["resourceVersion"] = b.Chat.ResourceVersion
		_, err := c.options.Client.Chats(b.Chat.Namespace).MergePatch(ctx, b.Chat.Name, patch)
		if err == nil || !apierrors.IsConflict(err) {
			return wrapped("interrupting the turn", err)
		}
		if b, err = c.Find(ctx, b.Chat.Namespace, b.Message.Name); err != nil {
			return err
		}
	}
	return conflict("chat %s is changed all the time, try again", b.Chat.Name)
}

// underWay reports whether the turn of the message is: it has begun it, or has brought it its newest results.
func underWay(b Begun) bool {
	t, results := b.Chat.Status.Turn, b.Chat.Status.Internal.Turn.Results
	return t != nil && t.Result == "" &&
		(t.Message == b.Message.Name || results != nil && results.Message == b.Message.Name)
}

// withdraw deletes a message that waits, unless it does so no more.
func (c *Conductor) withdraw(ctx context.Context, m *v1alpha1.ChatMessage) error {
	err := c.options.Client.Messages(m.Namespace).Delete(ctx, m.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &m.UID, ResourceVersion: &m.ResourceVersion}})
	return wrapped("withdrawing the message", err)
}

// Delete deletes the newest answer of a chat with its message, and the chat with the only one. Behind an older one
// others have gone on, who would lose what they said.
func (c *Conductor) Delete(ctx context.Context, b Begun) error {
	t, results := b.Chat.Status.Turn, b.Chat.Status.Internal.Turn.Results
	newest := t != nil && t.Message == b.Message.Name && results == nil && len(b.Chat.Status.Queue) == 0
	if !newest {
		return conflict("later messages follow this answer: delete chat %s, or message %s with kubectl",
			b.Chat.Name, b.Message.Name)
	}
	if t.Index > 0 {
		return wrapped("deleting the message", c.options.Client.Messages(b.Message.Namespace).Delete(ctx, b.Message.Name,
			metav1.DeleteOptions{Preconditions: &metav1.Preconditions{UID: &b.Message.UID}}))
	}
	err := c.options.Client.Chats(b.Chat.Namespace).Delete(ctx, b.Chat.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &b.Chat.UID, ResourceVersion: &b.Chat.ResourceVersion}})
	if err != nil {
		return fmt.Errorf("deleting the chat: %w", err)
	}
	return nil
}
