// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package generationpod

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// tokened is a chat whose MCP server gets a key of the Secret.
func tokened(name, secret string, change ...func(*v1beta1.Chat)) *v1beta1.Chat {
	return chattest.In("ns", chattest.Chat(name, append(change, func(c *v1beta1.Chat) {
		c.Spec.MCPServers = []v1beta1.MCPServer{{Name: "s", URL: "https://mcp.example.com",
			HeadersFrom: []v1beta1.MCPHeaderSource{{Name: "Authorization",
				SecretKeyRef: v1beta1.SecretKeyReference{Name: secret, Key: "token"}}}}}
	})...))
}

func archived(c *v1beta1.Chat) { c.Status.Archived = true }

// secretsOf are the Secrets that the pod mounts.
func secretsOf(pod *corev1.Pod) (names []string) {
	for _, volume := range pod.Spec.Volumes {
		if volume.Secret != nil {
			names = append(names, volume.Secret.SecretName)
		}
	}
	return names
}

func TestAssignedPodMountsSecretsOfTheChatsServers(t *testing.T) {
	s, r := begin(t, working(), tokened("c", "tracker"), tokened("old", "gone", archived))
	name, err := r.Pool.Assign(t.Context(), types.NamespacedName{Namespace: "ns", Name: "c"}, nil, placement.Want{})
	if err != nil || name == "pod" {
		t.Fatalf("it got pod %s: %v", name, err)
	}
	var pod corev1.Pod
	check.OK(t, s.Client.Get(t.Context(), client.ObjectKey{Namespace: "ns", Name: name}, &pod))
	if got := secretsOf(&pod); len(got) != 1 || got[0] != "tracker" {
		t.Errorf("it mounts %v", got)
	}
	if _, err := r.Reconcile(t.Context(), request); err != nil || len(s.Writes()) != 2 {
		t.Errorf("the pod without the Secret stays: %v, %v", s.Writes(), err)
	}
}
