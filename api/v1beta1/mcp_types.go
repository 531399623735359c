// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "time"

const (
	// MaxMCPServers is the most servers that Chat.spec.mcpServers lists: 16.
	MaxMCPServers = 16
	// MaxMCPServerTools is the most tools of one server that a model is offered: 64.
	MaxMCPServerTools = 64
	// DefaultMCPTimeout is how long a call may wait for a sign of life of its server: 60 s.
	DefaultMCPTimeout = time.Minute
	// DefaultMCPConnectTimeout is how long a server may take to list its tools: 10 s.
	DefaultMCPConnectTimeout = 10 * time.Second
)

// MCPTransport is how a server of the Model Context Protocol is spoken to.
// +kubebuilder:validation:Enum=StreamableHTTP;SSE
type MCPTransport string

const (
	// MCPStreamableHTTP is the transport of the protocol since 2025-03-26. This is the default.
	MCPStreamableHTTP MCPTransport = "StreamableHTTP"
	// MCPSSE is that of the protocol of 2024-11-05, which has one stream for a session next to its requests.
	MCPSSE MCPTransport = "SSE"
)

// MCPServer is a server of the Model Context Protocol (MCP) whose tools the model may call, as NAME__TOOL.
// +kubebuilder:validation:XValidation:rule="[has(self.url), has(self.serverRef), has(self.command)].exists_one(given, given)",message="set exactly one of url, serverRef and command"
// +kubebuilder:validation:XValidation:rule="!has(self.command) || !has(self.transport) && !has(self.headers) && !has(self.headersFrom) && !has(self.caBundleFrom)",message="a command is spoken to by its standard input and output: transport, headers, headersFrom and caBundleFrom are for a url or a serverRef"
// +kubebuilder:validation:XValidation:rule="has(self.command) || !has(self.env)",message="env is for a command"
// +kubebuilder:validation:XValidation:rule="!has(self.caBundleFrom) || !has(self.url) || self.url.startsWith('https://')",message="caBundleFrom is for a url of https"
// +kubebuilder:validation:XValidation:rule="!has(self.headers) || self.headers.all(h, self.headers.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()) && (!has(self.headersFrom) || !self.headersFrom.exists(o, o.name.lowerAscii() == h.name.lowerAscii())))",message="each header can be given once, in headers or in headersFrom, in upper or lower case"
// +kubebuilder:validation:XValidation:rule="!has(self.headersFrom) || self.headersFrom.all(h, self.headersFrom.exists_one(o, o.name.lowerAscii() == h.name.lowerAscii()))",message="each header can be given once, in upper or lower case"
type MCPServer struct {
	// name of the server in this chat: the names of its tools begin with it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?$')",message="the name of a server has lower-case letters, digits and - only, and begins and ends with a letter or digit, such as github"
	// +required
	Name string `json:"name"`

	// url of the server's endpoint, such as https://mcp.example.com/mcp. Generation pods call it.
	// +kubebuilder:validation:MinLength=8
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches(r'^https?://[A-Za-z0-9.:\\[\\]-]+([/?][!\\x22$-~]*)?$')",message="url begins with https:// or http:// and a host, and has no user, no spaces and no #, such as https://mcp.example.com/mcp"
	// +optional
	URL string `json:"url,omitempty"`

	// serverRef names an object of the chat's namespace that says where the server is, in place of url. The server is
	// waited for while it starts, for a minute of the turn at most. A change of its address counts from the next step.
	// +optional
	ServerRef *MCPServerReference `json:"serverRef,omitempty"`

	// command is the program of a server that speaks on its standard input and output, and its arguments, in place of url.
	// It runs in the workspace of the chat's family, without a shell and in the workspace's directory, once for each step
	// that lists or calls its tools. The first step of a turn has the workspace started for it.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self[0] != ''",message="the first word, the program, is empty"
	// +listType=atomic
	// +optional
	Command []string `json:"command,omitempty"`

	// env are variables of the command's environment, in addition to those of the workspace. No place for secrets: whoever
	// may read the chat can read them, and so can all that runs in the workspace.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=name
	// +optional
	Env []MCPVariable `json:"env,omitempty"`

	// transport that the server speaks. Default: what serverRef leads to says, or else StreamableHTTP.
	// +optional
	Transport MCPTransport `json:"transport,omitempty"`

	// headers are sent with each request to the server. Whoever may read the chat can read them: secrets belong into
	// headersFrom.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Headers []MCPHeader `json:"headers,omitempty"`

	// headersFrom are headers whose values are in Secrets of the chat's namespace, such as a token. Generation pods mount
	// them, and use another value a minute or two after the Secret has changed. Whoever writes the entry must be allowed
	// to get the Secrets.
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=name
	// +optional
	HeadersFrom []MCPHeaderSource `json:"headersFrom,omitempty"`

	// caBundleFrom names a ConfigMap of the chat's namespace with the certificates of the authorities that the server's
	// own certificate is of. Default: those of the image. It is read for each step. Whoever writes the entry must be
	// allowed to get the ConfigMap.
	// +optional
	CABundleFrom *MCPCABundleSource `json:"caBundleFrom,omitempty"`

	// timeoutSeconds is how long a call of a tool may give no sign of life: each notice of progress begins it again, for
	// an hour at most. Default: 60.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=3600
	// +optional
	TimeoutSeconds *int32 `json:"timeoutSeconds,omitempty"`

	// connectTimeoutSeconds is how long the server may take to be connected to and to list its tools. Then the model is
	// asked without them. Default: 10.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=60
	// +optional
	ConnectTimeoutSeconds *int32 `json:"connectTimeoutSeconds,omitempty"`

	// tools specifies which of the server's tools the model is offered. Default: the first 64, by name.
	// +optional
	Tools *MCPToolFilter `json:"tools,omitempty"`

	// requireApproval names the tools, as the server calls them, whose calls wait in status.requiresAction until a
	// ToolApproval approves or denies them. A * at the end stands for whatever follows: * alone is all of them.
	// Default: none. tools.approval names them as the model does.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[!-)+-~]*[*]?$')",message="a tool is named as the server calls it, without spaces, with at most one * at the end, such as create_issue or create_*"
	// +listType=set
	// +optional
	RequireApproval []string `json:"requireApproval,omitempty"`

	// trusted is whether to trust the server that a tool only reads, or does nothing twice: a call of such a tool whose
	// result was lost with a generation pod is made again. Of any other call the model reads that it may have run. Default
	// false.
	// +optional
	Trusted bool `json:"trusted,omitempty"`
}

// MCPVariable is a variable of the environment of a server's command.
type MCPVariable struct {
	// name of the variable.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z_][A-Za-z0-9_]*$')",message="the name of a variable has letters, digits and _ only, and does not begin with a digit, such as LOG_LEVEL"
	// +required
	Name string `json:"name"`

	// value of the variable.
	// +kubebuilder:validation:MaxLength=4096
	// +required
	Value string `json:"value"`
}

// MCPHeader is a header of requests to a server.
type MCPHeader struct {
	// name of the header.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9_-]*$')",message="the name of a header has letters, digits, - and _ only, and begins with a letter or digit, such as X-Team"
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['accept', 'accept-encoding', 'connection', 'content-length', 'content-type', 'expect', 'host', 'keep-alive', 'last-event-id', 'te', 'trailer', 'transfer-encoding', 'upgrade']) && !self.lowerAscii().startsWith('mcp-') && !self.lowerAscii().startsWith('proxy-')",message="this header belongs to HTTP or to the protocol: leave it out"
	// +required
	Name string `json:"name"`

	// value of the header, printable ASCII.
	// +kubebuilder:validation:MaxLength=2048
	// +kubebuilder:validation:XValidation:rule="self.matches('^[ -~]*$')",message="the value of a header is printable ASCII in one line, such as platform"
	// +required
	Value string `json:"value"`
}

// MCPHeaderSource is a header whose value is in a Secret.
type MCPHeaderSource struct {
	// name of the header, such as Authorization.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9][A-Za-z0-9_-]*$')",message="the name of a header has letters, digits, - and _ only, and begins with a letter or digit, such as Authorization"
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['accept', 'accept-encoding', 'connection', 'content-length', 'content-type', 'expect', 'host', 'keep-alive', 'last-event-id', 'te', 'trailer', 'transfer-encoding', 'upgrade']) && !self.lowerAscii().startsWith('mcp-') && !self.lowerAscii().startsWith('proxy-')",message="this header belongs to HTTP or to the protocol: leave it out"
	// +required
	Name string `json:"name"`

	// prefix stands before the value, such as "Bearer ". Default: nothing.
	// +kubebuilder:validation:MaxLength=32
	// +kubebuilder:validation:XValidation:rule="self.matches('^[ -~]*$')",message="prefix is printable ASCII in one line, such as Bearer and a space"
	// +optional
	Prefix string `json:"prefix,omitempty"`

	// secretKeyRef names the key of a Secret that holds the value. Spaces and line breaks around it do not count.
	// +required
	SecretKeyRef SecretKeyReference `json:"secretKeyRef"`
}

// MCPCABundleSource is where the certificates of authorities are.
type MCPCABundleSource struct {
	// configMapKeyRef names the key of a ConfigMap that holds them: certificates in PEM, one after the other. No other
	// authorities are trusted for this server.
	// +required
	ConfigMapKeyRef ConfigMapKeyReference `json:"configMapKeyRef"`
}

// MCPToolFilter says which of a server's tools a model is offered. Entries are names as the server has them. A * at the
// end of one stands for whatever follows.
type MCPToolFilter struct {
	// allow lists the tools that are offered. Default: all.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[!-)+-~]*[*]?$')",message="a tool is named as the server calls it, without spaces, with at most one * at the end, such as create_issue or create_*"
	// +listType=set
	// +optional
	Allow []string `json:"allow,omitempty"`

	// deny lists tools that are not offered, also if allow lists them; * is all of them. Default: none.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +kubebuilder:validation:items:XValidation:rule="self.matches('^[!-)+-~]*[*]?$')",message="a tool is named as the server calls it, without spaces, with at most one * at the end, such as create_issue or create_*"
	// +listType=set
	// +optional
	Deny []string `json:"deny,omitempty"`
}

// Timeout is how long a call may wait for a sign of life.
func (s *MCPServer) Timeout() time.Duration {
	return secondsOr(s.TimeoutSeconds, DefaultMCPTimeout)
}

// ConnectTimeout is how long the server may take to list its tools.
func (s *MCPServer) ConnectTimeout() time.Duration {
	return secondsOr(s.ConnectTimeoutSeconds, DefaultMCPConnectTimeout)
}

func secondsOr(seconds *int32, otherwise time.Duration) time.Duration {
	if seconds == nil {
		return otherwise
	}
	return time.Duration(*seconds) * time.Second
}
