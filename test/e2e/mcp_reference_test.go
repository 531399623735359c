// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"

	authorizationv1 "k8s.io/api/authorization/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/mcpkinds"
	"parley.dev/parley/test/kit/testcluster"
)

// lifecycle is the kind of the MCP lifecycle operator.
var lifecycle = schema.GroupKind{Group: "mcp.x-k8s.io", Kind: "MCPServer"}

// withKinds has the kinds of the group in the cluster during the test.
func withKinds(t *testing.T, group string) {
	t.Helper()
	cfg, err := ctrl.GetConfig()
	if err == nil {
		err = mcpkinds.Install(cfg, group)
	}
	check.OK(t, err)
	t.Cleanup(func() {
		if err := mcpkinds.Uninstall(cfg, group); err != nil {
			t.Error(err)
		}
	})
}

// withRights gives the manager the rights of a component of config/mcp during the test.
func withRights(t *testing.T, component, group, resource string) {
	t.Helper()
	raw, err := os.ReadFile(testcluster.Path("config", "mcp", component, "rights.yaml"))
	check.OK(t, err)
	for decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(raw), 4096); ; {
		o := &unstructured.Unstructured{}
		if err := decoder.Decode(o); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		check.OK(t, c.Create(t.Context(), o))
		t.Cleanup(func() { _ = c.Delete(context.Background(), o) })
	}
	eventually(t, "the manager has the rights", func() bool {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               "system:serviceaccount:parley-system:parley-manager",
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: "watch"},
		}}
		return c.Create(t.Context(), review) == nil && review.Status.Allowed
	})
}

func TestChatUsesServerManagedByAnotherProject(t *testing.T) {
	echo := []mcpCall{{tool: "calendar__echo", arguments: `{"message":"hello"}`}}
	w := newWorld(t, callsAll("calendar__echo", echo))
	referring := func(name string) *v1alpha1.Chat {
		return &v1alpha1.Chat{ObjectMeta: w.meta(name), Spec: v1alpha1.ChatSpec{Prompt: "Try everything.",
			MCPServers: []v1alpha1.MCPServer{{Name: "calendar", ServerRef: &v1alpha1.MCPServerReference{
				Group: lifecycle.Group, Kind: lifecycle.Kind, Name: "calendar"}}}}}
	}
	without := func(chat string, reason v1alpha1.MCPServerReason) {
		t.Helper()
		w.create(referring(chat))
		w.ready(chat, 2)
		said := meta.FindStatusCondition(w.chat(chat).Status.Conditions, v1alpha1.ConditionMCPServersUnavailable)
		if said == nil || said.Reason != string(reason) {
			t.Errorf("chat %s says %+v", chat, said)
		}
	}
	without("early", v1alpha1.MCPReferenceNotFound)
	withKinds(t, lifecycle.Group)
	server := mcpkinds.New(lifecycle, w.ns, "calendar", nil, nil)
	w.create(server)
	without("forbidden", v1alpha1.MCPReferenceForbidden)

	withRights(t, "lifecycle-operator", lifecycle.Group, "mcpservers")
	w.create(referring("c"))
	w.eventually("the chat waits for the server", func() bool {
		ready := meta.FindStatusCondition(w.chat("c").Status.Conditions, v1alpha1.ConditionReady)
		return v1alpha1.ReasonOf(ready) == v1alpha1.ReasonWaitingForMCPServers
	})
	server.Object["status"] = map[string]any{"conditions": mcpkinds.Conditions("Verified"),
		"address": map[string]any{"url": w.serveEverything("streamableHttp") + "/mcp"}}
	check.OK(t, c.Status().Update(t.Context(), server))
	w.ready("c", 4)
	if results := w.results("c"); len(results) != 1 || !strings.Contains(results[0].Output, "Echo: hello") {
		t.Errorf("the results are %+v", results)
	}
}
