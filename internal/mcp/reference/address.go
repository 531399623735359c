// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"fmt"
	"net/url"
	"regexp"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
)

const (
	// maxURL is the limit of mcpServers[].url, maxMessage that of a message.
	maxURL, maxMessage = 2048, 200
)

// callable are urls as mcpServers[].url takes them.
var callable = regexp.MustCompile(`^https?://[A-Za-z0-9.:\[\]-]+([/?][!-"$-~]*)?$`)

// Of is the address of an entry's server, from the object that the entry refers to.
func Of(entry *v1alpha1.MCPServer, from *unstructured.Unstructured) v1alpha1.MCPServerAddress {
	known, o := find(schema.GroupKind{Group: entry.ServerRef.Group, Kind: entry.ServerRef.Kind}), object{from}
	if known == nil {
		return Without(entry, v1alpha1.MCPReferenceNotFound, "Parley does not know its kind")
	}
	if waits := known.waitsFor(o); waits != "" {
		return Without(entry, v1alpha1.MCPNotReady, waits)
	}
	address, problem := known.url(o, entry)
	address, _, _ = strings.Cut(address, "#") // ToolHive's urls of SSE have a fragment, which is not sent.
	switch {
	case problem != "":
		return Without(entry, v1alpha1.MCPAddressInvalid, problem)
	case address == "":
		return Without(entry, v1alpha1.MCPNotReady, "it says no address yet")
	case !isCallable(address):
		return Without(entry, v1alpha1.MCPAddressInvalid, "its address is no url of http or https without user and password")
	}
	found := v1alpha1.MCPServerAddress{Name: entry.Name, Ref: *entry.ServerRef, URL: address}
	if known.sse != nil && known.sse(o) {
		found.Transport = v1alpha1.MCPSSE
	}
	return found
}

// waitsFor is why the server of the object is not ready; empty if it is.
func (k *kind) waitsFor(o object) string {
	if !o.GetDeletionTimestamp().IsZero() {
		return "it is being deleted"
	}
	if k.waiting != nil {
		if waits := k.waiting(o); waits != "" {
			return waits
		}
	}
	if observed := o.number("status", "observedGeneration"); observed > 0 && observed < o.GetGeneration() {
		return "its status is of an earlier generation than its spec"
	}
	return ""
}

// Without is the result for an entry whose server has no address, because of a problem of the object.
func Without(entry *v1alpha1.MCPServer, reason v1alpha1.MCPServerReason, words string) v1alpha1.MCPServerAddress {
	ref := entry.ServerRef
	return v1alpha1.MCPServerAddress{Name: entry.Name, Ref: *ref, Reason: reason,
		Message: clip.Ellipsis(fmt.Sprintf("%s %s: %s", ref.Kind, ref.Name, words), maxMessage)}
}

func isCallable(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && len(address) <= maxURL && callable.MatchString(address) && parsed.Host != "" && parsed.User == nil
}

// field reads the url from a field.
func field(path ...string) func(object, *v1alpha1.MCPServer) (string, string) {
	return func(o object, _ *v1alpha1.MCPServer) (string, string) { return o.text(path...), "" }
}

// withPath adds the path to a url without one.
func withPath(path string, next func(object, *v1alpha1.MCPServer) (string, string)) func(object,
	*v1alpha1.MCPServer) (string, string) {
	return func(o object, entry *v1alpha1.MCPServer) (string, string) {
		address, problem := next(o, entry)
		if parsed, err := url.Parse(address); err == nil && address != "" && strings.Trim(parsed.Path, "/") == "" {
			parsed.Path = path
			address = parsed.String()
		}
		return address, problem
	}
}

// serviceURL is the address of a Service within the cluster.
func serviceURL(o object, entry *v1alpha1.MCPServer) (address, problem string) {
	if o.text("spec", "type") == "ExternalName" {
		return "", "it is of type ExternalName: name the host that it stands for in url"
	}
	ports := o.list("spec", "ports")
	chosen := int64(0)
	if entry.ServerRef.Port != nil {
		chosen = int64(*entry.ServerRef.Port)
	} else if len(ports) != 1 {
		return "", fmt.Sprintf("it has %d ports: set serverRef.port", len(ports))
	}
	for _, port := range ports {
		if n := port.number("port"); chosen == 0 || n == chosen {
			scheme := "http"
			if port.text("appProtocol") == "https" {
				scheme = "https"
			}
			return inCluster(scheme, o, n, pathOf(entry)), ""
		}
	}
	return "", fmt.Sprintf("it has no port %d", chosen)
}

// pathOf is the path of the endpoint at a Service.
func pathOf(entry *v1alpha1.MCPServer) string {
	switch {
	case entry.ServerRef.Path != "":
		return entry.ServerRef.Path
	case entry.Transport == v1alpha1.MCPSSE:
		return "/sse"
	}
	return "/mcp"
}

// kmcpURL is the Service of the MCPServer's name that kmcp creates. Its gateway serves /mcp, whatever path the server has.
func kmcpURL(o object, _ *v1alpha1.MCPServer) (address, problem string) {
	port := o.number("spec", "deployment", "port")
	if port <= 0 {
		return "", "it has no spec.deployment.port"
	}
	return inCluster("http", o, port, "/mcp"), ""
}

// usesSSE reports whether a proxy of ToolHive serves SSE. proxyMode counts for servers of standard input and output only.
func usesSSE(o object) bool {
	transport := o.text("spec", "transport")
	return transport == "sse" || transport == "stdio" && o.text("spec", "proxyMode") == "sse"
}

// inCluster is the address of the Service that has the object's name and namespace.
func inCluster(scheme string, o object, port int64, path string) string {
	return fmt.Sprintf("%s://%s.%s.svc:%d%s", scheme, o.GetName(), o.GetNamespace(), port, path)
}
