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
	// maxURL is how many bytes a url has at most, as in mcpServers[].url.
	maxURL = 2048
	// maxMessage is how many bytes are said of what is wrong: 200.
	maxMessage = 200
)

// callable are urls as mcpServers[].url takes them.
var callable = regexp.MustCompile(`^https?://[A-Za-z0-9.:\[\]-]+([/?][!-"$-~]*)?$`)

// Of is where the server of an entry is, as the object says that the entry refers to.
func Of(entry *v1alpha1.MCPServer, from *unstructured.Unstructured) v1alpha1.MCPServerAddress {
	known, o := find(kindOf(entry.ServerRef)), object{from}
	if known == nil {
		return Without(entry, v1alpha1.MCPReferenceNotFound, "Parley does not know its kind")
	}
	if waits := known.waitsFor(o); waits != "" {
		return Without(entry, v1alpha1.MCPNotReady, waits)
	}
	said, problem := known.url(o, entry)
	said, _, _ = strings.Cut(said, "#") // ToolHive's urls of SSE have a fragment, which is not sent.
	switch {
	case problem != "":
		return Without(entry, v1alpha1.MCPAddressInvalid, problem)
	case said == "":
		return Without(entry, v1alpha1.MCPNotReady, "it says no address yet")
	case !isCallable(said):
		return Without(entry, v1alpha1.MCPAddressInvalid, "its address is no url of http or https without user and password")
	}
	found := v1alpha1.MCPServerAddress{Name: entry.Name, Ref: *entry.ServerRef, URL: said}
	if known.sse != nil && known.sse(o) {
		found.Transport = v1alpha1.MCPSSE
	}
	return found
}

// waitsFor is what the object waits for until its server is ready; empty if it is.
func (k *kind) waitsFor(o object) string {
	if !o.GetDeletionTimestamp().IsZero() {
		return "it is being deleted"
	}
	if waits := k.waiting(o); waits != "" {
		return waits
	}
	if o.outdated() {
		return "its status is of an earlier generation than its spec"
	}
	return ""
}

// Without is an entry whose server's address cannot be told. The words say why of the object.
func Without(entry *v1alpha1.MCPServer, reason v1alpha1.MCPServerReason, words string) v1alpha1.MCPServerAddress {
	ref := entry.ServerRef
	return v1alpha1.MCPServerAddress{Name: entry.Name, Ref: *ref, Reason: reason,
		Message: clip.Ellipsis(fmt.Sprintf("%s %s: %s", ref.Kind, ref.Name, words), maxMessage)}
}

func kindOf(ref *v1alpha1.MCPServerReference) schema.GroupKind {
	return schema.GroupKind{Group: ref.Group, Kind: ref.Kind}
}

func isCallable(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && len(address) <= maxURL && callable.MatchString(address) && parsed.Host != "" && parsed.User == nil
}

// at is a url that a field holds.
func at(path ...string) func(object, *v1alpha1.MCPServer) (string, string) {
	return func(o object, _ *v1alpha1.MCPServer) (string, string) { return o.text(path...), "" }
}

// below puts the path behind a url that has none.
func below(path string, next func(object, *v1alpha1.MCPServer) (string, string)) func(object,
	*v1alpha1.MCPServer) (string, string) {
	return func(o object, entry *v1alpha1.MCPServer) (string, string) {
		said, problem := next(o, entry)
		if parsed, err := url.Parse(said); err == nil && said != "" && strings.Trim(parsed.Path, "/") == "" {
			parsed.Path = path
			said = parsed.String()
		}
		return said, problem
	}
}

// ofService is the address of a Service within the cluster.
func ofService(o object, entry *v1alpha1.MCPServer) (address, problem string) {
	if o.text("spec", "type") == "ExternalName" {
		return "", "it is of type ExternalName: name the host that it stands for in url"
	}
	ports := o.list("spec", "ports")
	wanted := int64(0)
	if entry.ServerRef.Port != nil {
		wanted = int64(*entry.ServerRef.Port)
	} else if len(ports) != 1 {
		return "", fmt.Sprintf("it has %d ports: set serverRef.port", len(ports))
	}
	for _, port := range ports {
		if number := port.number("port"); wanted == 0 || number == wanted {
			scheme := "http"
			if port.text("appProtocol") == "https" {
				scheme = "https"
			}
			return inCluster(scheme, o, number, pathOf(entry)), ""
		}
	}
	return "", fmt.Sprintf("it has no port %d", wanted)
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

// ofKMCP is the Service that kmcp makes for an MCPServer, under its name: the gateway behind it serves /mcp, whatever
// the server's own path is.
func ofKMCP(o object, _ *v1alpha1.MCPServer) (address, problem string) {
	port := o.number("spec", "deployment", "port")
	if port <= 0 {
		return "", "it has no spec.deployment.port"
	}
	return inCluster("http", o, port, "/mcp"), ""
}

// ofToolHive reports whether a proxy of ToolHive serves SSE: for a server of standard input and output it says so in
// proxyMode.
func ofToolHive(o object) bool {
	transport := o.text("spec", "transport")
	return transport == "sse" || transport == "stdio" && o.text("spec", "proxyMode") == "sse"
}

// inCluster is the address of the Service that has the object's name and namespace.
func inCluster(scheme string, o object, port int64, path string) string {
	return fmt.Sprintf("%s://%s.%s.svc:%d%s", scheme, o.GetName(), o.GetNamespace(), port, path)
}
