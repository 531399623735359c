// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/startup"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/internal/telemetry"
)

const (
	// probeInterval is the pause between two checks of the policies.
	probeInterval = time.Second
	// watchInterval is the pause between two checks of a ready manager.
	watchInterval = time.Minute
	// policiesTimeout is how long the manager waits if no policy refuses: an administrator may have removed them.
	policiesTimeout = 10 * time.Second
)

// AddPoliciesCheck keeps the manager from being ready until the API server enforces Parley's admission policies and
// does not refuse all chats because it is starting. So a completed rollout of the manager means that chats can be
// created. The check tries that with dry runs in a namespace where the manager has its rights. It runs once: a later
// start of the API server makes no manager unready, because programs retry then.
//
// Metrics show from then on whether the policies are still enforced, as of the last minute.
func AddPoliciesCheck(mgr ctrl.Manager, namespace string, registry prometheus.Registerer) error {
	watch := &policiesWatch{dry: client.NewDryRunClient(mgr.GetClient()), namespace: namespace}
	err := errors.Join(newPoliciesCheck(mgr.GetClient(), namespace).addTo(mgr, "policies"), mgr.Add(watch),
		telemetry.RegisterPolicies(registry, watch.missing.Load))
	if err != nil {
		return fmt.Errorf("adding the check of the admission policies: %w", err)
	}
	return nil
}

// policiesWatch checks again and again whether the admission policies are enforced.
type policiesWatch struct {
	dry       client.Client
	namespace string
	missing   atomic.Bool
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*policiesWatch) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (w *policiesWatch) Start(ctx context.Context) error {
	for w.check(ctx); retry.Sleep(ctx, watchInterval) == nil; w.check(ctx) {
	}
	return nil
}

// check tries what a policy forbids. Without a clear answer nothing changes.
func (w *policiesWatch) check(ctx context.Context) {
	switch err := probe(ctx, w.dry, w.namespace, false); {
	case err == nil:
		w.missing.Store(true)
	case apierrors.IsForbidden(err) && !startup.IsRefusal(err):
		w.missing.Store(false)
	}
}

func newPoliciesCheck(c client.Client, namespace string) *readiness {
	dry := client.NewDryRunClient(c)
	return &readiness{missing: "the API server does not enforce the admission policies yet",
		await: func(ctx context.Context) error {
			waiting, cancel := context.WithTimeout(ctx, policiesTimeout)
			defer cancel()
			for isPending(probe(ctx, dry, namespace, false), probe(ctx, dry, namespace, true), waiting.Err() != nil) {
				if err := retry.Sleep(ctx, probeInterval); err != nil {
					return err
				}
			}
			return nil
		}}
}

// isPending reports whether the policies are not in force yet. A chat that the manager must not create shows whether
// they refuse, and one that it may create whether they do so only because the API server is starting. All other errors
// are no reason to wait.
func isPending(forbidden, allowed error, mayBeLifted bool) bool {
	return forbidden == nil && !mayBeLifted || startup.IsRefusal(forbidden) || startup.IsRefusal(allowed)
}

// probe tries to create a chat, as a sub-chat or not. The policy parley-manager-chats allows the manager only
// sub-chats.
func probe(ctx context.Context, dry client.Client, namespace string, subChat bool) error {
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "parley-policies-check"}}
	if subChat {
		chat.Annotations = map[string]string{v1beta1.AnnotationSpawnedBy: chat.Name}
		chat.Spec.ParentRef = &v1beta1.ChatReference{Name: "parley-policies-check-parent"}
	}
	return dry.Create(ctx, chat) // Only the kind of the error counts.
}
