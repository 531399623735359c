// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/internal/pods/podstate"
)

// Pods gives attempts their generation pods, and keeps account of which chat has which.
type Pods interface {
	// Assign books the chat on a pod that has room, or else on a new one, and returns its name. The error is a
	// *placement.RefusedError if the API server refuses a new one.
	Assign(ctx context.Context, chat types.NamespacedName, configs []v1beta1.ChatModelConfig,
		want placement.Want) (string, error)
	// Look says whether a pod can still do its work. It changes nothing.
	Look(ctx context.Context, pod types.NamespacedName, configs []v1beta1.ChatModelConfig) (podstate.State, error)
	// Book records which pod the chat has; empty: none.
	Book(chat types.NamespacedName, pod string)
	// Forget drops a pod that is gone.
	Forget(pod types.NamespacedName)
}

// podOf is the pod of the attempt under way.
func podOf(chat *v1beta1.Chat) types.NamespacedName {
	return types.NamespacedName{Namespace: chat.Namespace, Name: chat.Status.Generation.Pod}
}
