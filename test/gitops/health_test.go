// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/health"
	"github.com/fluxcd/cli-utils/pkg/kstatus/status"
	"github.com/fluxcd/pkg/ssa"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
)

// judged is what Flux and Argo CD say of an object.
type judged struct {
	flux status.Status
	argo health.HealthStatusCode
}

var (
	busy  = judged{status.InProgressStatus, health.HealthStatusProgressing}
	done  = judged{status.CurrentStatus, health.HealthStatusHealthy}
	stuck = judged{status.FailedStatus, health.HealthStatusDegraded}
)

func judge(t *testing.T, checks luaHealth, o *unstructured.Unstructured) judged {
	t.Helper()
	result, err := status.Compute(o)
	if err != nil {
		t.Fatalf("kstatus of %s: %v", id(o), err)
	}
	argo, err := health.GetResourceHealth(o, checks)
	if err != nil {
		t.Fatalf("Argo CD's health of %s: %v", id(o), err)
	}
	if argo == nil {
		t.Fatalf("Argo CD has no health check for %s", id(o))
	}
	if argo.Message == "" {
		t.Errorf("Argo CD shows no message for %s", id(o))
	}
	return judged{result.Status, argo.Status}
}

// expect checks what the tools say of live objects.
func expect(t *testing.T, ns string, want judged, ids ...string) {
	t.Helper()
	checks, all := readHealth(t), live(t, ns)
	for _, name := range ids {
		if all[name] == nil {
			t.Errorf("%s is not there", name)
		} else if got := judge(t, checks, all[name]); got != want {
			t.Errorf("%s is %v, want %v; status %v", name, got, want, all[name].Object["status"])
		}
	}
}

func TestHealthFollowsAChatAndItsMessages(t *testing.T) {
	ns := newNamespace(t)
	what := newFlux(t, ns)
	git := checkOut(t, ns, "chats.yaml")
	prompts := []string{"ChatMessage/triage-prompt", "ChatMessage/broken-prompt"}

	what.apply(t, git.without(modelConfig))
	wait(t, ns, "ModelConfigNotFound", "Chat/triage", "Chat/broken")
	open(t, ns, slices.Concat(messages, prompts)...)
	failing(t, ns, "Chat/triage", "Chat/broken") // What is missing could have been next in the manifest.
	expect(t, ns, stuck, "Chat/triage", "Chat/broken")
	expect(t, ns, busy, slices.Concat(messages, prompts)...)

	what.apply(t, git)
	running(t, ns, "Chat/triage", "Chat/broken")
	wait(t, ns, "Answering", prompts...)
	wait(t, ns, "Queued", messages...)
	wait(t, ns, "Accepted", modelConfig)
	expect(t, ns, done, modelConfig)
	expect(t, ns, busy, slices.Concat(messages, prompts, []string{"Chat/triage", "Chat/broken"})...)

	playPods(t, ns)
	wait(t, ns, "AuthenticationFailed", "Chat/broken", "ChatMessage/broken-prompt")
	wait(t, ns, "Answered", append(messages, "ChatMessage/triage-prompt", "Chat/triage")...)
	expect(t, ns, stuck, "Chat/broken", "ChatMessage/broken-prompt")
	expect(t, ns, done, append(messages, "ChatMessage/triage-prompt", "Chat/triage")...)
}

func TestHealthIsOpenUntilTheGenerationIsObserved(t *testing.T) {
	now := metav1.Now()
	answered := []any{map[string]any{
		"type": "Ready", "status": "True", "reason": "Answered", "message": "Every message is answered",
		"observedGeneration": int64(1),
	}}
	for name, change := range map[string]func(o *unstructured.Unstructured){
		"just created": func(o *unstructured.Unstructured) {
			o.Object["status"] = map[string]any{"observedGeneration": int64(-1)}
		},
		"edited since":        func(o *unstructured.Unstructured) { o.SetGeneration(2) },
		"about to be deleted": func(o *unstructured.Unstructured) { o.SetDeletionTimestamp(&now) },
	} {
		for _, kind := range append([]string{"Workspace"}, kinds...) {
			t.Run(kind+" "+name, func(t *testing.T) {
				o := &unstructured.Unstructured{Object: map[string]any{
					"spec": map[string]any{}, "status": map[string]any{"observedGeneration": int64(1), "conditions": answered},
				}}
				o.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(kind))
				o.SetName("o")
				o.SetGeneration(1)
				checks := readHealth(t)
				if got := judge(t, checks, o); got != done {
					t.Fatalf("the finished object is %v", got)
				}
				change(o)
				if got := judge(t, checks, o); got.argo != health.HealthStatusProgressing || got.flux == status.CurrentStatus ||
					got.flux == status.FailedStatus {
					t.Errorf("the object is %v", got)
				}
			})
		}
	}
}

func TestArgoCDHealthFollowsSuspensionAndOutcome(t *testing.T) {
	checks := readHealth(t)
	ready := func(reason string) map[string]any {
		return map[string]any{"observedGeneration": int64(1), "conditions": []any{
			map[string]any{"type": "Ready", "status": "Unknown", "reason": reason, "message": "why"},
			map[string]any{"type": "Reconciling", "status": "True", "reason": reason, "message": "why"},
		}}
	}
	for name, c := range map[string]struct {
		kind         string
		spec, status map[string]any
		want         health.HealthStatusCode
	}{
		"a suspended chat": {"Chat", map[string]any{"suspend": true}, ready("Suspended"),
			health.HealthStatusSuspended},
		"a suspended workspace": {"Workspace", map[string]any{"suspend": true}, map[string]any{
			"observedGeneration": int64(1), "conditions": []any{map[string]any{"type": "Ready", "status": "True",
				"reason": "WorkspaceStopped", "message": "why"}}}, health.HealthStatusSuspended},
		"a workspace whose pod starts": {"Workspace", nil, ready("PodStarting"), health.HealthStatusProgressing},
		"a chat at work":               {"Chat", nil, ready("Generating"), health.HealthStatusProgressing},
		"a step": {"ChatMessage", map[string]any{"generation": map[string]any{"outcome": "Completed"}},
			nil, health.HealthStatusHealthy},
		"a report of a failed attempt": {"ChatMessage",
			map[string]any{"generation": map[string]any{"outcome": "Failed", "error": map[string]any{"message": "why"}}}, nil,
			health.HealthStatusDegraded},
		"a message that is not settled": {"ChatMessage", map[string]any{"content": "hello"}, ready("Queued"),
			health.HealthStatusProgressing},
	} {
		t.Run(name, func(t *testing.T) {
			o := &unstructured.Unstructured{Object: map[string]any{"spec": c.spec, "status": c.status}}
			o.SetGroupVersionKind(v1beta1.GroupVersion.WithKind(c.kind))
			o.SetGeneration(1)
			got, err := health.GetResourceHealth(o, checks)
			if err != nil {
				t.Fatal(err)
			}
			if got.Status != c.want || got.Message == "" {
				t.Errorf("it is %+v, want %s", got, c.want)
			}
		})
	}
}

func TestAChatWithoutItsAdvisorIsHealthy(t *testing.T) {
	chat := &v1beta1.Chat{TypeMeta: metav1.TypeMeta{APIVersion: "parley.dev/v1beta1", Kind: "Chat"}}
	chat.Name, chat.Generation, chat.Status.Phase = "c", 1, v1beta1.ChatWaiting
	conditions.MarkAdvisor(&chat.Status, &v1beta1.GenerationError{Reason: v1beta1.ErrorModelConfigNotFound,
		Message: "create it"}, time.Now())
	conditions.Chat(&chat.Status, conditions.ChatFacts{Generation: 1, Now: time.Now()})
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(chat)
	if err != nil {
		t.Fatal(err)
	}
	if got := judge(t, readHealth(t), &unstructured.Unstructured{Object: content}); got != done {
		t.Errorf("it is %v", got)
	}
}

func TestChatModelConfigWithMissingFallbackIsHealthy(t *testing.T) {
	config := &v1beta1.ChatModelConfig{
		TypeMeta: metav1.TypeMeta{APIVersion: "parley.dev/v1beta1", Kind: "ChatModelConfig"},
	}
	config.Name, config.Generation = "default", 1
	conditions.ModelConfig(config, conditions.ModelConfigFacts{Missing: []string{"second"}}, time.Now())
	content, err := runtime.DefaultUnstructuredConverter.ToUnstructured(config)
	if err != nil {
		t.Fatal(err)
	}
	if got := judge(t, readHealth(t), &unstructured.Unstructured{Object: content}); got != done {
		t.Errorf("it is %v", got)
	}
}

func TestFluxWaitsForAnswersAndFailsFast(t *testing.T) {
	ns := newNamespace(t)
	f := fluxIn(ns)
	git := checkOut(t, ns, "chats.yaml")
	f.apply(t, git)
	playPods(t, ns)
	options := ssa.WaitOptions{Interval: 50 * time.Millisecond, Timeout: patience, FailFast: true}
	if err := f.manager.Wait(git.without("Chat/broken"), options); err != nil {
		t.Errorf("waiting for the answers: %v", err)
	}
	err := f.manager.Wait(git, options)
	if err == nil || !strings.Contains(err.Error(), "Chat/"+ns+"/broken status: 'Failed'") {
		t.Errorf("waiting for the chat that fails ended with %v", err)
	}
}
