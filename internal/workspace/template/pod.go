// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package template renders the pod and the claim of a workspace from a PodTemplate of its namespace. It is pure.
package template

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"path"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/parameters"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// DefaultStorage is the size of the claim, unless the chat says otherwise.
	DefaultStorage = "10Gi"

	// user runs the commands if the template names none.
	user = int64(65532)
)

// Placement is how the agent comes into the container.
type Placement string

// The placements.
const (
	ImageVolume   Placement = "ImageVolume"   // mount the agent's image; Kubernetes 1.36 or later
	InitContainer Placement = "InitContainer" // copy the agent into a volume of the pod
)

// Settings of all workspaces of a namespace.
type Settings struct {
	// Image of the agent.
	Image     string
	Placement Placement
	// Subject of the agent's clients, such as system:serviceaccount:team-a:parley-generation.
	Subject string
	// Options are what the administrator adds to the pods.
	Options podspec.WorkspaceOptions
	// Proxy is in the environment of the commands, unless the template names another one.
	Proxy podspec.Proxy
	// SourceNode is the node of the pod that uses the files to copy; empty: none does.
	SourceNode string
	// CABundle is a ConfigMap with certificates of authorities, which the commands find at podspec.CAFile; nil: none. It
	// is optional in each namespace.
	CABundle *v1beta1.ConfigMapKeyReference
}

// Objects of a workspace.
type Objects struct {
	Pod *corev1.Pod
	// Claim of its storage; nil: its files are lost with the pod.
	Claim *corev1.PersistentVolumeClaim
}

// Hash of the pod's spec.
func (o *Objects) Hash() string {
	sum := sha256.New()
	_ = json.NewEncoder(sum).Encode(o.Pod.Spec) // It always encodes.
	return hex.EncodeToString(sum.Sum(nil))[:10]
}

// Differs reports whether a claim is smaller than the other one, or of another class than it names.
func Differs(claim, from *corev1.PersistentVolumeClaim) bool {
	class, wanted := claim.Spec.StorageClassName, from.Spec.StorageClassName
	return claim.Spec.Resources.Requests.Storage().Cmp(*from.Spec.Resources.Requests.Storage()) < 0 ||
		wanted != nil && (class == nil || *class != *wanted)
}

// Name of the pod and of the claim of a workspace. It follows from the workspace's UID, so that no object can have it
// before.
func Name(w *v1beta1.Workspace) string { return nameOf(string(w.UID)) }

func nameOf(uid string) string { return "parley-workspace-" + uid }

// SourceName is the name of the pod and of the claim of the workspace whose files are copied.
func SourceName(w *v1beta1.Workspace) string { return nameOf(w.Spec.CopyFrom) }

// Render renders the objects of the workspace. The error says what is wrong with the template or with a value.
func Render(w *v1beta1.Workspace, t *corev1.PodTemplate, s Settings) (*Objects, error) {
	declared, err := parameters.Of(t.Annotations)
	if err != nil {
		return nil, err
	}
	ref := w.Spec.Source.PodTemplateRef
	values, err := parameters.Values(declared, ref.Parameters)
	if err != nil {
		return nil, err
	}
	r := &rendering{settings: s, workspace: w, spec: t.Template.Spec.DeepCopy(), labels: map[string]string{},
		directory: cmp.Or(t.Annotations[v1beta1.AnnotationDirectory], v1beta1.DefaultWorkspaceDirectory)}
	if err := r.check(); err != nil {
		return nil, err
	}
	if ref.Storage != nil {
		r.storage = cmp.Or(ref.Storage.Size, DefaultStorage)
	}
	for i := range declared {
		for _, place := range declared[i].Places {
			if err := r.put(place, values[declared[i].Name]); err != nil {
				return nil, fmt.Errorf("parameter %q: %w", declared[i].Name, err)
			}
		}
	}
	r.harden()
	r.placeAgent()
	if w.IsCopying() {
		r.copyFiles()
	}
	return r.objects(t)
}

// DirectoryIn is the directory of the workspace's files in the container of its pod.
func DirectoryIn(pod *corev1.Pod) string {
	for _, c := range pod.Spec.Containers {
		for _, m := range c.VolumeMounts {
			if m.Name == filesVolume && m.SubPath == protocol.FilesPath {
				return m.MountPath
			}
		}
	}
	return ""
}

// rendering is the state of Render.
type rendering struct {
	settings  Settings
	workspace *v1beta1.Workspace
	spec      *corev1.PodSpec
	labels    map[string]string
	directory string
	// storage is the size of the claim; empty: there is none.
	storage string
}

// check refuses templates in which the agent cannot work.
func (r *rendering) check() error {
	c := r.container()
	switch {
	case c == nil:
		return fmt.Errorf("the template has no container")
	case c.Image == "":
		return fmt.Errorf("container %q has no image", c.Name)
	case len(c.Command) == 0 && len(c.Args) > 0:
		return fmt.Errorf("container %q has args without a command: what the image would run is not known, so give the "+
			"command, too", c.Name)
	case !path.IsAbs(r.directory) || path.Clean(r.directory) != r.directory || r.directory == "/":
		return fmt.Errorf("annotation %s is %q: give an absolute path below /, neither with . nor with .. in it",
			v1beta1.AnnotationDirectory, r.directory)
	case r.spec.RestartPolicy != "" && r.spec.RestartPolicy != corev1.RestartPolicyAlways:
		return fmt.Errorf("restartPolicy is %s: a workspace continues after a crash, so leave it out", r.spec.RestartPolicy)
	}
	return cmp.Or(r.checkUser(), r.checkVolumes())
}

// checkUser refuses root, unless the template allows it.
func (r *rendering) checkUser() error {
	var user *int64
	var confined *bool
	if s := r.spec.SecurityContext; s != nil {
		user, confined = s.RunAsUser, s.RunAsNonRoot
	}
	if s := r.container().SecurityContext; s != nil {
		user, confined = cmp.Or(s.RunAsUser, user), cmp.Or(s.RunAsNonRoot, confined)
	}
	if user == nil || *user != 0 || confined != nil && !*confined {
		return nil
	}
	return fmt.Errorf("container %q runs as user 0, which no kubelet starts unless runAsNonRoot is false: name another "+
		"user, or none", r.container().Name)
}

// checkVolumes refuses volumes that conflict with those of Parley.
func (r *rendering) checkVolumes() error {
	c := r.container()
	for _, v := range r.spec.Volumes {
		if strings.HasPrefix(v.Name, volumePrefix) {
			return fmt.Errorf("volume %q: names that begin with %s are Parley's", v.Name, volumePrefix)
		}
	}
	for _, m := range c.VolumeMounts {
		if m.MountPath == r.directory || under(m.MountPath, agentRoot) || under(m.MountPath, protocol.StateDir) ||
			r.settings.CABundle != nil && under(m.MountPath, path.Dir(podspec.CAFile)) {
			return fmt.Errorf("container %q mounts something at %s, which is Parley's", c.Name, m.MountPath)
		}
	}
	return nil
}

func under(p, dir string) bool { return p == dir || strings.HasPrefix(p, dir+"/") }

// container that commands run in.
func (r *rendering) container() *corev1.Container {
	named := func(c corev1.Container) bool { return c.Name == v1beta1.WorkspaceContainer }
	if len(r.spec.Containers) == 0 {
		return nil
	}
	return &r.spec.Containers[max(0, slices.IndexFunc(r.spec.Containers, named))]
}

// put sets a value at its place.
func (r *rendering) put(place parameters.Place, value string) error {
	c := r.container()
	switch kind, name := place.Split(); kind {
	case "image":
		c.Image = value
	case "env":
		// The kubelet takes $(X) for the value of X, and $$ for $.
		literal := strings.ReplaceAll(value, "$", "$$")
		c.Env = append(slices.DeleteFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == name }),
			corev1.EnvVar{Name: name, Value: literal})
	case "requests":
		return amount(&c.Resources.Requests, name, value)
	case "limits":
		return amount(&c.Resources.Limits, name, value)
	case "nodeSelector":
		set(&r.spec.NodeSelector, name, value)
	case "label":
		r.labels[name] = value
	case "storage":
		if s := r.workspace.Spec.Source.PodTemplateRef.Storage; s != nil && s.Size == "" {
			r.storage = value // A size of the chat has priority.
		}
	}
	return nil
}

func set[M ~map[K]V, K comparable, V any](m *M, key K, value V) {
	if *m == nil {
		*m = M{}
	}
	(*m)[key] = value
}

func amount(list *corev1.ResourceList, name, value string) error {
	q, err := resource.ParseQuantity(value)
	if err != nil || q.Sign() < 0 {
		return fmt.Errorf("%q is no amount of %s", value, name)
	}
	set(list, corev1.ResourceName(name), q)
	return nil
}

// objects are the result of the rendering.
func (r *rendering) objects(t *corev1.PodTemplate) (*Objects, error) {
	meta := metav1.ObjectMeta{
		Name: Name(r.workspace), Namespace: r.workspace.Namespace,
		Labels:      map[string]string{},
		Annotations: maps.Clone(t.Template.Annotations),
	}
	for _, labels := range []map[string]string{t.Template.Labels, r.labels, marks} {
		maps.Copy(meta.Labels, labels)
	}
	r.settings.Options.ApplyTo(&meta, r.spec, r.settings.Image)
	o := &Objects{Pod: &corev1.Pod{ObjectMeta: meta, Spec: *r.spec}}
	if r.storage == "" {
		return o, nil
	}
	size, err := resource.ParseQuantity(r.storage)
	if err != nil || size.Sign() <= 0 {
		return nil, fmt.Errorf("storage: %q is no size", r.storage)
	}
	o.Claim = &corev1.PersistentVolumeClaim{
		ObjectMeta: metav1.ObjectMeta{Name: meta.Name, Namespace: meta.Namespace, Labels: marks},
		Spec: corev1.PersistentVolumeClaimSpec{
			AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
			Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: size}},
		},
	}
	if class := r.workspace.Spec.Source.PodTemplateRef.Storage.StorageClassName; class != "" {
		o.Claim.Spec.StorageClassName = &class
	}
	return o, nil
}

// marks are the labels of all objects for workspaces.
var marks = map[string]string{
	"app.kubernetes.io/name": "parley", "app.kubernetes.io/component": podspec.ComponentWorkspace,
	podspec.LabelComponent: podspec.ComponentWorkspace,
}
