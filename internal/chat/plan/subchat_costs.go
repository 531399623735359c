// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"k8s.io/apimachinery/pkg/api/equality"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/cost"
)

// countDeletedSubChats adds what deleted sub-chats have cost. The same write removes them from the record.
func countDeletedSubChats(p *pass) error {
	st := p.status()
	st.DeletedCost = cost.Sum(st.DeletedCost, p.facts.SubChatCosts.Deleted)
	return nil
}

// recordSubChatCosts records what the chats below have cost. The cost of a chat with a turn changes with each step, so
// it is recorded only if there is something else to write.
func recordSubChatCosts(p *pass) {
	st, costs := p.status(), &p.facts.SubChatCosts
	record := func(entries []v1beta1.SubChatCost) {
		st.Internal.SubChatCosts = entries[:min(len(entries), v1beta1.MaxSubChatCosts)]
	}
	record(costs.AtRest)
	if len(costs.Now) > 0 && !equality.Semantic.DeepEqual(*st, p.chat.Status) {
		record(costs.Now)
	}
}
