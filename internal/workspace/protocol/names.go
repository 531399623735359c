// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

import (
	"regexp"
	"time"
)

const (
	// Port that the agent listens on.
	Port = 7080

	// AgentDir is where the agent's program is in a workspace.
	AgentDir = "/run/parley/agent"
	// StateDir holds what the agent remembers: commands, their output, and which chat the workspace belongs to.
	StateDir = "/var/lib/parley-workspace"
	// IssuerDir is where the agent finds what it knows of the issuer of the cluster's service-account tokens.
	IssuerDir = "/run/parley/issuer"
	// IssuerFile names the issuer.
	IssuerFile = "issuer"
	// IssuerKeysFile has the issuer's public keys, a JWKS.
	IssuerKeysFile = "jwks.json"

	// HeaderChat names the chat that a request is made for: the UID of the root of its family.
	HeaderChat = "Parley-Chat"
	// HeaderCall is the key of a call that changes files. A change whose key was seen before is not made again: what was
	// answered then is answered again. One that was refused has changed nothing, and may be asked for again.
	HeaderCall = "Parley-Call"

	// Session is what the connection of a session is upgraded to.
	Session = "parley-session"
	// HeaderProcess is the id of a session's command.
	HeaderProcess = "Parley-Process"

	// HeaderOutputFrom is the offset of the first byte of the body: that which was asked for, or a later one if that is
	// no longer kept. The body has no gap. It ends before what is not kept; whoever asks again from there on gets what
	// comes after.
	HeaderOutputFrom = "Parley-Output-From"
	// HeaderOutputTotal is how many bytes the command had written when the answer began.
	HeaderOutputTotal = "Parley-Output-Total"
)

const (
	// MaxRequestBytes bounds the body of a request, but for the content of a file.
	MaxRequestBytes = 4 << 20
	// MaxFileBytes bounds the content of a file that is written or read as a whole.
	MaxFileBytes = 16 << 20
	// MaxWait bounds how long a request waits for what it asks for.
	MaxWait = time.Minute
	// HeadBytes is what is kept of the beginning of the output of a command.
	HeadBytes = 1 << 20
	// TailBytes is what is kept of its end.
	TailBytes = 15 << 20
	// MaxKeyLength bounds the key of a call.
	MaxKeyLength = 200
)

// key is what the key of a call may be: it names a directory.
var key = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ValidKey reports whether it can be the key of a call.
func ValidKey(k string) bool { return len(k) <= MaxKeyLength && key.MatchString(k) }

// Audience is what a token for the agent in one pod is for: parley-workspace/NAMESPACE/POD-UID. Whoever takes a token
// from an agent can use it nowhere else.
func Audience(namespace, podUID string) string { return "parley-workspace/" + namespace + "/" + podUID }
