// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference_test

import (
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/mcp/reference"
	"parley.dev/parley/test/kit/check"
)

// entry refers to the object s of the kind.
func entry(group, kind string, change ...func(*v1beta1.MCPServer)) *v1beta1.MCPServer {
	e := &v1beta1.MCPServer{Name: "e", ServerRef: &v1beta1.MCPServerReference{Group: group, Kind: kind, Name: "s"}}
	for _, c := range change {
		c(e)
	}
	return e
}

// addressOf is the address of the entry, from an object of the version with these fields.
func addressOf(t *testing.T, e *v1beta1.MCPServer, version, fields string) v1beta1.MCPServerAddress {
	t.Helper()
	raw, err := yaml.YAMLToJSON([]byte(fields))
	check.OK(t, err)
	o := &unstructured.Unstructured{} // Its numbers are those that the API server's JSON has.
	check.OK(t, utiljson.Unmarshal(raw, &o.Object))
	o.SetGroupVersionKind(schema.GroupVersionKind{Group: e.ServerRef.Group, Version: version, Kind: e.ServerRef.Kind})
	o.SetNamespace("ns")
	o.SetName("s")
	return reference.Of(e, o)
}

func port(n int32) func(*v1beta1.MCPServer) {
	return func(e *v1beta1.MCPServer) { e.ServerRef.Port = &n }
}

func speaks(transport v1beta1.MCPTransport) func(*v1beta1.MCPServer) {
	return func(e *v1beta1.MCPServer) { e.Transport = transport }
}

func below(path string) func(*v1beta1.MCPServer) {
	return func(e *v1beta1.MCPServer) { e.ServerRef.Path = path }
}

const (
	lifecycle = "mcp.x-k8s.io"
	toolhive  = "toolhive.stacklok.dev"
	kagent    = "kagent.dev"
)

func TestServerAddressIsReadByKind(t *testing.T) {
	for name, c := range map[string]struct {
		entry           *v1beta1.MCPServer
		version, fields string
		url             string
		transport       v1beta1.MCPTransport
	}{
		"an MCPServer of the lifecycle operator": {entry(lifecycle, "MCPServer"), "v1beta1", `
status: {address: {url: "http://s.ns.svc.cluster.local:8080/mcp"}, conditions: [{type: Verified, status: "True"}]}`,
			"http://s.ns.svc.cluster.local:8080/mcp", ""},
		"one of its first version": {entry(lifecycle, "MCPServer"), "v1alpha1", `
status: {address: {url: "http://s.ns.svc.cluster.local:8080/mcp"}, conditions: [{type: Ready, status: "True"}]}`,
			"http://s.ns.svc.cluster.local:8080/mcp", ""},
		"an MCPServer of ToolHive": {entry(toolhive, "MCPServer"), "v1beta1", `
spec: {transport: streamable-http}
status: {phase: Ready, url: "http://mcp-s-proxy.ns.svc.cluster.local:8080/mcp"}`,
			"http://mcp-s-proxy.ns.svc.cluster.local:8080/mcp", ""},
		"one that serves SSE": {entry(toolhive, "MCPServer"), "v1beta1", `
spec: {transport: sse}
status: {phase: Ready, url: "http://mcp-s-proxy.ns.svc.cluster.local:8080/sse#s"}`,
			"http://mcp-s-proxy.ns.svc.cluster.local:8080/sse", v1beta1.MCPSSE},
		"one of standard input and output that is served by SSE": {entry(toolhive, "MCPServer"), "v1beta1", `
spec: {transport: stdio, proxyMode: sse}
status: {phase: Ready, url: "http://mcp-s-proxy.ns.svc.cluster.local:8080/sse#s"}`,
			"http://mcp-s-proxy.ns.svc.cluster.local:8080/sse", v1beta1.MCPSSE},
		"one whose proxy mode does not count": {entry(toolhive, "MCPServer"), "v1beta1", `
spec: {transport: streamable-http, proxyMode: sse}
status: {phase: Ready, url: "http://mcp-s-proxy.ns.svc.cluster.local:8080/mcp"}`,
			"http://mcp-s-proxy.ns.svc.cluster.local:8080/mcp", ""},
		"an MCPRemoteProxy": {entry(toolhive, "MCPRemoteProxy"), "v1beta1", `
spec: {transport: streamable-http}
status: {phase: Ready, url: "http://mcp-s-remote-proxy.ns.svc.cluster.local:8080"}`,
			"http://mcp-s-remote-proxy.ns.svc.cluster.local:8080", ""},
		"a VirtualMCPServer": {entry(toolhive, "VirtualMCPServer"), "v1beta1", `
status: {phase: Ready, url: "http://vmcp-s.ns.svc.cluster.local:4483"}`,
			"http://vmcp-s.ns.svc.cluster.local:4483/mcp", ""},
		"one with only some of its servers": {entry(toolhive, "VirtualMCPServer"), "v1beta1", `
status: {phase: Degraded, url: "http://vmcp-s.ns.svc.cluster.local:4483/tools"}`,
			"http://vmcp-s.ns.svc.cluster.local:4483/tools", ""},
		"a RemoteMCPServer": {entry(kagent, "RemoteMCPServer"), "v1alpha3", `
spec: {url: "https://mcp.example.com/mcp", protocol: STREAMABLE_HTTP}
status: {conditions: [{type: Accepted, status: "True"}]}`, "https://mcp.example.com/mcp", ""},
		"one of SSE": {entry(kagent, "RemoteMCPServer"), "v1alpha2", `
spec: {url: "https://mcp.example.com/sse", protocol: SSE}
status: {conditions: [{type: Accepted, status: "True"}]}`, "https://mcp.example.com/sse", v1beta1.MCPSSE},
		"an MCPServer of kmcp": {entry(kagent, "MCPServer"), "v1alpha1", `
spec: {deployment: {port: 3000}, httpTransport: {path: /own}}
status: {conditions: [{type: Ready, status: "True"}]}`, "http://s.ns.svc:3000/mcp", ""},
		"a Service with a port": {entry("", "Service"), "v1", `
spec: {ports: [{port: 8080}]}`, "http://s.ns.svc:8080/mcp", ""},
		"the port that is named": {entry("", "Service", port(8443), below("/tools?all=1")), "v1", `
spec: {ports: [{port: 8080}, {port: 8443, appProtocol: https}]}`, "https://s.ns.svc:8443/tools?all=1", ""},
		"a Service that serves SSE": {entry("", "Service", speaks(v1beta1.MCPSSE)), "v1", `
spec: {ports: [{port: 8080}]}`, "http://s.ns.svc:8080/sse", ""},
	} {
		want := v1beta1.MCPServerAddress{Name: "e", Ref: *c.entry.ServerRef, URL: c.url, Transport: c.transport}
		check.Equal(t, name, want, addressOf(t, c.entry, c.version, c.fields))
	}
}

func TestObjectWithoutAddressReportsReason(t *testing.T) {
	server := entry(lifecycle, "MCPServer")
	for name, c := range map[string]struct {
		entry           *v1beta1.MCPServer
		version, fields string
		reason          v1beta1.MCPServerReason
		says            string
	}{
		"no controller has seen it": {server, "v1beta1", `{}`, v1beta1.MCPNotReady, "it has no condition Verified yet"},
		"it is not ready": {server, "v1beta1", `
status: {address: {url: "http://a/"}, conditions: [{type: Ready, status: "True"}, {type: Verified, status: Unknown}]}`,
			v1beta1.MCPNotReady, "its condition Verified is Unknown"},
		"it has been changed": {server, "v1beta1", `
metadata: {generation: 2}
status: {observedGeneration: 1, address: {url: "http://a/"}, conditions: [{type: Verified, status: "True"}]}`,
			v1beta1.MCPNotReady, "its status is of an earlier generation than its spec"},
		"it is on its way out": {server, "v1beta1", `
metadata: {deletionTimestamp: "2026-01-01T00:00:00Z"}
status: {address: {url: "http://a/"}, conditions: [{type: Verified, status: "True"}]}`,
			v1beta1.MCPNotReady, "it is being deleted"},
		"it has no address": {server, "v1beta1", `
status: {conditions: [{type: Verified, status: "True"}]}`, v1beta1.MCPNotReady, "it says no address yet"},
		"its status is another one": {server, "v1beta1", `
status: {address: [1], conditions: {type: Verified}}`, v1beta1.MCPNotReady, "it has no condition Verified yet"},
		"its phase": {entry(toolhive, "MCPServer"), "v1beta1", `
status: {phase: "Fai\x1b[31mled and a long word about it that is cut", url: "http://a/"}`,
			v1beta1.MCPNotReady, "its status.phase is Fai [31mled and a long word abo…"},
		"a password in its address": {server, "v1beta1", `
status: {address: {url: "http://me:secret@a/"}, conditions: [{type: Verified, status: "True"}]}`,
			v1beta1.MCPAddressInvalid, "without user and password"},
		"another scheme": {entry(kagent, "RemoteMCPServer"), "v1alpha2", `
spec: {url: "file:///etc/passwd"}
status: {conditions: [{type: Accepted, status: "True"}]}`, v1beta1.MCPAddressInvalid, "no url of http or https"},
		"no scheme": {entry(kagent, "RemoteMCPServer"), "v1alpha2", `
spec: {url: "mcp.example.com/mcp"}
status: {conditions: [{type: Accepted, status: "True"}]}`, v1beta1.MCPAddressInvalid, "no url of http or https"},
		"a line break in its address": {entry(kagent, "RemoteMCPServer"), "v1alpha2", `
spec: {url: "http://a/\nHost: b"}
status: {conditions: [{type: Accepted, status: "True"}]}`, v1beta1.MCPAddressInvalid, "no url of http or https"},
		"a Service that stands for a host elsewhere": {entry("", "Service"), "v1", `
spec: {type: ExternalName, externalName: metadata.internal}`, v1beta1.MCPAddressInvalid, "of type ExternalName"},
		"a Service with several ports": {entry("", "Service"), "v1", `
spec: {ports: [{port: 1}, {port: 2}]}`, v1beta1.MCPAddressInvalid, "it has 2 ports: set serverRef.port"},
		"a port that it does not have": {entry("", "Service", port(3)), "v1", `
spec: {ports: [{port: 1}, {port: 2}]}`, v1beta1.MCPAddressInvalid, "it has no port 3"},
		"an unknown kind": {entry("example.com", "Server"), "v1", `{}`, v1beta1.MCPReferenceNotFound,
			"Parley does not know its kind"},
	} {
		got := addressOf(t, c.entry, c.version, c.fields)
		prefix := c.entry.ServerRef.Kind + " s: "
		if got.URL != "" || got.Reason != c.reason || !strings.HasPrefix(got.Message, prefix) ||
			!strings.Contains(got.Message, c.says) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}
