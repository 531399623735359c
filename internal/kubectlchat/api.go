// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package kubectlchat

import (
	"context"
	"fmt"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/apiclient"
)

// objects are Parley's in one namespace.
type objects struct {
	namespace string
	client    *apiclient.Client
}

func (o objects) messages() apiclient.Resource[v1alpha1.ChatMessage, v1alpha1.ChatMessageList] {
	return o.client.Messages(o.namespace)
}

func (o objects) chats() apiclient.Resource[v1alpha1.Chat, v1alpha1.ChatList] {
	return o.client.Chats(o.namespace)
}

func (o objects) approvals() apiclient.Resource[v1alpha1.ToolApproval, v1alpha1.ToolApprovalList] {
	return o.client.Approvals(o.namespace)
}

// annotate sets an annotation of a chat.
func (o objects) annotate(ctx context.Context, chat, key, value string) error {
	patch := map[string]any{"metadata": map[string]any{"annotations": map[string]string{key: value}}}
	if _, err := o.chats().MergePatch(ctx, chat, patch); err != nil {
		return fmt.Errorf("annotating chat %s: %w", chat, err)
	}
	return nil
}

// cutIn lets a message cut in.
func (o objects) cutIn(ctx context.Context, message string) (*v1alpha1.ChatMessage, error) {
	patch := map[string]any{"spec": map[string]any{"whenBusy": v1alpha1.WhenBusyInterrupt}}
	changed, err := o.messages().MergePatch(ctx, message, patch)
	if err != nil {
		return nil, fmt.Errorf("changing ChatMessage %s: %w", message, err)
	}
	return changed, nil
}

func (o objects) createApproval(ctx context.Context, a *v1alpha1.ToolApproval) (*v1alpha1.ToolApproval, error) {
	created, err := o.approvals().Create(ctx, a)
	if err != nil {
		return nil, fmt.Errorf("creating the ToolApproval: %w", err)
	}
	return created, nil
}
