// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"parley.dev/parley/api/v1beta1"
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
	// GatewayURL is where generation pods read stored files; empty: there are none.
	GatewayURL string `json:",omitempty"`
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
	CABundle *v1beta1.ConfigMapKeyReference `json:",omitempty"`
	// Keys are the keys of Secrets to mount: of models and their proxies, and of MCP servers.
	Keys []v1beta1.SecretKeyReference
	// UserNamespaces is true where the nodes can run pods whose users are none of the node's.
	UserNamespaces bool `json:",omitempty"`
	// Profiling has both programs serve profiles of themselves.
	Profiling bool `json:",omitempty"`
	// Options are what the administrator adds to the pod.
	Options GenerationOptions `json:",omitzero"`
	// Tracing says how the generator traces; nil: not at all.
	Tracing []Variable `json:",omitempty"`
}

// Hash names the settings: two pods with the same hash can do the same work.
func (s Settings) Hash() string {
	sum := sha256.New()
	_ = json.NewEncoder(sum).Encode(s) // It always encodes.
	return hex.EncodeToString(sum.Sum(nil))[:10]
}

// Variable is an environment variable of the generator.
type Variable struct {
	Name, Value string
}

// handedOn are the OTEL_* variables that generation pods get, in addition to those that begin with handedOnPrefixes.
// Those with headers, keys and certificates are not among them: a Pod shows its environment to whoever may read Pods.
var handedOn = []string{
	"OTEL_EXPORTER_OTLP_COMPRESSION", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_INSECURE",
	"OTEL_EXPORTER_OTLP_PROTOCOL",
	"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
	"OTEL_EXPORTER_OTLP_TRACES_INSECURE", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
	"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_SDK_DISABLED",
	"OTEL_TRACES_EXPORTER",
	"OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG",
}

var handedOnPrefixes = []string{"OTEL_ATTRIBUTE_", "OTEL_BSP_", "OTEL_SPAN_"}

// Tracing picks from an environment, NAME=value each, what generation pods need to trace as this process does, sorted.
func Tracing(environ []string) []Variable {
	var picked []Variable
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if value != "" && (slices.Contains(handedOn, name) || slices.ContainsFunc(handedOnPrefixes, begins)) {
			picked = append(picked, Variable{name, value})
		}
	}
	slices.SortFunc(picked, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return picked
}

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

// ParseCABundle reads the name of a ConfigMap, or NAME/KEY; nil: there is none.
func ParseCABundle(value string) (*v1beta1.ConfigMapKeyReference, error) {
	if value == "" {
		return nil, nil
	}
	name, key, named := strings.Cut(value, "/")
	if !named {
		key = DefaultCAKey
	}
	if !mountable(v1beta1.SecretKeyReference{Name: name, Key: key}) {
		return nil, fmt.Errorf("%q is no ConfigMap: give its name, or NAME/KEY if the key is not %s", value, DefaultCAKey)
	}
	return &v1beta1.ConfigMapKeyReference{Name: name, Key: key}, nil
}
