// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
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
	chat.Status.Cost = usd(micros)
	if parent != "" {
		chat.Spec.ParentRef, chat.Status.Internal.ParentUID = &v1beta1.ChatReference{Name: parent}, parent
	}
	return chat
}

func TestDeletedChatsAreCountedOnce(t *testing.T) {
	for name, c := range map[string]struct {
		change func(chats []v1beta1.Chat)
		below  int64
		// ofMid and ofDeep are what the deletions of these chats would add to the root.
		ofMid, ofDeep int64
	}{
		"nothing is counted":   {func([]v1beta1.Chat) {}, 110, 110, 100},
		"the root counted mid": {func(c []v1beta1.Chat) { c[0].Status.Internal.CountedDeletions = []string{"mid"} }, 0, 10, 100},
		"mid counted deep": {func(c []v1beta1.Chat) {
			c[1].Status.Internal.CountedDeletions, c[1].Status.DeletedCost = []string{"deep"}, usd(100)
		}, 110, 110, 100},
		"deep had another parent": {func(c []v1beta1.Chat) { c[2].Status.Internal.ParentUID = "earlier" }, 10, 10, 100},
	} {
		t.Run(name, func(t *testing.T) {
			chats := []v1beta1.Chat{paid("root", "", 1), paid("mid", "root", 10), paid("deep", "mid", 100)}
			c.change(chats)
			f := Of(chats)
			if diff := cmp.Diff(usd(c.below), f.CostBelow(&chats[0])); diff != "" {
				t.Errorf("below the root: -want +got\n%s", diff)
			}
			counted := chats[0].Status.Internal.CountedDeletions
			if name != "the root counted mid" { // It is released without counting then.
				if diff := cmp.Diff(usd(c.ofMid), f.CostOfDeletion(&chats[1], counted)); diff != "" {
					t.Errorf("of mid: -want +got\n%s", diff)
				}
			}
			if diff := cmp.Diff(usd(c.ofDeep), f.CostOfDeletion(&chats[2], counted)); diff != "" {
				t.Errorf("of deep: -want +got\n%s", diff)
			}
		})
	}
}

func TestPayerIsTheNearestAncestorWithABudget(t *testing.T) {
	budgeted := func(c *v1beta1.Chat) {
		c.Spec.Limits = &v1beta1.ChatLimits{Budget: &v1beta1.Budget{Currency: "USD", Amount: "1"}}
	}
	for name, c := range map[string]struct {
		change  func(chats []v1beta1.Chat)
		payer   string
		between int
	}{
		"no budget":  {func([]v1beta1.Chat) {}, "", 0},
		"the root's": {func(c []v1beta1.Chat) { budgeted(&c[0]) }, "root", 1},
		"both":       {func(c []v1beta1.Chat) { budgeted(&c[0]); budgeted(&c[1]) }, "mid", 0},
		"mid is being deleted": {func(c []v1beta1.Chat) {
			budgeted(&c[0])
			budgeted(&c[1])
			c[1].DeletionTimestamp = new(metav1.Now())
		}, "root", 1},
		"an earlier root": {func(c []v1beta1.Chat) { budgeted(&c[0]); c[0].UID = "newer" }, "", 0},
		"an earlier mid":  {func(c []v1beta1.Chat) { budgeted(&c[0]); c[1].UID = "newer" }, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			chats := []v1beta1.Chat{paid("root", "", 1), paid("mid", "root", 10), paid("deep", "mid", 100)}
			c.change(chats)
			got := ""
			payer, between := Payer(Of(chats).AncestorsAlive(&chats[2]))
			if payer != nil {
				got = payer.Name
			}
			if got != c.payer || len(between) != c.between {
				t.Errorf("the payer is %q, and %d chats are between", got, len(between))
			}
		})
	}
}
