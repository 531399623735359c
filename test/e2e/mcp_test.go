// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/modelserver"
)

// everything is an image of the reference server of MCP, as npm has it.
var everything = cmp.Or(os.Getenv("MCP_IMAGE"), "parley.dev/mcp-everything:dev")

// serveEverything runs the reference server in the namespace, and returns its address.
func (w *world) serveEverything(transport string) string {
	w.t.Helper()
	name := "mcp-" + strings.ToLower(transport)
	pod := modelPod(w.ns)
	pod.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: w.ns}
	container := &pod.Spec.Containers[0]
	container.Name, container.Image, container.Command = name, everything, []string{"/bin/node"}
	container.Args = []string{"node_modules/@modelcontextprotocol/server-everything/dist/index.js", transport}
	container.Env = []corev1.EnvVar{{Name: "PORT", Value: "3001"}}
	container.ReadinessProbe = &corev1.Probe{PeriodSeconds: 1,
		ProbeHandler: corev1.ProbeHandler{TCPSocket: &corev1.TCPSocketAction{Port: intstr.FromInt32(3001)}}}
	w.create(pod)
	w.eventually("the MCP server answers", func() bool {
		return c.Get(w.t.Context(), client.ObjectKeyFromObject(pod), pod) == nil && pod.Status.PodIP != "" &&
			len(pod.Status.ContainerStatuses) == 1 && pod.Status.ContainerStatuses[0].Ready
	})
	return "http://" + pod.Status.PodIP + ":3001"
}

// callsEverything is a model that calls tools of servers of both transports, and says what it got.
func callsEverything() modelserver.Script {
	return modelserver.Script{Rules: []modelserver.Rule{
		// The image comes as a user's message, behind which there are no results.
		{Match: modelserver.Match{ToolOffered: "every__echo", LastUserText: "Try everything", ToolResults: new(0)},
			Reply: modelserver.Reply{Steps: []modelserver.Step{
				modelserver.Call("every__echo", `{"message":"hello"}`), modelserver.Call("every__get-sum", `{"a":2,"b":3}`),
				modelserver.Call("every__get-tiny-image", `{}`),
				modelserver.Call("every__get-structured-content", `{"location":"Chicago"}`),
				modelserver.Call("old__echo", `{"message":"by SSE"}`), modelserver.Call("every__get-env", `{}`),
			}}},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Done.")}}},
	}}
}

func TestAModelCallsToolsOfTheReferenceServerOfMCP(t *testing.T) {
	w := newWorld(t, callsEverything())
	current, old := w.serveEverything("streamableHttp"), w.serveEverything("sse")
	w.create(&v1alpha1.Chat{ObjectMeta: w.meta("c"), Spec: v1alpha1.ChatSpec{Prompt: "Try everything.",
		MCPServers: []v1alpha1.MCPServer{
			{Name: "every", URL: current + "/mcp", Tools: &v1alpha1.MCPToolFilter{Deny: []string{"get-env"}}},
			{Name: "old", URL: old + "/sse", Transport: v1alpha1.MCPSSE},
			{Name: "gone", URL: "http://192.0.2.1:3001/mcp", ConnectTimeoutSeconds: new(int32(1))},
		}}})
	w.ready("c", 4)
	results := map[string]v1alpha1.ToolResult{}
	for _, result := range w.results("c") {
		results[result.Name] = result
	}
	for name, want := range map[string]string{
		"every__echo": "Echo: hello", "every__get-sum": "5", "every__get-tiny-image": "is attached]",
		"every__get-structured-content": `"temperature"`, "old__echo": "Echo: by SSE",
	} {
		if got := results[name]; got.IsError || !strings.Contains(got.Output, want) {
			t.Errorf("%s returned %+v", name, got)
		}
	}
	if denied := results["every__get-env"]; !denied.IsError || !strings.Contains(denied.Output, "does not exist") {
		t.Errorf("the tool that is denied returned %+v", denied)
	}
	if files := w.files("c"); len(files) != 1 {
		t.Errorf("the files are %v", files)
	}
	said := meta.FindStatusCondition(w.chat("c").Status.Conditions, v1alpha1.ConditionMCPServersUnavailable)
	if said == nil || !strings.Contains(said.Message, "gone (") {
		t.Errorf("of the server that is not there the chat says %+v", said)
	}
}
