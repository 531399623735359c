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
	"syscall"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/yaml"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/kit/mcpkinds"
	"parley.dev/parley/test/kit/testcluster"
	"parley.dev/parley/test/modelserver"
)

// program is an entry of a server of npm, as it is, that runs in the workspace.
func program(name string, args ...string) v1beta1.MCPServer {
	return v1beta1.MCPServer{Name: name, ConnectTimeoutSeconds: new(int32(30)), Command: append([]string{"node",
		"/srv/node_modules/@modelcontextprotocol/server-" + name + "/dist/index.js"}, args...)}
}

// newProgramChat creates a chat in whose workspace servers run, with storage for what they keep.
func (w *world) newProgramChat(prompt string) {
	w.t.Helper()
	w.create(&corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, Name: "node",
			Labels: map[string]string{v1beta1.LabelWorkspaceTemplate: "true"}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{TerminationGracePeriodSeconds: new(int64(5)),
			Containers: []corev1.Container{{Name: "tools", Image: everything}}}},
	})
	memory := program("memory")
	memory.Env = []v1beta1.MCPVariable{{Name: "MEMORY_FILE_PATH", Value: "/workspace/memory.jsonl"}}
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: prompt,
		Workspace: &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{
			Name: "node", Storage: &v1beta1.WorkspaceStorage{Size: "64Mi"}}},
		MCPServers: []v1beta1.MCPServer{memory, program("filesystem", "/workspace"), program("everything", "stdio"),
			{Name: "none", Command: []string{"no-such-server"}}}}})
}

func TestStdioServersInWorkspaceEndWithGenerationPod(t *testing.T) {
	t.Parallel()
	w := newWorld(t, works(
		callOf("memory__create_entities", map[string]any{"entities": []map[string]any{
			{"name": "Ada", "entityType": "person", "observations": []string{"wrote the first program"}}}}),
		callOf("filesystem__list_directory", map[string]any{"path": "/workspace"}),
		callOf("everything__trigger-long-running-operation", map[string]any{"duration": 1, "steps": 2}),
		callOf("filesystem__read_text_file", map[string]any{"path": "/etc/passwd"}),
		callOf("memory__read_graph", map[string]any{}),
	))
	w.newProgramChat("Remember Ada.")
	w.ready("c", 12)
	for i, want := range []string{"Ada", "memory.jsonl", "Steps: 2", "Access denied", "wrote the first program"} {
		if got := w.results("c")[i]; !strings.Contains(got.Output, want) || got.IsError != (want == "Access denied") {
			t.Errorf("%s returned %q (an error: %t)", got.Name, got.Output, got.IsError)
		}
	}
	said := meta.FindStatusCondition(w.chat("c").Status.Conditions, v1beta1.ConditionMCPServersUnavailable)
	if said == nil || !strings.Contains(said.Message, "none (CommandFailed): no-such-server is no program in PATH") {
		t.Errorf("of the server that cannot be used the chat says %+v", said)
	}
	pod := w.housing()
	w.eventually("no server runs", func() bool { return len(processesWhere(t, programOf(pod))) == 0 })

	// Another generation pod calls them in the same workspace.
	w.loseGenerationPod()
	w.script(modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "Who is Ada?", ToolOffered: "memory__read_graph", ToolResults: new(0)},
			Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Call("memory__read_graph", "{}")}}},
		{Reply: say("She wrote it.")}}})
	w.say("c", "q", "Who is Ada?")
	w.ready("c", 16)
	if got := w.results("c")[5]; got.IsError || !strings.Contains(got.Output, "wrote the first program") {
		t.Errorf("it returned %+v", got)
	}
	if now := w.housing(); now.UID != pod.UID {
		t.Errorf("the workspace has another pod")
	}
}

// programOf says of a process whether it is a server of npm in the pod.
func programOf(pod *corev1.Pod) func(group, command string) bool {
	its := inPod(pod)
	return func(group, command string) bool {
		return strings.Contains(command, "@modelcontextprotocol") && its(group)
	}
}

// callRuns waits until a server runs in the pod for a call, and has for longer than it takes to begin a session: what
// it says of its progress is in no object that could be waited for.
func (w *world) callRuns() {
	w.t.Helper()
	const toBegin = 8 * time.Second
	since := map[int]time.Time{}
	w.eventually("the call runs", func() bool {
		g, pod := w.chat("c").Status.Generation, w.housing()
		if g == nil || g.Action != v1beta1.ActionExecuteTools || pod == nil {
			return false
		}
		for _, pid := range processesWhere(w.t, programOf(pod)) {
			if first, ok := since[pid]; ok && time.Since(first) > toBegin {
				return true
			} else if !ok {
				since[pid] = time.Now()
			}
		}
		return false
	})
}

func TestServerCallEndsOnceWhenWorkspaceIsLost(t *testing.T) {
	const unknown = "; whether the call was done is not known"
	for name, c := range map[string]struct {
		lose func(*testing.T, *corev1.Pod)
		says string
	}{
		"its pod is removed by force": {removed(client.GracePeriodSeconds(0)),
			"the result of MCP server everything did not come"},
		"its pod is lost": {func(t *testing.T, pod *corev1.Pod) {
			t.Helper()
			localnode.Needed(t)
			signalTo(t, syscall.SIGSTOP, pod.Namespace, pod.Name, "tools") // SIGTERM does not reach it.
			removed(client.GracePeriodSeconds(0))(t, pod)
		}, "the pod of the workspace is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			localnode.Needed(t)
			w := newWorld(t, works(
				callOf("everything__trigger-long-running-operation", map[string]any{"duration": 300, "steps": 300}),
				callOf("everything__echo", map[string]any{"message": "again"})))
			w.newProgramChat("Take your time.")
			w.callRuns()
			c.lose(t, w.housing())
			w.eventually("the model reads what became of it", func() bool { return len(w.results("c")) > 0 })
			w.ready("c", 6)
			results := w.results("c")
			if got := results[0]; !got.IsError || !strings.Contains(got.Output, c.says) ||
				!strings.HasSuffix(got.Output, unknown) {
				t.Errorf("of the lost call the model reads %+v", got)
			}
			if got := results[1]; got.IsError || got.Output != "Echo: again" {
				t.Errorf("of the next call the model reads %s", got.Output)
			}
		})
	}
}

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
			ResourceAttributes: &authorizationv1.ResourceAttributes{Group: group, Resource: resource, Verb: "get"},
		}}
		return c.Create(t.Context(), review) == nil && review.Status.Allowed
	})
}

func TestChatUsesServerManagedByAnotherProject(t *testing.T) {
	echo := []mcpCall{{tool: "calendar__echo", arguments: `{"message":"hello"}`}}
	w := newWorld(t, callsAll("calendar__echo", echo))
	referring := func(name string) *v1beta1.Chat {
		return &v1beta1.Chat{ObjectMeta: w.meta(name), Spec: v1beta1.ChatSpec{Prompt: "Try everything.",
			MCPServers: []v1beta1.MCPServer{{Name: "calendar", ServerRef: &v1beta1.MCPServerReference{
				Group: lifecycle.Group, Kind: lifecycle.Kind, Name: "calendar"}}}}}
	}
	without := func(chat string, reason v1beta1.MCPServerReason) {
		t.Helper()
		w.create(referring(chat))
		w.ready(chat, 2)
		said := meta.FindStatusCondition(w.chat(chat).Status.Conditions, v1beta1.ConditionMCPServersUnavailable)
		if said == nil || said.Reason != string(reason) {
			t.Errorf("chat %s says %+v", chat, said)
		}
	}
	without("early", v1beta1.MCPReferenceNotFound)
	withKinds(t, lifecycle.Group)
	server := mcpkinds.New(lifecycle, w.ns, "calendar", nil, nil)
	w.create(server)
	without("forbidden", v1beta1.MCPReferenceForbidden)

	withRights(t, "lifecycle-operator", lifecycle.Group, "mcpservers")
	w.create(referring("c"))
	w.eventually("the chat waits for the server", func() bool {
		ready := meta.FindStatusCondition(w.chat("c").Status.Conditions, v1beta1.ConditionReady)
		return v1beta1.ReasonOf(ready) == v1beta1.ReasonWaitingForMCPServers
	})
	server.Object["status"] = map[string]any{"conditions": mcpkinds.Conditions("Verified"),
		"address": map[string]any{"url": w.serveEverything("streamableHttp") + "/mcp"}}
	check.OK(t, c.Status().Update(t.Context(), server))
	w.ready("c", 4)
	if results := w.results("c"); len(results) != 1 || !strings.Contains(results[0].Output, "Echo: hello") {
		t.Errorf("the results are %+v", results)
	}
}
