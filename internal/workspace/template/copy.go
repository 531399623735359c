// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	corev1 "k8s.io/api/core/v1"
)

const (
	copierName           = volumePrefix + "copy"
	sourceVolume         = volumePrefix + "source"
	sourceDir, targetDir = "/from", "/to"
)

// IsCopier reports whether the pod copies the files of another workspace, and then ends.
func IsCopier(pod *corev1.Pod) bool {
	return len(pod.Spec.Containers) > 0 && pod.Spec.Containers[0].Name == copierName
}

// copyFiles makes the pod one that copies the files of another workspace, with the user and the scheduling of the
// template. It is a pod of its own, because a pod keeps its volumes until it ends: one with an init container would
// hold the volume of the source on its node, and delay its deletion.
func (r *rendering) copyFiles() {
	copier := corev1.Container{
		Name: copierName, Image: r.settings.Image,
		Command: []string{"/workspace-agent", "copy-files", sourceDir, targetDir},
		VolumeMounts: []corev1.VolumeMount{
			{Name: sourceVolume, MountPath: sourceDir, ReadOnly: true},
			{Name: filesVolume, MountPath: targetDir}},
		Resources: copierResources("64Mi", "256Mi"), SecurityContext: r.container().SecurityContext,
		TerminationMessagePolicy: corev1.TerminationMessageFallbackToLogsOnError,
	}
	copier.SecurityContext.ReadOnlyRootFilesystem = new(true)
	r.spec.InitContainers, r.spec.Containers = nil, []corev1.Container{copier}
	r.spec.RestartPolicy = corev1.RestartPolicyNever // A restarted one would stay on a node that the source has left.
	// A claim that is not mounted read-only would get the group of this pod.
	r.spec.Volumes = []corev1.Volume{claimVolume(filesVolume, Name(r.workspace), false),
		claimVolume(sourceVolume, SourceName(r.workspace), true)}
	if r.settings.SourceNode != "" {
		r.requireNode(r.settings.SourceNode)
	}
}

func claimVolume(name, claim string, readOnly bool) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claim, ReadOnly: readOnly}}}
}

// requireNode adds the node to every alternative of the node affinity. The scheduler does not know that a volume of the
// mode ReadWriteOnce is attached to a node.
func (r *rendering) requireNode(name string) {
	spec := r.spec
	fill(&spec.Affinity, corev1.Affinity{})
	fill(&spec.Affinity.NodeAffinity, corev1.NodeAffinity{})
	fill(&spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution, corev1.NodeSelector{
		NodeSelectorTerms: []corev1.NodeSelectorTerm{{}}})
	terms := spec.Affinity.NodeAffinity.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms
	for i := range terms {
		terms[i].MatchFields = append(terms[i].MatchFields, corev1.NodeSelectorRequirement{
			Key: "metadata.name", Operator: corev1.NodeSelectorOpIn, Values: []string{name}})
	}
}
