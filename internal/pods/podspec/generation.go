// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"

	"parley.dev/parley/api/v1alpha1"
)

// Settings is what a namespace's generation pods are built from.
type Settings struct {
	// Namespace that the pod serves.
	Namespace string
	// Image that holds the programs generator and relay.
	Image string
	// Issuer of the cluster's service-account tokens, which the relay verifies.
	Issuer string
	// GatewaySubjects may read from the relay: user names such as system:serviceaccount:parley-system:parley-gateway.
	GatewaySubjects []string
	// Capacity is how many chats a pod serves at once; 0: the generator's own default.
	Capacity int `json:",omitempty"`
	// NoRecordings keeps generation pods from recording model calls.
	NoRecordings bool `json:",omitempty"`
	// FileHosts are the hosts that generation pods may fetch files from.
	FileHosts []string
	// ModelHosts are the hosts that generation pods may call models at; none: all.
	ModelHosts []string `json:",omitempty"`
	// MCPHosts are the hosts that generation pods may call MCP servers at; none: all.
	MCPHosts []string `json:",omitempty"`
	// AllowLoopback lets generation pods call models and MCP servers at their own loopback addresses.
	AllowLoopback bool `json:",omitempty"`
	// AdvisorUses is how often a turn may ask the advisor at most; nil: as often as its chat says.
	AdvisorUses *int32 `json:",omitempty"`
	// Proxy is what generation pods call models, MCP servers and hosts of files through.
	Proxy Proxy `json:",omitzero"`
	// CABundle is a ConfigMap with certificates of authorities that they trust for that, in addition to those of the
	// image; nil: none. It is optional in each namespace.
	CABundle *v1alpha1.ConfigMapKeyReference `json:",omitempty"`
	// Keys are the keys of Secrets to mount: of models and their proxies, and of MCP servers.
	Keys []v1alpha1.SecretKeyReference
	// UserNamespaces is true where the nodes can run pods whose users are none of the node's.
	UserNamespaces bool `json:",omitempty"`
	// Profiling has both programs serve profiles of themselves.
	Profiling bool `json:",omitempty"`
	// Labels are further labels of the pod.
	Labels map[string]string `json:",omitempty"`
	// Tracing says how the generator traces; nil: not at all.
	Tracing []Variable `json:",omitempty"`
}

// mountable reports whether the key can be mounted: both names are such as the API server takes for a volume. One that
// it refuses would keep every pod of the namespace from being created,
// and one that is a path would keep them from starting.
func mountable(key v1alpha1.SecretKeyReference) bool {
	return len(validation.IsDNS1123Subdomain(key.Name)) == 0 && len(validation.IsConfigMapKey(key.Key)) == 0
}

// KeysOf collects the keys of Secrets that the ChatModelConfigs name and that can be mounted, sorted and without
// repetition: API keys, CA bundles, and credentials of proxies.
func KeysOf(configs []v1alpha1.ChatModelConfig) []v1alpha1.SecretKeyReference {
	var keys []v1alpha1.SecretKeyReference
	for i := range configs {
		for _, key := range configs[i].Spec.Secrets() {
			if mountable(key) {
				keys = append(keys, key)
			}
		}
	}
	return JoinKeys(keys)
}

// Hash names the settings: two pods with the same hash can do the same work.
func (s Settings) Hash() string {
	sum := sha256.New()
	// A Settings holds strings, numbers and flags only, which always encode.
	_ = json.NewEncoder(sum).Encode(s)
	return hex.EncodeToString(sum.Sum(nil))[:10]
}

// Generation builds a generation pod with the given name.
func Generation(s Settings, name string) *corev1.Pod {
	return &corev1.Pod{
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
				RunAsNonRoot:   new(true),
				RunAsUser:      new(int64(65532)),
				RunAsGroup:     new(int64(65532)),
				SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
			},
			Containers: []corev1.Container{generatorContainer(s), relayContainer(s)},
			Volumes:    volumes(s),
		},
	}
}

// relayName is the name of the relay's container.
const relayName = "relay"

// relayContainer outlives the generator's crashes, and ends after it. It listens on the network, and has neither the
// pod's token nor any key of a model. It is no native sidecar: a kubelet starts what follows such a one only when it
// next looks at the pod, up to a second later. So the generator waits until the relay listens, and the relay, when the
// pod is removed, until the generator has ended.
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
	args = append(args, profilingArgs(s)...)
	for _, subject := range s.GatewaySubjects {
		args = append(args, "--allow-subject="+subject)
	}
	return corev1.Container{
		Name:    relayName,
		Image:   s.Image,
		Command: []string{"/relay"},
		Args:    args,
		Ports: []corev1.ContainerPort{{Name: "relay", ContainerPort: RelayPort},
			{Name: "relay-metrics", ContainerPort: RelayMetricsPort}},
		ReadinessProbe:  delayed(probe("/readyz", RelayPort, 10, 3)),
		Resources:       resources("32Mi", "384Mi", "1"),
		SecurityContext: restricted(),
		Env: []corev1.EnvVar{
			fieldEnv("POD_NAMESPACE", "metadata.namespace"),
			fieldEnv("POD_UID", "metadata.uid"),
			{Name: "GOMEMLIMIT", Value: "340MiB"},
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
			{Name: "GOMEMLIMIT", Value: "900MiB"},
		}, tracingEnv(s)...),
		Ports: []corev1.ContainerPort{{Name: "health", ContainerPort: HealthPort},
			{Name: "metrics", ContainerPort: MetricsPort}},
		StartupProbe:    probe("/readyz", HealthPort, 1, 60),
		ReadinessProbe:  probe("/readyz", HealthPort, 10, 3),
		LivenessProbe:   probe("/healthz", HealthPort, 10, 6),
		Resources:       resources("64Mi", "1Gi", "2"),
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
	args = append(args, profilingArgs(s)...)
	for _, host := range s.FileHosts {
		args = append(args, "--file-host="+host)
	}
	for _, host := range s.ModelHosts {
		args = append(args, "--model-host="+host)
	}
	for _, host := range s.MCPHosts {
		args = append(args, "--mcp-host="+host)
	}
	if s.AllowLoopback {
		args = append(args, "--allow-loopback")
	}
	args = append(args, s.Proxy.args()...)
	if s.CABundle != nil {
		args = append(args, "--ca-file="+CAFile)
	}
	if s.AdvisorUses != nil {
		args = append(args, "--advisor-max-uses="+strconv.Itoa(int(*s.AdvisorUses)))
	}
	return args
}

// tokenDir is where client-go looks for the service-account token.
const tokenDir = "/var/run/secrets/kubernetes.io/serviceaccount"

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
	if s.CABundle != nil {
		vols = append(vols, corev1.Volume{Name: "ca", VolumeSource: corev1.VolumeSource{
			ConfigMap: caSource(s.CABundle)}})
	}
	return vols
}

type secretKeys struct {
	name string
	keys []string
}

// secretsOf groups sorted keys by their Secret.
func secretsOf(keys []v1alpha1.SecretKeyReference) []secretKeys {
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

// probe asks every period seconds. Its patience is for nodes that are short of CPU: a pod that is called unready there
// would lose its attempts for nothing, and more pods would not help. A crash is noticed by other means.
func probe(path string, port, period, failures int32) *corev1.Probe {
	return &corev1.Probe{
		ProbeHandler:     corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Path: path, Port: intstr.FromInt32(port)}},
		PeriodSeconds:    period,
		TimeoutSeconds:   5,
		FailureThreshold: failures,
	}
}

// delayed asks for the first time after a second, when what is asked listens: the next time is a whole period later.
func delayed(p *corev1.Probe) *corev1.Probe {
	p.InitialDelaySeconds = 1
	return p
}

// hostUsers is false where the pod gets users of its own. It is left out otherwise: a kubelet does not start a pod for
// which its runtime cannot do that.
func hostUsers(s Settings) *bool {
	if s.UserNamespaces {
		return new(false)
	}
	return nil
}

// resources are requests that let many pods share a node, and limits that a pod which works as it should does not meet.
// A limit of CPU that is met delays every stream of the pod: it is whole cores, for a pod that mostly waits for the
// network, so that it stops only what has run wild. Ephemeral storage is logs alone, since the root is read-only and
// the volumes are in memory; a kubelet keeps 50 MiB of a container's by default.
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
