// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"net/netip"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

func key(secret, key string) v1beta1.SecretKeyReference {
	return v1beta1.SecretKeyReference{Name: secret, Key: key}
}

func settings() Settings {
	return Settings{
		Namespace: "demo", Image: "parley:1", Issuer: "https://issuer", GatewaySubjects: []string{"gateway"},
		Keys: []v1beta1.SecretKeyReference{key("a", "one"), key("a", "two"), key("b", "one")},
	}
}

func TestTheHashNamesTheSettings(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"image":    func(s *Settings) { s.Image = "parley:2" },
		"issuer":   func(s *Settings) { s.Issuer = "other" },
		"gateways": func(s *Settings) { s.GatewaySubjects = nil },
		"hosts":    func(s *Settings) { s.FileHosts = []string{"a"} },
		"files":    func(s *Settings) { s.GatewayURL = "http://gateway" },
		"keys":     func(s *Settings) { s.Keys = s.Keys[:1] },
		"users":    func(s *Settings) { s.UserNamespaces = true },
		"advice":   func(s *Settings) { s.AdvisorUses = new(int32(0)) },
	} {
		t.Run(name, func(t *testing.T) {
			other := settings()
			change(&other)
			if other.Hash() == settings().Hash() {
				t.Error("the hash did not change")
			}
		})
	}
	if first, second := settings().Hash(), settings().Hash(); first != second || Generation(settings(), "p").
		Labels[LabelTemplate] != settings().Hash() {
		t.Error("the same settings have two hashes, or the pod does not carry its own")
	}
}

func TestTheBoundOfTheAdvisorReachesTheGenerator(t *testing.T) {
	for want, uses := range map[string]*int32{
		"": nil, "--advisor-max-uses=0": new(int32(0)), "--advisor-max-uses=2": new(int32(2)),
	} {
		s := settings()
		s.AdvisorUses = uses
		args := strings.Join(Generation(s, "p").Spec.Containers[0].Args, " ")
		if !strings.Contains(args, want) || strings.Contains(args, "--advisor-max-uses") != (want != "") {
			t.Errorf("want %q, the arguments are %s", want, args)
		}
	}
}

func TestKeysAreCollectedOnceAndInOrder(t *testing.T) {
	config := func(ref *v1beta1.SecretKeyReference) v1beta1.ChatModelConfig {
		c := v1beta1.ChatModelConfig{}
		if ref != nil {
			c.Spec.APIKey = &v1beta1.APIKeySource{SecretKeyRef: *ref}
		}
		return c
	}
	b, a := key("b", "k"), key("a", "k")
	got := KeysOf([]v1beta1.ChatModelConfig{config(&b), config(nil), config(&a), config(&b)})
	check.Equal(t, "got", []v1beta1.SecretKeyReference{a, b}, got)
}

func TestGeneratorReadsStoredFilesWithTokenForGateway(t *testing.T) {
	s := settings()
	s.GatewayURL = "http://gateway"
	pod := Generation(s, "p")
	generator := pod.Spec.Containers[0]
	token := pod.Spec.Volumes[len(pod.Spec.Volumes)-1]
	if !slices.Contains(generator.Args, "--gateway-url=http://gateway") || token.Name != "gateway" ||
		token.Projected.Sources[0].ServiceAccountToken.Audience != gatewayAudience {
		t.Errorf("the arguments are %s, the volume %v", generator.Args, token)
	}
	for _, container := range pod.Spec.Containers {
		mounted := slices.ContainsFunc(container.VolumeMounts, func(m corev1.VolumeMount) bool { return m.Name == "gateway" })
		check.Equal(t, container.Name, container.Name == "generator", mounted)
	}
}

func TestGeneratorReceivesFileHostArguments(t *testing.T) {
	s := settings()
	s.FileHosts = []string{"a", "*.b"}
	if args := Generation(s, "p").Spec.Containers[0].Args; !slices.Equal(args[2:],
		[]string{"--file-host=a", "--file-host=*.b"}) {
		t.Errorf("got %q", args)
	}
}

func TestKeysAreOptionalAndMountedOnlyIntoGenerator(t *testing.T) {
	pod := Generation(settings(), "p")
	mounted := func(c *corev1.Container) (paths []string) {
		for _, m := range c.VolumeMounts {
			if strings.HasPrefix(m.MountPath, KeysDir) {
				paths = append(paths, m.MountPath)
			}
		}
		return paths
	}
	check.Equal(t, "the generator mounts", []string{KeysDir + "/a", KeysDir + "/b"}, mounted(&pod.Spec.Containers[0]))
	check.Equal(t, "the relay mounts", nil, mounted(&pod.Spec.Containers[1]))
	for _, v := range pod.Spec.Volumes {
		if v.Secret != nil && (v.Secret.Optional == nil || !*v.Secret.Optional || len(v.Secret.Items) == 0) {
			t.Errorf("volume %s mounts all of its Secret, or keeps the pod from starting without it", v.Name)
		}
	}
}

// TestThePodIsRestricted holds the rules of the Pod Security level "restricted"; that the API server agrees, the
// end-to-end tests show, whose namespaces enforce it.
func TestThePodIsRestricted(t *testing.T) {
	pod := Generation(settings(), "p")
	spec := pod.Spec
	if !*spec.SecurityContext.RunAsNonRoot ||
		spec.SecurityContext.SeccompProfile.Type != corev1.SeccompProfileTypeRuntimeDefault ||
		*spec.AutomountServiceAccountToken {
		t.Errorf("the pod's security context is %+v", spec.SecurityContext)
	}
	for _, c := range spec.Containers {
		s := c.SecurityContext
		if *s.AllowPrivilegeEscalation || !*s.ReadOnlyRootFilesystem ||
			!slices.Equal(s.Capabilities.Drop, []corev1.Capability{"ALL"}) {
			t.Errorf("the security context of %s is %+v", c.Name, s)
		}
		for _, limit := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory,
			corev1.ResourceEphemeralStorage} {
			if _, ok := c.Resources.Limits[limit]; !ok {
				t.Errorf("%s has no limit of %s", c.Name, limit)
			}
		}
		if c.ReadinessProbe == nil {
			t.Errorf("%s lacks a probe", c.Name)
		}
	}
	if spec.ActiveDeadlineSeconds != nil {
		t.Errorf("the pod ends after %d s, and with it calls that wait for hours", *spec.ActiveDeadlineSeconds)
	}
	if len(spec.InitContainers) > 0 {
		t.Error("the generator starts when the kubelet looks at the pod for the second time, up to a second later")
	}
	if spec.Containers[0].StartupProbe == nil {
		t.Error("the generator is asked whether it is alive before it has started")
	}
}

func TestGenerationPodHasMinimalPermissions(t *testing.T) {
	for _, rule := range Role("demo").Rules {
		if slices.Equal(rule.Resources, []string{"configmaps"}) && slices.Equal(rule.Verbs, []string{"get"}) &&
			slices.Equal(rule.APIGroups, []string{""}) {
			continue
		}
		// Among the templates of workspaces a model may choose.
		if slices.Equal(rule.Resources, []string{"podtemplates"}) && slices.Equal(rule.Verbs, []string{"list"}) &&
			slices.Equal(rule.APIGroups, []string{""}) {
			continue
		}
		// The policy parley-generation-tokens holds a pod to tokens for one workspace, bound to the pod.
		if slices.Equal(rule.Resources, []string{"serviceaccounts/token"}) && slices.Equal(rule.Verbs, []string{"create"}) &&
			slices.Equal(rule.ResourceNames, []string{ServiceAccount}) {
			continue
		}
		check.Equal(t, "a rule is about", []string{"parley.dev"}, rule.APIGroups)
		for _, resource := range rule.Resources {
			for _, verb := range rule.Verbs {
				read := slices.Contains([]string{"get", "list", "watch"}, verb)
				record := resource == "chatdebugsteps" && slices.Contains([]string{"get", "create", "update"}, verb)
				if !record && (resource == "chatdebugsteps" || !read && (verb != "create" || resource != "chatmessages")) {
					t.Errorf("a pod may %s %s", verb, resource)
				}
			}
		}
	}
}

func TestANameThatIsNoneStopsNoPod(t *testing.T) {
	var configs []v1beta1.ChatModelConfig
	for _, ref := range []v1beta1.SecretKeyReference{
		{Name: "good", Key: "api-key"}, {Name: "good", Key: ".."}, {Name: "good", Key: "a/b"}, {Name: "good", Key: "..x"},
		{Name: "../../secrets/kubernetes.io/serviceaccount", Key: "token"}, {Name: "Upper", Key: "k"}, {Name: "", Key: "k"},
		{Name: "good", Key: ""},
	} {
		configs = append(configs,
			v1beta1.ChatModelConfig{Spec: v1beta1.ChatModelConfigSpec{APIKey: &v1beta1.APIKeySource{SecretKeyRef: ref}}})
	}
	if keys := KeysOf(configs); len(keys) != 1 || keys[0] != (v1beta1.SecretKeyReference{Name: "good", Key: "api-key"}) {
		t.Errorf("mounted are %+v", keys)
	}
}

func TestRelayMountsNoPodTokenAndNoKeys(t *testing.T) {
	pod := Generation(settings(), "p")
	relay := pod.Spec.Containers[1]
	if len(relay.VolumeMounts) != 1 || relay.VolumeMounts[0].Name != "runtime" {
		t.Errorf("the relay mounts %+v", relay.VolumeMounts)
	}
	for _, name := range []string{"POD_NAMESPACE", "POD_UID"} {
		if !slices.ContainsFunc(relay.Env,
			func(e corev1.EnvVar) bool { return e.Name == name && e.ValueFrom.FieldRef != nil }) {
			t.Errorf("the relay does not know %s, for which tokens must be meant", name)
		}
	}
}

func TestPodUsesUserNamespaceWhereSupported(t *testing.T) {
	s := settings()
	if users := Generation(s, "p").Spec.HostUsers; users != nil {
		t.Errorf("hostUsers is %v", *users)
	}
	s.UserNamespaces = true
	if users := Generation(s, "p").Spec.HostUsers; users == nil || *users {
		t.Error("hostUsers is not false")
	}
}

// reaches reports whether the egress rules let a pod connect to the port at an address outside of the cluster.
func reaches(address string, port int32) bool {
	for _, rule := range NetworkPolicy("demo", "parley-system").Spec.Egress {
		ports := len(rule.Ports) == 0
		for _, p := range rule.Ports {
			ports = ports || p.Port.IntVal == port
		}
		peers := len(rule.To) == 0
		for _, peer := range rule.To {
			peers = peers || peer.IPBlock != nil && within(address, peer.IPBlock.CIDR) &&
				!slices.ContainsFunc(peer.IPBlock.Except, func(except string) bool { return within(address, except) })
		}
		if ports && peers {
			return true
		}
	}
	return false
}

func within(address, cidr string) bool {
	return netip.MustParsePrefix(cidr).Contains(netip.MustParseAddr(address))
}

// Security (an author of ChatModelConfigs): cannot have generation pods call the metadata service of a cloud, where the
// cluster enforces NetworkPolicies. Also TestNetworkPoliciesAllowOnlyDocumentedTraffic of test/e2e.
func TestNoMetadataServiceOfACloudIsReached(t *testing.T) {
	for address, port := range map[string]int32{"169.254.169.254": 80, "169.254.170.23": 80, "169.254.170.2": 80,
		"fd00:ec2::254": 80, "fd00:ec2::23": 80, "fe80::a9fe:a9fe": 80,
		"100.100.100.200": 80, "168.63.129.16": 80, "192.0.0.192": 80, "fd20:ce::254": 80} {
		if reaches(address, port) {
			t.Errorf("%s is reached", address)
		}
	}
	for address, port := range map[string]int32{
		"203.0.113.7": 443, "10.1.2.3": 11434, "2001:db8::1": 8000, "fd12:3456::1": 80, "192.168.0.10": 6443,
		"169.254.20.10": 53, "169.253.255.255": 80,
		"168.63.129.16": 53, "100.100.100.201": 80, "fd20:ce::255": 80,
	} {
		if !reaches(address, port) {
			t.Errorf("%s, port %d is not reached", address, port)
		}
	}
}
