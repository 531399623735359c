// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

const (
	// ProxyUsernameKey and ProxyPasswordKey are the keys of the Secret that ModelProxy.secretRef names, as Secrets of the
	// type kubernetes.io/basic-auth have them.
	ProxyUsernameKey = "username"
	// ProxyPasswordKey holds the password.
	ProxyPasswordKey = "password"
)

// ModelProxy is the HTTP proxy that the calls of a model go through.
// +kubebuilder:validation:XValidation:rule="has(self.url) || has(self.noProxy)",message="set url, noProxy or both"
// +kubebuilder:validation:XValidation:rule="!has(self.secretRef) || has(self.url)",message="secretRef is for the proxy at url: set url"
type ModelProxy struct {
	// url of the proxy, such as http://proxy.example.com:3128. It replaces the manager's --https-proxy, --http-proxy and
	// --no-proxy. Where the manager has --model-hosts, they must name the proxy, too.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches(r'^https?://([A-Za-z0-9.-]+|\\[[0-9A-Fa-f:.]+\\])(:[0-9]{1,5})?/?$')",message="url begins with http:// or https:// and a host, and has no user and no path, such as http://proxy.example.com:3128; a user and a password belong into the Secret of secretRef"
	// +optional
	URL string `json:"url,omitempty"`

	// secretRef names the Secret with the user and the password for the proxy, in the keys username and password, such as
	// one of type kubernetes.io/basic-auth. It is mounted into generation pods. Whoever writes the ChatModelConfig must be
	// allowed to get the Secret.
	// +optional
	SecretRef *SecretReference `json:"secretRef,omitempty"`

	// noProxy lists hosts that are called without a proxy: a name with all below it (example.com), only those below it
	// (.example.com), an address, a range of addresses (10.0.0.0/8), or * for all. A port may follow a name or an address.
	// Without url, the manager's --no-proxy counts as well.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=32
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +kubebuilder:validation:items:XValidation:rule="self.matches(r'^[A-Za-z0-9._:/*\\[\\]-]+$')",message="an entry of noProxy is a host, such as ollama.models, .svc or 10.0.0.0/8"
	// +listType=set
	// +optional
	NoProxy []string `json:"noProxy,omitempty"`
}

// CABundleSource is where the certificates of authorities are: PEM, one after the other.
// +kubebuilder:validation:XValidation:rule="has(self.configMapKeyRef) != has(self.secretKeyRef)",message="set exactly one of configMapKeyRef and secretKeyRef"
type CABundleSource struct {
	// configMapKeyRef names the key of a ConfigMap. It is read for each call. Whoever writes the entry must be allowed to
	// get the ConfigMap.
	// +optional
	ConfigMapKeyRef *ConfigMapKeyReference `json:"configMapKeyRef,omitempty"`

	// secretKeyRef names the key of a Secret, such as the ca.crt of one of type kubernetes.io/tls. It is mounted into
	// generation pods. Whoever writes the entry must be allowed to get the Secret.
	// +optional
	SecretKeyRef *SecretKeyReference `json:"secretKeyRef,omitempty"`
}

// Credentials are the keys of the Secret with the user and the password for the proxy; nil if there is none.
func (p *ModelProxy) Credentials() []SecretKeyReference {
	if p == nil || p.SecretRef == nil {
		return nil
	}
	return []SecretKeyReference{{Name: p.SecretRef.Name, Key: ProxyUsernameKey},
		{Name: p.SecretRef.Name, Key: ProxyPasswordKey}}
}

// Secrets are the keys of Secrets that the calls need.
func (s *ChatModelConfigSpec) Secrets() []SecretKeyReference {
	keys := s.Proxy.Credentials()
	if s.APIKey != nil {
		keys = append(keys, s.APIKey.SecretKeyRef)
	}
	if s.CABundleFrom != nil && s.CABundleFrom.SecretKeyRef != nil {
		keys = append(keys, *s.CABundleFrom.SecretKeyRef)
	}
	return keys
}
