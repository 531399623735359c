// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"slices"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

func subChat(ns, name, parent string) *v1beta1.Chat {
	chat := newChat(ns, name, "first")
	chat.Spec.ParentRef = &v1beta1.ChatReference{Name: parent}
	return chat
}

func waitForReady(t *testing.T, ns, chat string, ready metav1.ConditionStatus,
	reason v1beta1.ConditionReason) {
	t.Helper()
	defer func() {
		if t.Failed() {
			t.Logf("chat %s has the status:\n%s", chat, printable(chatIn(t, ns, chat).Status))
		}
	}()
	eventually(t, fmt.Sprintf("chat %s is %s because of %s", chat, ready, reason), func() bool {
		c := meta.FindStatusCondition(chatIn(t, ns, chat).Status.Conditions, v1beta1.ConditionReady)
		return c != nil && c.Status == ready && v1beta1.ReasonOf(c) == reason
	})
}

func TestAFamilyIsSelectedByItsRoot(t *testing.T) {
	ns := parallel(t)
	top := working(ns, "top")
	top.Spec.Limits = &v1beta1.ChatLimits{MaxDepth: new(int32(2))}
	for _, chat := range []*v1beta1.Chat{subChat(ns, "deep", "below"), newChat(ns, "other", "first"), top,
		subChat(ns, "below", "top")} {
		create(t, chat)
	}
	want := v1beta1.FamilyRoot{Name: "top", UID: string(top.UID), Workspace: "top"}
	eventually(t, "each of the family names its root", func() bool {
		var family v1beta1.ChatList
		if err := cluster.Client.List(t.Context(), &family, client.InNamespace(ns),
			client.MatchingFields{"status.root.name": "top"}); err != nil {
			t.Fatal(err)
		}
		return len(family.Items) == 3 && !slices.ContainsFunc(family.Items, func(c v1beta1.Chat) bool {
			return *c.Status.Root != want
		})
	})
	assigned(t, ns, "other", 1, 1)
	if root := chatIn(t, ns, "other").Status.Root; root == nil || root.Name != "other" || root.Workspace != "" {
		t.Errorf("the root of another chat is %+v", root)
	}
}

func TestFamilyIsArchivedTogetherOnceIdle(t *testing.T) {
	ns := parallel(t)
	answers(t, started(t, ns, "root", "first"), chattest.Says("Fine."))
	create(t, subChat(ns, "child", "root"))
	busy := assigned(t, ns, "child", 1, 1)
	waitForPhase(t, ns, "root", v1beta1.ChatWaiting)
	patch(t, newChat(ns, "root", ""), `{"spec":{"archived":true}}`)
	waitForReady(t, ns, "root", metav1.ConditionUnknown, v1beta1.ReasonArchiving)
	create(t, say(ns, "root", "late")) // It must not begin, or the family would never be archived.
	answers(t, busy, chattest.Says("Fine."))
	waitForReady(t, ns, "root", metav1.ConditionTrue, v1beta1.ReasonArchived)
	waitForReady(t, ns, "child", metav1.ConditionTrue, v1beta1.ReasonArchived)
	waitForMessage(t, ns, "late", metav1.ConditionUnknown, v1beta1.ReasonChatArchived)
	if !chatIn(t, ns, "root").Status.Archived || !chatIn(t, ns, "child").Status.Archived {
		t.Error("not all are archived")
	}
	patch(t, newChat(ns, "root", ""), `{"spec":{"archived":false}}`)
	answers(t, assigned(t, ns, "root", 3, 1), chattest.Says("Fine."))
	waitForMessage(t, ns, "late", metav1.ConditionTrue, v1beta1.ReasonAnswered)
	eventually(t, "the child is back", func() bool { return !chatIn(t, ns, "child").Status.Archived })
}

func TestArchivingEndsOnceTheChatIsIdle(t *testing.T) {
	ns := parallel(t)
	for name, ends := range map[string]func(*testing.T, *v1beta1.Chat){
		"answered": func(t *testing.T, chat *v1beta1.Chat) { answers(t, chat, chattest.Says("Fine.")) },
		"failed": func(t *testing.T, chat *v1beta1.Chat) {
			answers(t, chat, chattest.Fails(v1beta1.ErrorAuthenticationFailed))
		},
		"interrupted": func(t *testing.T, chat *v1beta1.Chat) {
			annotate(t, ns, chat.Name, v1beta1.AnnotationInterrupt, "now")
			waitForPhase(t, ns, chat.Name, v1beta1.ChatInterrupting)
			answers(t, chat, chattest.Says("Fine."), chattest.Interrupted(), chattest.Uncounted())
		},
	} {
		create(t, newChat(ns, name, "first"))
		busy := assigned(t, ns, name, 1, 1)
		patch(t, newChat(ns, name, ""), `{"spec":{"archived":true}}`)
		eventually(t, "the pass that sees it is over",
			func() bool { return chatIn(t, ns, name).Status.ObservedGeneration == 2 })
		ends(t, busy)
		waitForReady(t, ns, name, metav1.ConditionTrue, v1beta1.ReasonArchived)
		if !chatIn(t, ns, name).Status.Archived {
			t.Errorf("chat %s is not archived", name)
		}
	}
}

func TestSubChatIsArchivedWithItsParent(t *testing.T) {
	ns := parallel(t)
	answered(t, ns)
	patch(t, newChat(ns, "c", ""), `{"spec":{"archived":true}}`)
	waitForReady(t, ns, "c", metav1.ConditionTrue, v1beta1.ReasonArchived)
	create(t, subChat(ns, "child", "c"))
	waitForReady(t, ns, "child", metav1.ConditionTrue, v1beta1.ReasonArchived)
	if !chatIn(t, ns, "child").Status.Archived {
		t.Error("the child says that it is archived, and its status does not")
	}
	patch(t, newChat(ns, "c", ""), `{"spec":{"archived":false}}`)
	answers(t, assigned(t, ns, "child", 1, 1), chattest.Says("Fine."))
	waitForReady(t, ns, "child", metav1.ConditionTrue, v1beta1.ReasonAnswered)
}

func TestSubChatBeyondFamilyLimitWaitsForSlot(t *testing.T) {
	t.Parallel()
	for name, makeRoom := range map[string]func(*testing.T, string){
		"a sibling is deleted": func(t *testing.T, ns string) { remove(t, newChat(ns, "k1", "")) },
		"a sibling is archived": func(t *testing.T,
			ns string) {
			patch(t, newChat(ns, "k1", ""), `{"spec":{"archived":true}}`)
		},
		"the limit is raised": func(t *testing.T, ns string) {
			patch(t, newChat(ns, "root", ""), `{"spec":{"limits":{"maxSubChats":2}}}`)
		},
	} {
		t.Run(name, func(t *testing.T) {
			ns := namespace(t)
			root := newChat(ns, "root", "")
			root.Spec.Limits = &v1beta1.ChatLimits{MaxSubChats: new(int32(1))}
			create(t, root)
			create(t, subChat(ns, "k1", "root"))
			answers(t, assigned(t, ns, "k1", 1, 1), chattest.Says("Fine."))
			waitForPhase(t, ns, "k1", v1beta1.ChatWaiting)
			create(t, subChat(ns, "k0", "root")) // Its name is no reason to come before one that has begun.
			waitForReady(t, ns, "k0", metav1.ConditionFalse, v1beta1.ConditionReason(v1beta1.ErrorSubChatLimitExceeded))
			makeRoom(t, ns)
			assigned(t, ns, "k0", 1, 1)
		})
	}
}

func TestSubChatIsSuspendedAndDeletedWithParent(t *testing.T) {
	ns := parallel(t)
	create(t, subChat(ns, "child", "root"))
	waitForReady(t, ns, "child", metav1.ConditionFalse, v1beta1.ConditionReason(v1beta1.ErrorParentNotFound))
	root := newChat(ns, "root", "")
	root.Spec.Suspend = true
	create(t, root)
	waitForReady(t, ns, "child", metav1.ConditionUnknown, v1beta1.ReasonSuspended)
	patch(t, newChat(ns, "root", ""), `{"spec":{"suspend":false}}`)
	answers(t, assigned(t, ns, "child", 1, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "child", v1beta1.ChatWaiting)
	remove(t, newChat(ns, "root", ""))
	eventually(t, "the child is gone", func() bool {
		var chat v1beta1.Chat
		return apierrors.IsNotFound(cluster.Client.Get(t.Context(), client.ObjectKey{Namespace: ns, Name: "child"}, &chat))
	})
	waitGone(t, ns, "child-1-1")
}

func TestTheRootLimitsItsFamily(t *testing.T) {
	ns := parallel(t)
	root := newChat(ns, "root", "")
	root.Spec.Limits = &v1beta1.ChatLimits{MaxSubChats: new(int32(1))}
	create(t, root)
	create(t, subChat(ns, "a", "root"))
	assigned(t, ns, "a", 1, 1)
	create(t, subChat(ns, "b", "root"))
	waitForReady(t, ns, "b", metav1.ConditionFalse, v1beta1.ConditionReason(v1beta1.ErrorSubChatLimitExceeded))
	create(t, subChat(ns, "deep", "a"))
	waitForReady(t, ns, "deep", metav1.ConditionFalse, v1beta1.ConditionReason(v1beta1.ErrorSubChatLimitExceeded))
	patch(t, newChat(ns, "root", ""), `{"spec":{"limits":{"maxSubChats":2}}}`)
	assigned(t, ns, "b", 1, 1)
}
