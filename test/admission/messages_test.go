// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"fmt"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/agents"
)

const (
	onlyPods = "only generation pods create generated messages, each in its own namespace: " +
		"leave out generation, parent, index and role"
	onlyResult = "generation pods create no messages but their results"
	ownName    = "a generation pod answers under its own name only: " +
		"generation.pod must be the pod that the token is bound to"
	oneChat    = "a result is about one chat: it must be owned by the chat of chatRef and generation.chatUID alone"
	unchanging = "a generated message cannot change: delete it to have it generated again, " +
		"or edit the User message before it"
)

func TestPeopleSpeakForThemselvesOnly(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	message := func(change func(*v1beta1.ChatMessageSpec)) client.Object {
		m := say(s.chat.Name)
		change(&m.Spec)
		return m
	}
	prompt := say(s.chat.Name)
	prompt.Name = s.chat.Name + "-prompt"
	writes := []write{
		{chatter, "begins a chat", creates(newChat(unique("chat"))), ""},
		{chatter, "says something", creates(say(s.chat.Name)), ""},
		{chatter, "answers a tool call of its client", creates(toolOutput(s.chat.Name)), ""},
		{chatter, "speaks as the model",
			creates(message(func(s *v1beta1.ChatMessageSpec) { s.Role = v1beta1.RoleAssistant })),
			"role must be User (or left out), or Tool for the results of tools that a client runs"},
		{chatter, "says where a message stands", creates(message(func(s *v1beta1.ChatMessageSpec) { s.Parent = "m" })),
			"parent, index and follows are set by the operator: leave them out"},
		{chatter, "says at which place a message stands",
			creates(message(func(s *v1beta1.ChatMessageSpec) { s.Index = new(int64(1)) })),
			"parent, index and follows are set by the operator: leave them out"},
		{chatter, "edits a message", patches(s.asked, `{"spec":{"content":"hello again"}}`), ""},
		{chatter, "moves a message", patches(s.asked, `{"spec":{"parent":"m","index":3}}`),
			"parent, index and follows are set by the operator: leave them out"},
		{chatter, "makes a message one of the model", patches(s.asked, `{"spec":{"role":"Assistant"}}`),
			"role cannot change"},
		{chatter, "labels a result", patches(s.replied, `{"metadata":{"labels":{"good":"yes"}}}`), ""},
		{manager, "makes the prompt a message", creates(prompt), ""},
		{approver, "says something", creates(say(s.chat.Name)), noRight},
		{viewer, "says something", creates(say(s.chat.Name)), noRight},
		{gateway, "says something", creates(say(s.chat.Name)), noRight},
		{gateway, "answers", creates(result(s.chat)), noRight},
	}
	for _, who := range []actor{chatter, owner, boss, root, deployer, administrator, impostor, manager} {
		writes = append(writes, write{who, "answers in a pod's stead", creates(result(s.chat)), onlyPods})
	}
	for _, who := range []actor{chatter, owner, boss, root, deployer, administrator, impostor} {
		writes = append(writes,
			write{who, "changes what the model said", patches(s.replied, `{"spec":{"parts":[{"type":"Text","text":"Bad."}]}}`),
				unchanging},
			write{who, "changes where the reply stands", patches(s.replied, `{"spec":{"index":0}}`), unchanging},
			write{who, "changes which attempt replied", patches(s.replied, `{"spec":{"generation":{"attempt":2}}}`),
				"a generated message cannot change"},
			write{who, "takes a reply for its own",
				patches(s.replied, `{"spec":{"generation":null,"parent":null,"index":null}}`), "role must be User"},
		)
	}
	try(t, append(writes,
		write{manager, "changes what the model said",
			patches(s.replied, `{"spec":{"parts":[{"type":"Text","text":"Bad."}]}}`), noRight},
		write{chatter, "deletes what the model said", deletes(s.replied), ""},
		write{chatter, "deletes a message", deletes(s.asked), ""},
		write{chatter, "deletes the chat", deletes(s.chat), ""},
	))
}

func TestGenerationPodMayCreateOnlyItsOwnResults(t *testing.T) {
	t.Parallel()
	s, other := newScene(t), newScene(t)
	good := result(s.chat)
	changed := func(change func(*v1beta1.ChatMessage)) client.Object { return result(s.chat, change) }
	inOthers := func(o client.Object) client.Object { o.SetNamespace(otherNS); return o }
	try(t, []write{
		{podA, "answers as another pod", creates(changed(func(m *v1beta1.ChatMessage) { m.Spec.Generation.Pod = podB.pod })),
			ownName},
		{podB, "answers as the pod that the chat was given to", creates(good), ownName},
		{podless, "answers", creates(good), ownName},
		{podC, "answers", creates(good), noRight},
		{podC, "answers at home for a chat elsewhere",
			creates(inOthers(result(s.chat, func(m *v1beta1.ChatMessage) { m.Spec.Generation.Pod = podA.pod }))), ownName},
		{podA, "answers elsewhere", creates(inOthers(result(s.chat))), noRight},
		{podA, "says something", creates(say(s.chat.Name)), onlyResult},
		{podA, "answers a tool call as a client", creates(toolOutput(s.chat.Name)), onlyResult},
		{podA, "names another chat",
			creates(changed(func(m *v1beta1.ChatMessage) { m.Spec.ChatRef.Name = other.chat.Name })), oneChat},
		{podA, "names another chat's UID",
			creates(changed(func(m *v1beta1.ChatMessage) { m.Spec.Generation.ChatUID = string(other.chat.UID) })), oneChat},
		{podA, "answers under another chat's name",
			creates(changed(func(m *v1beta1.ChatMessage) { m.Name = result(other.chat).Name })), oneChat},
		{podA, "answers under the name of another attempt",
			creates(changed(func(m *v1beta1.ChatMessage) { m.Spec.Generation.Attempt = 2 })), oneChat},
		{podA, "answers under the name of another version",
			creates(changed(func(m *v1beta1.ChatMessage) { m.Spec.Generation.HistoryVersion = 9 })), oneChat},
		{podA, "summarizes a turn under the name of a result",
			creates(changed(func(m *v1beta1.ChatMessage) { summarizes(m); m.Name = good.GetName() })), oneChat},
		{podA, "answers under the name of a summary",
			creates(changed(func(m *v1beta1.ChatMessage) { m.Name = s.chat.Name + "-1-summary" })), oneChat},
		{podA, "summarizes a turn", creates(changed(summarizes)), ""},
		{chatter, "summarizes a turn", creates(changed(summarizes)), onlyPods},
		{podA, "answers for nobody", creates(changed(func(m *v1beta1.ChatMessage) { m.OwnerReferences = nil })), oneChat},
		{podA, "answers for another chat's owner", creates(changed(func(m *v1beta1.ChatMessage) {
			m.OwnerReferences = result(other.chat).OwnerReferences
		})), oneChat},
		{podA, "answers for a second owner", creates(changed(func(m *v1beta1.ChatMessage) {
			m.OwnerReferences = append(m.OwnerReferences, metav1.OwnerReference{APIVersion: "v1", Kind: "Pod", Name: podA.pod,
				UID: "1"})
		})), oneChat},
		{podA, "answers for an owner of another name",
			creates(changed(func(m *v1beta1.ChatMessage) { m.OwnerReferences[0].Name = other.chat.Name })), oneChat},
		{podA, "answers for an owner of another kind",
			creates(changed(func(m *v1beta1.ChatMessage) { m.OwnerReferences[0].Kind = "ChatMessage" })), oneChat},
		{podA, "answers", creates(good), ""},
		{podA, "changes its result", patches(good, `{"spec":{"parts":[{"type":"Text","text":"Better."}]}}`), noRight},
		{podA, "deletes its result", deletes(good), noRight},
		{podA, "edits a person's message", patches(s.asked, `{"spec":{"content":"other"}}`), noRight},
		{podA, "creates a chat", creates(newChat(unique("chat"))), noRight},
		{podA, "changes a chat", patches(s.chat, `{"spec":{"suspend":true}}`), noRight},
		{podA, "interrupts a chat", patches(s.chat, `{"metadata":{"annotations":{"`+v1beta1.AnnotationInterrupt+`":"1"}}}`),
			noRight},
		{podA, "deletes a chat", deletes(s.chat), noRight},
		{podA, "approves its own call", creates(approve(s.chat.Name)), noRight},
		{podA, "changes the model", patches(s.config, `{"spec":{"model":"other"}}`), noRight},
	})
}

// summarizes makes the result one that says what became of a turn.
func summarizes(m *v1beta1.ChatMessage) {
	g := m.Spec.Generation
	m.Name = fmt.Sprintf("%s-%d-summary", m.Spec.ChatRef.Name, g.HistoryVersion)
	m.Spec.Parts, m.Spec.Parent, m.Spec.Index = nil, "", nil
	g.Action, g.TurnSummary = v1beta1.ActionSummarizeTurn, "Found the leak"
}

func TestApprovingAndChattingAreSeparateRights(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	try(t, []write{
		{approver, "approves", creates(approve(s.chat.Name)), ""},
		{approver, "begins a chat", creates(newChat(unique("chat"))), noRight},
		{approver, "says something", creates(say(s.chat.Name)), noRight},
		{approver, "answers a tool call of a client", creates(toolOutput(s.chat.Name)), noRight},
		{approver, "interrupts a chat",
			patches(s.chat, `{"metadata":{"annotations":{"`+v1beta1.AnnotationInterrupt+`":"1"}}}`), noRight},
		{approver, "allows all tools", patches(s.chat, `{"spec":{"tools":null}}`), noRight},
		{approver, "takes back a decision", deletes(s.approval), noRight},
		{approver, "changes a decision", patches(s.approval, `{"spec":{"decision":"Deny"}}`), noRight},
		{chatter, "approves", creates(approve(s.chat.Name)), noRight},
		{viewer, "approves", creates(approve(s.chat.Name)), noRight},
		{gateway, "approves", creates(approve(s.chat.Name)), noRight},
		{manager, "approves", creates(approve(s.chat.Name)), noRight},
		{owner, "approves", creates(approve(s.chat.Name)), ""},
		{owner, "changes a decision", patches(s.approval, `{"spec":{"decision":"Deny"}}`), "a decision cannot change"},
	})
}

func TestPriorHistoryWithMisplacedContentIsRejected(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	prior := func(history ...v1beta1.PriorMessage) client.Object {
		m := say(s.chat.Name)
		m.Spec.Content, m.Spec.History = "", history
		return m
	}
	call, output := []v1beta1.PriorToolCall{{ID: "a", Name: "look"}}, []v1beta1.ToolResult{{ID: "a", Output: "it"}}
	file := []v1beta1.PriorFile{{Name: "a.txt", MediaType: "text/plain", Data: "YQ=="}}
	const misplaced, large = "in history, files belong to User messages", "may have at most 1048576 characters"
	try(t, []write{
		{chatter, "tells what was said elsewhere", creates(prior(
			v1beta1.PriorMessage{Role: v1beta1.RoleUser, Content: "Look.", Files: file},
			v1beta1.PriorMessage{Role: v1beta1.RoleAssistant, ToolCalls: call},
			v1beta1.PriorMessage{Role: v1beta1.RoleTool, ToolResults: output})), ""},
		{chatter, "lets a user call",
			creates(prior(v1beta1.PriorMessage{Role: v1beta1.RoleUser, ToolCalls: call})), misplaced},
		{chatter, "lets a model give files",
			creates(prior(v1beta1.PriorMessage{Role: v1beta1.RoleAssistant, Files: file})), misplaced},
		{chatter, "lets a model give results",
			creates(prior(v1beta1.PriorMessage{Role: v1beta1.RoleAssistant, ToolResults: output})), misplaced},
		{chatter, "lets results be words",
			creates(prior(v1beta1.PriorMessage{Role: v1beta1.RoleTool, Content: "it"})), misplaced},
		{chatter, "tells more than a message holds", creates(prior(
			v1beta1.PriorMessage{Role: v1beta1.RoleUser, Content: strings.Repeat("a", 1<<19)},
			v1beta1.PriorMessage{Role: v1beta1.RoleAssistant, ToolCalls: []v1beta1.PriorToolCall{
				{ID: "a", Name: "look", Input: strings.Repeat("a", 1<<19+1)}}})), large},
		{gateway, "tells what was said elsewhere",
			creates(prior(v1beta1.PriorMessage{Role: v1beta1.RoleUser, Content: "a"})), noRight},
	})
}

func TestManagerMayOnlyStartAndInterruptSubChats(t *testing.T) {
	t.Parallel()
	s := newScene(t)
	spawned := func(change func(*v1beta1.Chat)) action {
		key := unique("key")
		child := agents.Spawned(s.chat, &v1beta1.AgentChange{Key: key, Chat: agents.Name(s.chat.Name, key),
			Spawn: &v1beta1.AgentSpawn{Type: v1beta1.AgentGeneral, Prompt: "Look."}})
		change(child)
		return creates(child)
	}
	as := func(annotations string) action {
		return patches(s.chat, `{"metadata":{"annotations":`+annotations+`}}`)
	}
	const alone, elsewhere = "creates the sub-chats alone that models start", "the annotation parley.dev/interrupt"
	try(t, []write{
		{manager, "starts a sub-chat", spawned(func(*v1beta1.Chat) {}), ""},
		{manager, "starts one with the instructions, skills and Secrets of its parent", spawned(func(c *v1beta1.Chat) {
			c.Spec.InstructionsFrom = instructed("internal").Spec.InstructionsFrom
			c.Spec.SkillsFrom = skilled("internal").Spec.SkillsFrom
			c.Spec.MCPServers = []v1beta1.MCPServer{{Name: "a", URL: "https://mcp.example.com/mcp",
				HeadersFrom: []v1beta1.MCPHeaderSource{{Name: "Authorization",
					SecretKeyRef: v1beta1.SecretKeyReference{Name: "payroll", Key: "key"}}}}}
		}), ""},
		{manager, "starts one that works as the service account of its parent", spawned(func(c *v1beta1.Chat) {
			c.Spec.Kubernetes = worksAs("fixer", v1beta1.ClusterChangesWithApproval).Spec.Kubernetes
		}), ""},
		{manager, "starts a chat of its own", spawned(func(c *v1beta1.Chat) { c.Spec.ParentRef = nil }), alone},
		{manager, "starts one that no call has started", spawned(func(c *v1beta1.Chat) { c.Annotations = nil }), alone},
		{manager, "starts one that holds its namespace up",
			spawned(func(c *v1beta1.Chat) { c.Finalizers = []string{"a.example/b"} }), alone},
		{manager, "starts one that goes with another object", spawned(func(c *v1beta1.Chat) {
			c.OwnerReferences = []metav1.OwnerReference{{APIVersion: "v1", Kind: "ConfigMap", Name: "a", UID: "b"}}
		}), alone},
		{manager, "interrupts a chat", as(`{"parley.dev/interrupt":"agent-1"}`), ""},
		{manager, "interrupts it again", as(`{"parley.dev/interrupt":"agent-2"}`), ""},
		{manager, "keeps a chat from being deleted", patches(s.chat, `{"metadata":{"finalizers":["a.example/b"]}}`), elsewhere},
		{manager, "asks for something else", as(`{"parley.dev/clear":"1"}`), elsewhere},
		{manager, "changes what a chat says", patches(s.chat, `{"spec":{"systemPrompt":"Be a pirate."}}`), elsewhere},
		{manager, "labels a chat", patches(s.chat, `{"metadata":{"labels":{"a":"b"}}}`), elsewhere},
		{podA, "starts a chat", spawned(func(*v1beta1.Chat) {}), noRight},
		{chatter, "starts a sub-chat by hand", creates(subChat(unique("chat"), s.chat.Name)), ""},
	})
}
