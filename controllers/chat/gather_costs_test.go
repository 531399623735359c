// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/tree"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

// withoutChats is a cache whose lists have no chats.
type withoutChats struct{ client.Client }

func (c withoutChats) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if _, ok := into.(*v1beta1.ChatList); ok {
		return nil
	}
	return c.Client.List(ctx, into, opts...)
}

func TestMissingSubChatCountsOnlyIfDeleted(t *testing.T) {
	usd := func(micros int64) []v1beta1.Cost { return []v1beta1.Cost{{Currency: "USD", MicroUnits: micros}} }
	record := []v1beta1.SubChatCost{{Name: "sub", UID: "sub", Cost: usd(5)}}
	budget := v1beta1.Budget{Currency: "USD", Amount: "1"}
	sub := at("11", chattest.Chat("sub", chattest.ChildOf("c")))
	other := sub.DeepCopy()
	other.UID = "other"
	for name, c := range map[string]struct {
		exists *v1beta1.Chat
		known  []v1beta1.Cost
		want   tree.Costs
	}{
		"not in the cache yet":      {sub, nil, tree.Costs{Now: record, AtRest: record}},
		"deleted":                   {nil, nil, tree.Costs{Deleted: usd(5)}},
		"deleted with a newer cost": {nil, usd(7), tree.Costs{Deleted: usd(7)}},
		"another one has its name":  {other, nil, tree.Costs{Deleted: usd(5)}},
	} {
		t.Run(name, func(t *testing.T) {
			chat := at("10", chattest.Chat("c", func(c *v1beta1.Chat) {
				c.Spec.Limits = &v1beta1.ChatLimits{Budget: &budget}
				c.Status.Internal.SubChatCosts = record
			}))
			objects, remembered := []client.Object{chat}, &memory{}
			if c.exists != nil {
				objects = append(objects, c.exists.DeepCopy())
			}
			if c.known != nil {
				remembered.costs.put(sub, []tree.BudgetAbove{{Chat: "c", Budget: &budget}}, c.known)
			}
			o := optionsOf(fakeapi.New(t, objects...))
			o.Client = withoutChats{o.Client}
			s, err := newGatherer(o, remembered).gather(t.Context(), keyOf(chat))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(c.want, s.facts.SubChatCosts); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestDeletedSubChatCountsWithNewestCost(t *testing.T) {
	usd := func(micros int64) []v1beta1.Cost { return []v1beta1.Cost{{Currency: "USD", MicroUnits: micros}} }
	parent, sub := at("1", chattest.Chat("c")), at("2", chattest.Chat("sub"))
	for _, micros := range [][]int64{{5, 0}, {0, 5}, {5, 3}} {
		var costs subChatCosts
		for _, m := range micros {
			costs.put(sub, []tree.BudgetAbove{{Chat: parent.Name}}, usd(m))
		}
		for recorded, want := range map[int64]int64{0: 5, 7: 7} {
			entry := v1beta1.SubChatCost{Name: "sub", UID: string(sub.UID), Cost: usd(recorded)}
			check.Equal(t, fmt.Sprint(micros, " and ", recorded), usd(want), costs.last(keyOf(parent), entry))
		}
	}
}

func TestRecordStaysWhileTheClassIsMissing(t *testing.T) {
	usd := []v1beta1.Cost{{Currency: "USD", MicroUnits: 5}}
	record := []v1beta1.SubChatCost{{Name: "sub", UID: "sub", Cost: usd}}
	coder := chattest.In("ns", chattest.Class("coder"))
	for name, c := range map[string]struct {
		class   string
		objects []client.Object
		want    []v1beta1.SubChatCost
	}{
		"missing":        {"coder", nil, record},
		"without budget": {"coder", []client.Object{coder}, nil},
		"none is named":  {"", nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			chat := at("10", chattest.Chat("c", func(chat *v1beta1.Chat) {
				chat.Spec.ChatClassName, chat.Status.Internal.SubChatCosts = c.class, record
			}))
			sub := at("11", chattest.Chat("sub", chattest.ChildOf("c"), func(c *v1beta1.Chat) { c.Status.Cost = usd }))
			o := optionsOf(fakeapi.New(t, append(c.objects, chat, sub)...))
			s, err := newGatherer(o, &memory{}).gather(t.Context(), keyOf(chat))
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tree.Costs{Now: c.want, AtRest: c.want}, s.facts.SubChatCosts); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
		})
	}
}

func TestCostsOfChatsOutsideTheRecordAreForgotten(t *testing.T) {
	var costs subChatCosts
	parent, sub := at("1", chattest.Chat("c")), at("2", chattest.Chat("sub"))
	costs.put(sub, []tree.BudgetAbove{{Chat: "c"}, {Chat: "d"}}, []v1beta1.Cost{{Currency: "USD", MicroUnits: 7}})
	costs.retain(keyOf(parent), []v1beta1.SubChatCost{{Name: "sub", UID: "sub"}})
	if len(costs.below[keyOf(parent)]) != 1 {
		t.Error("the cost of a chat in the record is forgotten")
	}
	costs.retain(keyOf(parent), nil)
	if _, known := costs.below[keyOf(parent)]; known || len(costs.below) != 1 {
		t.Errorf("left are %v", costs.below)
	}
}
