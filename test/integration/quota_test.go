// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func chatQuota(ns, name string, chats, subChats *int32) *v1beta1.ChatQuota {
	return &v1beta1.ChatQuota{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: ns},
		Spec:       v1beta1.ChatQuotaSpec{Generating: v1beta1.GeneratingLimits{Chats: chats, SubChats: subChats}},
	}
}

// filesQuota limits the stored files.
func filesQuota(ns, limit string) *v1beta1.ChatQuota {
	return &v1beta1.ChatQuota{ObjectMeta: metav1.ObjectMeta{Name: "files", Namespace: ns},
		Spec: v1beta1.ChatQuotaSpec{StoredFiles: limit}}
}

// allow creates a quota for chats without a parent, and waits until it is in force.
func allow(t *testing.T, ns, name string, chats int32) {
	t.Helper()
	create(t, chatQuota(ns, name, &chats, nil))
	waitForQuota(t, ns, name, 1, v1beta1.ReasonEnforced)
}

func waitForQuota(t *testing.T, ns, name string, generation int64, reason v1beta1.ConditionReason) {
	t.Helper()
	eventually(t, fmt.Sprintf("generation %d of quota %s is Ready because of %s", generation, name, reason), func() bool {
		quota := chatQuota(ns, name, nil, nil)
		check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(quota), quota))
		c := meta.FindStatusCondition(quota.Status.Conditions, v1beta1.ConditionReady)
		return c != nil && c.Status == metav1.ConditionTrue && v1beta1.ReasonOf(c) == reason &&
			c.ObservedGeneration == generation
	})
}

// waitForHolder waits until the chat waits for capacity and says so in these words.
func waitForHolder(t *testing.T, ns, chat, message string) {
	t.Helper()
	eventually(t, fmt.Sprintf("chat %s says %q", chat, message), func() bool {
		c := meta.FindStatusCondition(chatIn(t, ns, chat).Status.Conditions, v1beta1.ConditionReady)
		return c != nil && c.Status == metav1.ConditionUnknown && v1beta1.ReasonOf(c) == v1beta1.ReasonWaitingForCapacity &&
			strings.Contains(c.Message, message)
	})
}

// generating are the chats of the namespace that generate.
func generating(t *testing.T, ns string) (names []string) {
	t.Helper()
	var chats v1beta1.ChatList
	check.OK(t, cluster.Client.List(t.Context(), &chats, client.InNamespace(ns)))
	for i := range chats.Items {
		if chats.Items[i].Status.Generation != nil {
			names = append(names, chats.Items[i].Name)
		}
	}
	return names
}

func TestRaisedQuotaLetsChatsInAtOnce(t *testing.T) {
	ns := parallel(t)
	allow(t, ns, "team", 2)
	for i := range 10 {
		create(t, newChat(ns, fmt.Sprint("c", i), "first"))
	}
	held := "ChatQuota team allows 2 chats to generate at once in namespace " + ns +
		": wait until a chat is done, or raise spec.generating.chats there"
	waiting := func(message string) (n int) {
		var chats v1beta1.ChatList
		check.OK(t, cluster.Client.List(t.Context(), &chats, client.InNamespace(ns)))
		for i := range chats.Items {
			c := meta.FindStatusCondition(chats.Items[i].Status.Conditions, v1beta1.ConditionReady)
			if v1beta1.ReasonOf(c) == v1beta1.ReasonWaitingForCapacity && c.Message == message {
				n++
			}
		}
		return n
	}
	eventually(t, "8 of 10 chats wait, and say why", func() bool { return waiting(held) == 8 })
	if names := generating(t, ns); len(names) != 2 {
		t.Errorf("%v generate", names)
	}

	other := namespace(t)
	create(t, newChat(other, "free", "first"))
	assigned(t, other, "free", 1, 1) // Another namespace does not notice.

	patch(t, chatQuota(ns, "team", nil, nil), `{"spec":{"generating":{"chats":5}}}`)
	eventually(t, "5 of 10 chats generate though none is done", func() bool { return len(generating(t, ns)) == 5 })
	held = strings.ReplaceAll(held, "allows 2 chats", "allows 5 chats")
	eventually(t, "the other 5 say what holds them now", func() bool { return waiting(held) == 5 })

	busy := generating(t, ns)[0]
	create(t, say(ns, busy, "more"))
	waitForMessage(t, ns, "more", metav1.ConditionUnknown, v1beta1.ReasonQueued)
	patch(t, chatQuota(ns, "team", nil, nil), `{"spec":{"generating":{"chats":1}}}`)
	waitForQuota(t, ns, "team", 3, v1beta1.ReasonEnforced)
	if names := generating(t, ns); len(names) != 5 {
		t.Errorf("a lowered quota leaves %v", names)
	}
	answers(t, assigned(t, ns, busy, 1, 1), chattest.Says("Fine.")) // Its step counts, and the next one waits.
	waitForHolder(t, ns, busy, "ChatQuota team allows 1 chat ")
	remove(t, chatQuota(ns, "team", nil, nil))
	eventually(t, "all generate without the quota", func() bool { return len(generating(t, ns)) == 10 })
}

func TestZeroQuotaBlocksAllChatsAcrossRestart(t *testing.T) {
	ns := namespace(t)
	allow(t, ns, "none", 0)
	create(t, newChat(ns, "c", "first"))
	held := "ChatQuota none allows no chats to generate in namespace " + ns + ": raise spec.generating.chats there"
	waitForHolder(t, ns, "c", held)
	stopManager(t)()
	create(t, newChat(ns, "d", "first"))
	waitForHolder(t, ns, "d", held)
	if names := generating(t, ns); len(names) != 0 {
		t.Errorf("%v generate", names)
	}
	annotate(t, ns, "d", v1beta1.AnnotationInterrupt, "t") // Who waits can be interrupted.
	waitForReady(t, ns, "d", metav1.ConditionTrue, v1beta1.ReasonInterrupted)
	patch(t, chatQuota(ns, "none", nil, nil), `{"spec":{"generating":{"chats":1}}}`)
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)

	patch(t, chatQuota(ns, "none", nil, nil), `{"spec":{"generating":{"chats":0}}}`)
	waitForQuota(t, ns, "none", 3, v1beta1.ReasonEnforced)
	annotate(t, ns, "c", v1beta1.AnnotationCompact, "t") // A summary is generated, too.
	waitForHolder(t, ns, "c", held)
}

func TestWaitingForCapacityKeepsTheOrder(t *testing.T) {
	ns := namespace(t)
	create(t, chatQuota(ns, "team", new(int32(1)), new(int32(1))))
	waitForQuota(t, ns, "team", 1, v1beta1.ReasonEnforced)
	one := started(t, ns, "one", "first")
	for _, name := range []string{"two", "three", "four"} {
		create(t, newChat(ns, name, "first"))
		waitForReady(t, ns, name, metav1.ConditionUnknown, v1beta1.ReasonWaitingForCapacity)
	}
	create(t, subChat(ns, "sub", "one"))
	assigned(t, ns, "sub", 1, 1) // Sub-chats count apart.
	create(t, subChat(ns, "sub2", "one"))
	waitForHolder(t, ns, "sub2", "ChatQuota team allows 1 sub-chat to generate at once")
	annotate(t, ns, "three", v1beta1.AnnotationInterrupt, "t")
	waitForReady(t, ns, "three", metav1.ConditionTrue, v1beta1.ReasonInterrupted)
	stopManager(t)()
	answers(t, one, chattest.Says("Fine."))
	answers(t, assigned(t, ns, "two", 1, 1), chattest.Says("Fine."))
	answers(t, assigned(t, ns, "four", 1, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "four", v1beta1.ChatWaiting)
}

func TestOfSeveralQuotasTheSmallestCounts(t *testing.T) {
	ns := parallel(t)
	allow(t, ns, "large", 5)
	allow(t, ns, "small", 1)
	waitForQuota(t, ns, "large", 1, v1beta1.ReasonOverridden)
	started(t, ns, "one", "first")
	create(t, newChat(ns, "two", "first"))
	waitForHolder(t, ns, "two", "ChatQuota small allows 1 chat ")
	remove(t, chatQuota(ns, "small", nil, nil))
	assigned(t, ns, "two", 1, 1)
	waitForQuota(t, ns, "large", 1, v1beta1.ReasonEnforced)
}

func TestClusterQuotaHoldsNamespacesAndTheirSum(t *testing.T) {
	quota := &v1beta1.ClusterChatQuota{
		ObjectMeta: metav1.ObjectMeta{Name: v1beta1.ClusterChatQuotaName},
		Spec:       v1beta1.ClusterChatQuotaSpec{NamespaceDefault: &v1beta1.GeneratingLimits{Chats: new(int32(0))}},
	}
	inForce := func(generation int64) {
		t.Helper()
		eventually(t, "the ClusterChatQuota is in force", func() bool {
			check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(quota), quota))
			c := meta.FindStatusCondition(quota.Status.Conditions, v1beta1.ConditionReady)
			return c != nil && c.Status == metav1.ConditionTrue && quota.Status.ObservedGeneration == generation
		})
	}
	create(t, quota)
	defer func() { _ = cluster.Client.Delete(t.Context(), quota) }()
	inForce(1)
	ns, own := namespace(t), namespace(t)
	allow(t, own, "own", 1)
	create(t, newChat(ns, "c", "first"))
	waitForHolder(t, ns, "c",
		"ClusterChatQuota default allows no chats to generate in a namespace without a ChatQuota for them: set "+
			"spec.generating.chats in a ChatQuota of namespace "+ns)
	create(t, newChat(own, "c", "first"))
	assigned(t, own, "c", 1, 1)

	patch(t, quota, `{"spec":{"generating":{"chats":0},"namespaceDefault":null}}`)
	waitForHolder(t, ns, "c",
		"ClusterChatQuota default allows no chats to generate in all namespaces together: raise spec.generating.chats there")
	remove(t, quota)
	assigned(t, ns, "c", 1, 1)
}

func TestQuotaIsNotWrittenForChats(t *testing.T) {
	ns := namespace(t)
	allow(t, ns, "team", 1)
	version := func() string {
		quota := chatQuota(ns, "team", nil, nil)
		check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(quota), quota))
		return quota.ResourceVersion
	}
	before := version()
	for i := range 3 {
		create(t, newChat(ns, fmt.Sprint("c", i), "first"))
		answers(t, assigned(t, ns, fmt.Sprint("c", i), 1, 1), chattest.Says("Fine."))
		waitForPhase(t, ns, fmt.Sprint("c", i), v1beta1.ChatWaiting)
	}
	stopManager(t)() // Nor does a new manager have anything to add.
	started(t, ns, "last", "first")
	if after := version(); after != before {
		t.Errorf("the quota went from version %s to %s", before, after)
	}
}
