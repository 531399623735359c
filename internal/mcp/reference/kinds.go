// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package reference reads from objects of other projects where the MCP servers are that they stand for. What it takes
// from them is a stranger's word: an address that is none, or that has a password, is refused.
package reference

import (
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"parley.dev/parley/api/v1alpha1"
)

// kind is how an address is read from the objects of one kind.
type kind struct {
	schema.GroupKind
	// versions that are read, the preferred one first.
	versions []string
	// waiting is what an object waits for until its server is ready; empty if it is ready.
	waiting func(object) string
	// url of the endpoint; empty if the object says none yet. The problem is why it never will; empty if it may.
	url func(object, *v1alpha1.MCPServer) (url, problem string)
	// sse reports whether the server speaks the transport SSE; nil: none does.
	sse func(object) bool
}

// The groups of the kinds.
const (
	lifecycle = "mcp.x-k8s.io"
	toolhive  = "toolhive.stacklok.dev"
	kagent    = "kagent.dev"
)

// kinds are all that an entry can refer to. The rules of v1alpha1.MCPServerReference name the same.
var kinds = []kind{
	{GroupKind: schema.GroupKind{Kind: "Service"}, versions: []string{"v1"}, waiting: never, url: ofService},
	{GroupKind: schema.GroupKind{Group: lifecycle, Kind: "MCPServer"}, versions: []string{"v1beta1", "v1alpha1"},
		waiting: verified, url: at("status", "address", "url")},
	{GroupKind: schema.GroupKind{Group: toolhive, Kind: "MCPServer"}, versions: []string{"v1beta1"},
		waiting: phase("Ready"), url: at("status", "url"), sse: ofToolHive},
	{GroupKind: schema.GroupKind{Group: toolhive, Kind: "MCPRemoteProxy"}, versions: []string{"v1beta1"},
		waiting: phase("Ready"), url: at("status", "url"), sse: ofToolHive},
	// Degraded: some of the servers behind it are not available. Its url has no path.
	{GroupKind: schema.GroupKind{Group: toolhive, Kind: "VirtualMCPServer"}, versions: []string{"v1beta1"},
		waiting: phase("Ready", "Degraded"), url: below("/mcp", at("status", "url"))},
	{GroupKind: schema.GroupKind{Group: kagent, Kind: "RemoteMCPServer"}, versions: []string{"v1alpha3", "v1alpha2"},
		waiting: condition("Accepted"), url: at("spec", "url"),
		sse: func(o object) bool { return o.text("spec", "protocol") == "SSE" }},
	{GroupKind: schema.GroupKind{Group: kagent, Kind: "MCPServer"}, versions: []string{"v1alpha1"},
		waiting: condition("Ready"), url: ofKMCP},
}

// VersionsOf are the versions of the kind that are read, the preferred one first; none if it is none of those.
func VersionsOf(kind schema.GroupKind) []string {
	if known := find(kind); known != nil {
		return slices.Clone(known.versions)
	}
	return nil
}

// Kinds are all that an entry can refer to.
func Kinds() (all []schema.GroupKind) {
	for i := range kinds {
		all = append(all, kinds[i].GroupKind)
	}
	return all
}

func find(wanted schema.GroupKind) *kind {
	i := slices.IndexFunc(kinds, func(k kind) bool { return k.GroupKind == wanted })
	if i < 0 {
		return nil
	}
	return &kinds[i]
}
