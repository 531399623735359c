// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	sandboxes "sigs.k8s.io/agent-sandbox/api/v1beta1"
	pools "sigs.k8s.io/agent-sandbox/extensions/api/v1beta1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
)

// untyped is the object for a client that does not know its kind.
func untyped(o client.Object, apiVersion, kind string) *unstructured.Unstructured {
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(o)
	if err != nil {
		panic(err)
	}
	u := &unstructured.Unstructured{Object: raw}
	u.SetAPIVersion(apiVersion)
	u.SetKind(kind)
	return u
}

func sandbox() *unstructured.Unstructured {
	return untyped(&sandboxes.Sandbox{ObjectMeta: meta("sandbox"), Spec: sandboxes.SandboxSpec{
		OperatingMode: sandboxes.SandboxOperatingModeRunning,
		SandboxBlueprint: sandboxes.SandboxBlueprint{PodTemplate: sandboxes.PodTemplate{
			Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "workspace", Image: "go"}}}}}}},
		sandboxes.GroupVersion.String(), "Sandbox")
}

// sandboxClaim is one as the manager makes it, changed.
func sandboxClaim(change ...func(*pools.SandboxClaim)) *unstructured.Unstructured {
	w := workspace()
	w.UID = uuid.NewUUID()
	c := &pools.SandboxClaim{ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "parley-workspace-" + string(w.UID),
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w, v1beta1.GroupVersion.WithKind("Workspace"))}},
		Spec: pools.SandboxClaimSpec{WarmPoolRef: pools.SandboxWarmPoolRef{Name: "pool"}}}
	for _, change := range change {
		change(c)
	}
	return untyped(c, pools.GroupVersion.String(), "SandboxClaim")
}

func TestTheManagerClaimsSandboxesSuspendsAndResumesThem(t *testing.T) {
	t.Parallel()
	const (
		modeAlone = "the manager changes nothing of a Sandbox but spec.operatingMode"
		itsOwn    = "the SandboxClaim of a workspace is controlled by that Workspace, whose UID is in its name"
	)
	s, claim := sandbox(), sandboxClaim()
	mustCreate(t, boss, s)
	changes := func(patch string) action { return patches(s, patch) }
	try(t, []write{
		{manager, "suspends one", changes(`{"spec":{"operatingMode":"Suspended"}}`), ""},
		{manager, "resumes it", changes(`{"spec":{"operatingMode":"Running"}}`), ""},
		{manager, "has it run another image",
			changes(`{"spec":{"podTemplate":{"spec":{"containers":[{"name":"workspace","image":"evil"}]}}}}`), modeAlone},
		{manager, "has it run on its node", changes(`{"spec":{"podTemplate":{"spec":{"hostNetwork":true}}}}`), modeAlone},
		{manager, "gives it an end", changes(`{"spec":{"shutdownTime":"2030-01-01T00:00:00Z"}}`), modeAlone},
		{manager, "has it refer to another pod", changes(`{"metadata":{"annotations":{"agents.x-k8s.io/pod-name":"a"}}}`),
			modeAlone},
		{manager, "puts it into a pool", changes(`{"metadata":{"labels":{"agents.x-k8s.io/warm-pool-sandbox":"a"}}}`), modeAlone},
		{manager, "keeps it from being deleted", changes(`{"metadata":{"finalizers":["example.com/keep"]}}`), modeAlone},
		{manager, "creates one", creates(sandbox()), noRight},
		{manager, "deletes it", deletes(s), noRight},
		{boss, "has it run another image",
			changes(`{"spec":{"podTemplate":{"spec":{"containers":[{"name":"workspace","image":"other"}]}}}}`), ""},

		{manager, "claims one", creates(claim), ""},
		{manager, "lets the claim go", deletes(claim), noRight},
		{manager, "claims one under any name", creates(sandboxClaim(func(c *pools.SandboxClaim) { c.Name = unique("any") })),
			itsOwn},
		{manager, "claims one for nobody", creates(sandboxClaim(func(c *pools.SandboxClaim) { c.OwnerReferences = nil })),
			itsOwn},
		{manager, "gives the one that it claims a variable", creates(sandboxClaim(func(c *pools.SandboxClaim) {
			c.Spec.Env = []pools.EnvVar{{Name: "A", Value: "b"}}
		})), itsOwn},
		{manager, "labels the pod of the one that it claims", creates(sandboxClaim(func(c *pools.SandboxClaim) {
			c.Spec.AdditionalPodMetadata.Labels = map[string]string{"parley.dev/component": "generation"}
		})), itsOwn},
		{podA, "claims one", creates(sandboxClaim()), noRight},
		{chatter, "claims one", creates(sandboxClaim()), noRight},
	})
}

// workspaceClaim is the claim of a workspace as the manager makes it, changed.
func workspaceClaim(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	w := workspace()
	w.UID = uuid.NewUUID()
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "parley-workspace-" + string(w.UID),
			Labels:          map[string]string{podspec.LabelComponent: podspec.ComponentWorkspace},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w, v1beta1.GroupVersion.WithKind("Workspace"))}},
		Spec: corev1.PersistentVolumeClaimSpec{AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources: corev1.VolumeResourceRequirements{
				Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}}},
	}
	for _, change := range change {
		change(c)
	}
	return c
}

func TestTheManagersClaimsAreThoseOfWorkspaces(t *testing.T) {
	t.Parallel()
	const (
		workspacesAlone = "the manager creates and changes claims of workspaces alone"
		ownerAlone      = "of the claim of a workspace, the manager changes the owner alone"
		itsOwner        = "the claim of a workspace has no owner but that Workspace"
	)
	its, strangers := workspaceClaim(), workspaceClaim(func(c *corev1.PersistentVolumeClaim) {
		c.Name, c.Labels, c.OwnerReferences = unique("database"), nil, nil
	})
	mustCreate(t, manager, its)
	mustCreate(t, boss, strangers)
	try(t, []write{
		{manager, "creates one that is to be kept", creates(workspaceClaim(func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences = nil
		})), ""},
		{manager, "creates one of another name", creates(workspaceClaim(func(c *corev1.PersistentVolumeClaim) {
			c.Name = unique("any")
		})), workspacesAlone},
		{manager, "creates one of another Workspace", creates(workspaceClaim(func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences[0].UID = uuid.NewUUID()
		})), itsOwner},
		{manager, "creates one of a pod", creates(workspaceClaim(func(c *corev1.PersistentVolumeClaim) {
			c.OwnerReferences[0].Kind, c.OwnerReferences[0].APIVersion = "Pod", "v1"
		})), itsOwner},

		{manager, "keeps one", patches(its, `{"metadata":{"ownerReferences":null}}`), ""},
		{manager, "makes one larger", patches(its, `{"spec":{"resources":{"requests":{"storage":"9Ti"}}}}`), "spec is immutable"},
		{manager, "says whose one is", patches(its, `{"metadata":{"annotations":{"parley.dev/workspace-uid":"a"}}}`), ownerAlone},
		{manager, "keeps one from being deleted", patches(its, `{"metadata":{"finalizers":["example.com/keep"]}}`), ownerAlone},
		{manager, "has somebody's storage go with a Workspace", patches(strangers, `{"metadata":{"ownerReferences":[{
			"apiVersion":"parley.dev/v1beta1","kind":"Workspace","name":"a","uid":"b"}]}}`), workspacesAlone},
		{manager, "deletes one", deletes(its), noRight},
	})
}
