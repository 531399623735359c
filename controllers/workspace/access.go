// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"fmt"
	"sync"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/internal/ensure"
	"parley.dev/parley/internal/workspace/life"
	"parley.dev/parley/internal/workspace/template"
)

// Access keeps what the workspaces of a namespace run with as it must be: the NetworkPolicy around them, and the public
// keys by which their agents tell who calls. Both are applied before a pod is created, and every hour while there is
// one.
// It is safe for concurrent use.
type Access struct {
	// Client writes.
	Client client.Client
	// Keys fetches the public keys of the cluster's issuer, a JWKS.
	Keys func(ctx context.Context) ([]byte, error)
	// Now tells the time.
	Now func() time.Time

	mu      sync.Mutex
	applied map[string]time.Time // by namespace
}

// Ensure applies the objects.
func (a *Access) Ensure(ctx context.Context, namespace string) error {
	keys, err := a.Keys(ctx)
	if err != nil {
		return fmt.Errorf("fetching the keys of the issuer of service-account tokens: %w", err)
	}
	for _, want := range []client.Object{
		template.NetworkPolicy(namespace), template.IssuerConfigMap(namespace, keys),
	} {
		if err := ensure.Apply(ctx, a.Client, want); err != nil {
			return fmt.Errorf("preparing namespace %s for workspaces: %w", namespace, err)
		}
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.applied == nil {
		a.applied = map[string]time.Time{}
	}
	a.applied[namespace] = a.Now()
	return nil
}

// Refresh applies the objects again where that was long ago.
func (a *Access) Refresh(ctx context.Context, namespace string) error {
	a.mu.Lock()
	age := a.Now().Sub(a.applied[namespace])
	a.mu.Unlock()
	if age < life.Renewal {
		return nil
	}
	return a.Ensure(ctx, namespace)
}
