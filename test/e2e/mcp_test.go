// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"cmp"
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// everything is an image of the reference server of MCP, as npm has it.
var everything = cmp.Or(os.Getenv("MCP_IMAGE"), "parley.dev/mcp-everything:dev")

// serveMCP runs a server of that image in the namespace, and returns its address.
func (w *world) serveMCP(name, command string, args ...string) string {
	w.t.Helper()
	pod := modelPod(w.ns)
	pod.ObjectMeta = metav1.ObjectMeta{Name: name, Namespace: w.ns}
	container := &pod.Spec.Containers[0]
	container.Name, container.Image, container.Command, container.Args = name, everything, []string{command}, args
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

// serveEverything runs the reference server, which knows sessions.
func (w *world) serveEverything(transport string) string {
	w.t.Helper()
	return w.serveMCP("mcp-"+strings.ToLower(transport), "/bin/node",
		"node_modules/@modelcontextprotocol/server-everything/dist/index.js", transport)
}

// serveSDK runs the server that the Go SDK is tested with, which knows no sessions.
func (w *world) serveSDK() string {
	w.t.Helper()
	return w.serveMCP("mcp-sdk", "/bin/everything-server", "--http=:3001")
}

// mcpCall is a call of a tool, and what its result holds.
type mcpCall struct {
	tool, arguments string
	isError         bool
	says            string
}

const (
	declined  = "[The server asked people for input while the call ran. That was declined"
	noModel   = "the server asks for a model or for files, which Parley does not offer to servers"
	outdated  = "cannot be sent while serving a request on protocol version 2026-07-28"
	sdk, npm  = "sdk__test_", "npm__"
	inputTool = sdk + "input_required_result_"
)

// callsOfMCP are one of each kind that the two servers have tools for, and one by SSE.
var callsOfMCP = []mcpCall{
	{npm + "echo", `{"message":"hello"}`, false, "Echo: hello"},
	{npm + "get-sum", `{"a":2,"b":3}`, false, "The sum of 2 and 3 is 5."},
	{npm + "get-sum", `{"a":"two"}`, true, "Invalid"},
	{npm + "get-tiny-image", `{}`, false, "is attached]"},
	{npm + "get-annotated-message", `{"messageType":"error","includeImage":false}`, false, "Error: Operation failed"},
	{npm + "get-structured-content", `{"location":"Chicago"}`, false, `"temperature"`},
	{npm + "get-resource-links", `{"count":2}`, false, "[resource demo://resource/dynamic/text/2: Text Resource 2]"},
	{npm + "get-resource-reference", `{"resourceType":"Text","resourceId":1}`, false, "This is a plaintext resource"},
	{npm + "trigger-long-running-operation", `{"duration":1,"steps":2}`, false, "Duration: 1 seconds, Steps: 2."},
	{npm + "trigger-elicitation-request", `{}`, false, declined},
	{npm + "trigger-url-elicitation", `{"url":"https://example.com"}`, false, declined},
	{npm + "toggle-simulated-logging", `{}`, false, "Started simulated"},
	{npm + "simulate-research-query", `{"topic":"x"}`, true, "requires task augmentation"},
	{npm + "get-env", `{}`, true, "does not exist"}, // Its entry denies it.
	{"old__echo", `{"message":"by SSE"}`, false, "Echo: by SSE"},
	{sdk + "simple_text", `{}`, false, "This is a simple text response"},
	{sdk + "image_content", `{}`, false, "is attached]"},
	{sdk + "audio_content", `{}`, false, "models do not get audio]"},
	{sdk + "embedded_resource", `{}`, false, "This is an embedded resource"},
	{sdk + "multiple_content_types", `{}`, false, "[resource test://embedded-in-multiple]"},
	{sdk + "tool_with_logging", `{}`, false, "executed successfully"},
	{sdk + "tool_with_progress", `{}`, false, "call-"},
	{sdk + "error_handling", `{}`, true, "this tool intentionally returns an error"},
	{sdk + "reconnection", `{}`, false, "Reconnection test completed successfully"},
	{sdk + "x_mcp_header", `{"region":"eu","level":3}`, false, "region=eu"},
	{sdk + "missing_capability", `{}`, true, "sampling capability required"},
	{sdk + "sampling", `{"prompt":"x"}`, true, outdated},
	{sdk + "elicitation", `{"message":"x"}`, true, outdated},
	{inputTool + "sampling", `{}`, true, noModel},
	{inputTool + "list_roots", `{}`, true, noModel},
}

// callsAll is a model that makes the calls, if it is offered the tool, and then says that it is done.
func callsAll(offered string, calls []mcpCall) modelserver.Script {
	steps := make([]modelserver.Step, 0, len(calls))
	for _, call := range calls {
		steps = append(steps, modelserver.Call(call.tool, call.arguments))
	}
	return modelserver.Script{Rules: []modelserver.Rule{
		// Images come as a user's message, behind which there are no results.
		{Match: modelserver.Match{ToolOffered: offered, LastUserText: "Try everything", ToolResults: new(0)},
			Reply: modelserver.Reply{Steps: steps}},
		{Reply: say("Done.")},
	}}
}

func TestModelCallsEveryToolKindOfReferenceServers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, callsAll(npm+"echo", callsOfMCP))
	w.create(&corev1.ConfigMap{ObjectMeta: w.meta("corp"), Data: map[string]string{"ca.crt": "none"}})
	current, old, stateless := w.serveEverything("streamableHttp"), w.serveEverything("sse"), w.serveSDK()
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "Try everything.",
		MCPServers: []v1beta1.MCPServer{
			{Name: "npm", URL: current + "/mcp", Tools: &v1beta1.MCPToolFilter{Deny: []string{"get-env"}}},
			{Name: "old", URL: old + "/sse", Transport: v1beta1.MCPSSE},
			{Name: "sdk", URL: stateless + "/mcp"},
			{Name: "gone", URL: "http://192.0.2.1:3001/mcp", ConnectTimeoutSeconds: new(int32(1))},
			{Name: "private", URL: "https://192.0.2.1:3001/mcp", CABundleFrom: &v1beta1.MCPCABundleSource{
				ConfigMapKeyRef: v1beta1.ConfigMapKeyReference{Name: "corp", Key: "ca.crt"}}},
		}}})
	w.ready("c", 4)
	results := w.results("c")
	if len(results) != len(callsOfMCP) {
		t.Fatalf("there are %d results", len(results))
	}
	for i, want := range callsOfMCP {
		got := results[i]
		if got.Name != want.tool || got.IsError != want.isError || !strings.Contains(got.Output, want.says) {
			t.Errorf("%s %s returned %+v", want.tool, want.arguments, got)
		}
	}
	if files := w.files("c"); len(files) != 3 {
		t.Errorf("the files are %v", files)
	}
	said := meta.FindStatusCondition(w.chat("c").Status.Conditions, v1beta1.ConditionMCPServersUnavailable)
	if said == nil || !strings.Contains(said.Message, "gone (") ||
		!strings.Contains(said.Message, "private (CABundleInvalid): key ca.crt of ConfigMap corp holds no certificates") {
		t.Errorf("of the servers that cannot be used the chat says %+v", said)
	}
}

func TestMCPServerQuestionSurvivesGenerationPodLoss(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		tool    string
		answers []string
		says    string
	}{
		"a question":                         {"elicitation", []string{`{"name":"Ada"}`}, "Hello, Ada!"},
		"a question with a state":            {"request_state", []string{`{"ok":true}`}, "state-ok: requestState received"},
		"two questions, one after the other": {"multi_round", []string{`{"name":"Ada"}`, `{"color":"red"}`}, "Ada likes red"},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, callsAll(inputTool+c.tool, []mcpCall{{tool: inputTool + c.tool, arguments: `{}`}}))
			w.mayApprove()
			w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "Try everything.",
				MCPServers: []v1beta1.MCPServer{{Name: "sdk", URL: w.serveSDK() + "/mcp"}}}})
			for i, answer := range c.answers {
				w.asksInput("c", i)
				w.loseGenerationPod()
				call := w.chat("c").Status.RequiresAction.ToolCalls[0]
				w.kubectlChat("answer", "c", call.ID+"="+answer, "--digest", call.Digest)
			}
			w.ready("c", int64(3+len(c.answers)+1))
			results := w.results("c")
			if len(results) != 1 || results[0].IsError || !strings.Contains(results[0].Output, c.says) {
				t.Errorf("the results are %+v", results)
			}
		})
	}
}

// mayApprove lets the person of this world decide about calls.
func (w *world) mayApprove() {
	w.t.Helper()
	w.create(&rbacv1.RoleBinding{ObjectMeta: w.meta("approver"),
		Subjects: []rbacv1.Subject{{Kind: "ServiceAccount", Name: "person", Namespace: w.ns}},
		RoleRef:  rbacv1.RoleRef{APIGroup: "rbac.authorization.k8s.io", Kind: "ClusterRole", Name: "parley-tool-approver"}})
}

// asksInput waits until the chat has asked people for input for so many times before.
func (w *world) asksInput(chat string, before int) {
	w.t.Helper()
	w.eventually("the server asks people", func() bool {
		st := w.chat(chat).Status
		if st.RequiresAction == nil || st.History.Length != int64(3+before) {
			return false
		}
		call := st.RequiresAction.ToolCalls[0]
		return call.Decision == nil && call.ApprovalCause == v1beta1.ApprovalInputRequired
	})
}

// loseGenerationPod kills the namespace's generation pod, and waits until there is none.
func (w *world) loseGenerationPod() {
	w.t.Helper()
	pod := w.generationPod()
	check.OK(w.t, c.Delete(w.t.Context(), pod, client.GracePeriodSeconds(0)))
	w.eventually("the generation pod is gone", func() bool { return w.gone(pod) })
}
