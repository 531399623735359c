// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"parley.dev/parley/api/v1beta1"
)

// kinds are those of the API that have objects.
func kinds() []string {
	var names []string
	for name := range cluster.Client.Scheme().KnownTypes(v1beta1.GroupVersion) {
		if cluster.Client.Scheme().Recognizes(v1beta1.GroupVersion.WithKind(name + "List")) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

func TestArgoCDHasHealthCheckForEveryKind(t *testing.T) {
	vm := argo(t)
	for _, kind := range kinds() {
		t.Run(kind, func(t *testing.T) {
			o := &unstructured.Unstructured{}
			o.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
			script, _, err := vm.GetHealthScript(o)
			if err != nil || script == "" {
				t.Errorf("there is none: %v", err)
			}
		})
	}
}

func TestArgoCDHealthOfWhatHasNoPhase(t *testing.T) {
	vm := argo(t)
	condition := func(kind, status string) string {
		return fmt.Sprintf(`status: {observedGeneration: 1, conditions: [{type: %s, status: "%s", message: why}]}`, kind,
			status)
	}
	for _, c := range []struct{ name, kind, content, want string }{
		{"a class that nobody has seen", "ChatClass", `status: {observedGeneration: -1}`, "Progressing"},
		{"a class in force", "ChatClass", condition("Ready", "True"), "Healthy"},
		{"a decision that counts", "ToolApproval", condition("Ready", "True"), "Healthy"},
		{"a decision that came too late", "ToolApproval", condition("Stalled", "True"), "Degraded"},
		{"a recording of a call under way", "ChatDebugStep", `state: InProgress`, "Progressing"},
		{"a recording of a call that failed", "ChatDebugStep", `state: Error`, "Healthy"},
	} {
		t.Run(c.name, func(t *testing.T) {
			o := object(t, c.kind, "o", c.content)
			o.SetGeneration(1)
			script, _, err := vm.GetHealthScript(o)
			if err != nil {
				t.Fatal(err)
			}
			got, err := vm.ExecuteHealthLua(o, script)
			if err != nil || string(got.Status) != c.want || got.Message == "" {
				t.Errorf("it is %+v, %v, want %s", got, err, c.want)
			}
		})
	}
}

func TestArgoCDOffersWhatTheObjectWouldDo(t *testing.T) {
	vm := argo(t)
	const talked = "history: {length: 4, version: 5}"
	for _, c := range []struct{ name, kind, content, want string }{
		{"a chat that nobody has seen", "Chat", `spec: {}`, "archive suspend"},
		{"a chat without messages", "Chat", `status: {phase: Waiting}`, "archive suspend"},
		{"a chat at work", "Chat", `status: {phase: Running, ` + talked + `}`, "archive interrupt suspend"},
		{"a chat that waits for people", "Chat", `status: {phase: RequiresAction, ` + talked + `}`,
			"archive interrupt suspend"},
		{"a chat that is being interrupted", "Chat", `status: {phase: Interrupting, ` + talked + `}`, "archive suspend"},
		{"a chat at rest", "Chat", `status: {phase: Waiting, ` + talked + `}`, "archive clear compact suspend"},
		{"a chat that was cleared", "Chat", `status: {phase: Waiting, history: {length: 4, contextStart: 4}}`,
			"archive suspend"},
		{"a chat that failed", "Chat", `status: {phase: Error, ` + talked + `}`, "archive clear compact suspend"},
		{"a suspended chat", "Chat", `{spec: {suspend: true}, status: {phase: Running}}`, "archive interrupt resume"},
		{"an archived chat", "Chat", `{spec: {archived: true}, status: {archived: true, phase: Waiting, ` + talked +
			`}}`, "suspend unarchive"},
		{"a sub-chat of an archived chat", "Chat", `status: {archived: true, phase: Waiting, ` + talked + `}`, "suspend"},
		{"a message that waits", "ChatMessage", `status: {state: Queued}`, "promote"},
		{"a message that cuts in", "ChatMessage", `{spec: {whenBusy: Interrupt}, status: {state: Queued}}`, ""},
		{"a message that is answered", "ChatMessage", `status: {state: Committed}`, ""},
		{"a workspace", "Workspace", `spec: {}`, "suspend"},
		{"a suspended workspace", "Workspace", `spec: {suspend: true}`, "resume"},
	} {
		t.Run(c.name, func(t *testing.T) {
			listed := possible(t, vm, object(t, c.kind, "o", c.content))
			maps.DeleteFunc(listed, func(_ string, enabled bool) bool { return !enabled })
			if got := strings.Join(slices.Sorted(maps.Keys(listed)), " "); got != c.want {
				t.Errorf("people can %q, want %q", got, c.want)
			}
		})
	}
}

// emptied is a chat with empty lists and maps in its spec and status: Lua cannot tell them apart.
const emptied = `
metadata: {labels: {}, annotations: {}}
spec: {systemPrompt: Be brief., tools: {deny: [], client: []}, limits: {}, mcpServers: [], compaction: {}}
status:
  observedGeneration: 1
  phase: Running
  history: {version: 7, head: m, length: 7}
  turn: {message: m, index: 6, historyVersion: 7, startedAt: "2026-11-23T10:00:00.123456Z"}
  generation: {attempt: 1, action: GenerateAssistant, pod: p, modelConfig: d, startedAt: "2026-11-23T10:00:00.123456Z"}
  usage: {inputTokens: 9007199254740991, totalTokens: 9007199254740991}
  cost: [{currency: USD, microUnits: 123456789012}]
  queue: []
  internal: {}
  requests: [{kind: Interrupt, token: "1", outcome: Done, time: "2026-11-23T09:00:00Z"}]
  conditions: [{type: Ready, status: Unknown, reason: Generating, message: "",
    lastTransitionTime: "2026-11-23T10:00:00Z"}]
`

func TestActionPatchesOnlyItsOwnField(t *testing.T) {
	vm := argo(t)
	ns := cluster.Namespace(t, "actions")
	for _, c := range []struct{ action, kind, content, patch string }{
		{"interrupt", "Chat", emptied, `{"metadata":{"annotations":{"parley.dev/interrupt":"argocd-7"}}}`},
		{"compact", "Chat", emptied, `{"metadata":{"annotations":{"parley.dev/compact":"argocd-7"}}}`},
		{"clear", "Chat", emptied, `{"metadata":{"annotations":{"parley.dev/clear":"argocd-7"}}}`},
		{"suspend", "Chat", emptied, `{"spec":{"suspend":true}}`},
		{"resume", "Chat", `spec: {suspend: true}`, `{"spec":{"suspend":false}}`},
		{"archive", "Chat", emptied, `{"spec":{"archived":true}}`},
		{"unarchive", "Chat", `spec: {archived: true}`, `{"spec":{"archived":false}}`},
		{"promote", "ChatMessage", `{spec: {chatRef: {name: c}, content: Stop.}, status: {state: Queued}}`,
			`{"spec":{"whenBusy":"Interrupt"}}`},
		{"suspend", "Workspace", `spec: {chatRef: {name: c}, source: {podTemplateRef: {name: t}}}`,
			`{"spec":{"suspend":true}}`},
		{"resume", "Workspace", `spec: {suspend: true, chatRef: {name: c}, source: {podTemplateRef: {name: t}}}`,
			`{"spec":{"suspend":false}}`},
	} {
		name := strings.ToLower(c.kind) + "-" + c.action
		t.Run(name, func(t *testing.T) {
			o := object(t, c.kind, name, c.content)
			o.SetNamespace(ns)
			admit(t, o)
			if got := take(t, vm, o, c.action); got != c.patch {
				t.Errorf("it patches %s, want %s", got, c.patch)
			}
			if again := take(t, vm, o, c.action); again != "" {
				t.Errorf("a second click patches %s", again)
			}
		})
	}
}

// admit creates the object, and has the manager write its status if it has one.
func admit(t *testing.T, o *unstructured.Unstructured) {
	t.Helper()
	c := as(t, manager)
	status, has := o.Object["status"]
	creator := cluster.Client
	if o.GetKind() == "Workspace" {
		creator = c
	}
	if err := creator.Create(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if !has {
		return
	}
	o.Object["status"] = status
	if err := c.Status().Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
}

// object is an object of the kind, with content in YAML.
func object(t *testing.T, kind, name, content string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{Object: parse(t, content)}
	o.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
	o.SetName(name)
	o.SetCreationTimestamp(metav1.Time{})
	return o
}
