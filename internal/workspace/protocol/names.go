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
	// StateDir holds the agent's state: commands, their output, and the binding to a chat.
	StateDir = "/var/lib/parley-workspace"
	// IssuerDir has two files about the issuer of the cluster's service-account tokens: its name, and its public keys, a
	// JWKS.
	IssuerDir, IssuerFile, IssuerKeysFile = "/run/parley/issuer", "issuer", "jwks.json"

	// HeaderChat is the chat of a request: the UID of the root of its family.
	HeaderChat = "Parley-Chat"
	// HeaderCall is the key of a call that changes files. A second request with the key of a change that was made gets
	// the same answer, and changes nothing. A refused change has changed nothing, and may be requested again.
	HeaderCall = "Parley-Call"

	// Session is the protocol that the connection of a session is upgraded to.
	Session = "parley-session"
	// HeaderProcess is the id of a session's command.
	HeaderProcess = "Parley-Process"

	// HeaderOutputFrom is the offset of the first byte of the body: the requested one, or a later one if that is no
	// longer kept. The body has no gap: it ends before bytes that are not kept, and the next request gets those after.
	HeaderOutputFrom = "Parley-Output-From"
	// HeaderOutputTotal is how many bytes the command had written when the answer began.
	HeaderOutputTotal = "Parley-Output-Total"
)

const (
	// MaxRequestBytes bounds the body of a request, but for the content of a file.
	MaxRequestBytes = 4 << 20
	// MaxFileBytes bounds the content of a file that is read or replaced as a whole.
	MaxFileBytes = 16 << 20
	// MaxWait bounds how long a request waits.
	MaxWait = time.Minute
	// HeadBytes and TailBytes are how much is kept of the beginning and of the end of a command's output.
	HeadBytes, TailBytes = 1 << 20, 15 << 20
	// MaxKeyLength bounds the key of a call.
	MaxKeyLength = 200
)

// key matches the key of a call, which is the name of a directory.
var key = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]*$`)

// ValidKey reports whether k can be the key of a call.
func ValidKey(k string) bool { return len(k) <= MaxKeyLength && key.MatchString(k) }

// Audience of a token for the agent in one pod: parley-workspace/NAMESPACE/POD-UID. A token that is stolen from an
// agent is valid nowhere else.
func Audience(namespace, podUID string) string { return "parley-workspace/" + namespace + "/" + podUID }
