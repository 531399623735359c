// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"testing"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestArchivedForkCopiesNothing(t *testing.T) {
	w := newWorld(t)
	_, err := w.reconcile()
	check.OK(t, err) // The history has message u.
	fork := chattest.In("ns", chattest.Chat("f", chattest.UID("fork-uid"), func(c *v1beta1.Chat) {
		c.Generation, c.Spec.Archived, c.Spec.Fork = 1, true, &v1beta1.ForkSource{Chat: "c", Message: "u"}
	}))
	check.OK(t, w.Direct.Create(t.Context(), fork))
	before := len(w.Writes())
	for range 3 {
		result, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: client.ObjectKeyFromObject(fork)})
		check.OK(t, err)
		check.Equal(t, "when it is looked at again", ctrl.Result{}, result)
	}
	check.Equal(t, "writes", []string{"update status of chat"}, w.Writes()[before:])
}
