// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/argoproj/argo-cd/gitops-engine/pkg/cache"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/diff"
	gitopssync "github.com/argoproj/argo-cd/gitops-engine/pkg/sync"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/sync/common"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/kube"
	"github.com/argoproj/argo-cd/gitops-engine/pkg/utils/tracing"
	"github.com/go-logr/logr"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const (
	argoManager    = "argocd-controller"
	argoLabel      = "app.kubernetes.io/instance"
	argoAnnotation = "argocd.argoproj.io/tracking-id"
	argoApp        = "chats"
)

// argo does what Argo CD's application controller does in a sync, with the same engine and the same options.
type argo struct {
	ns         string
	serverSide bool
	kubectl    *kube.KubectlCmd
	cache      cache.ClusterCache
	health     luaHealth
}

func newArgo(t *testing.T, ns string, serverSide bool) *argo {
	t.Helper()
	a := &argo{ns: ns, serverSide: serverSide, kubectl: &kube.KubectlCmd{Log: logr.Discard(), Tracer: tracing.NopTracer{}},
		health: readHealth(t)}
	a.cache = cache.NewClusterCache(cluster.Config, cache.SetLogr(logr.Discard()), cache.SetKubectl(a.kubectl),
		cache.SetNamespaces([]string{ns}),
		cache.SetPopulateResourceInfoHandler(func(o *unstructured.Unstructured, _ bool) (any, bool) {
			return nil,
				a.tracks(o)
		}))
	t.Cleanup(func() { a.cache.Invalidate() })
	return a
}

func (*argo) managers() []string { return []string{argoManager} }

// tracks reports whether Argo CD takes the object for one of the application's, by either of its tracking methods.
func (a *argo) tracks(o *unstructured.Unstructured) bool {
	return o.GetLabels()[argoLabel] == argoApp || strings.HasPrefix(o.GetAnnotations()[argoAnnotation], argoApp+":")
}

// prepare marks the manifests as Argo CD does.
func (a *argo) prepare(git repository) []*unstructured.Unstructured {
	objects := git.copied()
	for _, o := range objects {
		labels, annotations := o.GetLabels(), o.GetAnnotations()
		if labels == nil {
			labels = map[string]string{}
		}
		if annotations == nil {
			annotations = map[string]string{}
		}
		labels[argoLabel] = argoApp
		annotations[argoAnnotation] = fmt.Sprintf("%s:%s/%s:%s/%s", argoApp, o.GroupVersionKind().Group, o.GetKind(), a.ns,
			o.GetName())
		o.SetLabels(labels)
		o.SetAnnotations(annotations)
	}
	return objects
}

// compare pairs what Git holds with what is there and, by its marks, belongs to the application.
func (a *argo) compare(t *testing.T, git repository) gitopssync.ReconciliationResult {
	t.Helper()
	a.cache.Invalidate() // No test is about a cache that lags.
	if err := a.cache.EnsureSynced(); err != nil {
		t.Fatalf("Argo CD could not read the cluster: %v", err)
	}
	targets := a.prepare(git)
	live, err := a.cache.GetManagedLiveObjs(targets,
		func(r *cache.Resource) bool { return r.Resource != nil && a.tracks(r.Resource) })
	if err != nil {
		t.Fatalf("Argo CD could not find the application's objects: %v", err)
	}
	return gitopssync.Reconcile(targets, live, a.ns, a.cache)
}

// operation is a sync under way.
type operation struct {
	phase   common.OperationPhase
	message string
	results []common.ResourceSyncResult
	started metav1.Time
}

// step takes a sync on as far as it can go without waiting.
func (a *argo) step(t *testing.T, git repository, op *operation) {
	t.Helper()
	foreground := metav1.DeletePropagationForeground
	sc, cleanup, err := gitopssync.NewSyncContext("main", a.compare(t, git), cluster.Config, cluster.Config, a.kubectl,
		a.ns,
		gitopssync.WithLogr(logr.Discard()), gitopssync.WithOperationSettings(false, true, false, false),
		gitopssync.WithInitialState(op.phase, op.message, op.results, op.started),
		gitopssync.WithHealthOverride(a.health), gitopssync.WithManifestValidation(true),
		gitopssync.WithPrunePropagationPolicy(&foreground),
		gitopssync.WithServerSideApply(a.serverSide), gitopssync.WithServerSideApplyManager(argoManager))
	if err != nil {
		t.Fatalf("Argo CD could not begin to sync: %v", err)
	}
	defer cleanup()
	sc.Sync()
	op.phase, op.message, op.results = sc.GetState()
}

func (a *argo) apply(t *testing.T, git repository) []string {
	t.Helper()
	op := &operation{started: metav1.Now()}
	eventually(t, "Argo CD has synced", func() bool { a.step(t, git, op); return op.phase.Completed() })
	if !op.phase.Successful() {
		t.Fatalf("the sync ended as %s: %s %+v", op.phase, op.message, op.results)
	}
	var changed []string
	for _, r := range op.results {
		// A server-side apply does not say whether it changed anything, nor does a sync in several waves.
		if word := r.Message[strings.LastIndex(r.Message, " ")+1:]; word == "created" || word == "configured" ||
			word == "pruned" {
			changed = append(changed, r.ResourceKey.Kind+"/"+r.ResourceKey.Name)
		}
	}
	slices.Sort(changed)
	return changed
}

// drift compares in every way that Argo CD can be set to.
func (a *argo) drift(t *testing.T, git repository) []string {
	t.Helper()
	applier, cleanup, err := a.kubectl.ManageServerSideDiffDryRuns(cluster.Config)
	if err != nil {
		t.Fatal(err)
	}
	defer cleanup()
	pairs := a.compare(t, git)
	ways := map[string][]diff.Option{"three-way": nil}
	if a.serverSide {
		ways = map[string][]diff.Option{
			"structured merge": {diff.WithStructuredMergeDiff(true)},
			"server-side": {diff.WithServerSideDiff(true),
				diff.WithServerSideDryRunner(diff.NewK8sServerSideDryRunner(applier))},
		}
	}
	var drifted []string
	for way, options := range ways {
		options = append(options, diff.WithLogr(logr.Discard()), diff.WithNormalizer(withoutStatus{}),
			diff.WithManager(argoManager), diff.WithGVKParser(a.cache.GetGVKParser()))
		for i, target := range pairs.Target {
			if target == nil || pairs.Live[i] == nil {
				drifted = append(drifted, fmt.Sprintf("Git has %v, the cluster %v", target, pairs.Live[i]))
				continue
			}
			result, err := diff.Diff(target, pairs.Live[i].DeepCopy(), options...)
			if err != nil {
				t.Fatalf("Argo CD could not compare %s: %v", id(target), err)
			}
			if result.Modified {
				drifted = append(drifted, fmt.Sprintf("%s (%s): live %s, wanted %s", id(target), way, result.NormalizedLive,
					result.PredictedLive))
			}
		}
	}
	return drifted
}

// withoutStatus is Argo CD's default normalizer, which leaves the status of every resource out of comparisons.
type withoutStatus struct{}

// Normalize removes the status.
func (withoutStatus) Normalize(o *unstructured.Unstructured) error {
	unstructured.RemoveNestedField(o.Object, "status")
	return nil
}
