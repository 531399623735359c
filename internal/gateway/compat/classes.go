// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package compat

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/internal/kube/apiclient"
)

// newChat is the chat that a request creates, as the classes of its namespace allow it. For a caller who may not list
// them, the API server decides about the chat as it is.
func newChat(ctx context.Context, in *apiclient.Client, r *turn.Request, name string) (*v1beta1.Chat, error) {
	chat := r.NewChat(name)
	if chat.Spec.Retention == nil && chat.Spec.Limits == nil {
		return chat, nil
	}
	classes, err := in.Classes(r.Namespace).List(ctx, metav1.ListOptions{})
	if apierrors.IsForbidden(err) {
		return chat, nil
	}
	if err != nil {
		return nil, fmt.Errorf("listing the classes: %w", err)
	}
	turn.AdaptToClasses(chat, classes.Items)
	return chat, nil
}
