// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package storage

import "path/filepath"

const (
	// ClassName of the StorageClass.
	ClassName = "local"
	// provisioner is the name by which the controller manager calls for this package.
	provisioner = "parley.dev/local-directory"

	annotationDefault = "storageclass.kubernetes.io/is-default-class"
	// annotationWanted on a claim names who is to make its volume. The controller manager sets it once the scheduler has
	// chosen a node for the first pod that needs the claim.
	annotationWanted = "volume.kubernetes.io/storage-provisioner"
	// annotationMade on a volume names who has made it.
	annotationMade = "pv.kubernetes.io/provisioned-by"
)

type object = map[string]any

// metadata is what is read of an object's.
type metadata struct {
	Name, Namespace, UID string
	Annotations          map[string]string
	DeletionTimestamp    string
}

// claim is what is read of a PersistentVolumeClaim.
type claim struct {
	Metadata metadata
	Spec     struct {
		AccessModes []string
		Resources   struct{ Requests map[string]string }
		// VolumeName is empty until it is bound.
		StorageClassName, VolumeName, VolumeMode string
		// DataSourceRef is what the volume is to be a copy of.
		DataSourceRef *struct{}
	}
}

// waits reports whether the claim is to get a volume. One for a block device or a copy waits for ever.
func (c *claim) waits() bool {
	return c.Metadata.Annotations[annotationWanted] == provisioner && c.Metadata.DeletionTimestamp == "" &&
		c.Spec.VolumeName == "" && c.Spec.VolumeMode != "Block" && c.Spec.DataSourceRef == nil
}

func (c *claim) volumeName() string { return "pvc-" + c.Metadata.UID }

// volume is what is read of a PersistentVolume.
type volume struct {
	Metadata metadata
	Spec     struct{ PersistentVolumeReclaimPolicy string }
	Status   struct{ Phase string }
}

// isOver reports whether the volume's claim is gone, and the volume is to go with it.
func (v *volume) isOver() bool {
	return v.Metadata.Annotations[annotationMade] == provisioner && v.Metadata.DeletionTimestamp == "" &&
		v.Spec.PersistentVolumeReclaimPolicy == "Delete" && v.Status.Phase == "Released"
}

// class is the StorageClass of claims that name none. Its volumes are made when a pod needs them, as where a volume is
// on one node of many.
func class() object {
	return object{
		"apiVersion":        "storage.k8s.io/v1",
		"kind":              "StorageClass",
		"metadata":          object{"name": ClassName, "annotations": object{annotationDefault: "true"}},
		"provisioner":       provisioner,
		"reclaimPolicy":     "Delete",
		"volumeBindingMode": "WaitForFirstConsumer",
	}
}

// volumeFor is the volume of a claim.
func volumeFor(c *claim, nodes []string, dir string) object {
	return object{
		"apiVersion": "v1",
		"kind":       "PersistentVolume",
		"metadata":   object{"name": c.volumeName(), "annotations": object{annotationMade: provisioner}},
		"spec": object{
			"storageClassName":              c.Spec.StorageClassName,
			"accessModes":                   c.Spec.AccessModes,
			"capacity":                      object{"storage": c.Spec.Resources.Requests["storage"]},
			"persistentVolumeReclaimPolicy": "Delete",
			"claimRef": object{"apiVersion": "v1", "kind": "PersistentVolumeClaim", "namespace": c.Metadata.Namespace,
				"name": c.Metadata.Name, "uid": c.Metadata.UID},
			"local": object{"path": filepath.Join(dir, c.volumeName())},
			"nodeAffinity": object{"required": object{"nodeSelectorTerms": []object{{"matchExpressions": []object{
				{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}}}}}},
		},
	}
}
