// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
)

func usd(micros int64) []v1beta1.Cost {
	if micros == 0 {
		return nil
	}
	return []v1beta1.Cost{{Currency: "USD", MicroUnits: micros}}
}

// paid is a chat with the UID of its name that has cost something, below one with the UID of its name.
func paid(name, parent string, micros int64) v1beta1.Chat {
	chat := v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
	chat.Status.Cost, chat.Status.Phase = usd(micros), v1beta1.ChatWaiting
	if parent != "" {
		chat.Spec.ParentRef, chat.Status.Internal.ParentUID = &v1beta1.ChatReference{Name: parent}, parent
	}
	return chat
}

// withBudget gives the chat a budget, and the record that its status has.
func withBudget(chat *v1beta1.Chat, record ...v1beta1.SubChatCost) {
	chat.Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: "USD", Amount: "5"}}
	chat.Status.Internal.SubChatCosts = record
}

func entry(name string, micros int64) v1beta1.SubChatCost {
	return v1beta1.SubChatCost{Name: name, UID: name, Cost: usd(micros)}
}

func TestBudgetCoversChatAndItsDescendants(t *testing.T) {
	chats := []v1beta1.Chat{
		paid("root", "", 1), paid("a", "root", 10), paid("b", "root", 100), paid("below", "b", 1000),
		paid("other", "", 10000),
	}
	withBudget(&chats[0], entry("a", 5), entry("missing", 20000))
	withBudget(&chats[2])
	withBudget(&chats[4])
	chats[0].Status.DeletedCost, chats[2].Status.DeletedCost = usd(300000), usd(400000) // The root has its own part of it.
	family := Of(chats)
	for name, c := range map[string]struct {
		chat   *v1beta1.Chat
		below  int64
		others map[string][]v1beta1.Cost
	}{
		"the root":            {&chats[0], 21110, nil},
		"a sub-chat":          {&chats[1], 0, map[string][]v1beta1.Cost{"root": usd(321101)}},
		"one with a sub-chat": {&chats[2], 1000, map[string][]v1beta1.Cost{"root": usd(321011)}},
		"below two budgets":   {&chats[3], 0, map[string][]v1beta1.Cost{"b": usd(400100), "root": usd(320111)}},
		"alone":               {&chats[4], 0, nil},
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
			costs := family.CostsBelow(c.chat, nil, nil)
			if diff := cmp.Diff(usd(c.below), costs.Below()); diff != "" {
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

func TestRecordFollowsChatsBelow(t *testing.T) {
	all := []v1beta1.SubChatCost{entry("mid", 1), entry("deep", 2)}
	for name, c := range map[string]struct {
		change      func(chats []v1beta1.Chat)
		gone        []string
		now, atRest []v1beta1.SubChatCost
		missing     string
		deleted     int64
	}{
		"nothing is recorded": {change: func(c []v1beta1.Chat) { withBudget(&c[0]) },
			now: []v1beta1.SubChatCost{entry("deep", 100), entry("mid", 10)}},
		"all are at rest": {change: func([]v1beta1.Chat) {},
			now: []v1beta1.SubChatCost{entry("mid", 10), entry("deep", 100)}},
		"the cache is older": {change: func(c []v1beta1.Chat) { c[1].Status.Cost, c[2].Status.Cost = nil, usd(1) },
			now: []v1beta1.SubChatCost{entry("mid", 1), entry("deep", 2)}},
		"one is at work": {change: func(c []v1beta1.Chat) { c[2].Status.Phase = v1beta1.ChatRunning },
			now:    []v1beta1.SubChatCost{entry("mid", 10), entry("deep", 100)},
			atRest: []v1beta1.SubChatCost{entry("mid", 10), entry("deep", 2)}},
		"one is missing": {change: func(c []v1beta1.Chat) { c[2].Name, c[2].UID = "new", "new" }, missing: "deep",
			now: []v1beta1.SubChatCost{entry("mid", 10), entry("deep", 2), entry("new", 100)}},
		"one was deleted": {change: func(c []v1beta1.Chat) { c[2].UID = "new" }, missing: "deep", gone: []string{"deep"},
			now: []v1beta1.SubChatCost{entry("mid", 10), {Name: "deep", UID: "new", Cost: usd(100)}}, deleted: 7},
		"a chat between was deleted": {change: func(c []v1beta1.Chat) { c[1].UID = "new" }, missing: "mid deep",
			gone: []string{"mid"}, now: []v1beta1.SubChatCost{entry("deep", 2), {Name: "mid", UID: "new", Cost: usd(10)}},
			deleted: 7},
		"the chats are of an earlier one": {change: func(c []v1beta1.Chat) { c[0].UID = "new"; withBudget(&c[0]) }},
	} {
		t.Run(name, func(t *testing.T) {
			chats := []v1beta1.Chat{paid("root", "", 1), paid("mid", "root", 10), paid("deep", "mid", 100)}
			withBudget(&chats[0], all...)
			c.change(chats)
			if c.atRest == nil {
				c.atRest = c.now
			}
			var missing []string
			want := Costs{Now: c.now, AtRest: c.atRest, Deleted: usd(c.deleted)}
			got := Of(chats).CostsBelow(&chats[0], func(entry v1beta1.SubChatCost) ([]v1beta1.Cost, bool) {
				missing = append(missing, entry.Name)
				return usd(7), slices.Contains(c.gone, entry.UID)
			}, nil)
			if len(chats[0].Status.Internal.SubChatCosts) == 0 { // New ones come in any order.
				for _, entries := range [][]v1beta1.SubChatCost{got.Now, got.AtRest} {
					slices.SortFunc(entries, func(a, b v1beta1.SubChatCost) int { return strings.Compare(a.Name, b.Name) })
				}
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if got := strings.Join(missing, " "); got != c.missing {
				t.Errorf("%q are missing, want %q", got, c.missing)
			}
		})
	}
}

func TestDeletedSubChatIsNotRecordedAgain(t *testing.T) {
	chats := []v1beta1.Chat{paid("root", "", 1), paid("sub", "root", 10)}
	chats[0].Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: "USD", Amount: "1"}}
	for _, exists := range []bool{true, false} {
		got := Of(chats).CostsBelow(&chats[0], nil, func(v1beta1.SubChatCost) bool { return exists })
		if recorded := len(got.Now) == 1; recorded != exists {
			t.Errorf("a chat that exists (%t) is recorded: %t", exists, recorded)
		}
	}
}
