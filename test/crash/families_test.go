// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/test/kit/chattest"
)

// families are the scenarios in which the chat has a sub-chat.
var families = []scenario{
	{name: "a chat waits for its sub-chat, which finishes", does: []step{
		prompts("hello"), awaits(beingAnswered), delegates("look it up"),
		awaits(reason("sub-prompt", v1beta1.ReasonAnswering)), fromHere(),
		answers(chattest.Waits("call_1", subChatName, v1beta1.MaxWaitSeconds)),
		awaits(chatSays(v1beta1.ReasonWaitingForSubChats)),
		subAnswers(chattest.Says("It is the CNI.")), answers(chattest.Results("call_1")),
		answers(chattest.Says("It is the CNI, it says.")),
	}},
	{name: "a model starts a sub-chat, waits for it, and tells it more", does: []step{
		prompts("hello"), awaits(beingAnswered), fromHere(),
		answers(chattest.Calls("call_1")),
		answers(chattest.Results("call_1"), chattest.Changes(v1beta1.AgentChange{Key: "k.1", Chat: subChatName,
			Spawn: &v1beta1.AgentSpawn{Type: v1beta1.AgentExplore, Prompt: "look it up"}})),
		answers(chattest.Waits("call_2", subChatName, v1beta1.MaxWaitSeconds)),
		subAnswers(chattest.Says("It is the CNI.")), answers(chattest.Results("call_2")),
		answers(chattest.Calls("call_3")),
		answers(chattest.Results("call_3"), chattest.Changes(v1beta1.AgentChange{Key: "k.3", Chat: subChatName,
			Message: &v1beta1.AgentMessage{Content: "And why?"}})),
		subAnswers(chattest.Says("It has no addresses left.")), answers(chattest.Says("It is the CNI, it says.")),
	}},
	{name: "a chat at rest expires with its sub-chat", ends: nothingLeft, does: []step{
		prompts("hello", goesAtRest), awaits(beingAnswered), delegates("look it up"),
		awaits(reason("sub-prompt", v1beta1.ReasonAnswering)), answers(chattest.Says("Hi.")), fromHere(),
		subAnswers(chattest.Says("It is the CNI.")),
	}},
}

// deletions are the scenarios in which a sub-chat under a budget is deleted.
var deletions = []scenario{
	{name: "a deleted sub-chat counts for the budget", bare: true, ends: hasDeletedCost, does: []step{
		configures(priced), prompts("hello", limited), awaits(beingAnswered), delegates("look it up"),
		awaits(reason("sub-prompt", v1beta1.ReasonAnswering)), answers(chattest.Says("Hi.")), fromHere(),
		subAnswers(chattest.Says("It is the CNI."), chattest.Costs(priceOfReply)), awaits(recorded()),
		removes(chattest.Chat(subChatName)),
	}},
}

// priceOfReply is what the reply of the sub-chat costs, in millionths of a dollar.
const priceOfReply = 300

func priced(s *v1beta1.ChatModelConfigSpec) {
	s.Pricing = &v1beta1.Pricing{Currency: "USD", InputPerMillion: "1", OutputPerMillion: "1"}
}

func limited(chat *v1beta1.Chat) {
	chat.Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: "USD", Amount: "1"}}
}

// recorded means that the chat knows what the sub-chat has cost.
func recorded() condition {
	return condition{"the cost of the sub-chat is recorded", func(s *snapshot) bool {
		record := s.chat.Status.Internal.SubChatCosts
		return len(record) == 1 && cost.Spent(record[0].Cost, "USD") == priceOfReply
	}}
}

// hasDeletedCost means that the sub-chat is gone, and its cost counts once.
func hasDeletedCost(s *snapshot) bool {
	st := &s.chat.Status
	return atRest(s) && s.sub == nil && len(st.Internal.SubChatCosts) == 0 &&
		cost.Spent(st.DeletedCost, "USD") == priceOfReply
}

// delegates creates the sub-chat with a prompt.
func delegates(prompt string) step {
	return creates(chattest.Chat(subChatName, chattest.Prompt(prompt), chattest.ChildOf(chatName)))
}

// subAnswers lets the generation pod answer the sub-chat's attempt under way, or the next one.
func subAnswers(replies ...chattest.Reply) step {
	return func(ctx context.Context, w *world) error {
		w.sub.yields = append(w.sub.yields, replies)
		return w.await(ctx, "an attempt of the sub-chat is answered", func(*snapshot) bool { return len(w.sub.yields) == 0 })
	}
}
