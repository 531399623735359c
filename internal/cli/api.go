// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"fmt"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/text/compose"
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

// request asks a chat for something once, by an annotation.
func (o objects) request(ctx context.Context, chat string, kind v1alpha1.RequestKind, token string) error {
	if _, err := o.chats().MergePatch(ctx, chat, compose.Request(kind, token)); err != nil {
		return fmt.Errorf("annotating chat %s: %w", chat, err)
	}
	return nil
}

// cutIn lets a message cut in.
func (o objects) cutIn(ctx context.Context, message string) (*v1alpha1.ChatMessage, error) {
	changed, err := o.messages().MergePatch(ctx, message, compose.Promotion())
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
