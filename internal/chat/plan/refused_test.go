// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

func readyOf(w *world) *metav1.Condition {
	return meta.FindStatusCondition(w.chat.Status.Conditions, v1beta1.ConditionReady)
}

func TestRefusedPodHoldsTheTurnAndSaysWhy(t *testing.T) {
	refused := func(f *Facts) {
		f.PodRejected = "exceeded quota: none, requested: pods=1, used: pods=0, limited: pods=0"
	}
	w := newWorld(t).pass(func(f *Facts) { refused(f); f.Open = messages(false, "a") }).want("Running v1 a/1 - []")
	if ready := readyOf(w); ready.Status != metav1.ConditionUnknown ||
		v1beta1.ReasonOf(ready) != v1beta1.ReasonGenerationPodRejected ||
		!strings.Contains(ready.Message, "exceeded quota: none") {
		t.Errorf("Ready is %+v", ready)
	}
	if n := w.last.Notices; len(n) != 1 || n[0].Reason != v1beta1.EventGenerationPodRejected {
		t.Errorf("the first refusal gives notice of %+v", n)
	}
	w.later(10 * time.Second)
	w = newWorld(t).pass(func(f *Facts) { refused(f); f.Open = messages(false, "a") }).pass(refused)
	if n := w.last.Notices; len(n) != 0 {
		t.Errorf("a refusal that lasts gives notice of %+v", n)
	}
	w.pass(nil).want("Running v1 a/1 1:GenerateAssistant []")
	if ready := readyOf(w); v1beta1.ReasonOf(ready) != v1beta1.ReasonGenerating {
		t.Errorf("Ready is %+v", ready)
	}
}

func TestAChatWithoutAPodCanBeInterrupted(t *testing.T) {
	w := newWorld(t).pass(func(f *Facts) { f.Open, f.PodRejected = messages(false, "a"), "no" })
	w.pass(func(f *Facts) { f.Requests, f.PodRejected = []Request{{v1beta1.RequestInterrupt, "t"}}, "no" }).
		want("Waiting v2 a/1 - []")
}

func TestPromptCreationFailureIsReported(t *testing.T) {
	for name, c := range map[string]struct {
		why    NoPrompt
		age    time.Duration
		status metav1.ConditionStatus
		reason v1beta1.ConditionReason
		says   string
		again  time.Duration
	}{
		"the name is taken": {NoPrompt{Message: "c-prompt"}, time.Minute, metav1.ConditionFalse,
			v1beta1.ReasonPromptNameConflict, "delete that message", 0},
		"the name may become free": {NoPrompt{Message: "c-prompt"}, time.Second, metav1.ConditionUnknown,
			v1beta1.ReasonPromptNameConflict, "c-prompt", 9 * time.Second},
		"the API server does not let it": {NoPrompt{Message: "c-prompt", Refused: "exceeded quota"}, time.Minute,
			metav1.ConditionUnknown, v1beta1.ReasonPromptRejected, "exceeded quota", 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.chat.Spec.Prompt, w.chat.CreationTimestamp = "hello", metav1.NewTime(w.now.Add(-c.age))
			w.pass(func(f *Facts) { f.NoPrompt = &c.why })
			if ready := readyOf(w); ready.Status != c.status || v1beta1.ReasonOf(ready) != c.reason ||
				!strings.Contains(ready.Message, c.says) {
				t.Errorf("Ready is %+v", ready)
			}
			if n := w.last.Notices; len(n) != 1 || n[0].Reason != v1beta1.EventReason(c.reason) || w.last.Again != c.again {
				t.Errorf("it gives notice of %+v and looks again after %v", n, w.last.Again)
			}
		})
	}
}
