// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"
)

// Options are what an administrator has all pods that the manager creates run with. The API server checks the fields of
// a pod; a chat whose pod it rejects says so in its conditions.
type Options struct {
	Generation GenerationOptions `json:"generation,omitzero"`
	Workspaces WorkspaceOptions  `json:"workspaces,omitzero"`
}

// GenerationOptions are those of generation pods.
type GenerationOptions struct {
	PodOptions `json:",inline"`

	// RelayResources replace the amounts of the relay's container that they name; Resources those of the generator's.
	RelayResources corev1.ResourceRequirements `json:"relayResources,omitzero"`
}

// WorkspaceOptions are those of workspaces. What a workspace's template sets has priority.
type WorkspaceOptions struct {
	PodOptions `json:",inline"`

	// AnyUser leaves the user to the cluster where a template names none, as OpenShift requires. The default is user
	// 65532.
	AnyUser bool `json:"anyUser,omitempty"`
}

// PodOptions are the fields of a pod that an administrator can set.
type PodOptions struct {
	// Labels and Annotations are added to the pod's own.
	Labels      map[string]string `json:"labels,omitempty"`
	Annotations map[string]string `json:"annotations,omitempty"`
	// ImagePullPolicy of Parley's own image. The default is IfNotPresent.
	ImagePullPolicy corev1.PullPolicy `json:"imagePullPolicy,omitempty"`
	// ImagePullSecrets are in the namespace of the pod.
	ImagePullSecrets          []corev1.LocalObjectReference     `json:"imagePullSecrets,omitempty"`
	NodeSelector              map[string]string                 `json:"nodeSelector,omitempty"`
	Tolerations               []corev1.Toleration               `json:"tolerations,omitempty"`
	Affinity                  *corev1.Affinity                  `json:"affinity,omitempty"`
	TopologySpreadConstraints []corev1.TopologySpreadConstraint `json:"topologySpreadConstraints,omitempty"`
	PriorityClassName         string                            `json:"priorityClassName,omitempty"`
	RuntimeClassName          *string                           `json:"runtimeClassName,omitempty"`
	// Resources replace the amounts of the main container that they name.
	Resources corev1.ResourceRequirements `json:"resources,omitzero"`
}

// ParseOptions reads options from YAML. The error names the field that is wrong.
func ParseOptions(text []byte) (Options, error) {
	var o Options
	if err := yaml.UnmarshalStrict(text, &o); err != nil {
		return Options{}, fmt.Errorf("decoding the options of pods: %w", err)
	}
	for name, pod := range map[string]*PodOptions{"generation": &o.Generation.PodOptions,
		"workspaces": &o.Workspaces.PodOptions} {
		if err := pod.validate(field.NewPath(name)); err != nil {
			return Options{}, fmt.Errorf("reading the options of pods: %w", err)
		}
	}
	return o, nil
}

// validate refuses labels that decide what a pod is, and a priority that the policies refuse the manager.
func (o *PodOptions) validate(path *field.Path) error {
	errs := metavalidation.ValidateLabels(o.Labels, path.Child("labels"))
	for _, key := range slices.Sorted(maps.Keys(o.Labels)) {
		if strings.HasPrefix(key, "parley.dev/") || key == "app.kubernetes.io/name" ||
			key == "app.kubernetes.io/component" {
			errs = append(errs, field.Forbidden(path.Child("labels").Key(key), "Parley sets this label itself"))
		}
	}
	policies := []corev1.PullPolicy{corev1.PullAlways, corev1.PullIfNotPresent, corev1.PullNever}
	if o.ImagePullPolicy != "" && !slices.Contains(policies, o.ImagePullPolicy) {
		errs = append(errs, field.NotSupported(path.Child("imagePullPolicy"), o.ImagePullPolicy, policies))
	}
	if len(o.Resources.Claims) > 0 {
		errs = append(errs, field.Forbidden(path.Child("resources", "claims"), "pods of Parley have no resource claims"))
	}
	if strings.HasPrefix(o.PriorityClassName, "system-") {
		errs = append(errs, field.Forbidden(path.Child("priorityClassName"), "system-* is reserved for the cluster"))
	}
	return errs.ToAggregate()
}

// ApplyTo sets the options on a pod where it sets nothing itself. Pull secrets are added: Parley's own image needs
// them, whatever else the pod names. That image is for Linux, as is the node.
func (o *PodOptions) ApplyTo(meta *metav1.ObjectMeta, spec *corev1.PodSpec, image string) {
	o.pull(spec, image)
	addMissing(&meta.Labels, o.Labels)
	addMissing(&meta.Annotations, o.Annotations)
	for _, secret := range o.ImagePullSecrets {
		if !slices.Contains(spec.ImagePullSecrets, secret) {
			spec.ImagePullSecrets = append(spec.ImagePullSecrets, secret)
		}
	}
	if len(spec.NodeSelector) == 0 {
		spec.NodeSelector = maps.Clone(o.NodeSelector)
	}
	addMissing(&spec.NodeSelector, map[string]string{corev1.LabelOSStable: string(corev1.Linux)})
	if len(spec.Tolerations) == 0 {
		spec.Tolerations = slices.Clone(o.Tolerations)
	}
	if spec.Affinity == nil {
		spec.Affinity = o.Affinity.DeepCopy()
	}
	if len(spec.TopologySpreadConstraints) == 0 {
		spec.TopologySpreadConstraints = slices.Clone(o.TopologySpreadConstraints)
	}
	if spec.PriorityClassName == "" {
		spec.PriorityClassName = o.PriorityClassName
	}
	if spec.RuntimeClassName == nil {
		spec.RuntimeClassName = o.RuntimeClassName
	}
}

// pull sets the pull policy where the pod uses the image.
func (o *PodOptions) pull(spec *corev1.PodSpec, image string) {
	policy := cmp.Or(o.ImagePullPolicy, corev1.PullIfNotPresent)
	for _, containers := range [][]corev1.Container{spec.InitContainers, spec.Containers} {
		for i := range containers {
			if c := &containers[i]; c.Image == image && c.ImagePullPolicy == "" {
				c.ImagePullPolicy = policy
			}
		}
	}
	for i := range spec.Volumes {
		if v := spec.Volumes[i].Image; v != nil && v.Reference == image && v.PullPolicy == "" {
			v.PullPolicy = policy
		}
	}
}

func addMissing(to *map[string]string, from map[string]string) {
	for key, value := range from {
		if _, isSet := (*to)[key]; isSet {
			continue
		}
		if *to == nil {
			*to = map[string]string{}
		}
		(*to)[key] = value
	}
}

// replaceAmounts returns the amounts with those of other in place of their own.
func replaceAmounts(own, other corev1.ResourceRequirements) corev1.ResourceRequirements {
	all := *own.DeepCopy()
	maps.Copy(all.Requests, other.Requests)
	maps.Copy(all.Limits, other.Limits)
	return all
}
