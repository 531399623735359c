// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"context"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/agents"
	"parley.dev/parley/test/kit/check"
)

// restricted is a class that restricts its chats.
func restricted(change func(*v1beta1.ChatRestrictions)) *v1beta1.ChatClass {
	return newClass(func(s *v1beta1.ChatClassSpec) {
		s.Restrictions = &v1beta1.ChatRestrictions{}
		change(s.Restrictions)
	})
}

// instructing is a class whose chats are instructed by a ConfigMap.
func instructing(configMap string) *v1beta1.ChatClass {
	return newClass(func(s *v1beta1.ChatClassSpec) {
		s.Defaults.InstructionsFrom = []v1beta1.InstructionsSource{{ConfigMapKeyRef: inConfigMap(configMap, "a")}}
	})
}

// chatOf is a chat of a class that says this.
func chatOf(class *v1beta1.ChatClass, change func(*v1beta1.ChatSpec)) *v1beta1.Chat {
	chat := newChat(unique("chat"))
	chat.Spec.ChatClassName = class.Name
	change(&chat.Spec)
	return chat
}

func nothing(*v1beta1.ChatSpec) {}

// keptFor lets a chat be kept for so many seconds at rest.
func keptFor(seconds int32) func(*v1beta1.ChatSpec) {
	return func(s *v1beta1.ChatSpec) { s.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: &seconds} }
}

// keptAfterFailure lets a chat be kept for so many seconds at rest if its last turn failed.
func keptAfterFailure(seconds int32) func(*v1beta1.ChatSpec) {
	return func(s *v1beta1.ChatSpec) { s.Retention = &v1beta1.ChatRetention{DeleteFailedAfterSeconds: &seconds} }
}

// refusesAPirate reports whether the class keeps the system prompt from its chats.
func refusesAPirate(class *v1beta1.ChatClass) func(context.Context) bool {
	return func(ctx context.Context) bool {
		chat := chatOf(class, func(s *v1beta1.ChatSpec) { s.SystemPrompt = "Be a pirate." })
		return says(dryAs(ctx, chatter, chat), "does not let its chats set spec.systemPrompt")
	}
}

func TestChatWithRestrictedFieldsIsRejected(t *testing.T) {
	t.Parallel()
	class := restricted(func(r *v1beta1.ChatRestrictions) {
		r.Fields = []v1beta1.ChatField{
			"systemPrompt", "instructionsFrom", "skillsFrom", "whenModelConfigUnavailable", "reasoningEffort",
			"tools", "workspace", "debug"}
		r.ModelConfigs = []v1beta1.ModelConfigReference{{Name: "small"}, {Name: "medium"}}
		r.Limits = &v1beta1.ChatLimits{MaxSteps: new(int32(5)), MaxQueue: new(int32(5)),
			Budget: &v1beta1.Budget{Currency: "USD", Amount: "1.50"}}
		r.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(3600))}
	})
	free := restricted(func(*v1beta1.ChatRestrictions) {})
	before := chatOf(class, func(s *v1beta1.ChatSpec) { s.SystemPrompt = "Be a pirate." })
	mustCreate(t, chatter, before) // There is no such class yet.
	mustCreate(t, curator, class)
	mustCreate(t, curator, free)
	check.OK(t, until(t.Context(), "the class is in force", refusesAPirate(class)))
	ref := func(name string) *v1beta1.ModelConfigReference { return &v1beta1.ModelConfigReference{Name: name} }
	budget := func(currency v1beta1.Currency, amount v1beta1.Amount) func(*v1beta1.ChatSpec) {
		return func(s *v1beta1.ChatSpec) {
			s.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: currency, Amount: amount}}
		}
	}
	elsewhere := chatOf(free, func(s *v1beta1.ChatSpec) { s.SystemPrompt = "Be a pirate." })
	mustCreate(t, chatter, elsewhere)
	const (
		field  = "does not let its chats set spec."
		model  = "does not let its chats name ChatModelConfig large: it allows small, medium"
		dearer = "allows less of spec.limits.budget"
	)
	subChat := func() *v1beta1.Chat {
		return agents.Spawned(before, &v1beta1.AgentChange{Key: "a", Chat: unique("chat"),
			Spawn: &v1beta1.AgentSpawn{Prompt: "Look."}})
	}
	type spec = v1beta1.ChatSpec
	begins := func(who actor, does string, change func(*spec), words string) write {
		return write{who, does, creates(chatOf(class, change)), words}
	}
	try(t, []write{
		{manager, "starts a sub-chat of one that is older than the class", creates(subChat()), ""},
		{restorer, "restores a sub-chat of one that is older than the class", creates(restored(subChat())), ""},
		begins(chatter, "says nothing", nothing, ""),
		begins(chatter, "gives a system prompt and tools", func(s *spec) {
			s.SystemPrompt, s.Tools = "Be a pirate.", &v1beta1.ChatTools{StopAfter: []string{"a"}}
		}, field+"systemPrompt, spec.tools: leave that out, or name another class"),
		begins(administrator, "gives skills", func(s *spec) {
			s.SkillsFrom = []v1beta1.SkillSource{{ConfigMapRef: v1beta1.ConfigMapReference{Name: "any"}}}
		}, field+"skillsFrom"),
		begins(administrator, "gives instructions", func(s *spec) {
			s.InstructionsFrom = []v1beta1.InstructionsSource{{ConfigMapKeyRef: inConfigMap("any", "a")}}
		}, field+"instructionsFrom"),
		begins(chatter, "takes another workspace", func(s *spec) {
			s.Workspace = &v1beta1.WorkspaceSource{PodRef: &v1beta1.WorkspacePodReference{Name: "any"}}
		}, field+"workspace"),
		begins(chatter, "has its calls recorded", func(s *spec) { s.Debug = &v1beta1.DebugSettings{Enabled: true} },
			field+"debug"),
		begins(chatter, "lets the default answer", func(s *spec) {
			s.WhenModelConfigUnavailable = v1beta1.ModelConfigUnavailableUseDefault
		}, field+"whenModelConfigUnavailable"),
		begins(chatter, "thinks more", func(s *spec) { s.ReasoningEffort = v1beta1.EffortMax }, field+"reasoningEffort"),
		begins(chatter, "names a model of the list", func(s *spec) { s.ModelConfigRef = ref("medium") }, ""),
		begins(chatter, "names another model", func(s *spec) { s.ModelConfigRef = ref("large") }, model),
		begins(chatter, "is advised by another model", func(s *spec) {
			s.Advisor = &v1beta1.ChatAdvisor{Enabled: new(true), ModelConfigRef: ref("large")}
		}, model),
		begins(chatter, "starts agents that another model answers", func(s *spec) {
			s.SubAgents = &v1beta1.SubAgentSettings{ModelConfigs: []v1beta1.ModelConfigReference{{Name: "large"}}}
		}, model),
		begins(chatter, "has its context summarised by another model", func(s *spec) {
			s.Compaction = &v1beta1.CompactionPolicy{ModelConfigRef: ref("large")}
		}, model),
		begins(chatter, "has it summarised early", func(s *spec) {
			s.Compaction = &v1beta1.CompactionPolicy{ThresholdPercent: new(int32(20)), ModelConfigRef: ref("small")}
		}, ""),
		begins(chatter, "is kept for an hour", keptFor(3600), ""),
		begins(chatter, "is kept for longer", keptFor(3601), "keeps no chat at rest for longer than 3600 seconds"),
		begins(chatter, "is kept for an hour after a failure", keptAfterFailure(3600), ""),
		begins(chatter, "is kept for longer after a failure", keptAfterFailure(3601),
			"whose last turn failed for longer than 3600 seconds"),
		begins(chatter, "has fewer steps", func(s *spec) {
			s.Limits = &v1beta1.ChatLimits{MaxSteps: new(int32(5)), MaxDepth: new(int32(8))}
		}, ""),
		begins(chatter, "has too many steps", func(s *spec) {
			s.Limits = &v1beta1.ChatLimits{MaxSteps: new(int32(6)), MaxQueue: new(int32(7))}
		}, "allows less of spec.limits.maxSteps, spec.limits.maxQueue"),
		begins(chatter, "spends less", budget("USD", "1.5"), ""),
		begins(chatter, "spends more", budget("USD", "1.51"), dearer),
		begins(chatter, "spends another currency", budget("EUR", "0.1"), dearer),
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
	class := restricted(func(r *v1beta1.ChatRestrictions) { r.Fields = []v1beta1.ChatField{"systemPrompt"} })
	class.Spec.Default = true
	free := restricted(func(*v1beta1.ChatRestrictions) {})
	mustCreate(t, curator, class)
	mustCreate(t, curator, free)
	t.Cleanup(func() { _ = cluster.Client.Delete(context.WithoutCancel(t.Context()), class) })
	check.OK(t, until(t.Context(), "the class is in force", refusesAPirate(class)))
	pirate := newChat(unique("chat"))
	pirate.Spec.SystemPrompt = "Be a pirate."
	elsewhere := newChat(unique("chat"))
	elsewhere.Namespace, elsewhere.Spec = otherNS, pirate.Spec
	try(t, []write{
		{chatter, "names no class", creates(pirate), "does not let its chats set spec.systemPrompt"},
		{chatter, "names a class that allows more",
			creates(chatOf(free, func(s *v1beta1.ChatSpec) { s.SystemPrompt = "Be a pirate." })), ""},
		{administrator, "names no class in another namespace", creates(elsewhere), ""},
	})
}

func TestClassesAreWrittenByThoseWhoMay(t *testing.T) {
	t.Parallel()
	class := restricted(func(r *v1beta1.ChatRestrictions) { r.Fields = []v1beta1.ChatField{"debug"} })
	mustCreate(t, curator, class)
	loosen := patches(class, `{"spec":{"restrictions":null}}`)
	var all []write
	for _, who := range []actor{chatter, owner, viewer, approver, gateway, podA, manager} {
		all = append(all, write{who, "loosens a class", loosen, noRight},
			write{who, "writes another one", creates(restricted(func(*v1beta1.ChatRestrictions) {})), noRight})
	}
	mayGet(t, curator, "configmaps", "handbook")
	const refusal = "curator may not get the ConfigMaps of namespace team"
	foreign := instructing("internal")
	mustCreate(t, administrator, foreign)
	move := func(to string) action {
		return patches(classOfPool(t), `{"spec":{"defaults":{"workspace":`+to+`}}}`)
	}
	try(t, append(all,
		write{curator, "loosens a class", loosen, ""},
		write{curator, "names a ConfigMap", creates(instructing("handbook")), refusal},
		write{curator, "has another key read", patches(foreign,
			`{"spec":{"defaults":{"instructionsFrom":[{"configMapKeyRef":{"name":"internal","key":"b"}}]}}}`), refusal},
		write{curator, "describes a class that names one", patches(foreign, `{"spec":{"description":"For coders."}}`), ""},
		write{curator, "gives all chats one pod", creates(newClass(func(s *v1beta1.ChatClassSpec) {
			s.Defaults.Workspace = &v1beta1.WorkspaceSource{PodRef: &v1beta1.WorkspacePodReference{Name: "any"}}
		})), "leave podRef to the chats"},
		write{curator, "moves workspaces to another pool", move(`{"warmPoolRef":{"name":"other"}}`), "would stay behind"},
		write{curator, "has them stopped sooner", move(`{"idleSeconds":60}`), ""},
	))
}

// classOfPool is a class whose chats work in a pool.
func classOfPool(t *testing.T) *v1beta1.ChatClass {
	t.Helper()
	class := newClass(func(s *v1beta1.ChatClassSpec) {
		s.Defaults.Workspace = &v1beta1.WorkspaceSource{WarmPoolRef: &v1beta1.WarmPoolReference{Name: "pool"}}
	})
	mustCreate(t, curator, class)
	return class
}

func TestClassLimitsRetentionAfterFailure(t *testing.T) {
	t.Parallel()
	class := restricted(func(r *v1beta1.ChatRestrictions) {
		r.Fields = []v1beta1.ChatField{v1beta1.FieldSystemPrompt}
		r.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(60)), DeleteFailedAfterSeconds: new(int32(90))}
	})
	mustCreate(t, curator, class)
	check.OK(t, until(t.Context(), "the class is in force", refusesAPirate(class)))
	try(t, []write{
		{chatter, "is kept for long after a failure", creates(chatOf(class, keptAfterFailure(90))), ""},
		{chatter, "is kept for longer after a failure", creates(chatOf(class, keptAfterFailure(91))),
			"whose last turn failed for longer than 90 seconds (its spec.restrictions.retention): lower " +
				"spec.retention.deleteFailedAfterSeconds"},
	})
}

func TestAClassKeepsCompactionAndRetentionToItself(t *testing.T) {
	t.Parallel()
	class := restricted(func(r *v1beta1.ChatRestrictions) {
		r.Fields = []v1beta1.ChatField{v1beta1.FieldCompaction, v1beta1.FieldRetention, v1beta1.FieldSystemPrompt}
	})
	mustCreate(t, curator, class)
	check.OK(t, until(t.Context(), "the class is in force", refusesAPirate(class)))
	try(t, []write{
		{chatter, "says when its context is summarised", creates(chatOf(class, func(s *v1beta1.ChatSpec) {
			s.Compaction = &v1beta1.CompactionPolicy{ThresholdPercent: new(int32(20))}
		})), "does not let its chats set spec.compaction"},
		{chatter, "says for how long it is kept", creates(chatOf(class, keptFor(60))),
			"does not let its chats set spec.retention"},
	})
}

func TestRetentionIsOfTheChatAtTheTop(t *testing.T) {
	t.Parallel()
	chat := func(seconds int32, change ...func(*v1beta1.ChatSpec)) *v1beta1.Chat {
		chat := newChat(unique("chat"))
		for _, change := range append(change, keptFor(seconds)) {
			change(&chat.Spec)
		}
		return chat
	}
	below := func(s *v1beta1.ChatSpec) { s.ParentRef = &v1beta1.ChatReference{Name: "any"} }
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

// worksAs is a chat whose model works as the service account.
func worksAs(account string, changes v1beta1.ClusterChanges) *v1beta1.Chat {
	chat := newChat(unique("chat"))
	chat.Spec.Kubernetes = &v1beta1.KubernetesAccess{ServiceAccountName: account, Changes: changes}
	return chat
}

// workingAs is a class whose chats' models do.
func workingAs(account string, changes v1beta1.ClusterChanges) *v1beta1.ChatClass {
	return newClass(func(s *v1beta1.ChatClassSpec) {
		s.Defaults.Kubernetes = worksAs(account, changes).Spec.Kubernetes
	})
}

// mayImpersonate lets the person act as the service account of the namespace.
func mayImpersonate(t *testing.T, who actor, account string) {
	t.Helper()
	grant(t, who, rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"serviceaccounts"},
		ResourceNames: []string{account}, Verbs: []string{"impersonate"}})
}

// Security (a model that works in the cluster): cannot act as an account that the author of the chat or its class may
// not impersonate, nor as that of the generation pods. Also TestClassServiceAccountRequiresImpersonationRightOfAuthor
// of test/admission.
func TestServiceAccountReferenceRequiresImpersonationRight(t *testing.T) {
	t.Parallel()
	mayImpersonate(t, chatter, "viewer")
	awaitAllowed(t.Context(), t, chatter, creates(worksAs("viewer", "")))
	foreign, own := worksAs("fixer", v1beta1.ClusterChangesWithApproval), worksAs("viewer", "")
	mustCreate(t, administrator, foreign)
	mustCreate(t, chatter, own)
	sub := worksAs("fixer", "")
	sub.Spec.ParentRef = &v1beta1.ChatReference{Name: foreign.Name}
	mustCreate(t, administrator, workingAs("fixer", ""))
	const refusal = "chatter may not impersonate service account fixer, which spec.kubernetes names"
	try(t, []write{
		{chatter, "names one that they may impersonate",
			creates(worksAs("viewer", v1beta1.ClusterChangesWithApproval)), ""},
		{chatter, "names another one", creates(worksAs("fixer", "")), refusal},
		{chatter, "names another one in a sub-chat of one that does", creates(sub), refusal},
		{chatter, "names another one instead",
			patches(own, `{"spec":{"kubernetes":{"serviceAccountName":"fixer"}}}`), refusal},
		{chatter, "lets another one change things without approval",
			patches(foreign, `{"spec":{"kubernetes":{"changes":"WithoutApproval"}}}`), refusal},
		{chatter, "changes something else of a chat that names another one",
			patches(foreign, `{"spec":{"title":"Other"}}`), ""},
		{chatter, "takes another one away", patches(foreign, `{"spec":{"kubernetes":null}}`), ""},
		{impostor, "is called like the manager", creates(worksAs("fixer", "")), ""}, // With every right in the namespace.
		{administrator, "names the account of the generation pods", creates(worksAs("parley-generation", "")),
			"this is the account of the generation pods"},
		{administrator, "names a path", creates(worksAs("../fixer", "")),
			"the name of a service account has lower-case letters"},
		{administrator, "names nothing", creates(worksAs("", "")), "should be at least 1 chars long"},
		{administrator, "says of changes what there is not", creates(worksAs("fixer", "Always")), "Unsupported value"},
	})
}

func TestClassServiceAccountRequiresImpersonationRightOfAuthor(t *testing.T) {
	t.Parallel()
	mayImpersonate(t, curator, "viewer")
	awaitAllowed(t.Context(), t, curator, creates(workingAs("viewer", "")))
	own := workingAs("viewer", "")
	mustCreate(t, curator, own)
	const refusal = "curator may not impersonate service account fixer, which spec.defaults.kubernetes names"
	try(t, []write{
		{curator, "names another one", creates(workingAs("fixer", "")), refusal},
		{curator, "names another one instead",
			patches(own, `{"spec":{"defaults":{"kubernetes":{"serviceAccountName":"fixer"}}}}`), refusal},
		{curator, "describes the class", patches(own, `{"spec":{"description":"To look around."}}`), ""},
		{chatter, "has a chat of the class", creates(chatOf(own, nothing)), ""},
		{chatter, "has one that works as another account",
			creates(chatOf(own, func(s *v1beta1.ChatSpec) { s.Kubernetes = worksAs("fixer", "").Spec.Kubernetes })),
			"chatter may not impersonate service account fixer"},
	})
}

func TestAClassKeepsKubernetesFromItsChats(t *testing.T) {
	t.Parallel()
	class := restricted(func(r *v1beta1.ChatRestrictions) {
		r.Fields = []v1beta1.ChatField{v1beta1.FieldKubernetes, v1beta1.FieldSystemPrompt}
	})
	mustCreate(t, curator, class)
	check.OK(t, until(t.Context(), "the class is in force", refusesAPirate(class)))
	try(t, []write{{administrator, "names a service account",
		creates(chatOf(class, func(s *v1beta1.ChatSpec) { s.Kubernetes = worksAs("fixer", "").Spec.Kubernetes })),
		"does not let its chats set spec.kubernetes"}})
}
