// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package workspace

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/workspace/template"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

var request = ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "c"}}

// podTemplate is one that workspaces may be made from.
func podTemplate() *corev1.PodTemplate {
	return &corev1.PodTemplate{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "go",
			Labels: map[string]string{v1beta1.LabelWorkspaceTemplate: "true"}},
		Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "main", Image: "go"}}}},
	}
}

// workspace is new, and has storage.
func workspace(change ...func(*v1beta1.Workspace)) *v1beta1.Workspace {
	w := &v1beta1.Workspace{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "w-1", Generation: 1,
			CreationTimestamp: metav1.NewTime(chattest.Now), OwnerReferences: []metav1.OwnerReference{
				*metav1.NewControllerRef(chattest.Chat("c"), v1beta1.GroupVersion.WithKind("Chat"))}},
		Spec: v1beta1.WorkspaceSpec{ChatRef: v1beta1.ChatReference{Name: "c"}, Source: v1beta1.WorkspaceSource{
			PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "go", Storage: &v1beta1.WorkspaceStorage{}}}},
	}
	for _, c := range change {
		c(w)
	}
	return w
}

func retained(w *v1beta1.Workspace) { w.Spec.Source.DeletionPolicy = v1beta1.WorkspaceRetain }

// begin returns a reconciler whose clock stands that long after chattest.Now.
func begin(t *testing.T, later time.Duration, objects ...client.Object) (*fakeapi.Server, *Reconciler) {
	t.Helper()
	s := fakeapi.New(t, objects...)
	now := func() time.Time { return chattest.Now.Add(later) }
	return s, &Reconciler{
		Client: s.Client, Live: s.Live, Now: now,
		Settings: template.Settings{Image: "parley", Placement: template.ImageVolume},
		Access: &Access{Client: s.Client, Now: now,
			Keys: func(context.Context) ([]byte, error) { return []byte(`{"keys":[]}`), nil }},
	}
}

func reconciled(t *testing.T, r *Reconciler) ctrl.Result {
	t.Helper()
	result, err := r.Reconcile(t.Context(), request)
	check.OK(t, err)
	return result
}

func status(t *testing.T, s *fakeapi.Server) (v1beta1.WorkspaceStatus, v1beta1.ConditionReason) {
	t.Helper()
	st := fakeapi.Read(t, s, workspace()).Status
	return st, v1beta1.ReasonOf(meta.FindStatusCondition(st.Conditions, v1beta1.ConditionReady))
}

// own are the pod and the claim of the workspace; nil where there is none.
func own(t *testing.T, s *fakeapi.Server) (*corev1.Pod, *corev1.PersistentVolumeClaim) {
	t.Helper()
	var pods corev1.PodList
	var claims corev1.PersistentVolumeClaimList
	for _, list := range []client.ObjectList{&pods, &claims} {
		check.OK(t, s.Direct.List(t.Context(), list))
	}
	var pod *corev1.Pod
	var claim *corev1.PersistentVolumeClaim
	if len(pods.Items) > 0 {
		pod = &pods.Items[0]
	}
	if len(claims.Items) > 0 {
		claim = &claims.Items[0]
	}
	return pod, claim
}

// runs lets the kubelet say that the pod is ready.
func runs(t *testing.T, s *fakeapi.Server) {
	t.Helper()
	pod, _ := own(t, s)
	pod.Status = corev1.PodStatus{Phase: corev1.PodRunning, PodIP: "10.0.0.7",
		Conditions: []corev1.PodCondition{{Type: corev1.PodReady, Status: corev1.ConditionTrue}}}
	check.OK(t, s.Direct.Status().Update(t.Context(), pod))
}

func TestWorkspaceCreatesClaimAndPrerequisitesBeforePod(t *testing.T) {
	s, r := begin(t, time.Second, workspace(), podTemplate())
	reconciled(t, r)
	want := []string{"create persistentvolumeclaim", "apply networkpolicy", "apply configmap", "create pod",
		"update status of workspace"}
	check.Equal(t, "it writes", want, s.Writes())
	pod, claim := own(t, s)
	for _, o := range []client.Object{pod, claim} {
		if o.GetName() != "parley-workspace-w-1" || !metav1.IsControlledBy(o, workspace()) {
			t.Errorf("%T is %+v", o, o.GetOwnerReferences())
		}
	}
	runs(t, s)
	reconciled(t, r)
	st, reason := status(t, s)
	if reason != v1beta1.ReasonWorkspaceReady || st.Pod.Address != "10.0.0.7" || st.Directory != "/workspace" ||
		st.Claim != claim.Name || st.Template == "" {
		t.Errorf("the status is %+v", st)
	}
	before := len(s.Writes())
	if reconciled(t, r); len(s.Writes()) != before {
		t.Errorf("what it says already is written again: %v", s.Writes()[before:])
	}
}

func TestRefusedWriteReportsServerMessageAndRetries(t *testing.T) {
	for refused, want := range map[string]v1beta1.ConditionReason{
		"create pod": v1beta1.ReasonPodRejected, "create persistentvolumeclaim": v1beta1.ReasonStorageRejected,
		"apply networkpolicy": v1beta1.ReasonPodRejected, "apply configmap": v1beta1.ReasonPodRejected,
	} {
		t.Run(refused, func(t *testing.T) {
			s, r := begin(t, time.Second, workspace(), podTemplate())
			s.Fail = func(call string) error {
				if call != refused {
					return nil
				}
				return apierrors.NewForbidden(schema.GroupResource{Resource: "some"}, "x",
					errors.New("exceeded quota: nothing"))
			}
			result := reconciled(t, r)
			st, reason := status(t, s)
			said := meta.FindStatusCondition(st.Conditions, v1beta1.ConditionStalled)
			if reason != want || said == nil || !strings.Contains(said.Message, "exceeded quota: nothing") {
				t.Errorf("it says %+v", st.Conditions)
			}
			if result.RequeueAfter == 0 || result.RequeueAfter > 11*time.Second {
				t.Errorf("it is tried again after %s", result.RequeueAfter)
			}
			s.Fail = nil
			reconciled(t, r)
			check.Equal(t, "reason", v1beta1.ReasonPodStarting, reasonOf(t, s))
		})
	}
}

// Security (a hostile model): cannot make Parley use its own objects by taking the names of a workspace's pod, claim or
// Workspace first. Also TestForeignWorkspaceOfSameNameIsIgnored of test/integration.
func TestUncachedForeignObjectIsLeftUnchanged(t *testing.T) {
	name := metav1.ObjectMeta{Namespace: "ns", Name: "parley-workspace-w-1"}
	for kind, stranger := range map[string]client.Object{
		"pod": &corev1.Pod{ObjectMeta: name}, "persistentvolumeclaim": &corev1.PersistentVolumeClaim{ObjectMeta: name},
	} {
		t.Run(kind, func(t *testing.T) {
			s, r := begin(t, time.Second, workspace(), podTemplate(), stranger.DeepCopyObject().(client.Object))
			s.Fail = func(call string) error {
				if call != "get "+kind {
					return nil
				}
				return fakeapi.NotFound.Err()
			}
			reconciled(t, r)
			st, reason := status(t, s)
			if reason != v1beta1.ReasonNameConflict || st.Pod != nil || (st.Claim == "") != (kind == "persistentvolumeclaim") {
				t.Errorf("the status is %+v", st)
			}
		})
	}
}

// reasonOf is why the workspace is ready, or not.
func reasonOf(t *testing.T, s *fakeapi.Server) v1beta1.ConditionReason {
	t.Helper()
	_, reason := status(t, s)
	return reason
}

func TestClaimOwnershipFollowsDeletionPolicyOfChat(t *testing.T) {
	chat := chattest.In("ns", chattest.Chat("c"))
	chat.Spec.Workspace = &v1beta1.WorkspaceSource{}
	s, r := begin(t, time.Second, workspace(), podTemplate(), chat)
	for _, step := range []struct {
		says  v1beta1.WorkspaceDeletionPolicy
		owned bool
	}{{"", true}, {v1beta1.WorkspaceRetain, false}, {v1beta1.WorkspaceDelete, true}, {v1beta1.WorkspaceRetain, false}} {
		before := fakeapi.Read(t, s, chat.DeepCopy())
		after := before.DeepCopy()
		after.Spec.Workspace.DeletionPolicy = step.says
		check.OK(t, s.Direct.Update(t.Context(), after))
		changed := event.UpdateEvent{ObjectOld: before, ObjectNew: after}
		check.Equal(t, "the workspace is requeued", step.says != "", chatChanges().Update(changed))
		reconciled(t, r)
		_, claim := own(t, s)
		check.Equal(t, "the workspace owns the claim", step.owned, metav1.IsControlledBy(claim, workspace()))
	}
	// The claim is not taken back when the chat goes, before its workspace.
	check.OK(t, s.Direct.Delete(t.Context(), chat))
	reconciled(t, r)
	if _, claim := own(t, s); len(claim.OwnerReferences) != 0 {
		t.Errorf("without its chat the claim's owners are %+v", claim.OwnerReferences)
	}
}

func TestClaimOwnershipFollowsDeletionPolicyOfClass(t *testing.T) {
	keeps := chattest.In("ns", chattest.Class("keeps", func(s *v1beta1.ChatClassSpec) {
		s.Defaults.Workspace = &v1beta1.WorkspaceSource{DeletionPolicy: v1beta1.WorkspaceRetain}
	}))
	deletes := chattest.In("ns", chattest.Class("deletes", func(s *v1beta1.ChatClassSpec) {
		s.Defaults.Workspace = &v1beta1.WorkspaceSource{DeletionPolicy: v1beta1.WorkspaceDelete}
	}))
	chat := chattest.In("ns", chattest.Chat("c"))
	s, r := begin(t, time.Second, workspace(), podTemplate(), chat, keeps, deletes)
	for _, step := range []struct {
		names string
		owned bool
	}{{"deletes", true}, {"keeps", false}, {"nothing", false}, {"deletes", true}} {
		before := fakeapi.Read(t, s, chat.DeepCopy())
		after := before.DeepCopy()
		after.Spec.ChatClassName = step.names
		check.OK(t, s.Direct.Update(t.Context(), after))
		if !chatChanges().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}) {
			t.Errorf("that it names class %s does not requeue", step.names)
		}
		reconciled(t, r)
		_, claim := own(t, s)
		check.Equal(t, "the workspace owns the claim", step.owned, metav1.IsControlledBy(claim, workspace()))
	}
}

func TestTemplateOutsideSelectorIsNotFound(t *testing.T) {
	for name, c := range map[string]struct {
		matchLabels map[string]v1beta1.LabelValue
		want        v1beta1.ConditionReason
	}{
		"any":     {nil, v1beta1.ReasonPodStarting},
		"its own": {map[string]v1beta1.LabelValue{v1beta1.LabelWorkspaceTemplate: "true"}, v1beta1.ReasonPodStarting},
		"another": {map[string]v1beta1.LabelValue{"team": "web"}, v1beta1.ReasonTemplateNotFound},
	} {
		t.Run(name, func(t *testing.T) {
			s, r := begin(t, time.Minute, workspace(func(w *v1beta1.Workspace) {
				w.Spec.Source.PodTemplateSelector = &v1beta1.WorkspaceTemplateSelector{MatchLabels: c.matchLabels}
			}), podTemplate())
			reconciled(t, r)
			check.Equal(t, "reason", c.want, reasonOf(t, s))
		})
	}
}

func TestARetainedClaimHasNoOwner(t *testing.T) {
	s, r := begin(t, time.Second, workspace(retained), podTemplate())
	reconciled(t, r)
	_, claim := own(t, s)
	if len(claim.OwnerReferences) != 0 || claim.Annotations["parley.dev/workspace"] != "c" {
		t.Errorf("the claim is %+v", claim.ObjectMeta)
	}
	check.Equal(t, "its events requeue", []reconcile.Request{request}, ofClaim(t.Context(), claim))
}

func TestNewTemplateRequeuesWaitingWorkspaces(t *testing.T) {
	s, r := begin(t, time.Second, workspace())
	if result := reconciled(t, r); result.RequeueAfter == 0 {
		t.Error("it is not looked at again after the time that a manifest has")
	}
	check.Equal(t, "reason", v1beta1.ReasonTemplateNotFound, reasonOf(t, s))
	check.Equal(t, "the template requeues", []reconcile.Request{request}, r.ofTemplate(t.Context(), podTemplate()))
	other := podTemplate()
	other.Name = "other"
	check.Equal(t, "requests", nil, r.ofTemplate(t.Context(), other))
}

func TestAFaultOfTheAPIServerOnlyDelays(t *testing.T) {
	faults := fakeapi.Reconcile{
		Begin: func(t *testing.T) (*fakeapi.Server, reconcile.Reconciler) {
			return begin(t, time.Second, workspace(), podTemplate())
		},
		Request: request, State: []client.ObjectList{&v1beta1.WorkspaceList{}, &corev1.PodList{},
			&corev1.PersistentVolumeClaimList{}},
		Settled: map[string][]fakeapi.Fault{
			// A workspace that is gone needs nothing; a chat may be gone before it.
			"get workspace": {fakeapi.NotFound},
		},
	}
	faults.Run(t)
}

func TestSpecOrStatusChangeRequeuesWorkspace(t *testing.T) {
	before := &v1beta1.Workspace{ObjectMeta: metav1.ObjectMeta{Name: "c", Generation: 1}}
	for name, c := range map[string]struct {
		change func(*v1beta1.Workspace)
		want   bool
	}{
		"its spec has changed":      {func(w *v1beta1.Workspace) { w.Generation++ }, true},
		"its status was written":    {func(w *v1beta1.Workspace) { w.Status.Phase = v1beta1.WorkspacePhaseReady }, true},
		"somebody has put a label":  {func(w *v1beta1.Workspace) { w.Labels = map[string]string{"a": "b"} }, false},
		"it was only written again": {func(w *v1beta1.Workspace) { w.ResourceVersion = "2" }, false},
	} {
		t.Run(name, func(t *testing.T) {
			after := before.DeepCopy()
			c.change(after)
			check.Equal(t, "result", c.want, changes().Update(event.UpdateEvent{ObjectOld: before, ObjectNew: after}))
		})
	}
}

func TestTooSmallStorageOfCopyIsReplaced(t *testing.T) {
	sized := func(size string) func(*v1beta1.Workspace) {
		return func(w *v1beta1.Workspace) {
			w.Spec.CopyFrom = "w-0"
			w.Spec.Source.PodTemplateRef.Storage.Size = size
		}
	}
	s, r := begin(t, time.Second, workspace(sized("1Gi")), podTemplate())
	reconciled(t, r)
	w := workspace()
	check.OK(t, s.Direct.Get(t.Context(), client.ObjectKeyFromObject(w), w))
	sized("2Gi")(w)
	w.Generation++
	check.OK(t, s.Direct.Update(t.Context(), w))
	reconciled(t, r)
	if st, reason := status(t, s); st.Pod != nil || reason != v1beta1.ReasonStorageRejected {
		t.Errorf("%s: the status is %+v", reason, st)
	}
	named := metav1.ObjectMeta{Namespace: "ns", Name: "parley-workspace-w-1"}
	check.OK(t, s.Direct.Delete(t.Context(), &corev1.PersistentVolumeClaim{ObjectMeta: named}))
	reconciled(t, r)
	claim := fakeapi.Read(t, s, &corev1.PersistentVolumeClaim{ObjectMeta: named})
	check.Equal(t, "size", "2Gi", claim.Spec.Resources.Requests.Storage().String())
}

func TestFilesOfAnotherWorkspaceAreCopiedOnce(t *testing.T) {
	copies := func(w *v1beta1.Workspace) { w.Spec.CopyFrom = "w-0" }
	source := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "parley-workspace-w-0"},
		Spec: corev1.PodSpec{NodeName: "node-2"}}
	s, r := begin(t, time.Second, workspace(copies), podTemplate(), source)
	reconciled(t, r)
	copier := fakeapi.Read(t, s, &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: "ns",
		Name: "parley-workspace-w-1"}})
	terms := copier.Spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	check.Equal(t, "node", []string{"node-2"}, terms[0].MatchFields[0].Values)
	if !template.IsCopier(copier) {
		t.Fatalf("the pod is %+v", copier.Spec)
	}
	copier.Status.Phase = corev1.PodSucceeded
	check.OK(t, s.Direct.Status().Update(t.Context(), copier))
	reconciled(t, r)
	if st, reason := status(t, s); st.CopiedFrom != "w-0" || reason != v1beta1.ReasonFilesNotCopied {
		t.Errorf("%s: the status is %+v", reason, st)
	}
	reconciled(t, r) // It removes the pod, and creates the other one.
	if pod := fakeapi.Read(t, s, copier); template.IsCopier(pod) {
		t.Errorf("the pod copies again: %+v", pod.Spec)
	}
	if st, reason := status(t, s); st.CopiedFrom != "w-0" || reason != v1beta1.ReasonPodStarting {
		t.Errorf("%s: the status is %+v", reason, st)
	}
}
