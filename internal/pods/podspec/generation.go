// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"fmt"
	"path"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"parley.dev/parley/api/v1beta1"
)

// Generation builds a generation pod with the given name.
func Generation(s Settings, name string) *corev1.Pod {
	pod := &corev1.Pod{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Pod"},
		ObjectMeta: metav1.ObjectMeta{
			Name:      name,
			Namespace: s.Namespace,
			Labels:    labelsOf(s),
			// Webhooks that bring identities of clouds leave the relay out: it listens on the network.
			Annotations: map[string]string{
				"azure.workload.identity/skip-containers": relayName, "eks.amazonaws.com/skip-containers": relayName,
				"cloud.google.com/skip-containers": relayName,
			},
		},
		Spec: corev1.PodSpec{
			HostUsers:                     hostUsers(s),
			ServiceAccountName:            ServiceAccount,
			AutomountServiceAccountToken:  new(false),
			EnableServiceLinks:            new(false),
			RestartPolicy:                 corev1.RestartPolicyAlways,
			TerminationGracePeriodSeconds: new(int64(TerminationGrace.Seconds())),
			SecurityContext: &corev1.PodSecurityContext{
				// The image names the user. A fixed one would be refused where the cluster chooses it, as OpenShift does.
				RunAsNonRoot:   new(true),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{generatorContainer(s), relayContainer(s)},
			Volumes:    volumes(s),
		},
	}
	s.Options.ApplyTo(&pod.ObjectMeta, &pod.Spec, s.Image)
	return pod
}

// relayName is the name of the relay's container.
const relayName = "relay"

// relayContainer outlives the generator's crashes, and ends after it. It listens on the network, and has neither the
// pod's token nor a key of a model. It is not a native sidecar: a kubelet starts the next container up to a second
// after one. So the generator waits until the relay listens, and the relay, on deletion, until the generator has ended.
func relayContainer(s Settings) corev1.Container {
	args := []string{
		"--socket=" + RelaySocket,
		"--listen=:" + strconv.Itoa(RelayPort),
		"--generator-lock=" + GeneratorLock,
		"--marker-dir=" + RuntimeDir + "/episodes",
		"--issuer=" + s.Issuer,
		"--issuer-keys=" + IssuerKeysFile,
		"--metrics-address=:" + strconv.Itoa(RelayMetricsPort),
	}
	if s.Profiling {
		args = append(args, "--profiling")
	}
	args = append(args, flags("--allow-subject", s.GatewaySubjects...)...)
	ready := probe("/readyz", RelayPort, 10, 3)
	ready.InitialDelaySeconds = 1 // The relay listens by then; the second probe is a whole period later.
	return corev1.Container{
		Name:    relayName,
		Image:   s.Image,
		Command: []string{"/relay"},
		Args:    args,
		Ports: []corev1.ContainerPort{{Name: "relay", ContainerPort: RelayPort},
			{Name: "relay-metrics", ContainerPort: RelayMetricsPort}},
		ReadinessProbe:  ready,
		Resources:       replaceAmounts(resources("32Mi", "384Mi", "1"), s.Options.RelayResources),
		SecurityContext: restricted(),
		Env: []corev1.EnvVar{
			fieldEnv("POD_NAMESPACE", "metadata.namespace"),
			fieldEnv("POD_UID", "metadata.uid"),
		},
		VolumeMounts: []corev1.VolumeMount{{Name: "runtime", MountPath: RuntimeDir}},
	}
}

func generatorContainer(s Settings) corev1.Container {
	mounts := []corev1.VolumeMount{
		{Name: "runtime", MountPath: RuntimeDir},
		{Name: "token", MountPath: tokenDir, ReadOnly: true},
	}
	for i, secret := range secretsOf(s.Keys) {
		mounts = append(mounts, corev1.VolumeMount{
			Name: keyVolume(i), MountPath: KeysDir + "/" + secret.name, ReadOnly: true,
		})
	}
	if s.GatewayURL != "" {
		mounts = append(mounts, corev1.VolumeMount{Name: "gateway", MountPath: gatewayDir, ReadOnly: true})
	}
	if s.CABundle != nil {
		mounts = append(mounts, corev1.VolumeMount{Name: "ca", MountPath: caDir, ReadOnly: true})
	}
	return corev1.Container{
		Name:    "generator",
		Image:   s.Image,
		Command: []string{"/generator"},
		Args:    generatorArgs(s),
		Env: append([]corev1.EnvVar{
			fieldEnv("POD_NAME", "metadata.name"),
			fieldEnv("POD_NAMESPACE", "metadata.namespace"),
			fieldEnv("POD_UID", "metadata.uid"),
			fieldEnv("POD_SERVICE_ACCOUNT", "spec.serviceAccountName"),
			{Name: "RELAY_SOCKET", Value: RelaySocket},
			{Name: "GENERATOR_LOCK", Value: GeneratorLock},
			{Name: "KEYS_DIR", Value: KeysDir},
		}, tracingEnv(s)...),
		Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: HealthPort},
			{Name: "metrics", ContainerPort: MetricsPort}},
		StartupProbe:    probe("/readyz", HealthPort, 1, 60),
		ReadinessProbe:  probe("/readyz", HealthPort, 10, 3),
		LivenessProbe:   probe("/healthz", HealthPort, 10, 6),
		Resources:       replaceAmounts(resources("64Mi", "1Gi", "2"), s.Options.Resources),
		SecurityContext: restricted(),
		VolumeMounts:    mounts,
	}
}

// generatorArgs are the generator's flags.
func generatorArgs(s Settings) []string {
	args := []string{"--health-address=:" + strconv.Itoa(HealthPort), "--metrics-address=:" + strconv.Itoa(MetricsPort)}
	if s.Capacity > 0 {
		args = append(args, "--capacity="+strconv.Itoa(s.Capacity))
	}
	if s.NoRecordings {
		args = append(args, "--recordings=false")
	}
	if s.Profiling {
		args = append(args, "--profiling")
	}
	args = append(args, flags("--file-host", s.FileHosts...)...)
	args = append(args, flags("--gateway-url", s.GatewayURL)...)
	args = append(args, flags("--model-host", s.ModelHosts...)...)
	args = append(args, flags("--mcp-host", s.MCPHosts...)...)
	if s.AllowLoopback {
		args = append(args, "--allow-loopback")
	}
	args = append(args, flags("--http-proxy", s.Proxy.HTTP)...)
	args = append(args, flags("--https-proxy", s.Proxy.HTTPS)...)
	args = append(args, flags("--no-proxy", s.Proxy.Except)...)
	if s.CABundle != nil {
		args = append(args, "--ca-file="+CAFile)
	}
	if s.AdvisorUses != nil {
		args = append(args, "--advisor-max-uses="+strconv.Itoa(int(*s.AdvisorUses)))
	}
	return args
}

// flags are a flag for each value that is not empty.
func flags(name string, values ...string) (args []string) {
	for _, value := range values {
		if value != "" {
			args = append(args, name+"="+value)
		}
	}
	return args
}

// tokenDir is where client-go looks for the service-account token.
const tokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"

const (
	gatewayDir = "/var/run/parley/gateway"
	// GatewayTokenFile has a token with which a generation pod reads files from the gateway. It can change nothing there,
	// and do nothing at the API server: the gateway may be called without TLS.
	GatewayTokenFile = gatewayDir + "/token"
	// gatewayAudience is the audience of the gateway.
	gatewayAudience = "parley-gateway"
)

func volumes(s Settings) []corev1.Volume {
	vols := []corev1.Volume{
		{Name: "runtime", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{
			Medium: corev1.StorageMediumMemory, SizeLimit: new(resource.MustParse("16Mi")),
		}}},
		{Name: "token", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{
			Sources: []corev1.VolumeProjection{
				{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token", ExpirationSeconds: new(int64(3607))}},
				{ConfigMap: &corev1.ConfigMapProjection{
					LocalObjectReference: corev1.LocalObjectReference{Name: "kube-root-ca.crt"},
					Items:                []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}},
				}},
			},
		}}},
	}
	for i, secret := range secretsOf(s.Keys) {
		source := &corev1.SecretVolumeSource{
			SecretName: secret.name,
			// A missing Secret must not keep the pod from starting: it serves the namespace's other chats too, and the
			// generator says in the chat's condition which key is missing.
			Optional: new(true),
		}
		for _, key := range secret.keys {
			source.Items = append(source.Items, corev1.KeyToPath{Key: key, Path: key})
		}
		vols = append(vols, corev1.Volume{Name: keyVolume(i), VolumeSource: corev1.VolumeSource{Secret: source}})
	}
	if s.GatewayURL != "" {
		vols = append(vols, corev1.Volume{Name: "gateway", VolumeSource: corev1.VolumeSource{
			Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{{
				ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Audience: gatewayAudience,
					Path: path.Base(GatewayTokenFile), ExpirationSeconds: new(int64(3600))}}}}}})
	}
	if s.CABundle != nil {
		vols = append(vols, CAVolume("ca", s.CABundle))
	}
	return vols
}

// CAVolume is a volume with the certificates of a ConfigMap. Like a Secret, it is optional.
func CAVolume(name string, bundle *v1beta1.ConfigMapKeyReference) corev1.Volume {
	return corev1.Volume{Name: name, VolumeSource: corev1.VolumeSource{
		ConfigMap: &corev1.ConfigMapVolumeSource{
			LocalObjectReference: corev1.LocalObjectReference{Name: bundle.Name},
			Items:                []corev1.KeyToPath{{Key: bundle.Key, Path: path.Base(CAFile)}},
			Optional:             new(true),
		}}}
}

type secretKeys struct {
	name string
	keys []string
}

// secretsOf groups sorted keys by their Secret.
func secretsOf(keys []v1beta1.SecretKeyReference) []secretKeys {
	var secrets []secretKeys
	for _, key := range keys {
		if n := len(secrets); n > 0 && secrets[n-1].name == key.Name {
			secrets[n-1].keys = append(secrets[n-1].keys, key.Key)
			continue
		}
		secrets = append(secrets, secretKeys{name: key.Name, keys: []string{key.Key}})
	}
	return secrets
}

func keyVolume(i int) string { return fmt.Sprintf("key-%d", i) }

func fieldEnv(name, path string) corev1.EnvVar {
	return corev1.EnvVar{Name: name,
		ValueFrom: &corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: path}}}
}

// probe runs every period seconds. Its timeout allows for nodes that are short of CPU: an unready pod loses its
// attempts, and more pods do not help there. Crashes are noticed by other means.
func probe(path string, port, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port)}},
		PeriodSeconds:    period,
		TimeoutSeconds:   5,
		FailureThreshold: failures,
	}
}

// hostUsers is false if the pod gets its own user namespace, else unset: a kubelet starts no pod with this field for
// which its runtime cannot do that.
func hostUsers(s Settings) *bool {
	if s.UserNamespaces {
		return new(false)
	}
	return nil
}

// resources are requests that let many pods share a node, and limits that a healthy pod does not reach. CPU throttling
// delays every stream of the pod, so its limit is whole cores, although the pod mostly waits for the network. Ephemeral
// storage holds only logs, of which a kubelet keeps 50 MiB by default: the root is read-only, and volumes are in
// memory.
func resources(memory, memoryLimit, cpuLimit string) corev1.ResourceRequirements {
	return corev1.ResourceRequirements{
		Requests: corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse("20m"),
			corev1.ResourceMemory:           resource.MustParse(memory),
			corev1.ResourceEphemeralStorage: resource.MustParse("16Mi"),
		},
		Limits: corev1.ResourceList{
			corev1.ResourceCPU:              resource.MustParse(cpuLimit),
			corev1.ResourceMemory:           resource.MustParse(memoryLimit),
			corev1.ResourceEphemeralStorage: resource.MustParse("512Mi"),
		},
	}
}

func restricted() *corev1.SecurityContext {
	return &corev1.SecurityContext{
		AllowPrivilegeEscalation: new(false),
		ReadOnlyRootFilesystem:   new(true),
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
}

func labelsOf(s Settings) map[string]string {
	return map[string]string{
		"app.kubernetes.io/name": "parley", "app.kubernetes.io/component": ComponentGeneration,
		LabelComponent: ComponentGeneration, LabelTemplate: s.Hash(),
	}
}

func tracingEnv(s Settings) []corev1.EnvVar {
	env := make([]corev1.EnvVar, 0, len(s.Tracing))
	for _, v := range s.Tracing {
		// Dollar signs would refer to other variables.
		env = append(env, corev1.EnvVar{Name: v.Name, Value: strings.ReplaceAll(v.Value, "$", "$$")})
	}
	return env
}
