// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/workspace/template"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// vanishes removes an object at once, whatever protects it: what would end the protection does not run here.
func vanishes(t *testing.T, o client.Object) {
	t.Helper()
	patch(t, o, `{"metadata":{"finalizers":null}}`)
	remove(t, o)
	was := o.GetUID()
	eventually(t, o.GetName()+" is gone", func() bool { // The workspace may have created its own by then.
		err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(o), o)
		return apierrors.IsNotFound(err) || err == nil && o.GetUID() != was
	})
}

// strangersPod has the name of the workspace's own.
func strangersPod(w *v1beta1.Workspace) *corev1.Pod {
	return &corev1.Pod{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: template.Name(w)},
		Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "a", Image: "a"}}}}
}

// strangersClaim has the name of the workspace's own.
func strangersClaim(w *v1beta1.Workspace) *corev1.PersistentVolumeClaim {
	return &corev1.PersistentVolumeClaim{ObjectMeta: metav1.ObjectMeta{Namespace: w.Namespace, Name: template.Name(w)},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
		}}
}

// labelled gives the template a parameter whose value becomes the pod's label "team".
func labelled(value string) func(*corev1.PodTemplate) {
	return func(t *corev1.PodTemplate) {
		t.Annotations[v1beta1.AnnotationParameters] = "- {name: team, default: '" + value + "', allowed: ['" + value +
			"'], places: [label/team]}"
	}
}

func withHostPath(t *corev1.PodTemplate) {
	t.Template.Spec.Volumes = []corev1.Volume{{Name: "node",
		VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{Path: "/"}}}}
}

// replaces makes the template what it should have been.
func replaces(t *testing.T, wrong *corev1.PodTemplate) func() {
	t.Helper()
	create(t, wrong)
	return func() {
		right := toolTemplate(wrong.Namespace)
		right.ResourceVersion = wrong.ResourceVersion
		check.OK(t, cluster.Client.Update(t.Context(), right))
	}
}

// hindrances keep a workspace, which has no template yet, from having a pod; each returns how a person ends it.
var hindrances = map[string]struct {
	hinder func(t *testing.T, w *v1beta1.Workspace) (mend func())
	reason v1beta1.ConditionReason
	words  string
}{
	"no template": {func(t *testing.T, w *v1beta1.Workspace) func() {
		return func() { create(t, toolTemplate(w.Namespace)) }
	}, v1beta1.ReasonTemplateNotFound, "there is no PodTemplate go with the label parley.dev/workspace-template=true"},
	"a template that is not marked": {func(t *testing.T, w *v1beta1.Workspace) func() {
		unmarked := toolTemplate(w.Namespace)
		unmarked.Labels[v1beta1.LabelWorkspaceTemplate] = "True"
		return replaces(t, unmarked)
	}, v1beta1.ReasonTemplateNotFound, "there is no PodTemplate go with the label parley.dev/workspace-template=true"},
	"a template of no parameters": {func(t *testing.T, w *v1beta1.Workspace) func() {
		return replaces(t, toolTemplate(w.Namespace, func(t *corev1.PodTemplate) {
			t.Annotations[v1beta1.AnnotationParameters] = "name: greeting"
		}))
	}, v1beta1.ReasonTemplateInvalid, "PodTemplate go: annotation parley.dev/parameters is no list of parameters"},
	"a label that is none": {func(t *testing.T, w *v1beta1.Workspace) func() {
		return replaces(t, toolTemplate(w.Namespace, labelled("not a label!")))
	}, v1beta1.ReasonPodRejected, `Invalid value: "not a label!"`},
	"Pod Security": {func(t *testing.T, w *v1beta1.Workspace) func() {
		patch(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: w.Namespace}},
			`{"metadata":{"labels":{"pod-security.kubernetes.io/enforce":"baseline"}}}`)
		return replaces(t, toolTemplate(w.Namespace, withHostPath))
	}, v1beta1.ReasonPodRejected, `violates PodSecurity "baseline:latest": hostPath volumes (volume "node")`},
	"a quota of no pods": {func(t *testing.T, w *v1beta1.Workspace) func() {
		quota := noneOf(t, w.Namespace, corev1.ResourcePods)
		create(t, toolTemplate(w.Namespace))
		return func() { remove(t, quota) }
	}, v1beta1.ReasonPodRejected, "exceeded quota: nothing, requested: pods=1"},
	"a quota of no claims": {func(t *testing.T, w *v1beta1.Workspace) func() {
		quota := noneOf(t, w.Namespace, corev1.ResourcePersistentVolumeClaims)
		create(t, toolTemplate(w.Namespace))
		return func() { remove(t, quota) }
	}, v1beta1.ReasonStorageRejected, "exceeded quota: nothing, requested: persistentvolumeclaims=1"},
	"a stranger's pod of its name": {func(t *testing.T, w *v1beta1.Workspace) func() {
		pod := strangersPod(w)
		create(t, pod)
		create(t, toolTemplate(w.Namespace))
		return func() { vanishes(t, pod) }
	}, v1beta1.ReasonNameConflict, "Pod parley-workspace-"},
	"a stranger's claim of its name": {func(t *testing.T, w *v1beta1.Workspace) func() {
		claim := strangersClaim(w)
		create(t, claim)
		create(t, toolTemplate(w.Namespace))
		return func() { vanishes(t, claim) }
	}, v1beta1.ReasonNameConflict, "PersistentVolumeClaim parley-workspace-"},
}

// A person is needed, so that the calls are not held: their results tell the model why. The next call finds the
// workspace started, though nobody has touched it.
func TestBrokenWorkspaceIsReportedWithoutBlockingCalls(t *testing.T) {
	t.Parallel()
	for name, c := range hindrances {
		t.Run(name, func(t *testing.T) {
			ns := parallel(t)
			worksIn(t, working(ns, "c"))
			waitForHeld(t, ns, "c", "there is no PodTemplate go")
			w := workspaceIn(t, ns, "c")
			mend := c.hinder(t, w)
			w = waitForWorkspace(t, w, metav1.ConditionFalse, c.reason, c.words)
			if w.Status.Phase != v1beta1.WorkspacePhaseFailed || w.Status.Pod != nil {
				t.Errorf("the status is %+v", w.Status)
			}
			chat := wantTools(t, ns, "c", 2)
			mend()
			waitForWorkspace(t, w, metav1.ConditionUnknown, v1beta1.ReasonPodStarting, starting)
			runs(t, w)
			waitForWorkspace(t, w, metav1.ConditionTrue, v1beta1.ReasonWorkspaceReady, "")
			answers(t, chat, chattest.Results("call_1"))
			answers(t, assigned(t, ns, "c", 3, 1), chattest.Works("call_2"))
			wantTools(t, ns, "c", 4)
		})
	}
}

func TestTemplateChangeWhileWaitingTakesEffect(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns, func(t *corev1.PodTemplate) { t.Name = "rust" }))
	worksIn(t, working(ns, "c"))
	waitForHeld(t, ns, "c", "there is no PodTemplate go")
	patch(t, newChat(ns, "c", ""), `{"spec":{"workspace":{"podTemplateRef":{"name":"rust"}}}}`)
	waitForHeld(t, ns, "c", starting)
	check.Equal(t, "the workspace is made from", "rust", workspaceIn(t, ns, "c").Spec.Source.PodTemplateRef.Name)
}

func TestChatStopsWaitingWhenWorkspaceIsDropped(t *testing.T) {
	ns := parallel(t)
	create(t, toolTemplate(ns))
	worksIn(t, working(ns, "c"))
	waitForHeld(t, ns, "c", starting)
	patch(t, newChat(ns, "c", ""), `{"spec":{"workspace":null}}`)
	wantTools(t, ns, "c", 2)
}

func TestChatWaitingForWorkspaceReleasesSlot(t *testing.T) {
	ns := parallel(t)
	limited(t, ns)
	create(t, toolTemplate(ns))
	worksIn(t, working(ns, "c"))
	waitForHeld(t, ns, "c", starting)
	started(t, ns, "other", "first")
	runs(t, workspaceIn(t, ns, "c")) // Done with waiting, it stands in line.
	waitForReady(t, ns, "c", metav1.ConditionUnknown, v1beta1.ReasonWaitingForCapacity)
	annotate(t, ns, "c", v1beta1.AnnotationInterrupt, "t")
	waitForReady(t, ns, "c", metav1.ConditionTrue, v1beta1.ReasonInterrupted)
}
