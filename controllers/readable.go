// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"fmt"
	"strings"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/shard"
	"parley.dev/parley/internal/netguard/retry"
)

// lookAgainAfter is how often a manager looks whether it may read what it had to omit.
const lookAgainAfter = time.Minute

// Readable is a scope without those namespaces of its list in which the manager may not list chats, and these: its
// cache would wait for them, and no chat of another namespace would be answered. If it may do so in none, the scope is
// as it was.
func Readable(ctx context.Context, cfg *rest.Config, s shard.Scope) (readable shard.Scope, omitted []string,
	err error) {
	if !s.IsLimited() {
		return s, nil, nil
	}
	c, err := client.New(cfg, client.Options{Scheme: Scheme()})
	if err != nil {
		return s, nil, fmt.Errorf("making a client: %w", err)
	}
	allowed, err := listable(ctx, c, s.Namespaces)
	if err != nil || len(allowed) == 0 {
		return s, nil, err
	}
	readable = shard.Scope{Shard: s.Shard}
	for _, ns := range s.Namespaces {
		if allowed[ns] {
			readable.Namespaces = append(readable.Namespaces, ns)
		} else {
			omitted = append(omitted, ns)
		}
	}
	return readable, omitted, nil
}

// listable are the namespaces in which the manager may list chats.
func listable(ctx context.Context, c client.Client, namespaces []string) (map[string]bool, error) {
	allowed := map[string]bool{}
	for _, ns := range namespaces {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{Namespace: ns, Verb: "list",
				Group: v1beta1.GroupVersion.Group, Resource: "chats"}}}
		err := c.Create(ctx, review)
		if err != nil && !apierrors.IsForbidden(err) {
			return nil, fmt.Errorf("asking whether chats of namespace %s may be listed: %w", ns, err)
		}
		if review.Status.Allowed || err != nil { // Some clusters answer no such questions.
			allowed[ns] = true
		}
	}
	return allowed, nil
}

// AddReadableCheck ends the manager once it may read one of the namespaces that it omitted: it then starts with it.
func AddReadableCheck(mgr ctrl.Manager, omitted []string) error {
	if len(omitted) == 0 {
		return nil
	}
	mgr.GetLogger().Info("namespaces are omitted, because the manager may not list chats there: create the RoleBinding "+
		"parley-manager, or remove them from the list", "namespaces", strings.Join(omitted, ","))
	return mgr.Add(readableCheck(func(ctx context.Context) error {
		return AwaitReadable(ctx, mgr.GetClient(), omitted, lookAgainAfter)
	}))
}

// readableCheck is a manager.Runnable of replicas that do not lead, too.
type readableCheck func(context.Context) error

// Start implements manager.Runnable.
func (c readableCheck) Start(ctx context.Context) error { return c(ctx) }

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (readableCheck) NeedLeaderElection() bool { return false }

// AwaitReadable returns an error once one of the namespaces can be read, or nil when the context ends. It looks each
// time after the interval.
func AwaitReadable(ctx context.Context, c client.Client, namespaces []string, interval time.Duration) error {
	for retry.Sleep(ctx, interval) == nil {
		allowed, err := listable(ctx, c, namespaces)
		if err != nil {
			continue // The API server may be away. The informers report it.
		}
		for ns := range allowed {
			return fmt.Errorf("the manager may list chats in namespace %s now, and starts again with it", ns)
		}
	}
	return nil
}
