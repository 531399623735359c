// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"reflect"
	"sync"

	networkingv1 "k8s.io/api/networking/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/internal/podspec"
)

// access sees to it that a namespace has the identity and the rights that its generation pods run with. It remembers
// which namespaces it has seen to; a new process looks again.
type access struct {
	mu      sync.Mutex
	locks   map[string]*sync.Mutex
	ensured map[string]bool
}

// lock makes the creation of pods in a namespace one at a time, and returns what ends that.
func (a *access) lock(namespace string) (unlock func()) {
	a.mu.Lock()
	if a.locks == nil {
		a.locks = map[string]*sync.Mutex{}
		a.ensured = map[string]bool{}
	}
	lock := a.locks[namespace]
	if lock == nil {
		lock = &sync.Mutex{}
		a.locks[namespace] = lock
	}
	a.mu.Unlock()
	lock.Lock()
	return lock.Unlock
}

func (a *access) forget(namespace string) {
	a.mu.Lock()
	defer a.mu.Unlock()
	delete(a.ensured, namespace)
}

// ensure creates or corrects the objects.
func (a *access) ensure(ctx context.Context, c client.Client, live client.Reader, namespace, gatewayNamespace string) error {
	a.mu.Lock()
	done := a.ensured[namespace]
	a.mu.Unlock()
	if done {
		return nil
	}
	for _, want := range []client.Object{
		podspec.Account(namespace), podspec.Role(namespace), podspec.RoleBinding(namespace),
		podspec.NetworkPolicy(namespace, gatewayNamespace),
	} {
		if err := createOrCorrect(ctx, c, live, want); err != nil {
			return fmt.Errorf("preparing namespace %s for generation pods: %w", namespace, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ensured[namespace] = true
	return nil
}

func createOrCorrect(ctx context.Context, c client.Client, live client.Reader, want client.Object) error {
	err := c.Create(ctx, want.DeepCopyObject().(client.Object))
	if !apierrors.IsAlreadyExists(err) {
		return err
	}
	have := want.DeepCopyObject().(client.Object)
	if err := live.Get(ctx, client.ObjectKeyFromObject(want), have); err != nil {
		return err
	}
	if sameRules(have, want) {
		return nil
	}
	want.SetResourceVersion(have.GetResourceVersion())
	return c.Update(ctx, want)
}

// sameRules tells whether what the object grants is what is wanted.
func sameRules(have, want client.Object) bool {
	switch h := have.(type) {
	case *rbacv1.Role:
		return reflect.DeepEqual(h.Rules, want.(*rbacv1.Role).Rules)
	case *networkingv1.NetworkPolicy:
		return reflect.DeepEqual(h.Spec, want.(*networkingv1.NetworkPolicy).Spec)
	}
	return true
}
