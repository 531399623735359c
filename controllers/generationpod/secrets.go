// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package generationpod

import (
	"context"
	"fmt"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/index"
	"parley.dev/parley/internal/pods/podspec"
)

// ServerKeys returns what reads the keys of Secrets that the chats of a namespace, and their ChatClasses, name for MCP
// servers.
func ServerKeys(reader client.Reader) func(context.Context, string) ([]v1alpha1.SecretKeyReference, error) {
	return func(ctx context.Context, namespace string) ([]v1alpha1.SecretKeyReference, error) {
		var chats v1alpha1.ChatList
		err := reader.List(ctx, &chats, client.InNamespace(namespace),
			client.MatchingFields{index.ChatsWithSecrets: index.WithSecrets}, client.UnsafeDisableDeepCopy)
		if err != nil {
			return nil, fmt.Errorf("listing the chats that name Secrets: %w", err)
		}
		var classes v1alpha1.ChatClassList
		if err := reader.List(ctx, &classes, client.InNamespace(namespace), client.UnsafeDisableDeepCopy); err != nil {
			return nil, fmt.Errorf("listing ChatClasses: %w", err)
		}
		return podspec.KeysOfServers(classes.Items, chats.Items), nil
	}
}
