// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reference reads the addresses of MCP servers from objects of other projects. It does not trust the objects: it
// refuses invalid addresses, and those with a password.
package reference

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1alpha1"
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
	url func(object, *v1alpha1.MCPServer) (url, problem string)
	// sse reports whether the server uses the transport SSE; nil: none does.
	sse func(object) bool
}

// The groups of the kinds.
const (
	lifecycle = "mcp.x-k8s.io"
	toolhive  = "toolhive.stacklok.dev"
	kagent    = "kagent.dev"
)

// kinds are those that an entry can refer to. The rules of v1alpha1.MCPServerReference name the same.
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
