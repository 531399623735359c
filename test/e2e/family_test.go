// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

// What the chats of the family are asked.
const (
	mendPrompt    = "Mend it all."
	explorePrompt = "Find out what notes.txt says."
	fixPrompt     = "Correct notes.txt."
)

// ofAgent is the name of the agent of a result of the root: each result begins with {"chat":"root- and ten digits.
func ofAgent(result int) string {
	return fmt.Sprintf(`{{slice (index .ToolResults %d).Text 9 24}}`, result)
}

// family are what its chats do, by what they are asked.
func family() map[string][]batch {
	spawn := func(kind v1beta1.AgentType, prompt string) batch {
		return batch{callOf("spawn_agent", map[string]any{"type": kind, "prompt": prompt})}
	}
	wait := func(result int) batch {
		raw, _ := json.Marshal(fmt.Sprintf(`{"chat":"%s"}`, ofAgent(result)))
		return batch{modelserver.ToolCall{Name: "wait_agent", Arguments: raw}}
	}
	return map[string][]batch{
		mendPrompt: {
			{callOf("write_file", map[string]any{"path": "notes.txt", "content": "web has no replices\n"})},
			spawn(v1beta1.AgentExplore, explorePrompt), wait(1),
			spawn(v1beta1.AgentGeneral, fixPrompt), wait(3),
			{callOf("every__echo", map[string]any{"message": "Who is on call?"}), callOf("read_file", map[string]any{"path": "notes.txt"})},
			{callOf("k8s_get", map[string]any{"resource": "deployments.apps", "name": "web"})},
			{callOf("k8s_apply", map[string]any{
				"manifest": "{apiVersion: apps/v1, kind: Deployment, metadata: {name: web}, spec: {minReadySeconds: 7}}"})},
		},
		explorePrompt: {
			{callOf("write_file", map[string]any{"path": "notes.txt", "content": "I was here."})},
			{callOf("read_file", map[string]any{"path": "notes.txt"}), callOf("every__echo", map[string]any{"message": "I look."})},
		},
		fixPrompt: {
			{callOf("edit_files", map[string]any{"edits": []map[string]any{
				{"path": "notes.txt", "old_text": "replices", "new_text": "replicas"}}})},
			{callOf("execute", map[string]any{"command": "cat notes.txt"})},
		},
	}
}

// asTheFamily is a model for all of its chats. Which reply is due follows from the conversation alone.
func asTheFamily() modelserver.Script {
	var script modelserver.Script
	for said, batches := range family() {
		results := 0
		for _, calls := range batches {
			script.Rules = append(script.Rules, modelserver.Rule{
				Match: modelserver.Match{LastUserText: said, ToolResults: new(results)},
				Reply: modelserver.Reply{Steps: []modelserver.Step{{ToolCalls: calls}}}})
			results += len(calls)
		}
	}
	script.Rules = append(script.Rules, modelserver.Rule{
		Reply: say("Done: {{.LastUserText}}")})
	return script
}

// familyLength is how many messages the root has: the prompt, a reply and results for each batch, a message for the
// question before the apply, and the answer.
var familyLength = int64(1 + 2*len(family()[mendPrompt]) + 1 + 1)

// fixer is an account that changes Deployments, and whose tokens the generation pods may have.
func (w *world) fixer() {
	w.t.Helper()
	w.create(&corev1.ServiceAccount{ObjectMeta: w.meta("fixer")})
	for name, c := range map[string]struct {
		to   string
		rule rbacv1.PolicyRule
	}{
		"fixer": {"fixer", rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"},
			Verbs: []string{"get", "patch"}}},
		"parley-token-fixer": {"parley-generation", rbacv1.PolicyRule{APIGroups: []string{""},
			Resources: []string{"serviceaccounts/token"}, ResourceNames: []string{"fixer"}, Verbs: []string{"create"}}},
	} {
		w.create(&rbacv1.Role{ObjectMeta: w.meta(name), Rules: []rbacv1.PolicyRule{c.rule}})
		w.create(&rbacv1.RoleBinding{ObjectMeta: w.meta(name),
			Subjects: []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: c.to, Namespace: w.ns}},
			RoleRef:  rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: name}})
	}
}

// plays kills once in each step in which calls of tools are run, of each chat, and approves what is to be approved,
// until the root is Ready with the messages. It returns in how many steps it has killed something. The watch is older
// than the first step.
func (w *world) plays(events watch.Interface, root string, isLong func(length int64) bool, approve func(*v1beta1.Chat),
	kill func(*world, *step)) (killed int) {
	w.t.Helper()
	defer events.Stop()
	approved, steps := map[string]bool{}, map[string]*step{}
	for event := range events.ResultChan() {
		now, ok := event.Object.(*v1beta1.Chat)
		if !ok {
			continue
		}
		if now.Name == root && isLong(now.Status.History.Length) &&
			meta.IsStatusConditionTrue(now.Status.Conditions, v1beta1.ConditionReady) {
			return killed
		}
		if required := now.Status.RequiresAction; required != nil && !approved[required.Message] {
			approved[required.Message] = true
			approve(now)
		}
		g := now.Status.Generation
		if g == nil || g.Pod == "" || g.Action != v1beta1.ActionExecuteTools {
			continue
		}
		id := fmt.Sprintf("%s %d", now.Name, now.Status.History.Version)
		if steps[id] == nil {
			steps[id] = &step{number: len(steps)}
		}
		if s := steps[id]; !s.killed {
			s.chat = now
			if kill(w, s); s.killed {
				killed++
			}
		}
	}
	w.t.Fatalf("the chat did not come to its end:\n%s", w.describe())
	return 0
}

// nothing kills nothing.
func nothing(*world, *step) {}

// approve approves the first call that the chat waits for.
func (w *world) approve(chat *v1beta1.Chat) {
	w.t.Helper()
	w.approveCall(chat.Name, chat.Status.RequiresAction.ToolCalls[0])
}

func (w *world) approveCall(chat string, call v1beta1.PendingToolCall) {
	w.t.Helper()
	w.create(&v1beta1.ToolApproval{ObjectMeta: metav1.ObjectMeta{Namespace: w.ns, GenerateName: "yes-"},
		Spec: v1beta1.ToolApprovalSpec{ChatRef: v1beta1.ChatReference{Name: chat}, ToolCallID: call.ID,
			Decision: v1beta1.DecisionApprove, Digest: call.Digest}})
}

// TestFamilyRepairsClusterDespiteKillsAtEachStep has a root whose agents explore and fix, that asks an
// MCP server, and that changes a Deployment as a service account once a person has approved of it.
func TestFamilyRepairsClusterDespiteKillsAtEachStep(t *testing.T) {
	localnode.Needed(t)
	for name, v := range map[string]struct {
		kill  func(*world, *step)
		kills int
	}{
		"nothing": {nothing, 0}, "the generator": {killGenerator, 12}, "the manager": {killTheManager, 12},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, asTheFamily())
			w.template("shell")
			w.toFix()
			w.fixer()
			chat := &v1beta1.Chat{ObjectMeta: w.meta("root"), Spec: v1beta1.ChatSpec{Prompt: mendPrompt,
				SubAgents:  &v1beta1.SubAgentSettings{Enabled: new(true)},
				Kubernetes: &v1beta1.KubernetesAccess{ServiceAccountName: "fixer", Changes: v1beta1.ClusterChangesWithApproval},
				Workspace: &v1beta1.WorkspaceSource{
					PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "shell"}},
				MCPServers: []v1beta1.MCPServer{
					{Name: "every", URL: w.serveEverything("streamableHttp") + "/mcp", Trusted: true}},
			}}
			events := w.watch()
			w.create(chat)
			killed := w.plays(events, "root", func(length int64) bool { return length == familyLength }, w.approve, v.kill)
			if killed < v.kills {
				t.Errorf("something was killed in %d steps", killed)
			}
			w.isGolden("root", "family_root.txt")
			if v.kills == 0 {
				w.showsTheDifference("root")
			}
			for _, agent := range w.agents("root") {
				w.isGolden(agent.Name, map[v1beta1.ChatMode]string{
					v1beta1.ModeExplore: "family_explore.txt", "": "family_fix.txt"}[agent.Spec.Mode])
			}
		})
	}
}

// showsTheDifference fails the test if the model was not shown what it has changed.
func (w *world) showsTheDifference(chat string) {
	w.t.Helper()
	for _, message := range w.history(chat) {
		for _, part := range message.Spec.Parts {
			if r := part.ToolResult; r != nil && r.Name == "k8s_apply" && strings.Contains(r.Output, `+  minReadySeconds: 7`) {
				return
			}
		}
	}
	w.t.Error("the model was not shown what it has changed")
}

// agents are the chats below one, oldest first.
func (w *world) agents(of string) []v1beta1.Chat {
	w.t.Helper()
	var chats v1beta1.ChatList
	check.OK(w.t, c.List(w.t.Context(), &chats, client.InNamespace(w.ns),
		client.MatchingFields{"spec.parentRef.name": of}))
	slices.SortFunc(chats.Items, func(a, b v1beta1.Chat) int {
		return a.CreationTimestamp.Compare(b.CreationTimestamp.Time)
	})
	return chats.Items
}
