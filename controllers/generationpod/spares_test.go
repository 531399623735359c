// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package generationpod

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/denial"
	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

// asks is the namespace's default class, which asks for so many spare pods.
func asks(spares int32) *v1beta1.ChatClass {
	return chattest.In("ns", chattest.Class("team", func(s *v1beta1.ChatClassSpec) {
		s.Default, s.SpareGenerationPods = true, spares
	}))
}

func beginSpares(t *testing.T, objects ...client.Object) (*fakeapi.Server, *Reconciler, *Spares) {
	t.Helper()
	s, r := begin(t, objects...)
	return s, r, &Spares{Client: s.Client, Pool: r.Pool, Recorder: events.NewFakeRecorder(8)}
}

func TestNamespaceKeepsSparePodsOfDefaultClass(t *testing.T) {
	named := func(name string) func(*corev1.Pod) { return func(p *corev1.Pod) { p.Name = name } }
	other := asks(3)
	other.Name, other.Spec.Default = "a", false
	for name, c := range map[string]struct {
		there []client.Object
		full  string
		want  int
	}{
		"no class":                               {nil, "", 0},
		"a class that is not the default":        {[]client.Object{other}, "", 0},
		"a class that asks for none":             {[]client.Object{asks(0)}, "", 0},
		"one":                                    {[]client.Object{asks(1)}, "", 1},
		"two, and one is there":                  {[]client.Object{asks(2), working()}, "", 1},
		"one, and it is there":                   {[]client.Object{asks(1), working()}, "", 0},
		"one, and it is full":                    {[]client.Object{asks(1), working()}, "pod", 1},
		"one, and one is full, another has room": {[]client.Object{asks(1), working(), working(named("second"))}, "pod", 0},
		"one of earlier settings":                {[]client.Object{asks(1), working(ofOldTemplate)}, "", 1},
		"one that is being removed":              {[]client.Object{asks(1), working(deleting)}, "", 1},
	} {
		t.Run(name, func(t *testing.T) {
			s, r, spares := beginSpares(t, c.there...)
			if c.full != "" {
				r.Pool.Ledger.Book("ns/c", c.full)
			}
			for range 4 { // As the events of the pods bring it about.
				if result, err := spares.Reconcile(t.Context(), ofNamespace); err != nil || !result.IsZero() {
					t.Fatalf("got %v, %v", result, err)
				}
			}
			if got := len(s.Writes()); got != c.want {
				t.Errorf("it wrote %v, want %d pods", s.Writes(), c.want)
			}
		})
	}
}

func TestASparePodStaysWithoutWork(t *testing.T) {
	for name, c := range map[string]struct {
		class *v1beta1.ChatClass
		pod   *corev1.Pod
		kept  bool
	}{
		"nobody asks for it":               {asks(0), working(), false},
		"it is asked for":                  {asks(1), working(), true},
		"it was built from other settings": {asks(1), working(ofOldTemplate), false},
	} {
		t.Run(name, func(t *testing.T) {
			s, r, _ := beginSpares(t, c.class, c.pod)
			if _, err := r.Reconcile(t.Context(), request); err != nil {
				t.Fatal(err)
			}
			r.Now = func() time.Time { return now.Add(2 * time.Minute) }
			result, err := r.Reconcile(t.Context(), request)
			if kept := len(s.Writes()) == 0; err != nil || kept != c.kept || c.kept && result.RequeueAfter == 0 {
				t.Errorf("got %v, %v after %v", result, err, s.Writes())
			}
		})
	}
}

func TestFillingLastPodTriggersSparePodCheck(t *testing.T) {
	s, r, spares := beginSpares(t, asks(1), working())
	looked := make(chan string, 8)
	r.Pool.filled.Store(new(func(namespace string) { looked <- namespace }))
	first := client.ObjectKey{Namespace: "ns", Name: "c"}
	if pod, err := r.Pool.Assign(t.Context(), first, nil, placement.Want{}); err != nil || pod != "pod" {
		t.Fatalf("got %q, %v", pod, err)
	}
	select {
	case namespace := <-looked:
		check.Equal(t, "looked at", "ns", namespace)
	default:
		t.Fatal("nobody looks")
	}
	if _, err := spares.Reconcile(t.Context(), ofNamespace); err != nil {
		t.Fatal(err)
	}
	// The next chat has the spare one once it is ready.
	var pods corev1.PodList
	if err := s.Direct.List(t.Context(), &pods); err != nil {
		t.Fatal(err)
	}
	for i := range pods.Items {
		pods.Items[i].Status = working().Status
		if err := s.Direct.Status().Update(t.Context(), &pods.Items[i]); err != nil {
			t.Fatal(err)
		}
	}
	pod, err := r.Pool.Assign(t.Context(), client.ObjectKey{Namespace: "ns", Name: "d"}, nil, placement.Want{})
	if err != nil || pod == "pod" || pod == "" {
		t.Errorf("got %q, %v", pod, err)
	}
}

func TestRejectedSparePodIsReplacedAfterAPause(t *testing.T) {
	s, r, spares := beginSpares(t, asks(1), working(rejected))
	result, err := spares.Reconcile(t.Context(), ofNamespace)
	if err != nil || result.RequeueAfter != 6*time.Second || len(s.Writes()) != 0 {
		t.Fatalf("got %v, %v after %v", result, err, s.Writes())
	}
	r.Pool.Now = func() time.Time { return now.Add(6 * time.Second) }
	result, err = spares.Reconcile(t.Context(), ofNamespace)
	if err != nil || !result.IsZero() || len(s.Writes()) != 1 {
		t.Errorf("got %v, %v after %v", result, err, s.Writes())
	}
}

func TestRefusedSparePodsAreReportedByEvent(t *testing.T) {
	s, _, spares := beginSpares(t, asks(1))
	recorder := events.NewFakeRecorder(8)
	spares.Recorder = recorder
	s.Fail = func(call string) error {
		if call == "create pod" {
			return fakeapi.Forbidden.Err()
		}
		return nil
	}
	result, err := spares.Reconcile(t.Context(), ofNamespace)
	if err != nil || result.RequeueAfter != denial.Lasts {
		t.Errorf("got %v, %v", result, err)
	}
	check.Contains(t, <-recorder.Events, "GenerationPodRejected")
}
