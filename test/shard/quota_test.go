// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// allow has so many chats generate at once, in all namespaces together, until the test ends.
func allow(t *testing.T, chats int32) {
	t.Helper()
	quota := &v1beta1.ClusterChatQuota{ObjectMeta: metav1.ObjectMeta{Name: v1beta1.ClusterChatQuotaName},
		Spec: v1beta1.ClusterChatQuotaSpec{Generating: &v1beta1.GeneratingLimits{Chats: &chats}}}
	cluster.Create(t, quota)
	t.Cleanup(func() {
		if err := cluster.Client.Delete(context.WithoutCancel(t.Context()), quota); err != nil {
			t.Error(err)
		}
	})
	eventually(t, "the ClusterChatQuota is in force", func() bool {
		check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(quota), quota))
		return ready(quota.Status.Conditions)
	})
}

// chatsIn are the chats of the namespaces, those that generate and those that wait for it.
func chatsIn(t *testing.T, namespaces []string) (generating, waiting []v1beta1.Chat) {
	t.Helper()
	var all v1beta1.ChatList
	check.OK(t, cluster.Client.List(t.Context(), &all))
	for i := range all.Items {
		switch chat := all.Items[i]; {
		case !slices.Contains(namespaces, chat.Namespace):
		case chat.Status.Generation != nil:
			generating = append(generating, chat)
		case chat.Status.WaitingSince != nil:
			waiting = append(waiting, chat)
		}
	}
	slices.SortFunc(waiting, func(a, b v1beta1.Chat) int {
		return a.Status.WaitingSince.Compare(b.Status.WaitingSince.Time)
	})
	return generating, waiting
}

func keyOf(chat *v1beta1.Chat) string { return chat.Namespace + "/" + chat.Name }

// TestShardsShareClusterSlotsInArrivalOrder has chats of two shards wait for the one slot that
// there is in all namespaces together.
func TestShardsShareClusterSlotsInArrivalOrder(t *testing.T) {
	names := namespaces(t, "limited", 3, 2)
	managers := startAll(t, shardsOf(2))
	defer stopAll(managers)
	allow(t, 1)
	var order []string
	for i, ns := range names {
		chat := chattest.In(ns, chattest.Chat("chat", chattest.Prompt("first")))
		cluster.Create(t, chat)
		order = append(order, keyOf(chat))
		eventually(t, "the chat generates or waits", func() bool {
			generating, waiting := chatsIn(t, names)
			return len(generating) == 1 && len(waiting) == i
		})
	}
	var let []string
	for len(let) < len(names) {
		var next []v1beta1.Chat
		eventually(t, "one chat generates", func() bool {
			var waiting []v1beta1.Chat
			next, waiting = chatsIn(t, names)
			return len(next) == 1 && len(waiting) == len(names)-len(let)-1
		})
		let = append(let, keyOf(&next[0]))
		cluster.Create(t, chattest.Answer(&next[0], chattest.Says("Fine.")))
		eventually(t, "its turn is over", func() bool {
			generating, _ := chatsIn(t, names)
			return len(generating) == 0 || keyOf(&generating[0]) != let[len(let)-1]
		})
	}
	check.Equal(t, "let in were , and they came in the order", order, let)
	for _, m := range managers {
		for _, write := range m.process.Writes() {
			if strings.HasPrefix(write.Resource, "clusterchatquotas") && !m.Owns("") {
				t.Errorf("the manager of %+v writes: %s", m.Shard, write)
			}
		}
	}
}

// TestACrowdOfTwoShardsIsAllAnswered has more chats come at once than may generate. A manager may let one in before it
// knows of one that another has let in; once each has had its step, there are no more than may, and all have their
// turn.
func TestACrowdOfTwoShardsIsAllAnswered(t *testing.T) {
	const each, limit = 4, 3
	names := namespaces(t, "crowd", 2, 2)
	defer stopAll(startAll(t, shardsOf(2)))
	allow(t, limit)
	for i := range each {
		for _, ns := range names {
			cluster.Create(t, chattest.In(ns, chattest.Chat(fmt.Sprint("c", i), chattest.Prompt("first"))))
		}
	}
	answered, rounds := 0, []int{}
	answer := func(chats []v1beta1.Chat) {
		for i := range chats {
			cluster.Create(t, chattest.Answer(&chats[i], chattest.Says("Fine.")))
			answered++
		}
	}
	total := each * len(names)
	eventually(t, "as many generate as may, or more for a moment, and all others wait", func() bool {
		generating, waiting := chatsIn(t, names)
		return len(generating) >= limit && len(generating)+len(waiting) == total
	})
	for answered < total {
		var generating []v1beta1.Chat
		left := total - answered
		eventually(t, "all others wait", func() bool {
			var waiting []v1beta1.Chat
			generating, waiting = chatsIn(t, names)
			return len(generating) >= min(limit, left) && len(generating)+len(waiting) == left
		})
		rounds = append(rounds, len(generating))
		answer(generating)
		eventually(t, "their turns are over", func() bool {
			now, waiting := chatsIn(t, names)
			return len(now)+len(waiting) <= total-answered
		})
	}
	t.Logf("of %d that might, %v generated at once", limit, rounds)
	if slices.Max(rounds) > 2*limit {
		t.Errorf("more generated than each of two managers by itself would let in: %v", rounds)
	}
}
