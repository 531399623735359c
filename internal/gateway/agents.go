// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"fmt"
	"net/http"
	"time"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/tokencache"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

// agentTimeout bounds a request to an agent, in addition to what the request takes there.
const agentTimeout = 5 * time.Second

// agents makes clients of the agents in workspaces.
type agents struct {
	getPod    func(ctx context.Context, namespace, name string) (*corev1.Pod, error)
	tokens    *tokencache.Cache
	transport http.RoundTripper
	port      int // 0: protocol.Port
}

// of returns a client of the agent in the pod that the status of a chat's workspace names. Only the manager writes
// that. The pod must be as the status says and have an address of its own, since its agent gets a token, which is valid
// for this pod alone.
func (a *agents) of(ctx context.Context, chat *v1beta1.Chat, named *v1beta1.WorkspacePod) (*client.Client, error) {
	pod, err := a.getPod(ctx, chat.Namespace, named.Name)
	switch {
	case err != nil:
		return nil, fmt.Errorf("getting pod %s: %w", named.Name, err)
	case string(pod.UID) != named.UID || pod.Status.PodIP == "":
		return nil, fmt.Errorf("pod %s is not running", named.Name)
	case pod.Labels[podspec.LabelComponent] != podspec.ComponentWorkspace || pod.Spec.HostNetwork:
		return nil, fmt.Errorf("pod %s is no workspace with an address of its own", named.Name)
	}
	return client.New(client.Options{Address: pod.Status.PodIP, Port: a.port, Chat: string(chat.UID), Pod: named.UID,
		Transport: a.transport, Timeout: agentTimeout, Token: func(ctx context.Context) (string, error) {
			return a.tokens.Of(ctx, protocol.Audience(pod.Namespace, named.UID))
		}}), nil
}
