// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reference reads the addresses of MCP servers from objects of other projects. It does not trust the objects:
// it refuses invalid addresses, and those with a password.
package reference

import (
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// kind is how an address is read from the objects of one kind.
type kind struct {
	schema.GroupKind
	// versions that are read, the preferred one first.
	versions []string
	// waiting is why the server is not ready; empty if it is. nil: it always is.
	waiting func(object) string
	// url of the endpoint; empty if the object has none yet. problem is why it never will have one.
	url func(object, *v1beta1.MCPServer) (url, problem string)
	// sse reports whether the server uses the transport SSE; nil: none does.
	sse func(object) bool
}

// The groups of the kinds.
const (
	lifecycle = "mcp.x-k8s.io"
	toolhive  = "toolhive.stacklok.dev"
	kagent    = "kagent.dev"
)

// kinds are those that an entry can refer to. The rules of v1beta1.MCPServerReference name the same.
var kinds = []kind{
	{GroupKind: schema.GroupKind{Kind: "Service"}, versions: []string{"v1"}, url: serviceURL},
	{GroupKind: schema.GroupKind{Group: lifecycle, Kind: "MCPServer"}, versions: []string{"v1beta1", "v1alpha1"},
		waiting: verified, url: field("status", "address", "url")},
	{GroupKind: schema.GroupKind{Group: toolhive, Kind: "MCPServer"}, versions: []string{"v1beta1"},
		waiting: phase("Ready"), url: field("status", "url"), sse: usesSSE},
	{GroupKind: schema.GroupKind{Group: toolhive, Kind: "MCPRemoteProxy"}, versions: []string{"v1beta1"},
		waiting: phase("Ready"), url: field("status", "url"), sse: usesSSE},
	// Degraded: some of the servers behind it are not available. Its url has no path.
	{GroupKind: schema.GroupKind{Group: toolhive, Kind: "VirtualMCPServer"}, versions: []string{"v1beta1"},
		waiting: phase("Ready", "Degraded"), url: withPath("/mcp", field("status", "url"))},
	{GroupKind: schema.GroupKind{Group: kagent, Kind: "RemoteMCPServer"}, versions: []string{"v1alpha3", "v1alpha2"},
		waiting: condition("Accepted"), url: field("spec", "url"),
		sse: func(o object) bool { return o.text("spec", "protocol") == "SSE" }},
	{GroupKind: schema.GroupKind{Group: kagent, Kind: "MCPServer"}, versions: []string{"v1alpha1"},
		waiting: condition("Ready"), url: kmcpURL},
}

// VersionsOf are the versions of the kind that are read, the preferred one first; none if the kind is unknown.
func VersionsOf(kind schema.GroupKind) []string {
	if known := find(kind); known != nil {
		return slices.Clone(known.versions)
	}
	return nil
}

// Kinds are the kinds that an entry can refer to.
func Kinds() (all []schema.GroupKind) {
	for i := range kinds {
		all = append(all, kinds[i].GroupKind)
	}
	return all
}

func find(name schema.GroupKind) *kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.GroupKind == name })
	if i < 0 {
		return nil
	}
	return &kinds[i]
}

// object is one of another project. Its fields may have any type.
type object struct{ *unstructured.Unstructured }

// text is the field; empty if it is not there, or is no text.
func (o object) text(path ...string) string {
	value, _, _ := unstructured.NestedString(o.Object, path...) // Another type is no text.
	return value
}

// number is the field; 0 if it is not there, or is no whole number.
func (o object) number(path ...string) int64 {
	value, _, _ := unstructured.NestedInt64(o.Object, path...) // Another type is no number.
	return value
}

// list are the objects of the field.
func (o object) list(path ...string) (all []object) {
	values, _, _ := unstructured.NestedSlice(o.Object, path...) // Another type is no list.
	for _, value := range values {
		if fields, ok := value.(map[string]any); ok {
			all = append(all, object{&unstructured.Unstructured{Object: fields}})
		}
	}
	return all
}

// condition is ready once the condition is True.
func condition(name string) func(object) string {
	return func(o object) string {
		for _, c := range o.list("status", "conditions") {
			if c.text("type") == name {
				if status := c.text("status"); status != "True" {
					return fmt.Sprintf("its condition %s is %s", name, printableValue(status))
				}
				return ""
			}
		}
		return "it has no condition " + name + " yet"
	}
}

// verified is ready once the server has answered. Its condition depends on the version.
func verified(o object) string {
	if o.GroupVersionKind().Version == "v1alpha1" {
		return condition("Ready")(o)
	}
	return condition("Verified")(o)
}

// phase is ready in one of the phases.
func phase(ready ...string) func(object) string {
	return func(o object) string {
		switch now := o.text("status", "phase"); {
		case slices.Contains(ready, now):
			return ""
		case now == "":
			return "it has no status.phase yet"
		default:
			return "its status.phase is " + printableValue(now)
		}
	}
}

// maxShown is how many characters of a value are shown.
const maxShown = 32

// printableValue is a value of an object that can be shown.
func printableValue(value string) string { return clip.Ellipsis(printable.Line(value), maxShown) }

const (
	// maxURL is the limit of mcpServers[].url, maxMessage that of a message.
	maxURL, maxMessage = 2048, 200
)

// callable are urls as mcpServers[].url takes them.
var callable = regexp.MustCompile(`^https?://[A-Za-z0-9.:\[\]-]+([/?][!-"$-~]*)?$`)

// Of is the address of an entry's server, from the object that the entry refers to.
func Of(entry *v1beta1.MCPServer, from *unstructured.Unstructured) v1beta1.MCPServerAddress {
	known, o := find(schema.GroupKind{Group: entry.ServerRef.Group, Kind: entry.ServerRef.Kind}), object{from}
	if known == nil {
		return Without(entry, v1beta1.MCPReferenceNotFound, "Parley does not know its kind")
	}
	if waits := known.waitsFor(o); waits != "" {
		return Without(entry, v1beta1.MCPNotReady, waits)
	}
	address, problem := known.url(o, entry)
	address, _, _ = strings.Cut(address, "#") // ToolHive's urls of SSE have a fragment, which is not sent.
	switch {
	case problem != "":
		return Without(entry, v1beta1.MCPAddressInvalid, problem)
	case address == "":
		return Without(entry, v1beta1.MCPNotReady, "it says no address yet")
	case !isCallable(address):
		return Without(entry, v1beta1.MCPAddressInvalid, "its address is no url of http or https without user and password")
	}
	found := v1beta1.MCPServerAddress{Name: entry.Name, Ref: *entry.ServerRef, URL: address}
	if known.sse != nil && known.sse(o) {
		found.Transport = v1beta1.MCPSSE
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
func Without(entry *v1beta1.MCPServer, reason v1beta1.MCPServerReason, words string) v1beta1.MCPServerAddress {
	ref := entry.ServerRef
	return v1beta1.MCPServerAddress{Name: entry.Name, Ref: *ref, Reason: reason,
		Message: clip.Ellipsis(fmt.Sprintf("%s %s: %s", ref.Kind, ref.Name, words), maxMessage)}
}

func isCallable(address string) bool {
	parsed, err := url.Parse(address)
	return err == nil && len(address) <= maxURL && callable.MatchString(address) && parsed.Host != "" && parsed.User == nil
}

// field reads the url from a field.
func field(path ...string) func(object, *v1beta1.MCPServer) (string, string) {
	return func(o object, _ *v1beta1.MCPServer) (string, string) { return o.text(path...), "" }
}

// withPath adds the path to a url without one.
func withPath(path string, next func(object, *v1beta1.MCPServer) (string, string)) func(object,
	*v1beta1.MCPServer) (string, string) {
	return func(o object, entry *v1beta1.MCPServer) (string, string) {
		address, problem := next(o, entry)
		if parsed, err := url.Parse(address); err == nil && address != "" && strings.Trim(parsed.Path, "/") == "" {
			parsed.Path = path
			address = parsed.String()
		}
		return address, problem
	}
}

// serviceURL is the address of a Service within the cluster.
func serviceURL(o object, entry *v1beta1.MCPServer) (address, problem string) {
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
func pathOf(entry *v1beta1.MCPServer) string {
	switch {
	case entry.ServerRef.Path != "":
		return entry.ServerRef.Path
	case entry.Transport == v1beta1.MCPSSE:
		return "/sse"
	}
	return "/mcp"
}

// kmcpURL is the Service of the MCPServer's name that kmcp creates. Its gateway serves /mcp, whatever path the server
// has.
func kmcpURL(o object, _ *v1beta1.MCPServer) (address, problem string) {
	port := o.number("spec", "deployment", "port")
	if port <= 0 {
		return "", "it has no spec.deployment.port"
	}
	return inCluster("http", o, port, "/mcp"), ""
}

// usesSSE reports whether a proxy of ToolHive serves SSE. proxyMode counts for servers of standard input and output
// only.
func usesSSE(o object) bool {
	transport := o.text("spec", "transport")
	return transport == "sse" || transport == "stdio" && o.text("spec", "proxyMode") == "sse"
}

// inCluster is the address of the Service that has the object's name and namespace.
func inCluster(scheme string, o object, port int64, path string) string {
	return fmt.Sprintf("%s://%s.%s.svc:%d%s", scheme, o.GetName(), o.GetNamespace(), port, path)
}
