// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"errors"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

// installed is a cluster that has agent-sandbox, or has not.
type installed bool

func (i installed) Installed() (bool, error) { return bool(i), nil }

func pooled(w *v1beta1.Workspace) {
	w.Spec.Source = v1beta1.WorkspaceSource{WarmPoolRef: &v1beta1.WarmPoolReference{Name: "pool"}}
}

func named(w *v1beta1.Workspace) {
	w.Spec.Source = v1beta1.WorkspaceSource{PodRef: &v1beta1.WorkspacePodReference{Name: "mine"}}
}

func workspacePod(name string, owner client.Object, kind string) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: "p-1",
			Labels: map[string]string{podspec.LabelComponent: podspec.ComponentWorkspace}},
		Status: corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.9",
			Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}},
	}
	if owner != nil {
		pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(owner, schema.GroupVersionKind{Kind: kind})}
	}
	return pod
}

// gives lets agent-sandbox give the claim a sandbox of the pool, whose pod has another name.
func gives(t *testing.T, s *fakeapi.Server) *sandboxes.Sandbox {
	t.Helper()
	claim := fakeapi.Read(t, s, &pools.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Namespace: "ns",
		Name: "parley-workspace-w-1"}})
	sandbox := &sandboxes.Sandbox{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pool-x7", UID: "s-1",
		Annotations: map[string]string{sandboxes.SandboxPodNameAnnotation: "pool-x7-pod"},
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(claim,
			pools.GroupVersion.WithKind("SandboxClaim"))}}}
	claim.Status.SandboxStatus.Name = sandbox.Name
	for _, o := range []client.Object{sandbox, workspacePod("pool-x7-pod", sandbox, "Sandbox")} {
		check.OK(t, s.Direct.Create(t.Context(), o))
	}
	check.OK(t, s.Direct.Update(t.Context(), claim))
	return sandbox
}

func TestWarmPoolWorkspaceSuspendsAndResumesItsSandbox(t *testing.T) {
	s, r := begin(t, time.Second, workspace(pooled))
	r.Sandboxes = installed(true)
	reconciled(t, r)
	check.Equal(t, "writes", []string{"apply networkpolicy", "apply configmap", "create sandboxclaim",
		"update status of workspace"}, s.Writes())
	sandbox := gives(t, s)
	for _, o := range []client.Object{sandbox, workspacePod("pool-x7-pod", sandbox, "Sandbox")} {
		requeued := r.ofSandbox
		if _, ok := o.(*corev1.Pod); ok {
			requeued = r.ofPod
		}
		check.Equal(t, "requests", []reconcile.Request{request}, requeued(t.Context(), o))
	}
	reconciled(t, r)
	if st, reason := status(t, s); reason != v1beta1.ReasonWorkspaceReady || st.Sandbox != "pool-x7" ||
		st.Pod.Address != "10.0.0.9" || st.Pod.Name != "pool-x7-pod" {
		t.Errorf("%s: the status is %+v", reason, st)
	}

	r.Now = func() time.Time { return chattest.Now.Add(time.Hour) }
	reconciled(t, r)
	check.Equal(t, "mode", sandboxes.SandboxOperatingModeSuspended, fakeapi.Read(t, s, sandbox).Spec.OperatingMode)
	needed := fakeapi.Read(t, s, workspace())
	needed.Spec.NeededAt = new(metav1.NewMicroTime(r.Now()))
	check.OK(t, s.Direct.Update(t.Context(), needed))
	reconciled(t, r)
	check.Equal(t, "mode while its pod goes", sandboxes.SandboxOperatingModeSuspended,
		fakeapi.Read(t, s, sandbox).Spec.OperatingMode)
	check.OK(t, s.Direct.Delete(t.Context(), workspacePod("pool-x7-pod", sandbox, "Sandbox")))
	reconciled(t, r)
	check.Equal(t, "mode", sandboxes.SandboxOperatingModeRunning, fakeapi.Read(t, s, sandbox).Spec.OperatingMode)
}

// Security (a hostile model): cannot take a sandbox of another claim, nor change the source of a sandbox. Also
// TestTheManagerClaimsSandboxesSuspendsAndResumesThem of test/admission.
func TestSandboxNotOwnedByClaimIsIgnored(t *testing.T) {
	s, r := begin(t, time.Second, workspace(pooled))
	r.Sandboxes = installed(true)
	reconciled(t, r)
	sandbox := gives(t, s)
	sandbox.OwnerReferences[0].UID = "another"
	check.OK(t, s.Direct.Update(t.Context(), sandbox))
	reconciled(t, r)
	if st, reason := status(t, s); reason != v1beta1.ReasonPodStarting || st.Sandbox != "" || st.Pod != nil {
		t.Errorf("%s: the status is %+v", reason, st)
	}
}

func TestMissingAgentSandboxIsReportedAndRetried(t *testing.T) {
	s, r := begin(t, time.Second, workspace(pooled))
	r.Sandboxes = installed(false)
	if result := reconciled(t, r); result.RequeueAfter == 0 {
		t.Error("it does not ask again")
	}
	check.Equal(t, "reason", v1beta1.ReasonAgentSandboxMissing, reasonOf(t, s))
}

func TestAgentSandboxThatWasRemovedIsMissing(t *testing.T) {
	s, r := begin(t, time.Second, workspace(pooled))
	r.Sandboxes = installed(true)
	s.Fail = func(call string) error {
		if call == "create sandboxclaim" {
			return fakeapi.NotFound.Err()
		}
		return nil
	}
	reconciled(t, r)
	check.Equal(t, "reason", v1beta1.ReasonAgentSandboxMissing, reasonOf(t, s))
}

func TestPodOfPodRefIsUsedUnchanged(t *testing.T) {
	s, r := begin(t, time.Second, workspace(named))
	r.Sandboxes = installed(false)
	reconciled(t, r)
	check.Equal(t, "reason", v1beta1.ReasonPodNotFound, reasonOf(t, s))
	pod := workspacePod("mine", nil, "")
	check.OK(t, s.Direct.Create(t.Context(), pod))
	check.Equal(t, "the pod requeues", []reconcile.Request{request}, r.ofPod(t.Context(), pod))
	reconciled(t, r)
	if st, reason := status(t, s); reason != v1beta1.ReasonWorkspaceReady || st.Pod.UID != "p-1" ||
		st.Pod.Name != "mine" {
		t.Errorf("%s: the status is %+v", reason, st)
	}
	check.Equal(t, "it writes", []string{"update status of workspace", "update status of workspace"}, s.Writes())
}

func TestSecondWorkspaceReportsPodTakenUntilPodRecreation(t *testing.T) {
	first := workspace(named, func(w *v1beta1.Workspace) {
		w.Name, w.UID, w.Spec.ChatRef.Name = "first", "w-0", "first"
		w.CreationTimestamp = metav1.NewTime(chattest.Now.Add(-time.Minute))
	})
	pod := workspacePod("mine", nil, "")
	s, r := begin(t, time.Second, workspace(named), first, pod)
	r.Sandboxes = installed(false)
	says := func(what string, want v1beta1.ConditionReason) {
		t.Helper()
		reconciled(t, r)
		if st, reason := status(t, s); reason != want || st.Pod == nil {
			t.Errorf("%s: it says %s, and names the pod %+v", what, reason, st.Pod)
		}
	}
	says("beside the first one", v1beta1.ReasonPodInUse)
	both := []reconcile.Request{request, {NamespacedName: client.ObjectKeyFromObject(first)}}
	check.Equal(t, "the first one requeues", both, r.ofSharer(t.Context(), first))
	for _, gone := range []client.Object{first, pod} {
		check.OK(t, s.Direct.Delete(t.Context(), gone))
		if gone == client.Object(first) {
			says("without the first one", v1beta1.ReasonPodInUse)
		}
	}
	anew := workspacePod("mine", nil, "")
	anew.UID = "p-2"
	check.OK(t, s.Direct.Create(t.Context(), anew))
	says("with another pod", v1beta1.ReasonWorkspaceReady)
}

// mapper knows agent-sandbox's kinds once they are installed.
type mapper struct {
	meta.RESTMapper
	kinds []string
	err   error
}

func (m *mapper) RESTMapping(kind schema.GroupKind, _ ...string) (*meta.RESTMapping, error) {
	if m.err != nil || slices.Contains(m.kinds, kind.Kind) {
		return nil, m.err
	}
	return nil, &meta.NoKindMatchError{GroupKind: kind}
}

func TestAgentSandboxIsWatchedOnceAllKindsExist(t *testing.T) {
	m, watches := &mapper{}, 0
	d := &discovered{mapper: m, watch: func() error { watches++; return nil }}
	for _, step := range []struct {
		kinds   []string
		err     error
		has     bool
		watches int
	}{
		{nil, nil, false, 0}, {[]string{"Sandbox"}, nil, false, 0}, {nil, errors.New("busy"), false, 0},
		{[]string{"Sandbox", "SandboxClaim"}, nil, true, 1}, {nil, nil, true, 1},
	} {
		m.kinds, m.err = step.kinds, step.err
		has, err := d.Installed()
		if has != step.has || watches != step.watches || (err != nil) != (step.err != nil) {
			t.Errorf("with %v: %t, %v, watched %d times", step.kinds, has, err, watches)
		}
	}
}
