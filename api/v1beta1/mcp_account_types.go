// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// MCPServerReason is why a server's tools were not offered to a model.
// +kubebuilder:validation:Enum=ConnectionFailed;TimedOut;AccessDenied;SecretMissing;HostForbidden;ResponseInvalid;CABundleInvalid;ReferenceNotFound;ReferenceForbidden;NotReady;AddressInvalid;WorkspaceNotReady;CommandFailed
type MCPServerReason string

const (
	// MCPConnectionFailed means that the server cannot be reached, or answered with an error of HTTP. See whether it runs
	// at its url.
	MCPConnectionFailed MCPServerReason = "ConnectionFailed"
	// MCPTimedOut means that the server took longer than connectTimeoutSeconds. See whether it answers, or raise that.
	MCPTimedOut MCPServerReason = "TimedOut"
	// MCPAccessDenied means that the server answered 401 or 403. Correct its headers.
	MCPAccessDenied MCPServerReason = "AccessDenied"
	// MCPSecretMissing means that a key that headersFrom names does not exist, is empty, has characters that no header can
	// have, or is not mounted yet. Create it; a running pod reads it a minute or two later.
	MCPSecretMissing MCPServerReason = "SecretMissing"
	// MCPHostForbidden means that the host is not among the manager's --mcp-hosts or is an address of the node or of the
	// pod, or that the server redirects or points to another host. Name another url, or have --mcp-hosts or
	// --allow-loopback changed.
	MCPHostForbidden MCPServerReason = "HostForbidden"
	// MCPResponseInvalid means that the answer is not of the protocol, has no end, or is too large. See whether url and
	// transport are right.
	MCPResponseInvalid MCPServerReason = "ResponseInvalid"
	// MCPCABundleInvalid means that the key that caBundleFrom names does not exist, or holds no certificates. Put
	// certificates in PEM there.
	MCPCABundleInvalid MCPServerReason = "CABundleInvalid"
	// MCPReferenceNotFound means that the object of serverRef does not exist, or the cluster does not have its kind.
	// Create it, or install the project that brings it.
	MCPReferenceNotFound MCPServerReason = "ReferenceNotFound"
	// MCPReferenceForbidden means that the manager may not read the object of serverRef. Add the component of config/mcp.
	MCPReferenceForbidden MCPServerReason = "ReferenceForbidden"
	// MCPNotReady means that the object of serverRef does not report that its server is ready. See its own status.
	MCPNotReady MCPServerReason = "NotReady"
	// MCPAddressInvalid means that the object of serverRef has no address that can be called. Correct it, or name the
	// address in url.
	MCPAddressInvalid MCPServerReason = "AddressInvalid"
	// MCPWorkspaceNotReady means that command needs a workspace, and the chat has none or it is not ready. See the
	// Workspace, or give the chat one.
	MCPWorkspaceNotReady MCPServerReason = "WorkspaceNotReady"
	// MCPCommandFailed means that command could not be started, or has ended. Read its standard error, in the message and
	// in the workspace.
	MCPCommandFailed MCPServerReason = "CommandFailed"
)

// MCPServerUnavailable is a server whose tools were not offered to a model, and why.
type MCPServerUnavailable struct {
	// name of the server in spec.mcpServers.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	Name string `json:"name"`

	// reason is the kind of the failure.
	// +required
	Reason MCPServerReason `json:"reason"`

	// message says what is wrong, in one line.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Message string `json:"message,omitempty"`
}

// MCPTool is the definition of a tool of an MCP server, as a hash.
type MCPTool struct {
	// name of the tool, as the model calls it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Name string `json:"name"`

	// hash of what the server says of the tool: its name, its description and the schemas of its arguments and of its
	// result.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +required
	Hash string `json:"hash"`
}

// MCPAccount is what a step has to say of the MCP servers of its chat.
type MCPAccount struct {
	// unavailable lists the servers whose tools the model was not offered.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Unavailable []MCPServerUnavailable `json:"unavailable,omitempty"`

	// pinned lists the definitions that hold from this message on, in addition to those that messages before it pin: of
	// tools that were offered for the first time, and of changed ones of which a person has approved a call. A summary
	// pins all that hold.
	// +kubebuilder:validation:MaxItems=1024
	// +listType=map
	// +listMapKey=name
	// +optional
	Pinned []MCPTool `json:"pinned,omitempty"`

	// changed lists the definitions of the tools that the message calls and that are not those which are pinned.
	// +kubebuilder:validation:MaxItems=512
	// +listType=map
	// +listMapKey=name
	// +optional
	Changed []MCPTool `json:"changed,omitempty"`
}
