// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestEditInGitIsAnsweredAnew(t *testing.T) {
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		git := answeredChat(t, ns, what)
		identities := uids(t, ns, git)
		last := newest(t, ns, "triage-cni", "triage-summary")
		edited := git.edited(t, last,
			func(o *unstructured.Unstructured) { set(t, o, "Say it in French.", "spec", "content") })
		what.apply(t, edited)
		eventually(t, last+" is answered as it is now", func() bool {
			o := liveIn(t, ns, last)
			_, reason := ready(o)
			observed, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
			return o.GetGeneration() == 2 && observed == 2 && reason == "Answered"
		})
		wait(t, ns, "Answered", "Chat/triage")
		unchanged(t, what, ns, edited)
		same(t, ns, edited, identities)
	})
}

func TestMessagesSupersededByGitEditNeedManualAction(t *testing.T) {
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		git := checkOut(t, ns, "chats.yaml").without("Chat/broken").without("ChatMessage/triage-events",
			"ChatMessage/triage-summary")
		what.apply(t, git)
		playPods(t, ns)
		wait(t, ns, "Answered", "ChatMessage/triage-cni", "Chat/triage")
		git = append(git, checkOut(t, ns, "chats.yaml").without(git.ids()...).
			without("Chat/broken", "ChatMessage/triage-events")...)
		what.apply(t, git)
		wait(t, ns, "Answered", "ChatMessage/triage-summary", "Chat/triage")

		edited := git.edited(t, "ChatMessage/triage-cni",
			func(o *unstructured.Unstructured) { set(t, o, "And Cilium?", "spec", "content") })
		what.apply(t, edited)
		wait(t, ns, "Superseded", "ChatMessage/triage-summary")
		wait(t, ns, "Answered", "ChatMessage/triage-cni", "Chat/triage")
		unchanged(t, what, ns, edited)
		expect(t, ns, stuck, "ChatMessage/triage-summary")
		expect(t, ns, done, "ChatMessage/triage-cni", "Chat/triage")
	})
}

func TestChangedPromptIsRefusedUnlessFluxIsForced(t *testing.T) {
	ns := newNamespace(t)
	f := fluxIn(ns)
	git := answeredChat(t, ns, f)
	before := uids(t, ns, git)
	other := git.edited(t, "Chat/triage",
		func(o *unstructured.Unstructured) { set(t, o, "Why is the sky blue?", "spec", "prompt") })
	_, err := f.manager.ApplyAllStaged(t.Context(), f.prepare(t, other), f.options())
	if err == nil || !strings.Contains(err.Error(), "prompt starts the chat and cannot change afterwards") {
		t.Errorf("the change ended with %v", err)
	}
	same(t, ns, git, before)

	forced := other.edited(t, "Chat/triage", func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{fluxGroup + "/force": "enabled"})
	})
	eventually(t, "Git's messages are answered in the new chat", func() bool {
		f.apply(t, forced)
		all := live(t, ns)
		for _, name := range append(messages, "Chat/triage") {
			if all[name] == nil || string(all[name].GetUID()) == before[name] {
				return false
			}
			if _, reason := ready(all[name]); reason != "Answered" {
				return false
			}
		}
		return true
	})
	if got := field(t, liveIn(t, ns, "ChatMessage/triage-prompt"), "spec", "content"); got != "Why is the sky blue?" {
		t.Errorf("the prompt is %q", got)
	}
	unchanged(t, f, ns, forced)
}

func TestSyncWavesWaitForEachAnswer(t *testing.T) {
	ns := newNamespace(t)
	a := newArgo(t, ns, false)
	git := checkOut(t, ns, "chats.yaml").without("Chat/broken")
	// Against the order of their names, in which messages of the same second are answered.
	order := []string{modelConfig, "Chat/triage", "ChatMessage/triage-summary", "ChatMessage/triage-events",
		"ChatMessage/triage-cni"}
	for wave, name := range order {
		git = git.edited(t, name, func(o *unstructured.Unstructured) {
			o.SetAnnotations(map[string]string{common.AnnotationSyncWave: fmt.Sprint(wave)})
		})
	}
	playPods(t, ns)
	a.apply(t, git)
	wait(t, ns, "Answered", order[1:]...)
	for i := 3; i < len(order); i++ {
		earlier, later := liveIn(t, ns, order[i-1]), liveIn(t, ns, order[i])
		answered := transition(t, earlier)
		if created := later.GetCreationTimestamp(); created.Time.Before(answered) {
			t.Errorf("%s was created at %s, before %s was answered at %s", order[i], created, order[i-1], answered)
		}
	}
	unchanged(t, a, ns, git)
}

// transition is when an object became Ready.
func transition(t *testing.T, o *unstructured.Unstructured) time.Time {
	t.Helper()
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == "Ready" && c["status"] == "True" {
			at, err := time.Parse(time.RFC3339, fmt.Sprint(c["lastTransitionTime"]))
			if err != nil {
				t.Fatal(err)
			}
			return at
		}
	}
	t.Fatalf("%s is not Ready", id(o))
	return time.Time{}
}

func TestFailedChatFailsItsSync(t *testing.T) {
	ns := newNamespace(t)
	a := newArgo(t, ns, true)
	git := checkOut(t, ns, "chats.yaml").edited(t, "Chat/broken", func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{common.AnnotationSyncWave: "-1"})
	}).edited(t, modelConfig, func(o *unstructured.Unstructured) {
		o.SetAnnotations(map[string]string{common.AnnotationSyncWave: "-2"})
	})
	playPods(t, ns)
	op := &operation{started: metav1.Now()}
	eventually(t, "the sync has ended", func() bool { a.step(t, git, op); return op.phase.Completed() })
	if op.phase != common.OperationFailed {
		t.Errorf("the sync ended as %s: %s", op.phase, op.message)
	}
	if _, there := live(t, ns)["Chat/triage"]; there {
		t.Error("the next wave was applied all the same")
	}
}

func TestArgoCDShowsMessagesBeneathTheirChat(t *testing.T) {
	ns := newNamespace(t)
	a := newArgo(t, ns, false)
	git := answeredChat(t, ns, a)
	a.compare(t, git)
	chat := kube.GetResourceKey(liveIn(t, ns, "Chat/triage"))
	beneath := map[string]bool{}
	a.cache.IterateHierarchyV2([]kube.ResourceKey{chat},
		func(r *cache.Resource, _ map[kube.ResourceKey]*cache.Resource) bool {
			beneath[r.Ref.Name] = true
			return true
		})
	for _, name := range []string{"triage", "triage-prompt", "triage-1-1"} {
		if !beneath[name] {
			t.Errorf("%s is not beneath the chat: %v", name, beneath)
		}
	}
	if want := 1 + 1 + 4; len(beneath) != want {
		t.Errorf("%d objects are beneath the chat, the chat included: %v", len(beneath), beneath)
	}
}
