// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package template

import (
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"

	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// volumePrefix begins the names of the volumes that Parley adds.
	volumePrefix = "parley-"
	// filesVolume has the workspace's files, and the agent's state.
	filesVolume = volumePrefix + "files"
	// agentRoot is the directory for the volumes of the agent.
	agentRoot = "/run/parley"
	// IssuerKeys is the ConfigMap of a namespace with the cluster's issuer and its public keys.
	IssuerKeys = "parley-issuer"
)

// harden sets the defaults of a template: the restricted profile of Pod Security, and no token of a service account.
func (r *rendering) harden() {
	spec := r.spec
	fill(&spec.AutomountServiceAccountToken, false)
	fill(&spec.EnableServiceLinks, false)
	spec.RestartPolicy = corev1.RestartPolicyAlways
	fill(&spec.SecurityContext, corev1.PodSecurityContext{})
	pod := spec.SecurityContext
	fill(&pod.RunAsNonRoot, true)
	if !r.settings.Options.AnyUser {
		fill(&pod.RunAsUser, user) // Container runtimes refuse a pod that names a group and no user.
		fill(&pod.RunAsGroup, user)
		fill(&pod.FSGroup, user)
	}
	fill(&pod.SeccompProfile, corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault})
	for _, containers := range [][]corev1.Container{spec.Containers, spec.InitContainers} {
		for i := range containers {
			restrict(&containers[i])
		}
	}
}

func fill[T any](field **T, value T) {
	if *field == nil {
		*field = new(value)
	}
}

func restrict(c *corev1.Container) {
	fill(&c.SecurityContext, corev1.SecurityContext{})
	if !escalates(c.SecurityContext) {
		fill(&c.SecurityContext.AllowPrivilegeEscalation, false)
	}
	fill(&c.SecurityContext.Capabilities, corev1.Capabilities{Drop: []corev1.Capability{"ALL"}})
}

// escalates reports whether a container needs privilege escalation. It has no default then, so that the policies refuse
// it with advice; the API server would only report that its fields do not fit together.
func escalates(s *corev1.SecurityContext) bool {
	return s.Privileged != nil && *s.Privileged ||
		s.Capabilities != nil && slices.Contains(s.Capabilities.Add, "CAP_SYS_ADMIN")
}

// placeAgent makes the agent the first process of the container. The agent runs the command of the template.
func (r *rendering) placeAgent() {
	c := r.container()
	main := slices.Concat(c.Command, c.Args)
	c.Command = []string{protocol.AgentDir + "/workspace-agent"}
	c.Args = []string{"init", "--listen=:" + strconv.Itoa(protocol.Port), "--directory=" + r.directory,
		"--allow-subject=" + r.settings.Subject, "--grace=" + grace(r.spec.TerminationGracePeriodSeconds).String()}
	if len(main) > 0 {
		c.Args = append(append(c.Args, "--"), main...)
	}
	c.Env = append(c.Env, field("PARLEY_POD_NAMESPACE", "metadata.namespace"), field("PARLEY_POD_UID", "metadata.uid"))
	if !slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return e.Name == "HOME" }) {
		c.Env = append(c.Env, corev1.EnvVar{Name: "HOME", Value: r.directory})
	}
	if c.WorkingDir == "" {
		c.WorkingDir = r.directory
	}
	if len(c.Resources.Requests) == 0 && len(c.Resources.Limits) == 0 {
		c.Resources = *r.settings.Options.Resources.DeepCopy()
	}
	r.addProxy(c)
	c.Ports = append(c.Ports, corev1.ContainerPort{Name: "workspace", ContainerPort: protocol.Port})
	c.ReadinessProbe = &corev1.Probe{
		ProbeHandler: corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{
			Path: "/v1/health", Port: intstr.FromInt32(protocol.Port)}},
		PeriodSeconds: 1, TimeoutSeconds: 5, FailureThreshold: 10,
	}
	r.mount(c)
}

// addProxy adds the variables that programs read for a proxy, in both spellings, and for certificates of authorities. A
// template that sets one of them for itself gets none of its kind. SSL_CERT_FILE is not among them: it would replace
// the authorities of the image.
func (r *rendering) addProxy(c *corev1.Container) {
	has := func(name string) bool {
		return slices.ContainsFunc(c.Env, func(e corev1.EnvVar) bool { return strings.EqualFold(e.Name, name) })
	}
	add := func(value string, names ...string) {
		if value == "" || has(names[0]) {
			return
		}
		for _, name := range names {
			c.Env = append(c.Env, corev1.EnvVar{Name: name, Value: strings.ReplaceAll(value, "$", "$$")})
		}
	}
	proxy := r.settings.Proxy
	add(proxy.HTTPS, "HTTPS_PROXY", "https_proxy")
	add(proxy.HTTP, "HTTP_PROXY", "http_proxy")
	add(proxy.Except, "NO_PROXY", "no_proxy")
	if bundle := r.settings.CABundle; bundle != nil {
		add(podspec.CAFile, "NODE_EXTRA_CA_CERTS")
		r.spec.Volumes = append(r.spec.Volumes, podspec.CAVolume(volumePrefix+"ca", bundle))
		c.VolumeMounts = append(c.VolumeMounts, corev1.VolumeMount{
			Name: volumePrefix + "ca", MountPath: path.Dir(podspec.CAFile), ReadOnly: true})
	}
}

// grace is the time of commands between SIGTERM and SIGKILL in a pod with a termination grace period in seconds, which
// is 30 by default. The agent has 10 s or a third of it to record how they ended. It is at least a second.
func grace(termination *int64) time.Duration {
	seconds := int64(30)
	if termination != nil {
		seconds = *termination
	}
	all := time.Duration(seconds) * time.Second
	return max(time.Second, all-10*time.Second, all*2/3).Truncate(time.Millisecond)
}

// mount adds the volumes of the agent and of the workspace's files.
func (r *rendering) mount(c *corev1.Container) {
	c.VolumeMounts = append(c.VolumeMounts,
		corev1.VolumeMount{Name: volumePrefix + "agent", MountPath: protocol.AgentDir, ReadOnly: true},
		corev1.VolumeMount{Name: volumePrefix + "issuer", MountPath: protocol.IssuerDir, ReadOnly: true},
		corev1.VolumeMount{Name: filesVolume, MountPath: r.directory, SubPath: protocol.FilesPath},
		corev1.VolumeMount{Name: filesVolume, MountPath: protocol.StateDir, SubPath: "state"})
	files := corev1.Volume{Name: filesVolume,
		VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
	if r.storage != "" {
		files = claimVolume(filesVolume, Name(r.workspace), false)
	}
	r.spec.Volumes = append(r.spec.Volumes, files,
		corev1.Volume{Name: volumePrefix + "issuer", VolumeSource: corev1.VolumeSource{
			ConfigMap: &corev1.ConfigMapVolumeSource{LocalObjectReference: corev1.LocalObjectReference{Name: IssuerKeys}}}},
		corev1.Volume{Name: volumePrefix + "agent", VolumeSource: r.agentVolume()})
	if r.settings.Placement == InitContainer {
		copier := corev1.Container{
			Name: volumePrefix + "agent", Image: r.settings.Image,
			Command:      []string{"/workspace-agent", "copy-self", protocol.AgentDir + "/workspace-agent"},
			VolumeMounts: []corev1.VolumeMount{{Name: volumePrefix + "agent", MountPath: protocol.AgentDir}},
			Resources:    copierResources("16Mi", "64Mi"),
		}
		restrict(&copier)
		copier.SecurityContext.ReadOnlyRootFilesystem = new(true)
		r.spec.InitContainers = append([]corev1.Container{copier}, r.spec.InitContainers...)
	}
}

// copierResources are those of a container that copies: namespaces with a quota take no container without.
func copierResources(memory, limit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("10m"),
			corev1.ResourceMemory: resource.MustParse(memory)},
		Limits: corev1.ResourceList{corev1.ResourceCPU: resource.MustParse("1"),
			corev1.ResourceMemory: resource.MustParse(limit)},
	}
}

func (r *rendering) agentVolume() corev1.VolumeSource {
	if r.settings.Placement == InitContainer {
		return corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}
	}
	return corev1.VolumeSource{Image: &corev1.ImageVolumeSource{Reference: r.settings.Image}}
}

func field(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name,
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}
