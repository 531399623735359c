// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// MCPServerReference names an object of the chat's namespace that says where an MCP server is.
// +kubebuilder:validation:XValidation:rule="(has(self.group) ? self.group + '/' + self.kind : '/' + self.kind) in ['/Service', 'mcp.x-k8s.io/MCPServer', 'toolhive.stacklok.dev/MCPServer', 'toolhive.stacklok.dev/MCPRemoteProxy', 'toolhive.stacklok.dev/VirtualMCPServer', 'kagent.dev/MCPServer', 'kagent.dev/RemoteMCPServer']",message="Parley does not know this kind: name Service without a group, MCPServer of mcp.x-k8s.io, MCPServer, MCPRemoteProxy or VirtualMCPServer of toolhive.stacklok.dev, or MCPServer or RemoteMCPServer of kagent.dev, or set url"
// +kubebuilder:validation:XValidation:rule="self.kind == 'Service' || !has(self.port) && !has(self.path)",message="port and path are for a Service: other kinds say them"
type MCPServerReference struct {
	// group of the kind, such as mcp.x-k8s.io. Default: none, as a Service has it.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Group string `json:"group,omitempty"`

	// kind of the object: Service, MCPServer, MCPRemoteProxy, VirtualMCPServer or RemoteMCPServer.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +required
	Kind string `json:"kind"`

	// name of the object.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9.]*[a-z0-9])?$')",message="the name of an object has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as tracker"
	// +required
	Name string `json:"name"`

	// port of a Service. Default: its only one.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=65535
	// +optional
	Port *int32 `json:"port,omitempty"`

	// path of the endpoint at a Service. Default: /mcp, or /sse where transport is SSE.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches(r'^/[!\\x22$-~]*$')",message="path begins with / and has no spaces and no #, such as /mcp"
	// +optional
	Path string `json:"path,omitempty"`
}

// MCPServerAddress is where a server is that an entry of mcpServers refers to, as the newest attempt was told.
type MCPServerAddress struct {
	// name of the server in spec.mcpServers.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	Name string `json:"name"`

	// ref is what the entry referred to. An entry that refers to something else by now has no address.
	// +required
	Ref MCPServerReference `json:"ref"`

	// url of the endpoint; empty if it cannot be told, for the reason.
	// +kubebuilder:validation:MaxLength=2048
	// +optional
	URL string `json:"url,omitempty"`

	// transport that the object says; empty if it says none.
	// +optional
	Transport MCPTransport `json:"transport,omitempty"`

	// reason why there is no url.
	// +optional
	Reason MCPServerReason `json:"reason,omitempty"`

	// message says what is wrong, in one line.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
}
