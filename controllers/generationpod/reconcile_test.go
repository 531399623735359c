// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package generationpod

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/internal/kube/denial"
	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

var request = ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "pod"}}

var settings = podspec.Settings{Image: "parley:1", Capacity: 1}

// working is generation pod "pod", built from the settings, ready for an hour, and changed.
func working(change ...func(*corev1.Pod)) *corev1.Pod {
	of := settings
	of.Namespace = "ns"
	pod := podspec.Generation(of, "pod")
	ready := metav1.NewTime(now.Add(-time.Hour))
	pod.CreationTimestamp, pod.Status.Phase = ready, corev1.PodRunning
	pod.Status.Conditions = []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue,
		LastTransitionTime: ready}}
	for _, c := range change {
		c(pod)
	}
	return pod
}

func ofOldTemplate(p *corev1.Pod) { p.Labels[podspec.LabelTemplate] = "old" }

func begin(t *testing.T, objects ...client.Object) (*fakeapi.Server, *Reconciler) {
	t.Helper()
	s := fakeapi.New(t, objects...)
	clock := func() time.Time { return now }
	return s, &Reconciler{Client: s.Client, Idle: time.Minute, Now: clock, Pool: &Pool{
		Client: s.Client, Live: s.Live, Ledger: placement.NewLedger(), Settings: settings, Start: time.Hour,
		Prepare: func(context.Context, string) error { return nil }, Now: clock,
	}}
}

func TestIdlePodIsRemovedAfterItsIdleTime(t *testing.T) {
	for name, c := range map[string]struct {
		pod   *corev1.Pod
		given string // chat that has the pod, though no status says so yet
		again time.Duration
		gone  bool
	}{
		"of these settings":      {working(), "", time.Minute, false},
		"of earlier settings":    {working(ofOldTemplate), "", 0, true},
		"that can work no more":  {working(func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }), "", 0, true},
		"that was just rejected": {working(rejected), "", 6 * time.Second, false},
		"that was just given":    {working(ofOldTemplate), "ns/c", time.Second, false},
		"that does not start":    {working(starting), "", 20 * time.Second, false},
		"that is none of ours":   {working(func(p *corev1.Pod) { p.Labels = nil }), "", 0, false},
		"that is being deleted":  {working(ofOldTemplate, deleting), "", 0, false},
		"of a chat's generation": {working(), "ns/c", time.Minute, false},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := begin(t, c.pod)
			if c.given != "" {
				r.Pool.Ledger.Book(c.given, "pod")
			}
			result, err := r.Reconcile(t.Context(), request)
			if err != nil || result.RequeueAfter != c.again || (len(s.Writes()) == 1) != c.gone {
				t.Errorf("got %v, %v after %v", result, err, s.Writes())
			}
		})
	}
}

// starting has 20 seconds left of the hour that a pod may take.
func starting(p *corev1.Pod) {
	p.Status = corev1.PodStatus{Phase: corev1.PodPending}
	p.CreationTimestamp = metav1.NewTime(now.Add(20*time.Second - time.Hour))
}

// rejected was created four seconds ago, and its kubelet does not run it.
func rejected(p *corev1.Pod) {
	p.CreationTimestamp = metav1.NewTime(now.Add(-4 * time.Second))
	p.Status = corev1.PodStatus{Phase: corev1.PodFailed, Reason: "NodeShutdown"}
}

func deleting(p *corev1.Pod) {
	p.DeletionTimestamp, p.Finalizers = new(metav1.NewTime(now)), []string{"parley.dev/test"}
}

func TestIdlenessCountsFromWhenTheLastChatLeft(t *testing.T) {
	chat := chattest.Generating()
	s, r := begin(t, working(), chat)
	for _, step := range []struct {
		what  string
		does  func()
		later time.Duration
		again time.Duration
		gone  bool
	}{
		{"a chat has it", func() {}, 0, time.Minute, false},
		{"the chat has left", func() {
			chat.Status.Generation = nil
			check.OK(t, s.Direct.Status().Update(t.Context(), chat))
		}, time.Hour, time.Minute, false},
		{"40 seconds later", func() {}, time.Hour + 40*time.Second, 20 * time.Second, false},
		{"a minute later", func() {}, time.Hour + time.Minute, 0, true},
	} {
		step.does()
		r.Now = func() time.Time { return now.Add(step.later) }
		result, err := r.Reconcile(t.Context(), request)
		if err != nil || result.RequeueAfter != step.again || (len(s.Writes()) == 1) != step.gone {
			t.Errorf("%s: got %v, %v after %v", step.what, result, err, s.Writes())
		}
	}
}

func TestDrainedPodReceivesNoChatsUntilDeleted(t *testing.T) {
	s, r := begin(t, working(ofOldTemplate))
	s.Fail = func(call string) error {
		if call == "delete pod" {
			return fakeapi.Forbidden.Err()
		}
		return nil
	}
	if _, err := r.Reconcile(t.Context(), request); err == nil {
		t.Error("nobody says that it cannot be removed")
	}
	choose := func() bool {
		choice := r.Pool.Ledger.Choose("ns", []placement.Pod{{Name: "pod", Created: now, Usable: true}},
			placement.Want{Capacity: 1}, "ns/c")
		return choice.Pod != ""
	}
	if choose() {
		t.Error("a chat is given to it")
	}
	s.Fail = nil
	check.OK(t, s.Direct.Delete(t.Context(), working()))
	if _, err := r.Reconcile(t.Context(), request); err != nil {
		t.Fatal(err)
	}
	if !choose() {
		t.Error("a pod of its name is given to nobody")
	}
}

func TestFaultOfAnyCallKeepsNoIdlePod(t *testing.T) {
	faults := fakeapi.Reconcile{
		Begin: func(t *testing.T) (*fakeapi.Server, reconcile.Reconciler) {
			return begin(t, working(ofOldTemplate), chattest.In("ns", chattest.Config("default", chattest.Default)))
		},
		Request: request,
		State:   []client.ObjectList{&corev1.PodList{}},
		Settled: map[string][]fakeapi.Fault{"get pod": {fakeapi.NotFound}, "delete pod": {fakeapi.NotFound}},
	}
	faults.Run(t)
}

func TestChatIsAssignedAvailablePodOrNewOne(t *testing.T) {
	chat := types.NamespacedName{Namespace: "ns", Name: "c"}
	for name, c := range map[string]struct {
		pods   []client.Object
		booked int
		old    bool // whether the chat has the pod that was there
		writes []string
	}{
		"one has room":                  {[]client.Object{working()}, 0, true, nil},
		"none is there":                 {nil, 0, false, []string{"create pod"}},
		"the only one is at capacity":   {[]client.Object{working()}, 1, true, []string{"create pod"}},
		"the only one is at its surge":  {[]client.Object{working()}, placement.Surge, false, []string{"create pod"}},
		"the only one starts, and full": {[]client.Object{working(starting)}, 1, false, []string{"create pod"}},
		"the only one is of other keys": {[]client.Object{working(ofOldTemplate)}, 0, false, []string{"create pod"}},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := begin(t, c.pods...)
			for i := range c.booked {
				r.Pool.Ledger.Book(fmt.Sprint("ns/other-", i), "pod")
			}
			for range 2 { // Asked again, it has the same pod and creates no other.
				name, err := r.Pool.Assign(t.Context(), chat, nil, placement.Want{})
				if err != nil || !slices.Equal(s.Writes(), c.writes) || name == "" || (name == "pod") != c.old {
					t.Errorf("got %q, %v after %v", name, err, s.Writes())
				}
			}
		})
	}
}

func TestFailedGrowthKeepsSurgingChats(t *testing.T) {
	for _, fault := range []fakeapi.Fault{fakeapi.Forbidden, fakeapi.Timeout} {
		s, r := begin(t, working())
		r.Pool.Ledger.Book("ns/other", "pod")
		s.Fail = func(call string) error {
			if call == "create pod" {
				return fault.Err()
			}
			return nil
		}
		chat := types.NamespacedName{Namespace: "ns", Name: "c"}
		if name, err := r.Pool.Assign(t.Context(), chat, nil, placement.Want{}); err != nil || name != "pod" {
			t.Errorf("got %q, %v", name, err)
		}
	}
}

func TestRejectedPodHoldsFurtherGrowthBack(t *testing.T) {
	s, r := begin(t, working(), working(rejected, func(p *corev1.Pod) { p.Name = "next" }))
	r.Pool.Ledger.Book("ns/other", "pod")
	chat := types.NamespacedName{Namespace: "ns", Name: "c"}
	name, err := r.Pool.Assign(t.Context(), chat, nil, placement.Want{})
	if err != nil || name != "pod" || len(s.Writes()) != 0 {
		t.Errorf("got %q, %v after %v", name, err, s.Writes())
	}
}

func TestOnlyRefusedPodCreationIsRemembered(t *testing.T) {
	chat := types.NamespacedName{Namespace: "ns", Name: "c"}
	for name, c := range map[string]struct {
		call    string
		fault   fakeapi.Fault
		refused bool
	}{
		"the pods cannot be listed":     {"list pods", fakeapi.Timeout, false},
		"the pod cannot be created":     {"create pod", fakeapi.Timeout, false},
		"a quota is against it":         {"create pod", fakeapi.Forbidden, true},
		"what it needs is missing":      {"create pod", fakeapi.NotFound, true},
		"it cannot be prepared for now": {"prepare", fakeapi.Timeout, false},
		"a right to prepare is missing": {"prepare", fakeapi.Forbidden, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := begin(t)
			injected := c.fault.Err()
			fail := func(call string) error {
				if call == c.call {
					return injected
				}
				return nil
			}
			s.Fail, r.Pool.Prepare = fail, func(context.Context, string) error { return fail("prepare") }
			var refused *placement.RefusedError
			_, err := r.Pool.Assign(t.Context(), chat, nil, placement.Want{})
			if errors.As(err, &refused) != c.refused || !c.refused && !errors.Is(err, injected) {
				t.Errorf("the error is %v", err)
			}
			injected = nil
			if _, err := r.Pool.Assign(t.Context(), chat, nil, placement.Want{}); (err == nil) == c.refused {
				t.Errorf("asked again at once: %v", err)
			}
			r.Pool.Now = func() time.Time { return now.Add(denial.Lasts) }
			if name, err := r.Pool.Assign(t.Context(), chat, nil, placement.Want{}); err != nil ||
				r.Pool.Ledger.Load(name) != 1 {
				t.Errorf("asked again later: %q, %v", name, err)
			}
		})
	}
}

// policy refuses pods as Kyverno does, in words that name the pod.
type policy struct{ client.Client }

func (policy) Create(_ context.Context, o client.Object, _ ...client.CreateOption) error {
	return &apierrors.StatusError{ErrStatus: metav1.Status{Code: http.StatusBadRequest,
		Message: `admission webhook "validate.kyverno.svc-fail" denied the request: ` + "\n\nresource Pod/ns/" + o.GetName() +
			" was blocked due to the following policies\n\nlabels:\n  team: label team is required\n"}}
}

func TestRefusalOfEachTryHasTheSameWords(t *testing.T) {
	s, r := begin(t)
	r.Pool.Client = policy{s.Client}
	for try := range time.Duration(2) {
		r.Pool.Now = func() time.Time { return now.Add(try * denial.Lasts) }
		var refused *placement.RefusedError
		_, err := r.Pool.Assign(t.Context(), types.NamespacedName{Namespace: "ns", Name: "c"}, nil, placement.Want{})
		if !errors.As(err, &refused) {
			t.Fatalf("the error is %v", err)
		}
		check.Equal(t, "words", `admission webhook "validate.kyverno.svc-fail" denied the request: resource `+
			"Pod/ns/parley-generation-* was blocked due to the following policies labels: team: label team is required",
			refused.Words)
	}
}

func TestUnreadablePodIsNotLost(t *testing.T) {
	for _, call := range []string{"get pod", "live get pod"} {
		s, r := begin(t)
		s.Fail = func(made string) error {
			if made == call {
				return fakeapi.Timeout.Err()
			}
			return nil
		}
		if state, err := r.Pool.Look(t.Context(), request.NamespacedName, nil); err == nil || state.Lost {
			t.Errorf("%s: got %+v, %v", call, state, err)
		}
	}
}
