// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"errors"
	"fmt"
	"net/url"
	"strings"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/v1alpha1"
)

const (
	caDir = "/var/run/parley/ca"
	// CAFile holds the certificates of the authorities that a generation pod trusts in addition to those of its image.
	CAFile = caDir + "/ca.crt"
	// DefaultCAKey is the key of the ConfigMap with these certificates, unless another one is named.
	DefaultCAKey = "ca.crt"
)

// Proxy says which proxy calls go through. It is not in the environment of the pods: the API server, the relay and
// workspaces are never called through a proxy.
type Proxy struct {
	// HTTP and HTTPS are the URLs of the proxies for calls of http and https URLs; empty: none.
	HTTP, HTTPS string
	// Except lists hosts that are called without a proxy, separated by commas, as $NO_PROXY does.
	Except string
}

// Validate refuses what is no proxy, or shows a password to all who may read pods.
func (p Proxy) Validate() error {
	return errors.Join(validateProxy("--http-proxy or $HTTP_PROXY", p.HTTP),
		validateProxy("--https-proxy or $HTTPS_PROXY", p.HTTPS))
}

func validateProxy(name, value string) error {
	if value == "" {
		return nil
	}
	if !strings.Contains(value, "://") { // As usual in environments.
		value = "http://" + value
	}
	u, err := url.Parse(value)
	// The error and the value may hold a password.
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Hostname() == "" || strings.Trim(u.Path, "/") != "" {
		return fmt.Errorf("%s is no URL of a proxy: set one such as http://proxy.example.com:3128", name)
	}
	if u.User != nil {
		return fmt.Errorf("%s has a user, which all who may read generation pods would see: take it out, and name the "+
			"Secret with the credentials in proxy.secretRef of ChatModelConfigs", name)
	}
	return nil
}

func (p Proxy) args() []string {
	var args []string
	for _, flag := range []struct{ name, value string }{
		{"--http-proxy=", p.HTTP}, {"--https-proxy=", p.HTTPS}, {"--no-proxy=", p.Except},
	} {
		if flag.value != "" {
			args = append(args, flag.name+flag.value)
		}
	}
	return args
}

// ParseCABundle reads the name of a ConfigMap, or NAME/KEY; nil: there is none.
func ParseCABundle(value string) (*v1alpha1.ConfigMapKeyReference, error) {
	if value == "" {
		return nil, nil
	}
	name, key, named := strings.Cut(value, "/")
	if !named {
		key = DefaultCAKey
	}
	if !mountable(v1alpha1.SecretKeyReference{Name: name, Key: key}) {
		return nil, fmt.Errorf("%q is no ConfigMap: give its name, or NAME/KEY if the key is not %s", value, DefaultCAKey)
	}
	return &v1alpha1.ConfigMapKeyReference{Name: name, Key: key}, nil
}

// caSource mounts the certificates. Like a Secret, the ConfigMap must not keep the pod from starting: what needs no
// other authorities works without it.
func caSource(ref *v1alpha1.ConfigMapKeyReference) *corev1.ConfigMapVolumeSource {
	return &corev1.ConfigMapVolumeSource{
		LocalObjectReference: corev1.LocalObjectReference{Name: ref.Name},
		Items:                []corev1.KeyToPath{{Key: ref.Key, Path: "ca.crt"}},
		Optional:             new(true),
	}
}
