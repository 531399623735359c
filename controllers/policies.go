// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package controllers

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/go-logr/logr"
	"github.com/prometheus/client_golang/prometheus"
	admissionv1 "k8s.io/api/admissionregistration/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/config"
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
// A metric shows from then on how many policies are not enforced, as of the last minute.
func AddPoliciesCheck(mgr ctrl.Manager, namespace string, registry prometheus.Registerer) error {
	watch := &policiesWatch{dry: client.NewDryRunClient(mgr.GetClient()), live: mgr.GetAPIReader(), namespace: namespace,
		log: mgr.GetLogger().WithName("policies")}
	err := errors.Join(newPoliciesCheck(mgr.GetClient(), watch.live, namespace).addTo(mgr, "policies"), mgr.Add(watch),
		telemetry.RegisterPolicies(registry, watch.missing.Load))
	if err != nil {
		return fmt.Errorf("adding the check of the admission policies: %w", err)
	}
	return nil
}

// policiesWatch checks again and again whether the admission policies are enforced.
type policiesWatch struct {
	dry       client.Client
	live      client.Reader
	namespace string
	log       logr.Logger
	// unenforced are the policies that are missing or have no binding, and accepts is whether the API server accepts what
	// a policy forbids. reported is what the log has of each.
	unenforced []string
	accepts    bool
	reported   [2]string
	// missing is the value of the metric.
	missing atomic.Int64
}

// NeedLeaderElection implements manager.LeaderElectionRunnable.
func (*policiesWatch) NeedLeaderElection() bool { return false }

// Start implements manager.Runnable.
func (w *policiesWatch) Start(ctx context.Context) error {
	for w.check(ctx); retry.Sleep(ctx, watchInterval) == nil; w.check(ctx) {
	}
	return nil
}

// check looks for the policies and their bindings, and tries what one of them forbids. Without a clear answer nothing
// changes.
func (w *policiesWatch) check(ctx context.Context) {
	if missing, unbound, err := unenforced(ctx, w.live); err != nil {
		w.report(0, "the admission policies cannot be listed", "error", err.Error())
	} else if w.unenforced = append(missing, unbound...); len(w.unenforced) > 0 {
		w.report(0, "admission policies are not enforced", "missing", missing, "withoutBinding", unbound)
	} else {
		w.report(0, "")
	}
	switch err := probe(ctx, w.dry, w.namespace, false); {
	case err == nil:
		w.accepts = true
		w.report(1, "admission policies do not refuse a chat that they forbid", "policy", "parley-manager-chats")
	case apierrors.IsForbidden(err) && !startup.IsRefusal(err):
		w.accepts = false
		w.report(1, "")
	}
	least := 0
	if w.accepts {
		least = 1
	}
	w.missing.Store(int64(max(len(w.unenforced), least)))
}

// unenforced are the policies that are missing, and those without a binding.
func unenforced(ctx context.Context, live client.Reader) (missing, unbound []string, err error) {
	var policies metav1.PartialObjectMetadataList
	policies.SetGroupVersionKind(admissionv1.SchemeGroupVersion.WithKind("ValidatingAdmissionPolicyList"))
	var bindings admissionv1.ValidatingAdmissionPolicyBindingList
	if err := cmp.Or(live.List(ctx, &policies), live.List(ctx, &bindings)); err != nil {
		return nil, nil, fmt.Errorf("listing the admission policies: %w", err)
	}
	missing, unbound = config.UnenforcedPolicies(policies.Items, bindings.Items)
	return missing, unbound, nil
}

// report logs what one of the two checks finds, if that has changed. An empty message means that it finds nothing.
func (w *policiesWatch) report(check int, message string, about ...any) {
	text := message
	if text != "" {
		text = fmt.Sprint(message, about)
	} else if w.reported[check] != "" {
		message = "admission policies are enforced again"
	}
	if text != w.reported[check] {
		w.log.Info(message, about...)
		w.reported[check] = text
	}
}

func newPoliciesCheck(c client.Client, live client.Reader, namespace string) *readiness {
	dry := client.NewDryRunClient(c)
	return &readiness{missing: "the API server does not enforce the admission policies yet",
		await: func(ctx context.Context) error {
			waiting, cancel := context.WithTimeout(ctx, policiesTimeout)
			defer cancel()
			for isPending(probe(ctx, dry, namespace, false), probe(ctx, dry, namespace, true), waiting.Err() != nil) ||
				waiting.Err() == nil && areMissing(ctx, live) {
				if err := retry.Sleep(ctx, probeInterval); err != nil {
					return err
				}
			}
			return nil
		}}
}

// areMissing reports whether policies of this version are missing. After an upgrade, those of the earlier one are
// enforced.
func areMissing(ctx context.Context, live client.Reader) bool {
	missing, unbound, err := unenforced(ctx, live)
	return err == nil && len(missing)+len(unbound) > 0
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
