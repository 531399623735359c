// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

func request(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

func TestReconcileBackoffIsCappedAtHalfAMinute(t *testing.T) {
	limiter, last := Limiter(), time.Duration(0)
	for range 100 {
		last = limiter.When(request("a"))
	}
	check.Equal(t, "the wait is", Most, last)
}

func TestThousandsThatFailDelayNoOther(t *testing.T) {
	limiter := Limiter()
	for i := range 5000 {
		limiter.When(request(string(rune('a' + i%26))))
	}
	check.Equal(t, "the wait is", First, limiter.When(request("another")))
}

// lister is a client whose lists fail with err.
type lister struct {
	client.Reader
	err error
}

func (l lister) List(context.Context, client.ObjectList, ...client.ListOption) error { return l.err }

func TestFailedListInWatchHandlerIsLogged(t *testing.T) {
	for name, c := range map[string]struct {
		err  error
		want string
	}{
		"it works": {nil, ""},
		"it fails": {errors.New("no such index"), "no such index"},
	} {
		t.Run(name, func(t *testing.T) {
			var out strings.Builder
			ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { out.WriteString(args) }, funcr.Options{}))
			check.Equal(t, "it could list", c.err == nil, List(ctx, lister{err: c.err}, &corev1.PodList{}))
			if !strings.Contains(out.String(), c.want) || (out.String() == "") != (c.want == "") {
				t.Errorf("the log says %q, want %q", out.String(), c.want)
			}
		})
	}
}

func TestChangeRequeuesMatchingSiblings(t *testing.T) {
	pod := func(namespace, name string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	}
	s := fakeapi.New(t, pod("a", "1"), pod("a", "2"), pod("b", "1"))
	isNamesake := func(changed, sibling client.Object) bool { return changed.GetName() == sibling.GetName() }
	for name, c := range map[string]struct {
		changed client.Object
		matches func(changed, sibling client.Object) bool
		want    string
	}{
		"of the namespace":      {pod("a", "2"), nil, "a/1 a/2"},
		"that match":            {pod("a", "2"), isNamesake, "a/2"},
		"of all namespaces":     {pod("", "1"), isNamesake, "a/1 b/1"},
		"of an empty namespace": {pod("c", "1"), nil, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Siblings(s.Client, &corev1.PodList{}, c.matches)(t.Context(), c.changed)
			check.Equal(t, "requests", of(c.want), got)
		})
	}
	s.Fail = func(string) error { return fakeapi.Timeout.Err() }
	check.Equal(t, "without a list it requeues", nil,
		Siblings(s.Client, &corev1.PodList{}, nil)(t.Context(), pod("a", "1")))
}
