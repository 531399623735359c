// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// MCPServerReason is why a server's tools were not offered to a model.
// +kubebuilder:validation:Enum=ConnectionFailed;TimedOut;AccessDenied;SecretMissing;HostForbidden;ResponseInvalid;CABundleInvalid;ReferenceNotFound;ReferenceForbidden;NotReady;AddressInvalid;WorkspaceNotReady;CommandFailed
type MCPServerReason string

const (
	// MCPConnectionFailed means that the server could not be reached, or ended the connection.
	MCPConnectionFailed MCPServerReason = "ConnectionFailed"
	// MCPTimedOut means that the server took longer than connectTimeoutSeconds.
	MCPTimedOut MCPServerReason = "TimedOut"
	// MCPAccessDenied means that the server wants other credentials.
	MCPAccessDenied MCPServerReason = "AccessDenied"
	// MCPSecretMissing means that a key of a Secret which headersFrom names does not exist, is empty, or cannot stand in a
	// header.
	MCPSecretMissing MCPServerReason = "SecretMissing"
	// MCPHostForbidden means that the server's host is not among the manager's --mcp-hosts, is an address of the node
	// or of the pod, or points to another host.
	MCPHostForbidden MCPServerReason = "HostForbidden"
	// MCPResponseInvalid means that the server answered something that is not of the protocol, or too much.
	MCPResponseInvalid MCPServerReason = "ResponseInvalid"
	// MCPCABundleInvalid means that the key of the ConfigMap which caBundleFrom names does not exist, or holds no
	// certificates.
	MCPCABundleInvalid MCPServerReason = "CABundleInvalid"
	// MCPReferenceNotFound means that the object which serverRef names does not exist, or that the cluster does not have
	// its kind.
	MCPReferenceNotFound MCPServerReason = "ReferenceNotFound"
	// MCPReferenceForbidden means that the manager may not read the object that serverRef names.
	MCPReferenceForbidden MCPServerReason = "ReferenceForbidden"
	// MCPNotReady means that the object which serverRef names does not say yet, or no longer says, that its server is
	// ready.
	MCPNotReady MCPServerReason = "NotReady"
	// MCPAddressInvalid means that the object which serverRef names says no address that can be called.
	MCPAddressInvalid MCPServerReason = "AddressInvalid"
	// MCPWorkspaceNotReady means that the chat has no workspace in which command could run, or that it is not ready.
	MCPWorkspaceNotReady MCPServerReason = "WorkspaceNotReady"
	// MCPCommandFailed means that command could not be started, or that it has ended.
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
