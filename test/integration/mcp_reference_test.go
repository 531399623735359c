// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/mcpkinds"
)

var (
	ofLifecycle = schema.GroupKind{Group: "mcp.x-k8s.io", Kind: "MCPServer"}
	ofToolHive  = schema.GroupKind{Group: "toolhive.stacklok.dev", Kind: "MCPServer"}
)

// installMCP brings the kinds of a group into the cluster for the test.
func installMCP(t *testing.T, group string) {
	t.Helper()
	check.OK(t, mcpkinds.Install(cluster.Config, group))
	t.Cleanup(func() {
		if err := mcpkinds.Uninstall(cluster.Config, group); err != nil {
			t.Error(err)
		}
	})
}

// referring is a chat that refers to object tracker of the kind.
func referring(ns string, kind schema.GroupKind) *v1beta1.Chat {
	chat := newChat(ns, "c", "please")
	chat.Spec.MCPServers = []v1beta1.MCPServer{{Name: "tracker",
		ServerRef: &v1beta1.MCPServerReference{Group: kind.Group, Kind: kind.Kind, Name: "tracker"}}}
	return chat
}

// says is that the controller of the object says where its server is.
func (s foreign) says(url string) {
	s.t.Helper()
	s.o.Object["status"] = map[string]any{"address": map[string]any{"url": url},
		"conditions": mcpkinds.Conditions("Accepted", "Verified")}
	if err := cluster.Client.Status().Update(s.t.Context(), s.o); err != nil {
		s.t.Fatal(err)
	}
}

// foreign is an object of another project.
type foreign struct {
	t *testing.T
	o *unstructured.Unstructured
}

// waitsForServers waits until the chat says that it waits for an MCP server, because of this.
func waitsForServers(t *testing.T, ns, why string) {
	t.Helper()
	eventually(t, "the chat waits: "+why, func() bool {
		ready := meta.FindStatusCondition(chatIn(t, ns, "c").Status.Conditions, v1beta1.ConditionReady)
		return v1beta1.ReasonOf(ready) == v1beta1.ReasonWaitingForMCPServers && strings.Contains(ready.Message, why)
	})
}

func TestModelCallWaitsUntilReferencedServerIsReady(t *testing.T) {
	t.Parallel()
	installMCP(t, ofLifecycle.Group)
	ns := namespace(t)
	create(t, referring(ns, ofLifecycle))
	waitsForServers(t, ns, "MCPServer tracker: there is none in the namespace")
	server := foreign{t, mcpkinds.New(ofLifecycle, ns, "tracker", nil, nil)}
	create(t, server.o)
	waitsForServers(t, ns, "MCPServer tracker: it has no condition Verified yet")
	server.says("http://10.0.0.1:8080/mcp")
	chat := assigned(t, ns, "c", 1, 1)
	if told := chat.Status.Internal.MCPServers; len(told) != 1 || told[0].URL != "http://10.0.0.1:8080/mcp" {
		t.Fatalf("the attempt is told %+v", told)
	}

	// What changes counts from the next step.
	server.says("http://10.0.0.2:8080/mcp")
	answers(t, chat, chattest.Calls("call_1"))
	chat = assigned(t, ns, "c", 2, 1)
	if told := chat.Status.Internal.MCPServers; len(told) != 1 || told[0].URL != "http://10.0.0.2:8080/mcp" {
		t.Errorf("the next step is told %+v", told)
	}
}

func TestModelCallSkipsServerOfUninstalledKind(t *testing.T) {
	ns := parallel(t)
	create(t, referring(ns, ofToolHive))
	chat := assigned(t, ns, "c", 1, 1)
	told := chat.Status.Internal.MCPServers
	if len(told) != 1 || told[0].Reason != v1beta1.MCPReferenceNotFound ||
		told[0].Message != "MCPServer tracker: the cluster does not have this kind" {
		t.Fatalf("the attempt is told %+v", told)
	}

	// The kind comes with a project that is installed later.
	installMCP(t, ofToolHive.Group)
	server := mcpkinds.New(ofToolHive, ns, "tracker", map[string]any{"transport": "sse"}, nil)
	create(t, server)
	server.Object["status"] = map[string]any{"phase": "Ready", "url": "http://10.0.0.1:8080/sse#tracker"}
	check.OK(t, cluster.Client.Status().Update(t.Context(), server))
	answers(t, chat, chattest.Says("I could not look."))
	waitForHistory(t, ns, "c", v1beta1.ChatWaiting, "c-1-1", 2)
	create(t, say(ns, "c", "again"))
	told = assigned(t, ns, "c", 3, 1).Status.Internal.MCPServers
	if len(told) != 1 || told[0].URL != "http://10.0.0.1:8080/sse" || told[0].Transport != v1beta1.MCPSSE {
		t.Errorf("the next turn is told %+v", told)
	}
}
