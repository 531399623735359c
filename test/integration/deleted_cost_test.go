// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// underBudget creates chat c with a budget of a thousandth of a dollar, and chats below: the name of each, and that of
// its parent. Each of these has had an answer for 300 millionths.
func underBudget(t *testing.T, ns string, below ...[2]string) {
	t.Helper()
	create(t, modelConfig(ns, "default", func(s *v1beta1.ChatModelConfigSpec) { s.Default = true; dollars(s) }))
	root := newChat(ns, "c", "")
	root.Spec.Limits = budgetOf("0.001")
	create(t, root)
	for _, chat := range below {
		create(t, childOf(ns, chat[0], chat[1]))
		answers(t, assigned(t, ns, chat[0], 1, 1), chattest.Says("So."), chattest.Costs(300))
		waitForPhase(t, ns, chat[0], v1beta1.ChatWaiting)
	}
}

func budgetOf(amount v1beta1.Amount) *v1beta1.ChatLimits {
	return &v1beta1.ChatLimits{MaxDepth: new(int32(2)), Budget: &v1beta1.Budget{Currency: "USD", Amount: amount}}
}

func childOf(ns, name, parent string) *v1beta1.Chat {
	chat := newChat(ns, name, "look")
	chat.Spec.ParentRef = &v1beta1.ChatReference{Name: parent}
	return chat
}

// waitForRecord waits until the status of the chat has what the chat below has cost.
func waitForRecord(t *testing.T, ns, chat, below string, micros int64) {
	t.Helper()
	want := usd(micros)
	eventually(t, "chat "+chat+" records the cost of chat "+below, func() bool {
		return slices.ContainsFunc(chatIn(t, ns, chat).Status.Internal.SubChatCosts, func(entry v1beta1.SubChatCost) bool {
			return entry.Name == below && cmp.Equal(entry.Cost, want)
		})
	})
}

// waitForDeletedCost waits until deleted chats count for the budget of the chat, and nothing else is recorded.
func waitForDeletedCost(t *testing.T, ns, chat string, micros int64, recorded ...string) {
	t.Helper()
	eventually(t, "deleted chats count for chat "+chat, func() bool {
		st := chatIn(t, ns, chat).Status
		var names []string
		for _, entry := range st.Internal.SubChatCosts {
			names = append(names, entry.Name)
		}
		slices.Sort(names)
		return cmp.Equal(st.DeletedCost, usd(micros)) && slices.Equal(names, recorded)
	})
}

func usd(micros int64) []v1beta1.Cost {
	if micros == 0 {
		return nil
	}
	return []v1beta1.Cost{{Currency: "USD", MicroUnits: micros}}
}

func waitUntilGone(t *testing.T, ns, name string) {
	t.Helper()
	eventually(t, "chat "+name+" is gone", func() bool {
		return apierrors.IsNotFound(cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: name},
			&v1beta1.Chat{}))
	})
}

func TestDeletedSubChatCostCountsTowardsBudget(t *testing.T) {
	ns := parallelBare(t)
	underBudget(t, ns, [2]string{"one", "c"}, [2]string{"two", "c"}, [2]string{"deep", "two"})
	for _, name := range []string{"one", "two"} { // The other one goes with its parent.
		remove(t, chatIn(t, ns, name))
	}
	waitForDeletedCost(t, ns, "c", 900)
	waitUntilGone(t, ns, "deep")
	patch(t, chatIn(t, ns, "c"), `{"spec":{"limits":{"budget":{"amount":"0.0009"}}}}`)
	create(t, say(ns, "c", "first"))
	waitForReady(t, ns, "c", metav1.ConditionFalse, v1beta1.ConditionReason(v1beta1.ErrorBudgetReached))
}

func TestParentAndChildDeletedTogetherAreCountedOnce(t *testing.T) {
	ns := parallelBare(t)
	underBudget(t, ns, [2]string{"mid", "c"}, [2]string{"deep", "mid"})
	mid := chatIn(t, ns, "mid")
	mid.Finalizers = append(mid.Finalizers, "example.com/keep") // It is there while the other one goes.
	check.OK(t, cluster.Client.Update(t.Context(), mid))
	remove(t, mid)
	remove(t, chatIn(t, ns, "deep"))
	waitForDeletedCost(t, ns, "c", 300, "mid")
	patch(t, mid, `{"metadata":{"finalizers":null}}`)
	waitForDeletedCost(t, ns, "c", 600)
}

func TestEachBudgetAboveCountsADeletedChat(t *testing.T) {
	ns := parallelBare(t)
	underBudget(t, ns, [2]string{"mid", "c"})
	patch(t, chatIn(t, ns, "mid"), `{"spec":{"limits":{"budget":{"currency":"USD","amount":"1"}}}}`)
	create(t, childOf(ns, "deep", "mid"))
	answers(t, assigned(t, ns, "deep", 1, 1), chattest.Says("So."), chattest.Costs(50))
	for _, chat := range []string{"c", "mid"} {
		waitForRecord(t, ns, chat, "deep", 50)
	}
	remove(t, chatIn(t, ns, "deep"))
	waitForDeletedCost(t, ns, "mid", 50)
	waitForDeletedCost(t, ns, "c", 50, "mid")
	remove(t, chatIn(t, ns, "mid"))
	waitForDeletedCost(t, ns, "c", 350)
}

func TestDeletedChatCountsWithItsNewestStep(t *testing.T) {
	ns := parallelBare(t)
	underBudget(t, ns, [2]string{"sub", "c"})
	waitForRecord(t, ns, "c", "sub", 300)
	create(t, say(ns, "sub", "more"))
	answers(t, assigned(t, ns, "sub", 3, 1), chattest.Calls("call_1"), chattest.Costs(40))
	assigned(t, ns, "sub", 4, 1)
	check.Equal(t, "cost of the chat at work in the record", usd(300),
		chatIn(t, ns, "c").Status.Internal.SubChatCosts[0].Cost)
	remove(t, chatIn(t, ns, "sub"))
	waitForDeletedCost(t, ns, "c", 340)
}

func TestRemovedBudgetForgetsChatsBelow(t *testing.T) {
	ns := parallelBare(t)
	underBudget(t, ns, [2]string{"one", "c"}, [2]string{"two", "c"})
	remove(t, chatIn(t, ns, "one"))
	waitForDeletedCost(t, ns, "c", 300, "two")
	patch(t, chatIn(t, ns, "c"), `{"spec":{"limits":{"budget":null}}}`)
	waitForDeletedCost(t, ns, "c", 300)
	remove(t, chatIn(t, ns, "two"))
	waitUntilGone(t, ns, "two")
	patch(t, chatIn(t, ns, "c"), `{"spec":{"limits":{"budget":{"currency":"USD","amount":"1"}}}}`)
	create(t, childOf(ns, "three", "c"))
	waitForDeletedCost(t, ns, "c", 300, "three")
}

func TestFamilyUnderABudgetGoesWithItsRoot(t *testing.T) {
	ns := parallelBare(t)
	underBudget(t, ns, [2]string{"sub", "c"})
	remove(t, chatIn(t, ns, "c"))
	waitUntilGone(t, ns, "c")
	waitUntilGone(t, ns, "sub")
}

// It does not run in parallel: no other test has a manager meanwhile.
func TestChatsAreDeletedWithoutManager(t *testing.T) {
	ns, other := bareNamespace(t), bareNamespace(t)
	for _, namespace := range []string{ns, other} {
		underBudget(t, namespace, [2]string{"sub", "c"}, [2]string{"kept", "c"})
		waitForRecord(t, namespace, "c", "sub", 300)
		waitForRecord(t, namespace, "c", "kept", 300)
	}
	restart := stopManager(t)
	remove(t, chatIn(t, ns, "sub"))
	waitUntilGone(t, ns, "sub")
	terminate(t, other)
	var left v1beta1.ChatList
	check.OK(t, cluster.Client.List(t.Context(), &left, client.InNamespace(other)))
	check.Equal(t, "chats left in the deleted namespace", 0, len(left.Items))
	restart()
	waitForDeletedCost(t, ns, "c", 300, "kept")
}
