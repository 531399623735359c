// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package requeue

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestADeletionDuringAPassFailsNothing(t *testing.T) {
	chats := schema.GroupResource{Group: "parley.dev", Resource: "chats"}
	terminating := apierrors.NewForbidden(chats, "c", errors.New("namespace ns is being terminated"))
	terminating.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	later := reconcile.Result{RequeueAfter: time.Minute}
	for name, c := range map[string]struct {
		err    error
		want   reconcile.Result
		failed bool
	}{
		"nothing was deleted":    {nil, later, false},
		"its namespace is going": {terminating, reconcile.Result{}, false},
		"its namespace is gone": {apierrors.NewNotFound(corev1.Resource("namespaces"), "ns"), reconcile.Result{},
			false},
		"an object is gone":             {apierrors.NewNotFound(chats, "c"), reconcile.Result{RequeueAfter: Vanished}, false},
		"there is no such kind":         {noSuchKind(chats), later, true},
		"a right is missing":            {apierrors.NewForbidden(chats, "c", errors.New("no right")), later, true},
		"the API server is in trouble":  {apierrors.NewTimeoutError("later", 1), later, true},
		"an error of the program's own": {errors.New("no such index"), later, true},
	} {
		t.Run(name, func(t *testing.T) {
			err := c.err
			if err != nil {
				err = errors.Join(nil, fmt.Errorf("writing it: %w", err))
			}
			got, failed := IgnoreGone(reconcile.Func(func(context.Context, reconcile.Request) (reconcile.Result, error) {
				return later, err
			})).Reconcile(t.Context(), request("c"))
			if got != c.want || (failed != nil) != c.failed {
				t.Errorf("got %v, %v", got, failed)
			}
		})
	}
}

// noSuchKind is how an API server answers that does not serve the resource.
func noSuchKind(resource schema.GroupResource) error {
	return apierrors.NewGenericServerResponse(http.StatusNotFound, "update", resource, "c", "404 page not found", 0, true)
}
