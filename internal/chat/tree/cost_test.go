// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

func TestBudgetCoversChatAndItsDescendants(t *testing.T) {
	member := func(name, parent string, micros int64, budget string) v1beta1.Chat {
		chat := v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if parent != "" {
			chat.Spec.ParentRef = &v1beta1.ChatReference{Name: parent}
		}
		if budget != "" {
			chat.Spec.Limits = &v1beta1.ChatLimits{
				Budget: &v1beta1.Budget{Currency: "USD", Amount: v1beta1.Amount(budget)}}
		}
		if micros > 0 {
			chat.Status.Cost = []v1beta1.Cost{{Currency: "USD", MicroUnits: micros}}
		}
		return chat
	}
	chats := []v1beta1.Chat{
		member("root", "", 1, "5"), member("a", "root", 10, ""), member("b", "root", 100, "2"),
		member("below", "b", 1000, ""), member("stranger", "", 10000, "9"),
	}
	family := Of(chats)
	usd := func(micros int64) []v1beta1.Cost { return []v1beta1.Cost{{Currency: "USD", MicroUnits: micros}} }
	for name, c := range map[string]struct {
		chat   *v1beta1.Chat
		below  []v1beta1.Cost
		others map[string][]v1beta1.Cost
	}{
		"the root":            {&chats[0], usd(1110), nil},
		"a sub-chat":          {&chats[1], nil, map[string][]v1beta1.Cost{"root": usd(1101)}},
		"one with a sub-chat": {&chats[2], usd(1000), map[string][]v1beta1.Cost{"root": usd(1011)}},
		"below two budgets": {&chats[3], nil,
			map[string][]v1beta1.Cost{"b": usd(100), "root": usd(111)}},
		"alone": {&chats[4], nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			above, _ := family.Ancestors(c.chat)
			var others map[string][]v1beta1.Cost
			for _, b := range family.BudgetsAbove(c.chat, above) {
				if others == nil {
					others = map[string][]v1beta1.Cost{}
				}
				others[b.Chat] = b.Others
			}
			if diff := cmp.Diff(c.below, family.CostBelow(c.chat)); diff != "" {
				t.Errorf("below: -want +got\n%s", diff)
			}
			if diff := cmp.Diff(c.others, others); diff != "" {
				t.Errorf("of budgets above: -want +got\n%s", diff)
			}
		})
	}
	if chats[0].Status.Cost[0].MicroUnits != 1 {
		t.Error("the cost of the root was changed")
	}
}
