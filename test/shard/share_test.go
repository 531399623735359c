// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package shard

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/test/kit/check"
)

// load is what managers did for a talk.
type load struct {
	// requests of each.
	requests []int
	// reconciles of all together.
	reconciles float64
}

func (l load) sum() (n int) {
	for _, requests := range l.requests {
		n += requests
	}
	return n
}

// loadOf plays the same talk before the managers of the shards.
func loadOf(t *testing.T, prefix string, shards []shard.Shard) (l load) {
	t.Helper()
	const each, turns = 8, 4
	managers := startAll(t, shards)
	defer stopAll(managers)
	before, began := reconciles(t), make([]int, len(managers))
	for i, m := range managers {
		began[i] = m.requests()
	}
	names := namespaces(t, prefix, each, 2)
	k := talkIn(t, names, turns)
	eventually(t, "all turns are over", func() bool { return k.turnsIn(0, 1) == len(names)*turns })
	k.fallSilent()
	k.check()
	l.reconciles = reconciles(t) - before
	for i, m := range managers {
		l.requests = append(l.requests, m.requests()-began[i])
		holdsItsOwn(t, m)
	}
	countsEachChatOnce(t, managers)
	t.Logf("%d managers made %v requests and %.0f reconciles for %d turns", len(managers), l.requests, l.reconciles,
		len(names)*turns)
	return l
}

// countsEachChatOnce checks that the managers together tell of as many chats as there are.
func countsEachChatOnce(t *testing.T, managers []*manager) {
	t.Helper()
	var chats v1beta1.ChatList
	check.OK(t, cluster.Client.List(t.Context(), &chats))
	sum := 0.0
	for _, m := range managers {
		sum += m.counted(t, telemetry.MetricChats)
	}
	if sum != float64(len(chats.Items)) {
		t.Errorf("%d managers count %.0f chats, and there are %d", len(managers), sum, len(chats.Items))
	}
}

// reconciles are how many were made in this process.
func reconciles(t *testing.T) (n float64) {
	t.Helper()
	families, err := metrics.Registry.Gather()
	check.OK(t, err)
	for _, family := range families {
		if family.GetName() == "controller_runtime_reconcile_total" {
			for _, m := range family.GetMetric() {
				n += m.GetCounter().GetValue()
			}
		}
	}
	return n
}

// holdsItsOwn checks that nothing in the manager's caches is of another shard, and that something is of its own.
func holdsItsOwn(t *testing.T, m *manager) {
	t.Helper()
	for _, list := range []client.ObjectList{&v1beta1.ChatList{}, &v1beta1.ChatMessageList{},
		&v1beta1.ChatModelConfigList{}, &corev1.PodList{}, &corev1.ServiceAccountList{}} {
		check.OK(t, m.view.List(t.Context(), list))
		found := 0
		err := meta.EachListItem(list, func(o runtime.Object) error {
			found++
			object, err := meta.Accessor(o)
			if err == nil && !m.Owns(object.GetNamespace()) {
				t.Errorf("the manager of %+v holds %T %s of %s", m.Shard, o, object.GetName(), object.GetNamespace())
			}
			return err
		})
		if err != nil || found == 0 {
			t.Errorf("the manager of %+v has %d in its %T: %v", m.Shard, found, list, err)
		}
	}
}

// TestTwoShardsShareTheRequestsOfOne plays the same talk before one manager and before two. As many namespaces are in
// each shard, and as much is said in each. A request or a reconcile more or less comes of what meets by chance: a
// conflict, an event that comes while its chat is reconciled. If both did the work of all, each would make as many
// reconciles as the one, twice of what there may be.
func TestTwoShardsShareTheRequestsOfOne(t *testing.T) {
	one := loadOf(t, "one", []shard.Shard{{}})
	two := loadOf(t, "two", shardsOf(2))
	const chance = .25
	near := func(what string, got, want float64) {
		t.Helper()
		if got < want*(1-chance) || got > want*(1+chance) {
			t.Errorf("%s are %.0f, want about %.0f", what, got, want)
		}
	}
	near("the requests of two managers", float64(two.sum()), float64(one.sum()))
	near("the reconciles of two managers", two.reconciles, one.reconciles)
	for _, requests := range two.requests {
		near("the requests of one of two managers", float64(requests), float64(one.sum())/2)
	}
}

// TestTwoShardsTakeTwiceTheTurns gives each manager a budget of requests, as a limit of requests a second does for each
// span of time. Two managers have two budgets, and so answer about twice as much.
func TestTwoShardsTakeTwiceTheTurns(t *testing.T) {
	one, two := turnsOf(t, "slow", []shard.Shard{{}}), turnsOf(t, "fast", shardsOf(2))
	t.Logf("for %d requests each, one manager took %d turns, and two took %d", budget, one, two)
	if ratio := float64(two) / float64(one); ratio < 1.8 || ratio > 2.2 {
		t.Errorf("two managers took %.2f times the turns of one", ratio)
	}
}

// budget is how many requests a manager may make: some fifty turns of one step.
const budget = 150

// turnsOf is how many turns the managers take until their budgets are spent.
func turnsOf(t *testing.T, prefix string, shards []shard.Shard) int {
	t.Helper()
	names := namespaces(t, prefix, 3, 2)
	k := talkIn(t, names, 0)
	managers := startAll(t, shards)
	k.comeFar(1) // The namespaces have their pods.
	spend(t, managers, 0)
	before := committed(t, names)
	spend(t, managers, budget)
	after := committed(t, names)
	stopAll(managers)
	last := start(t, shard.Scope{}) // What has begun is no work for others.
	defer last.stop()
	k.fallSilent()
	k.check()
	return (after - before) / 2
}

// spend waits until each manager has made so many more requests, and wants to make another one.
func spend(t *testing.T, managers []*manager, requests int) {
	t.Helper()
	var spent []<-chan struct{}
	for _, m := range managers {
		spent = append(spent, m.bound(requests))
	}
	for _, one := range spent {
		select {
		case <-one:
		case <-time.After(patience):
			t.Fatal("there is too little to do")
		}
	}
}

// committed is how many messages are part of histories.
func committed(t *testing.T, namespaces []string) (n int) {
	t.Helper()
	for _, ns := range namespaces {
		var chat v1beta1.Chat
		check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "chat"}, &chat))
		n += int(chat.Status.History.Length)
	}
	return n
}
