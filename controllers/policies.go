// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/startup"
	"parley.dev/parley/internal/netguard/retry"
)

const (
	// probeInterval is the pause between two checks of the policies.
	probeInterval = time.Second
	// policiesTimeout is how long the manager waits for policies that refuse nothing: an administrator may have lifted
	// them.
	policiesTimeout = 10 * time.Second
)

// AddPoliciesCheck keeps the manager from being ready until the API server enforces Parley's admission policies and
// does not refuse all chats because it is starting. So whoever waits for the rollout of the manager can create chats.
// The manager tries that in its own namespace, and writes nothing.
func AddPoliciesCheck(mgr ctrl.Manager, namespace string) error {
	check := &policiesCheck{client: client.NewDryRunClient(mgr.GetClient()), namespace: namespace}
	if err := errors.Join(mgr.AddReadyzCheck("policies", check.Check), mgr.Add(check)); err != nil {
		return fmt.Errorf("adding the check of the admission policies: %w", err)
	}
	return nil
}

// policiesCheck runs once. A later start of the API server makes no manager unready, since programs retry then.
type policiesCheck struct {
	client    client.Client
	namespace string
	ready     atomic.Bool
}

// NeedLeaderElection implements manager.LeaderElectionRunnable: one that does not lead is ready, too.
func (c *policiesCheck) NeedLeaderElection() bool { return false }

// Check implements healthz.Checker.
func (c *policiesCheck) Check(*http.Request) error {
	if !c.ready.Load() {
		return errors.New("the API server does not enforce the admission policies yet")
	}
	return nil
}

// Start implements manager.Runnable.
func (c *policiesCheck) Start(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, policiesTimeout)
	defer cancel()
	for isPending(c.probe(ctx, false), c.probe(ctx, true), waiting.Err() != nil) {
		if retry.Sleep(ctx, probeInterval) != nil {
			return nil
		}
	}
	c.ready.Store(true)
	return nil
}

// isPending reports whether the policies are not in force yet. A chat that the manager must not create shows whether
// they refuse, and one that it may create whether they do so only because the API server is starting. All other errors
// are no reason to wait.
func isPending(forbidden, allowed error, mayBeLifted bool) bool {
	return forbidden == nil && !mayBeLifted || startup.IsRefusal(forbidden) || startup.IsRefusal(allowed)
}

// probe tries to create a chat, as a sub-chat or not. The policy parley-manager-chats allows the manager only
// sub-chats.
func (c *policiesCheck) probe(ctx context.Context, subChat bool) error {
	chat := &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: c.namespace, Name: "parley-policies-check"}}
	if subChat {
		chat.Annotations = map[string]string{v1alpha1.AnnotationSpawnedBy: chat.Name}
		chat.Spec.ParentRef = &v1alpha1.ChatReference{Name: "parley-policies-check-parent"}
	}
	return c.client.Create(ctx, chat) // It is asked for its kind alone.
}
