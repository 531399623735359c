// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package admission

import (
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/uuid"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/pods/podspec"
)

// workspaceClaim is the claim of a workspace as the manager makes it, changed.
func workspaceClaim(change ...func(*corev1.PersistentVolumeClaim)) *corev1.PersistentVolumeClaim {
	w := workspace()
	w.UID = uuid.NewUUID()
	c := &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Namespace: ns, Name: "parley-workspace-" + string(w.UID),
			Labels:          map[string]string{podspec.LabelComponent: podspec.ComponentWorkspace},
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(w, v1alpha1.GroupVersion.WithKind("Workspace"))}},
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
			"apiVersion":"parley.dev/v1alpha1","kind":"Workspace","name":"a","uid":"b"}]}}`), workspacesAlone},
		{manager, "deletes one", deletes(its), noRight},
	})
}
