// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"context"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestNothingIsWrittenFromCacheBehindOwnWrite(t *testing.T) {
	s, r := begin(t, answering(committed), asked(), reply(chattest.Says("Paris")))
	var before v1beta1.ChatMessage
	check.OK(t, s.Direct.Get(t.Context(), request("a").NamespacedName, &before))
	_, err := r.Reconcile(t.Context(), request("a"))
	check.OK(t, err)
	check.Equal(t, "writes", 1, len(s.Writes()))

	cached, isBehind := r.Client.(client.WithWatch), true
	r.Client = interceptor.NewClient(cached, interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch,
		key client.ObjectKey, o client.Object, options ...client.GetOption) error {
		if m, ok := o.(*v1beta1.ChatMessage); ok && isBehind && key.Name == "a" {
			before.DeepCopyInto(m)
			return nil
		}
		return c.Get(ctx, key, o, options...)
	}})
	result, err := r.Reconcile(t.Context(), request("a"))
	check.OK(t, err)
	check.Equal(t, "writes", 1, len(s.Writes()))
	check.Equal(t, "the pause before the next look", requeue.Conflict, result.RequeueAfter)

	isBehind = false
	result, err = r.Reconcile(t.Context(), request("a"))
	check.OK(t, err)
	check.Equal(t, "writes", 1, len(s.Writes()))
	check.Equal(t, "the pause", 0, result.RequeueAfter)
}
