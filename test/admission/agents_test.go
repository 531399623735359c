// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/agents"
)

func TestManagerMayOnlyStartAndInterruptSubChats(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	spawned := func(change func(*v1alpha1.Chat)) action {
		key := unique("key")
		child := agents.Spawned(s.chat, &v1alpha1.AgentChange{Key: key, Chat: agents.Name(s.chat.Name, key),
			Spawn: &v1alpha1.AgentSpawn{Type: v1alpha1.AgentGeneral, Prompt: "Look."}})
		change(child)
		return creates(child)
	}
	as := func(annotations string) action {
		return patches(s.chat, `{"metadata":{"annotations":`+annotations+`}}`)
	}
	const alone, elsewhere = "creates the sub-chats alone that models start", "the annotation parley.dev/interrupt"
	try(t, []write{
		{manager, "starts a sub-chat", spawned(func(*v1alpha1.Chat) {}), ""},
		{manager, "starts one with the instructions, skills and Secrets of its parent", spawned(func(c *v1alpha1.Chat) {
			c.Spec.InstructionsFrom = instructed("internal").Spec.InstructionsFrom
			c.Spec.SkillsFrom = skilled("internal").Spec.SkillsFrom
			c.Spec.MCPServers = []v1alpha1.MCPServer{{Name: "a", URL: "https://mcp.example.com/mcp",
				HeadersFrom: []v1alpha1.MCPHeaderSource{{Name: "Authorization",
					SecretKeyRef: v1alpha1.SecretKeyReference{Name: "payroll", Key: "key"}}}}}
		}), ""},
		{manager, "starts one that works as the service account of its parent", spawned(func(c *v1alpha1.Chat) {
			c.Spec.Kubernetes = worksAs("fixer", v1alpha1.ClusterChangesWithApproval).Spec.Kubernetes
		}), ""},
		{manager, "starts a chat of its own", spawned(func(c *v1alpha1.Chat) { c.Spec.ParentRef = nil }), alone},
		{manager, "starts one that no call has started", spawned(func(c *v1alpha1.Chat) { c.Annotations = nil }), alone},
		{manager, "starts one that holds its namespace up",
			spawned(func(c *v1alpha1.Chat) { c.Finalizers = []string{"a.example/b"} }), alone},
		{manager, "starts one that goes with another object", spawned(func(c *v1alpha1.Chat) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "b"}}
		}), alone},
		{manager, "interrupts a chat", as(`{"parley.dev/interrupt":"agent-1"}`), ""},
		{manager, "interrupts it again", as(`{"parley.dev/interrupt":"agent-2"}`), ""},
		{manager, "keeps a chat until its cost is counted",
			patches(s.chat, `{"metadata":{"finalizers":["parley.dev/cost"]}}`), ""},
		{manager, "keeps a chat for another reason",
			patches(s.chat, `{"metadata":{"finalizers":["parley.dev/cost","a.example/b"]}}`), elsewhere},
		{manager, "lets a chat go", patches(s.chat, `{"metadata":{"finalizers":null}}`), ""},
		{manager, "asks for something else", as(`{"parley.dev/clear":"1"}`), elsewhere},
		{manager, "changes what a chat says", patches(s.chat, `{"spec":{"systemPrompt":"Be a pirate."}}`), elsewhere},
		{manager, "labels a chat", patches(s.chat, `{"metadata":{"labels":{"a":"b"}}}`), elsewhere},
		{podA, "starts a chat", spawned(func(*v1alpha1.Chat) {}), noRight},
		{chatter, "starts a sub-chat by hand", creates(subChat(unique("chat"), s.chat.Name)), ""},
	})
}
