// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/agents"
	"parley.dev/parley/test/kit/chattest"
)

// restricted is a class that restricts its chats.
func restricted(change func(*v1alpha1.ChatRestrictions)) *v1alpha1.ChatClass {
	return chattest.In(ns, chattest.Class(unique("class"), func(s *v1alpha1.ChatClassSpec) {
		s.Restrictions = &v1alpha1.ChatRestrictions{}
		change(s.Restrictions)
	}))
}

// instructing is a class whose chats are instructed by a ConfigMap.
func instructing(configMap string) *v1alpha1.ChatClass {
	return chattest.In(ns, chattest.Class(unique("class"), func(s *v1alpha1.ChatClassSpec) {
		s.Defaults.InstructionsFrom = []v1alpha1.InstructionsSource{{ConfigMapKeyRef: inConfigMap(configMap, "a")}}
	}))
}

// chatOf is a chat of a class that says this.
func chatOf(class *v1alpha1.ChatClass, change func(*v1alpha1.ChatSpec)) *v1alpha1.Chat {
	chat := newChat(unique("chat"))
	chat.Spec.ChatClassName = class.Name
	change(&chat.Spec)
	return chat
}

func nothing(*v1alpha1.ChatSpec) {}

// keptFor lets a chat be kept for so many seconds at rest.
func keptFor(seconds int32) func(*v1alpha1.ChatSpec) {
	return func(s *v1alpha1.ChatSpec) { s.Retention = &v1alpha1.ChatRetention{DeleteAfterSeconds: &seconds} }
}

// refusesAPirate reports whether the class keeps the system prompt from its chats.
func refusesAPirate(class *v1alpha1.ChatClass) func(context.Context) bool {
	return func(ctx context.Context) bool {
		chat := chatOf(class, func(s *v1alpha1.ChatSpec) { s.SystemPrompt = "Be a pirate." })
		return says(dryAs(ctx, chatter, chat), "does not let its chats set spec.systemPrompt")
	}
}

func TestChatWithRestrictedFieldsIsRejected(t *testing.T) {
	t.Parallel()
	class := restricted(func(r *v1alpha1.ChatRestrictions) {
		r.Fields = []v1alpha1.ChatField{
			"systemPrompt", "instructionsFrom", "skillsFrom", "whenModelConfigUnavailable", "reasoningEffort",
			"tools", "workspace", "debug"}
		r.ModelConfigs = []v1alpha1.ModelConfigReference{{Name: "small"}, {Name: "medium"}}
		r.Limits = &v1alpha1.ChatLimits{MaxSteps: new(int32(5)), MaxQueue: new(int32(5)),
			Budget: &v1alpha1.Budget{Currency: "USD", Amount: "1.50"}}
		r.Retention = &v1alpha1.ChatRetention{DeleteAfterSeconds: new(int32(3600))}
	})
	free := restricted(func(*v1alpha1.ChatRestrictions) {})
	before := chatOf(class, func(s *v1alpha1.ChatSpec) { s.SystemPrompt = "Be a pirate." })
	mustCreate(t, chatter, before) // There is no such class yet.
	mustCreate(t, curator, class)
	mustCreate(t, curator, free)
	if err := until(t.Context(), "the class is in force", refusesAPirate(class)); err != nil {
		t.Fatal(err)
	}
	ref := func(name string) *v1alpha1.ModelConfigReference { return &v1alpha1.ModelConfigReference{Name: name} }
	budget := func(currency v1alpha1.Currency, amount v1alpha1.Amount) func(*v1alpha1.ChatSpec) {
		return func(s *v1alpha1.ChatSpec) {
			s.Limits = &v1alpha1.ChatLimits{Budget: &v1alpha1.Budget{Currency: currency, Amount: amount}}
		}
	}
	elsewhere := chatOf(free, func(s *v1alpha1.ChatSpec) { s.SystemPrompt = "Be a pirate." })
	mustCreate(t, chatter, elsewhere)
	const (
		field  = "does not let its chats set spec."
		model  = "does not let its chats name ChatModelConfig large: it allows small, medium"
		dearer = "allows less of spec.limits.budget"
	)
	try(t, []write{
		{manager, "starts a sub-chat of one that is older than the class", creates(agents.Spawned(before,
			&v1alpha1.AgentChange{Key: "a", Chat: unique("chat"), Spawn: &v1alpha1.AgentSpawn{Prompt: "Look."}})), ""},
		{chatter, "says nothing", creates(chatOf(class, nothing)), ""},
		{chatter, "gives a system prompt and tools", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.SystemPrompt, s.Tools = "Be a pirate.", &v1alpha1.ChatTools{StopAfter: []string{"a"}}
		})), field + "systemPrompt, spec.tools: leave that out, or name another class"},
		{administrator, "gives skills", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.SkillsFrom = []v1alpha1.SkillSource{{ConfigMapRef: v1alpha1.ConfigMapReference{Name: "any"}}}
		})), field + "skillsFrom"},
		{administrator, "gives instructions", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.InstructionsFrom = []v1alpha1.InstructionsSource{{ConfigMapKeyRef: inConfigMap("any", "a")}}
		})), field + "instructionsFrom"},
		{chatter, "takes another workspace", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.Workspace = &v1alpha1.WorkspaceSource{PodRef: &v1alpha1.WorkspacePodReference{Name: "any"}}
		})), field + "workspace"},
		{chatter, "has its calls recorded", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.Debug = &v1alpha1.DebugSettings{Enabled: true}
		})), field + "debug"},
		{chatter, "lets the default answer", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.WhenModelConfigUnavailable = v1alpha1.ModelConfigUnavailableUseDefault
		})), field + "whenModelConfigUnavailable"},
		{chatter, "thinks more", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.ReasoningEffort = v1alpha1.EffortMax
		})), field + "reasoningEffort"},
		{chatter, "names a model of the list",
			creates(chatOf(class, func(s *v1alpha1.ChatSpec) { s.ModelConfigRef = ref("medium") })), ""},
		{chatter, "names another model",
			creates(chatOf(class, func(s *v1alpha1.ChatSpec) { s.ModelConfigRef = ref("large") })), model},
		{chatter, "is advised by another model", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.Advisor = &v1alpha1.ChatAdvisor{Enabled: new(true), ModelConfigRef: ref("large")}
		})), model},
		{chatter, "starts agents that another model answers", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.SubAgents = &v1alpha1.SubAgentSettings{ModelConfigs: []v1alpha1.ModelConfigReference{{Name: "large"}}}
		})), model},
		{chatter, "has its context summarised by another model", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.Compaction = &v1alpha1.CompactionPolicy{ModelConfigRef: ref("large")}
		})), model},
		{chatter, "has it summarised early", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.Compaction = &v1alpha1.CompactionPolicy{ThresholdPercent: new(int32(20)), ModelConfigRef: ref("small")}
		})), ""},
		{chatter, "is kept for an hour", creates(chatOf(class, keptFor(3600))), ""},
		{chatter, "is kept for longer", creates(chatOf(class, keptFor(3601))),
			"keeps no chat at rest for longer than 3600 seconds"},
		{chatter, "has fewer steps", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.Limits = &v1alpha1.ChatLimits{MaxSteps: new(int32(5)), MaxDepth: new(int32(8))}
		})), ""},
		{chatter, "has too many steps", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.Limits = &v1alpha1.ChatLimits{MaxSteps: new(int32(6)), MaxQueue: new(int32(7))}
		})), "allows less of spec.limits.maxSteps, spec.limits.maxQueue"},
		{chatter, "spends less", creates(chatOf(class, budget("USD", "1.5"))), ""},
		{chatter, "spends more", creates(chatOf(class, budget("USD", "1.51"))), dearer},
		{chatter, "spends another currency", creates(chatOf(class, budget("EUR", "0.1"))), dearer},
		{chatter, "suspends a chat that is older than the class", patches(before, `{"spec":{"suspend":true}}`), ""},
		{chatter, "says something else there", patches(before, `{"spec":{"systemPrompt":"Be kind."}}`), field + "systemPrompt"},
		{chatter, "takes it out", patches(before, `{"spec":{"systemPrompt":null}}`), ""},
		{chatter, "moves a chat into the class", patches(elsewhere, `{"spec":{"chatClassName":"`+class.Name+`"}}`),
			field + "systemPrompt"},
		{chatter, "moves a chat out of every class", patches(elsewhere, `{"spec":{"chatClassName":null}}`), ""},
		{manager, "says how a chat stands that is older than the class",
			patchesStatus(before, `{"status":{"phase":"Waiting"}}`), ""},
	})
}

// TestDefaultClassAppliesToChatsWithoutClass is not parallel: the class restricts all chats of the namespace.
func TestDefaultClassAppliesToChatsWithoutClass(t *testing.T) {
	class := restricted(func(r *v1alpha1.ChatRestrictions) { r.Fields = []v1alpha1.ChatField{"systemPrompt"} })
	class.Spec.Default = true
	free := restricted(func(*v1alpha1.ChatRestrictions) {})
	mustCreate(t, curator, class)
	mustCreate(t, curator, free)
	t.Cleanup(func() { _ = cluster.Client.Delete(context.WithoutCancel(t.Context()), class) })
	if err := until(t.Context(), "the class is in force", refusesAPirate(class)); err != nil {
		t.Fatal(err)
	}
	pirate := newChat(unique("chat"))
	pirate.Spec.SystemPrompt = "Be a pirate."
	elsewhere := newChat(unique("chat"))
	elsewhere.Namespace, elsewhere.Spec = otherNS, pirate.Spec
	try(t, []write{
		{chatter, "names no class", creates(pirate), "does not let its chats set spec.systemPrompt"},
		{chatter, "names a class that allows more",
			creates(chatOf(free, func(s *v1alpha1.ChatSpec) { s.SystemPrompt = "Be a pirate." })), ""},
		{administrator, "names no class in another namespace", creates(elsewhere), ""},
	})
}

func TestClassesAreWrittenByThoseWhoMay(t *testing.T) {
	t.Parallel()
	class := restricted(func(r *v1alpha1.ChatRestrictions) { r.Fields = []v1alpha1.ChatField{"debug"} })
	mustCreate(t, curator, class)
	loosen := patches(class, `{"spec":{"restrictions":null}}`)
	var all []write
	for _, who := range []actor{chatter, owner, viewer, approver, gateway, podA, manager} {
		all = append(all, write{who, "loosens a class", loosen, noRight},
			write{who, "writes another one", creates(restricted(func(*v1alpha1.ChatRestrictions) {})), noRight})
	}
	mayGet(t, curator, "configmaps", "handbook")
	const refusal = "curator may not get the ConfigMaps of namespace team"
	foreign := instructing("internal")
	mustCreate(t, administrator, foreign)
	move := func(to string) func(context.Context, client.Client) error {
		return patches(classOfPool(t), `{"spec":{"defaults":{"workspace":`+to+`}}}`)
	}
	try(t, append(all,
		write{curator, "loosens a class", loosen, ""},
		write{curator, "names a ConfigMap", creates(instructing("handbook")), refusal},
		write{curator, "has another key read", patches(foreign,
			`{"spec":{"defaults":{"instructionsFrom":[{"configMapKeyRef":{"name":"internal","key":"b"}}]}}}`), refusal},
		write{curator, "describes a class that names one", patches(foreign, `{"spec":{"description":"For coders."}}`), ""},
		write{curator, "gives all chats one pod", creates(chattest.In(ns, chattest.Class(unique("class"),
			func(s *v1alpha1.ChatClassSpec) {
				s.Defaults.Workspace = &v1alpha1.WorkspaceSource{PodRef: &v1alpha1.WorkspacePodReference{Name: "any"}}
			}))), "leave podRef to the chats"},
		write{curator, "moves workspaces to another pool", move(`{"warmPoolRef":{"name":"other"}}`), "would stay behind"},
		write{curator, "has them stopped sooner", move(`{"idleSeconds":60}`), ""},
	))
}

// classOfPool is a class whose chats work in a pool.
func classOfPool(t *testing.T) *v1alpha1.ChatClass {
	t.Helper()
	class := chattest.In(ns, chattest.Class(unique("class"), func(s *v1alpha1.ChatClassSpec) {
		s.Defaults.Workspace = &v1alpha1.WorkspaceSource{WarmPoolRef: &v1alpha1.WarmPoolReference{Name: "pool"}}
	}))
	mustCreate(t, curator, class)
	return class
}

func TestAClassKeepsCompactionAndRetentionToItself(t *testing.T) {
	t.Parallel()
	class := restricted(func(r *v1alpha1.ChatRestrictions) {
		r.Fields = []v1alpha1.ChatField{v1alpha1.FieldCompaction, v1alpha1.FieldRetention, v1alpha1.FieldSystemPrompt}
	})
	mustCreate(t, curator, class)
	if err := until(t.Context(), "the class is in force", refusesAPirate(class)); err != nil {
		t.Fatal(err)
	}
	try(t, []write{
		{chatter, "says when its context is summarised", creates(chatOf(class, func(s *v1alpha1.ChatSpec) {
			s.Compaction = &v1alpha1.CompactionPolicy{ThresholdPercent: new(int32(20))}
		})), "does not let its chats set spec.compaction"},
		{chatter, "says for how long it is kept", creates(chatOf(class, keptFor(60))),
			"does not let its chats set spec.retention"},
	})
}

func TestRetentionIsOfTheChatAtTheTop(t *testing.T) {
	t.Parallel()
	chat := func(seconds int32, change ...func(*v1alpha1.ChatSpec)) *v1alpha1.Chat {
		chat := newChat(unique("chat"))
		for _, change := range append(change, keptFor(seconds)) {
			change(&chat.Spec)
		}
		return chat
	}
	below := func(s *v1alpha1.ChatSpec) { s.ParentRef = &v1alpha1.ChatReference{Name: "any"} }
	const tooShort, tooLong = "should be greater than or equal to 1", "should be less than or equal to 315360000"
	try(t, []write{
		{chatter, "keeps a chat for a second", creates(chat(1)), ""},
		{chatter, "keeps a chat for ten years", creates(chat(315360000)), ""},
		{chatter, "keeps a chat for no time", creates(chat(0)), tooShort},
		{chatter, "keeps a chat for longer than ten years", creates(chat(315360001)), tooLong},
		{chatter, "keeps a sub-chat", creates(chat(60, below)),
			"a sub-chat is deleted with the chat above it: set retention there"},
	})
}
