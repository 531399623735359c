// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/test/kit/check"
)

func TestStricterClassKeepsOlderValuesOfItsChats(t *testing.T) {
	t.Parallel()
	refs := func(names ...string) (all []v1beta1.ModelConfigReference) {
		for _, name := range names {
			all = append(all, v1beta1.ModelConfigReference{Name: name})
		}
		return all
	}
	class := restricted(func(r *v1beta1.ChatRestrictions) {
		r.Fields, r.ModelConfigs = []v1beta1.ChatField{v1beta1.FieldSystemPrompt}, refs("small")
		r.Limits = &v1beta1.ChatLimits{MaxSteps: new(int32(100)), MaxQueue: new(int32(5)), MaxSubChats: new(int32(5)),
			MaxDepth: new(int32(1)), ActionDeadlineSeconds: new(int32(60)),
			Budget: &v1beta1.Budget{Currency: "USD", Amount: "5"}}
		r.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(3600)), DeleteFailedAfterSeconds: new(int32(60))}
	})
	free := restricted(func(*v1beta1.ChatRestrictions) {})
	older := func(class *v1beta1.ChatClass) *v1beta1.Chat {
		chat := chatOf(class, func(s *v1beta1.ChatSpec) {
			large := refs("large")
			s.ModelConfigRef, s.SubAgents = &large[0], &v1beta1.SubAgentSettings{ModelConfigs: refs("large", "huge")}
			s.Advisor = &v1beta1.ChatAdvisor{Enabled: new(true), ModelConfigRef: &large[0]}
			s.Compaction = &v1beta1.CompactionPolicy{ModelConfigRef: &large[0]}
			s.Limits = &v1beta1.ChatLimits{MaxSteps: new(int32(500)), MaxQueue: new(int32(50)), MaxSubChats: new(int32(50)),
				MaxDepth: new(int32(2)), ActionDeadlineSeconds: new(int32(600)),
				Budget: &v1beta1.Budget{Currency: "USD", Amount: "9"}}
			s.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(7200)),
				DeleteFailedAfterSeconds: new(int32(600))}
		})
		mustCreate(t, chatter, chat)
		return chat
	}
	chat, elsewhere := older(class), older(free) // There is no such class yet.
	mustCreate(t, curator, class)
	mustCreate(t, curator, free)
	check.OK(t, until(t.Context(), "the class is in force", refusesAPirate(class)))
	change := func(does, spec, words string) write {
		return write{chatter, does, patches(chat, `{"spec":`+spec+`}`), words}
	}
	const (
		name, less   = "does not let its chats name ChatModelConfig large", "allows less of spec."
		kept, failed = "keeps no chat at rest for longer than 3600", "whose last turn failed for longer than 60 seconds"
	)
	try(t, []write{
		change("raises the budget within the limit", `{"limits":{"budget":{"amount":"4"}}}`, ""),
		change("raises it beyond", `{"limits":{"budget":{"amount":"5.01"}}}`, less+"limits.budget: "),
		change("takes it out", `{"limits":{"budget":null}}`, ""),
		change("takes other steps, which are too many", `{"limits":{"maxSteps":400}}`, less+"limits.maxSteps: "),
		change("takes fewer steps", `{"limits":{"maxSteps":50}}`, ""),
		change("has a longer queue", `{"limits":{"maxQueue":51}}`, less+"limits.maxQueue: "),
		change("has more sub-chats", `{"limits":{"maxSubChats":51}}`, less+"limits.maxSubChats: "),
		change("has deeper ones", `{"limits":{"maxDepth":3}}`, less+"limits.maxDepth: "),
		change("waits longer", `{"limits":{"actionDeadlineSeconds":601}}`, less+"limits.actionDeadlineSeconds: "),
		change("has its context summarised early", `{"compaction":{"thresholdPercent":20}}`, ""),
		change("asks for less advice", `{"advisor":{"maxUses":1}}`, ""),
		change("starts no agents", `{"subAgents":{"enabled":false}}`, ""),
		change("adds an agent's model that is allowed", `{"subAgents":{"modelConfigs":[{"name":"large"},{"name":"small"}]}}`,
			""),
		change("takes back one that is not",
			`{"subAgents":{"modelConfigs":[{"name":"large"},{"name":"huge"}]}}`, "ChatModelConfig huge: "),
		change("names a model that is allowed", `{"modelConfigRef":{"name":"small"}}`, ""),
		change("takes the other one back", `{"modelConfigRef":{"name":"large"}}`, name+": it allows small"),
		change("is kept shorter after a failure", `{"retention":{"deleteFailedAfterSeconds":30}}`, ""),
		change("is kept longer after a failure", `{"retention":{"deleteFailedAfterSeconds":90}}`, failed),
		change("is kept longer", `{"retention":{"deleteAfterSeconds":7201}}`, kept),
		change("is kept shorter", `{"retention":{"deleteAfterSeconds":1800}}`, ""),
		{chatter, "moves another chat into the class", patches(elsewhere, `{"spec":{"chatClassName":"`+class.Name+`"}}`),
			name},
	})
}

func TestChatsOfOpenAIClientsFitTheirClass(t *testing.T) {
	t.Parallel()
	reserving := restricted(func(r *v1beta1.ChatRestrictions) {
		r.Fields = []v1beta1.ChatField{v1beta1.FieldRetention, v1beta1.FieldLimits, v1beta1.FieldSystemPrompt}
	})
	limiting := restricted(func(r *v1beta1.ChatRestrictions) {
		r.Fields = []v1beta1.ChatField{v1beta1.FieldSystemPrompt}
		r.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(60))}
		r.Limits = &v1beta1.ChatLimits{ActionDeadlineSeconds: new(int32(60))}
	})
	for words, class := range map[string]*v1beta1.ChatClass{
		"does not let its chats set spec.limits, spec.retention": reserving, "for longer than 60 seconds": limiting,
	} {
		mustCreate(t, curator, class)
		check.OK(t, until(t.Context(), "the class is in force", refusesAPirate(class)))
		request := turn.Request{Namespace: ns, Model: turn.ClassPrefix + class.Name, Temporary: true,
			Tools: []v1beta1.ClientTool{{Name: "count"}}}
		bare, adapted := request.NewChat(unique("chat")), request.NewChat(unique("chat"))
		turn.AdaptToClasses(adapted, []v1beta1.ChatClass{*class})
		try(t, []write{
			{chatter, "creates a chat of " + class.Name + " as it is", creates(bare), words},
			{chatter, "creates one that is adapted to it", creates(adapted), ""},
		})
	}
}
