// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// proxied are settings of a cluster behind a proxy, with an authority of its own.
func proxied() Settings {
	s := settings()
	s.Proxy = Proxy{HTTP: "http://proxy.corp:3128", HTTPS: "http://proxy.corp:3129", Except: ".svc,10.0.0.0/8"}
	s.CABundle = &v1beta1.ConfigMapKeyReference{Name: "corp-ca", Key: "bundle.pem"}
	return s
}

// Security (an author of ChatModelConfigs): cannot have the API server called through a proxy. Also
// TestAPIServerIsCalledWithoutProxyAndCompression of internal/kube/apiclient.
func TestTheProxyIsNotInTheEnvironment(t *testing.T) {
	pod := Generation(proxied(), "p")
	for _, c := range pod.Spec.Containers {
		for _, variable := range c.Env {
			if strings.Contains(strings.ToLower(variable.Name), "proxy") {
				t.Errorf("%s has %s: its client of the API server would use it", c.Name, variable.Name)
			}
		}
	}
	want := []string{"--http-proxy=http://proxy.corp:3128", "--https-proxy=http://proxy.corp:3129",
		"--no-proxy=.svc,10.0.0.0/8", "--ca-file=/var/run/parley/ca/ca.crt"}
	check.Equal(t, "the generator's arguments are", want, pod.Spec.Containers[0].Args[2:])
}

func TestTheCABundleIsTheGeneratorsAlone(t *testing.T) {
	pod := Generation(proxied(), "p")
	mounts := func(c *corev1.Container) bool {
		return slices.ContainsFunc(c.VolumeMounts, func(m corev1.VolumeMount) bool {
			return m.Name == "ca" && m.MountPath+"/ca.crt" == CAFile && m.ReadOnly
		})
	}
	if !mounts(&pod.Spec.Containers[0]) || mounts(&pod.Spec.Containers[1]) {
		t.Errorf("the generator mounts %v, the relay %v", pod.Spec.Containers[0].VolumeMounts,
			pod.Spec.Containers[1].VolumeMounts)
	}
	volume := pod.Spec.Volumes[len(pod.Spec.Volumes)-1].ConfigMap
	if volume == nil || volume.Name != "corp-ca" || !*volume.Optional ||
		!slices.Equal(volume.Items, []corev1.KeyToPath{{Key: "bundle.pem", Path: "ca.crt"}}) {
		t.Errorf("the volume is %+v", volume)
	}
}

func TestPodsWithAnotherProxyAreOthers(t *testing.T) {
	for name, change := range map[string]func(*Settings){
		"no HTTPS proxy":    func(s *Settings) { s.Proxy.HTTPS = "" },
		"another HTTP one":  func(s *Settings) { s.Proxy.HTTP = "http://other:1" },
		"other exceptions":  func(s *Settings) { s.Proxy.Except = "" },
		"no CA bundle":      func(s *Settings) { s.CABundle = nil },
		"another CA bundle": func(s *Settings) { s.CABundle = &v1beta1.ConfigMapKeyReference{Name: "b", Key: "c"} },
	} {
		other := proxied()
		if change(&other); other.Hash() == proxied().Hash() {
			t.Errorf("%s: the hash did not change", name)
		}
	}
}

func TestAProxyThatCannotBeUsedIsRefused(t *testing.T) {
	const secret = "hunter2"
	for value, says := range map[string]string{
		"":                                      "",
		"http://proxy.corp:3128":                "",
		"https://proxy.corp:3129/":              "",
		"http://[fd12::1]:3128":                 "",
		"proxy.corp:3128":                       "",
		"jane:hunter2@proxy.corp":               "has a user",
		"proxy.corp:none":                       "no URL of a proxy: set one such as http://proxy.example.com:3128",
		"socks5://proxy.corp":                   "no URL of a proxy",
		"http://":                               "no URL of a proxy",
		"http://proxy/" + secret:                "no URL of a proxy",
		"http://a:" + secret + "%@b":            "no URL of a proxy",
		"http://jane:" + secret + "@proxy.corp": "has a user, which all who may read generation pods would see: take it out",
	} {
		for flag, p := range map[string]Proxy{"--http-proxy": {HTTP: value}, "--https-proxy": {HTTPS: value}} {
			err := p.Validate()
			if (err == nil) != (says == "") || err != nil &&
				(!strings.HasPrefix(err.Error(), flag) || !strings.Contains(err.Error(), says)) {
				t.Errorf("%s %s: %v", flag, value, err)
			}
			if err != nil && strings.Contains(err.Error(), secret) {
				t.Errorf("%s %s shows the password: %v", flag, value, err)
			}
		}
	}
}

func TestParseCABundleAcceptsConfigMapAndKey(t *testing.T) {
	for value, want := range map[string]v1beta1.ConfigMapKeyReference{
		"":                          {},
		"corp-ca":                   {Name: "corp-ca", Key: "ca.crt"},
		"trusted/ca-bundle.crt":     {Name: "trusted", Key: "ca-bundle.crt"},
		"a/b/c":                     {Name: "error"},
		"../x":                      {Name: "error"},
		"Corp":                      {Name: "error"},
		"corp/":                     {Name: "error"},
		"/ca.crt":                   {Name: "error"},
		"a/..":                      {Name: "error"},
		"corp-ca/ca.crt,other/ca.b": {Name: "error"},
	} {
		got, err := ParseCABundle(value)
		switch {
		case want.Name == "error":
			if err == nil || !strings.Contains(err.Error(), "give its name, or NAME/KEY") {
				t.Errorf("%s: %+v, %v", value, got, err)
			}
		case err != nil || (got == nil) != (value == "") || got != nil && *got != want:
			t.Errorf("%s: %+v, %v", value, got, err)
		}
	}
}

func TestSecretsOfProxiesAndAuthoritiesAreMounted(t *testing.T) {
	config := v1beta1.ChatModelConfig{Spec: v1beta1.ChatModelConfigSpec{
		APIKey: &v1beta1.APIKeySource{SecretKeyRef: key("openai", "key")},
		Proxy: &v1beta1.ModelProxy{URL: "http://proxy.corp:3128",
			SecretRef: &v1beta1.SecretReference{Name: "proxy"}},
		CABundleFrom: &v1beta1.CABundleSource{SecretKeyRef: new(key("corp-ca", "ca.crt"))},
	}}
	inConfigMap := v1beta1.ChatModelConfig{Spec: v1beta1.ChatModelConfigSpec{
		Proxy:        &v1beta1.ModelProxy{NoProxy: []string{"*"}},
		CABundleFrom: &v1beta1.CABundleSource{ConfigMapKeyRef: &v1beta1.ConfigMapKeyReference{Name: "c", Key: "k"}},
	}}
	want := []v1beta1.SecretKeyReference{key("corp-ca", "ca.crt"), key("openai", "key"), key("proxy", "password"),
		key("proxy", "username")}
	check.Equal(t, "got", want, KeysOf([]v1beta1.ChatModelConfig{config, inConfigMap}))
}
