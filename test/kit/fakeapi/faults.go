// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeapi

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/test/kit/check"
)

// Fault is an error that an API server answers with.
type Fault string

const (
	// Conflict is that the object is a newer one than was read. Only writes meet it.
	Conflict Fault = "Conflict"
	// NotFound is that the object is gone.
	NotFound Fault = "NotFound"
	// Forbidden is that a right is missing, or a policy or a quota is against it.
	Forbidden Fault = "Forbidden"
	// Timeout is that the API server is in trouble.
	Timeout Fault = "Timeout"
)

var faults = []Fault{Conflict, NotFound, Forbidden, Timeout}

// Err is the error.
func (f Fault) Err() error {
	resource, cause := schema.GroupResource{Resource: "things"}, errors.New("a fault of the test")
	switch f {
	case Conflict:
		return apierrors.NewConflict(resource, "thing", cause)
	case NotFound:
		return apierrors.NewNotFound(resource, "thing")
	case Forbidden:
		return apierrors.NewForbidden(resource, "thing", cause)
	}
	return apierrors.NewTimeoutError("etcdserver: request timed out", 1)
}

// possible reports whether a call can be answered so.
func (f Fault) possible(call string) bool {
	switch f {
	case Conflict:
		return writing(call)
	case NotFound:
		return !slices.Contains([]string{"list", "create"}, verb(call))
	}
	return true
}

// Reconcile is a reconcile that is to be tested with faults.
type Reconcile struct {
	// Begin makes the server and the reconciler before it. What it lets the reconciler do already does not fail.
	Begin func(t *testing.T) (*Server, reconcile.Reconciler)
	// Request that it gets.
	Request reconcile.Request
	// State lists what it may write.
	State []client.ObjectList
	// Settled are the calls, and the faults of each, with which the reconcile comes elsewhere and rightly rests there:
	// what changes that has an event.
	Settled map[string][]Fault
}

// Run lets each call that the reconcile makes fail once, with each fault. The reconcile must come to where it comes
// without a fault, at once or when it is made again, because of an error that says what is wrong or because it asks for
// that.
func (r *Reconcile) Run(t *testing.T) {
	t.Helper()
	s, reconciler := r.Begin(t)
	begun := len(s.Calls())
	if _, err := reconciler.Reconcile(t.Context(), r.Request); err != nil {
		t.Fatalf("without a fault: %v", err)
	}
	calls, want := s.Calls()[begun:], s.State(t, r.State...)
	if !slices.ContainsFunc(calls, writing) {
		t.Fatalf("the calls %v write nothing", calls)
	}
	settled := 0
	for i, call := range calls {
		for _, fault := range faults {
			if !fault.possible(call) {
				continue
			}
			if slices.Contains(r.Settled[call], fault) {
				settled++
			}
			t.Run(fmt.Sprintf("%d %s %s", i, call, fault), func(t *testing.T) { r.fail(t, i, call, fault, want) })
		}
	}
	for _, of := range r.Settled {
		settled -= len(of)
	}
	if settled < 0 {
		t.Errorf("calls that are settled are not made: %v, of %v", r.Settled, calls)
	}
}

func (r *Reconcile) fail(t *testing.T, n int, call string, fault Fault, want map[string]string) {
	t.Helper()
	s, reconciler := r.Begin(t)
	injected, begun := fault.Err(), len(s.Calls())
	s.Fail = func(string) error {
		if len(s.Calls())-begun != n+1 {
			return nil
		}
		return injected
	}
	result, err := reconciler.Reconcile(t.Context(), r.Request)
	if slices.Contains(r.Settled[call], fault) {
		if err != nil || !result.IsZero() {
			t.Errorf("it is made again: %v, %v", result, err)
		}
		return
	}
	if err != nil && !errors.Is(err, injected) {
		t.Errorf("the error is %v", err)
	}
	if err != nil || !result.IsZero() {
		s.Fail = nil
		r.again(t, reconciler)
	}
	if diff := cmp.Diff(want, s.State(t, r.State...)); diff != "" {
		t.Errorf("after %v, %v it ends elsewhere (-want +got):\n%s", result, err, diff)
	}
}

// again reconciles once more, which must go well.
func (r *Reconcile) again(t *testing.T, reconciler reconcile.Reconciler) {
	t.Helper()
	if _, err := reconciler.Reconcile(t.Context(), r.Request); err != nil {
		t.Fatalf("it fails again: %v", err)
	}
}

func printed(t testing.TB, o client.Object) string {
	t.Helper()
	text, err := json.MarshalIndent(o, "", " ")
	check.OK(t, err)
	return string(text)
}
