// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
)

var kinds = []string{"Chat", "ChatMessage", "ChatModelConfig"}

// live reads all of Parley's objects in the namespace, by id.
func live(t *testing.T, ns string) map[string]*unstructured.Unstructured {
	t.Helper()
	all := map[string]*unstructured.Unstructured{}
	for _, kind := range kinds {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind + "List"))
		if err := cluster.Client.List(t.Context(), list, client.InNamespace(ns)); err != nil {
			t.Fatalf("listing objects of kind %s: %v", kind, err)
		}
		for i := range list.Items {
			all[id(&list.Items[i])] = &list.Items[i]
		}
	}
	return all
}

// liveIn reads one object.
func liveIn(t *testing.T, ns, name string) *unstructured.Unstructured {
	t.Helper()
	o := live(t, ns)[name]
	if o == nil {
		t.Fatalf("namespace %s has no %s", ns, name)
	}
	return o
}

func versions(t *testing.T, ns string) map[string]string {
	t.Helper()
	all := map[string]string{}
	for name, o := range live(t, ns) {
		all[name] = o.GetResourceVersion()
	}
	return all
}

// ready is the Ready condition of an object: empty if there is none.
func ready(o *unstructured.Unstructured) (status, reason string) {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == v1beta1.ConditionReady {
			status, _ = c["status"].(string)
			reason, _ = c["reason"].(string)
		}
	}
	return status, reason
}

// wait waits until each of the objects is Ready, or not, for the reason.
func wait(t *testing.T, ns, reason string, ids ...string) {
	t.Helper()
	for _, name := range ids {
		var last *unstructured.Unstructured
		t.Cleanup(func() {
			if t.Failed() && last != nil {
				t.Logf("%s when waiting for %s ended: %v", name, reason, last.Object["status"])
			}
		})
		eventually(t, name+" says "+reason, func() bool {
			last = live(t, ns)[name]
			if last == nil {
				return false
			}
			_, got := ready(last)
			return got == reason
		})
	}
}

// failing waits until each of the objects says that a person is needed.
func failing(t *testing.T, ns string, ids ...string) {
	t.Helper()
	for _, name := range ids {
		eventually(t, name+" says that a person is needed", func() bool {
			o := live(t, ns)[name]
			if o == nil {
				return false
			}
			status, _ := ready(o)
			return status == "False"
		})
	}
}

// open waits until each of the objects says that work is under way or waits for something that will come.
func open(t *testing.T, ns string, ids ...string) {
	t.Helper()
	for _, name := range ids {
		eventually(t, name+" is open", func() bool {
			o := live(t, ns)[name]
			if o == nil {
				return false
			}
			status, _ := ready(o)
			return status == "Unknown"
		})
	}
}

// running waits until each of the chats has a generation pod to answer it.
func running(t *testing.T, ns string, chats ...string) {
	t.Helper()
	for _, name := range chats {
		eventually(t, name+" has a generation pod", func() bool {
			o := live(t, ns)[name]
			return o != nil && field(t, o, "status", "generation", "pod") != ""
		})
	}
}

// field is the text of a field of an object; empty if it is not set.
func field(t *testing.T, o *unstructured.Unstructured, path ...string) string {
	t.Helper()
	value, found, err := unstructured.NestedFieldNoCopy(o.Object, path...)
	if err != nil {
		t.Fatal(err)
	}
	if !found {
		return ""
	}
	return fmt.Sprint(value)
}

// unchanged checks that the tool, asked again, finds nothing to do and does nothing.
func unchanged(t *testing.T, what tool, ns string, git repository) {
	t.Helper()
	if drifted := what.drift(t, git); len(drifted) > 0 {
		t.Errorf("drift: %v", drifted)
	}
	// The operator may just be writing the status of a message; a tool that writes on each round never passes.
	eventually(t, "a further round changes no resourceVersion", func() bool {
		before := versions(t, ns)
		if changed := what.apply(t, git); len(changed) > 0 {
			t.Fatalf("a further round changed %v", changed)
		}
		return maps.Equal(before, versions(t, ns))
	})
}

// ownFieldsOnly checks that, of what Git holds, the operator has written status alone, and that spec and metadata have
// no other writers than the expected.
func ownFieldsOnly(t *testing.T, ns string, git repository, managers []string) {
	t.Helper()
	all := live(t, ns)
	for _, want := range git {
		o := all[id(want)]
		if o == nil {
			t.Errorf("%s is not there", id(want))
			continue
		}
		statusSeen := false
		for _, entry := range o.GetManagedFields() {
			var fields map[string]any
			if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
				t.Fatal(err)
			}
			switch {
			case entry.Manager == operator:
				statusSeen = true
				if keys := slices.Collect(maps.Keys(fields)); entry.Subresource != "status" ||
					!slices.Equal(keys, []string{"f:status"}) {
					t.Errorf("%s: the operator manages %v through %q", id(want), keys, entry.Subresource)
				}
			case !slices.Contains(managers, entry.Manager):
				t.Errorf("%s: %s manages %v", id(want), entry.Manager, fields)
			}
		}
		if !statusSeen {
			t.Errorf("%s: the operator has written no status, so that nothing was tried", id(want))
		}
	}
}
