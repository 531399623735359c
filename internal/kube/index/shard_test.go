// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
	fakesource "k8s.io/client-go/tools/cache/testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// inA is a shard of one namespace.
func inA(namespace string) bool { return namespace == "a" }

// shardOf starts an informer of the shard, with a handler.
func shardOf(t *testing.T, lw cache.ListerWatcher, kind runtime.Object) (cache.SharedIndexInformer, *follower) {
	t.Helper()
	informer, heard := Informers(inA)(lw, kind, 0, nil), &follower{t: t}
	if _, ok := kind.(*v1beta1.ChatMessage); ok {
		if _, err := informer.AddEventHandler(heard); err != nil {
			t.Fatal(err)
		}
	}
	start(t, informer)
	return informer, heard
}

// TestShardKeepsItsNamespacesAcrossRelistsAndDeletions changes messages of two namespaces at random, and loses
// watches.
func TestShardKeepsItsNamespacesAcrossRelistsAndDeletions(t *testing.T) {
	random := rand.New(rand.NewPCG(3, 4))
	source := fakesource.NewFakeControllerSource()
	there := map[string]*v1beta1.ChatMessage{}
	change := func() {
		m := drawMessage(random)
		switch old := there[keyOf(m)]; {
		case old == nil:
			source.Add(m.DeepCopy())
		case random.IntN(3) == 0:
			source.Delete(old.DeepCopy())
			delete(there, keyOf(m))
			return
		default:
			source.Modify(m.DeepCopy())
		}
		there[keyOf(m)] = m
	}
	for range 30 {
		change()
	}
	informer, heard := shardOf(t, lister{source}, &v1beta1.ChatMessage{})
	for round := range 10 {
		for range random.IntN(30) {
			change()
		}
		if round%4 == 2 {
			source.ResetWatch()
			change()
		}
		want := versionsOf(source, t)
		others := 0
		for key, m := range there {
			if !inA(m.Namespace) {
				delete(want, key)
				others++
			}
		}
		if others == 0 || len(want) == 0 {
			t.Fatalf("there are %d messages in the shard, and %d elsewhere", len(want), others)
		}
		waiting.Until(t, time.Minute, "the informer has what there is in its shard", func() bool {
			return cmp.Equal(versions(informer.GetStore().List()), want)
		})
		heard.compare(t, want)
	}
}

func TestShardKeepsClusterScopedObjectsAndAllQuotas(t *testing.T) {
	source := fakesource.NewFakeControllerSource()
	for _, ns := range []string{"a", "b"} {
		source.Add(&v1beta1.ChatQuota{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "team"}})
	}
	quotas, _ := shardOf(t, lister{source}, &v1beta1.ChatQuota{})
	ofCluster := fakesource.NewFakeControllerSource()
	ofCluster.Add(&v1beta1.ClusterChatQuota{ObjectMeta: metav1.ObjectMeta{Name: "default"}})
	clusters, _ := shardOf(t, lister{ofCluster}, &v1beta1.ClusterChatQuota{})
	if len(quotas.GetStore().List()) != 2 || len(clusters.GetStore().List()) != 1 {
		t.Errorf("the shard has the quotas %v and %v", quotas.GetStore().ListKeys(), clusters.GetStore().ListKeys())
	}
}

// TestStoppedWatchEndsWithoutReader has events under way on both sides of the filter.
func TestStoppedWatchEndsWithoutReader(t *testing.T) {
	from := watch.NewFake() // It waits until somebody takes an event.
	lw := ofNamespaces(&cache.ListWatch{
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) { return from, nil }}, inA)
	w, err := cache.ToWatcherWithContext(lw).WatchWithContext(t.Context(), metav1.ListOptions{})
	check.OK(t, err)
	from.Add(&v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: "b"}})
	from.Add(&v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: "a"}})
	w.Stop()
	if _, open := <-w.ResultChan(); open {
		t.Error("the watch goes on")
	}
}

func TestListIsFilteredToNamespacesOfShard(t *testing.T) {
	for name, list := range map[string]runtime.Object{
		"typed": &v1beta1.ChatList{Items: []v1beta1.Chat{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "1"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "b"}}}},
		"metadata": &metav1.PartialObjectMetadataList{Items: []metav1.PartialObjectMetadata{
			{ObjectMeta: metav1.ObjectMeta{Namespace: "b"}}, {ObjectMeta: metav1.ObjectMeta{Namespace: "a", Name: "1"}}}},
		"empty": &v1beta1.ChatList{},
	} {
		check.OK(t, keepIn(list, inA))
		var names string
		switch list := list.(type) {
		case *v1beta1.ChatList:
			for i := range list.Items {
				names += fmt.Sprint(list.Items[i].Namespace, list.Items[i].Name)
			}
		case *metav1.PartialObjectMetadataList:
			for i := range list.Items {
				names += fmt.Sprint(list.Items[i].Namespace, list.Items[i].Name)
			}
		}
		if want := map[string]string{"typed": "a1", "metadata": "a1"}[name]; names != want {
			t.Errorf("%s: %q is left, want %q", name, names, want)
		}
	}
}
