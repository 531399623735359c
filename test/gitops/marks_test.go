// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// everything lists all objects of all kinds in the namespace.
func everything(t *testing.T, ns string) []*unstructured.Unstructured {
	t.Helper()
	d, err := discovery.NewDiscoveryClientForConfig(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	resources, err := discovery.ServerPreferredNamespacedResources(d)
	if err != nil {
		t.Fatalf("discovering kinds: %v", err)
	}
	var all []*unstructured.Unstructured
	for _, group := range resources {
		version, err := schema.ParseGroupVersion(group.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range group.APIResources {
			if !slices.Contains([]string(resource.Verbs), "list") {
				continue
			}
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(version.WithKind(resource.Kind + "List"))
			if err := cluster.Client.List(t.Context(), list, client.InNamespace(ns)); err != nil {
				t.Fatalf("listing objects of kind %s: %v", resource.Kind, err)
			}
			for i := range list.Items {
				all = append(all, &list.Items[i])
			}
		}
	}
	return all
}

// marks are the keys of the object's labels and annotations.
func marks(o *unstructured.Unstructured) []string {
	var keys []string
	for key := range o.GetLabels() {
		keys = append(keys, "label "+key)
	}
	for key := range o.GetAnnotations() {
		keys = append(keys, "annotation "+key)
	}
	return keys
}

// podsOf are the generation pods that the chats have now.
func podsOf(t *testing.T, ns string, chats ...string) []string {
	t.Helper()
	var pods []string
	for _, chat := range chats {
		pod := field(t, liveIn(t, ns, chat), "status", "generation", "pod")
		if !slices.Contains(pods, pod) {
			pods = append(pods, pod)
		}
	}
	return pods
}

func TestGeneratedObjectsCarryNoTrackingMarks(t *testing.T) {
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		url := serveModel(t)
		git := checkOut(t, ns, "chats.yaml").edited(t, modelConfig, func(o *unstructured.Unstructured) {
			set(t, o, url, "spec", "baseURL")
		}).edited(t, "Chat/triage", func(o *unstructured.Unstructured) {
			set(t, o, map[string]any{"allow": []any{"current_time"}}, "spec", "tools")
			// Marks that a team's own tooling may set, beside those of the tool under test.
			o.SetLabels(map[string]string{argoLabel: "other", fluxGroup + "/name": "other", "team": "on-call"})
			o.SetAnnotations(map[string]string{"config.kubernetes.io/origin": "path: chats.yaml"})
		})
		what.apply(t, git)
		running(t, ns, "Chat/triage", "Chat/broken")
		for _, pod := range podsOf(t, ns, "Chat/triage", "Chat/broken") {
			runPod(t, ns, pod)
		}
		wait(t, ns, "Answered", append(messages, "ChatMessage/triage-prompt")...)
		wait(t, ns, "AuthenticationFailed", "Chat/broken")

		var users []string
		var created = map[string]int{}
		all := everything(t, ns)
		for _, o := range all {
			if slices.Contains(git.ids(), id(o)) {
				users = append(users, marks(o)...)
			}
		}
		for _, o := range all {
			if slices.Contains(git.ids(), id(o)) {
				continue
			}
			created[o.GetKind()]++
			for _, mark := range marks(o) {
				if slices.Contains(users, mark) {
					t.Errorf("%s carries %s, as objects do that Git holds", id(o), mark)
				}
			}
		}
		for kind, least := range map[string]int{
			"ChatMessage": 2 + 3*4, "Pod": 1, "ServiceAccount": 1, "Role": 1, "RoleBinding": 1, "NetworkPolicy": 1,
		} {
			if created[kind] < least {
				t.Errorf("%d objects of kind %s were created, so that too little was tried", created[kind], kind)
			}
		}
		if len(users) < 6 {
			t.Errorf("Git's objects carry only %v", users)
		}
		unchanged(t, what, ns, git)
		ownFieldsOnly(t, ns, git, what.managers())
	})
}
