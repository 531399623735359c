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
	// FilesPath is where the volume of a workspace has the files.
	FilesPath = "files"
	// IssuerDir has files about the issuer of the cluster's service-account tokens, and about its users.
	IssuerDir = "/run/parley/issuer"
	// IssuerFile has the name of the issuer.
	IssuerFile = "issuer"
	// IssuerKeysFile has the public keys of the issuer, a JWKS.
	IssuerKeysFile = "jwks.json"
	// ViewersFile has the users that may see what is changed in workspaces, one a line.
	ViewersFile = "viewers"

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
	// ArchiveError is the PAX record of an entry of a tar archive that says why the agent could not read it.
	ArchiveError = "PARLEY.error"
	// MaxFileBytes bounds the content of a file that is read or replaced as a whole.
	MaxFileBytes = 16 << 20
	// MaxWait bounds how long a request waits.
	MaxWait = time.Minute
	// HeadBytes is how much is kept of the beginning of a command's output.
	HeadBytes = 1 << 20
	// TailBytes is how much is kept of its end.
	TailBytes = 15 << 20
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

// ErrorCode is the kind of a refusal.
type ErrorCode string

// The codes, and what each means.
const (
	BadRequest       ErrorCode = "BadRequest"       // the agent does not know the request, or a value is not valid
	Unauthenticated  ErrorCode = "Unauthenticated"  // the token does not prove who sends the request
	Forbidden        ErrorCode = "Forbidden"        // the account of the token has no access
	Unbound          ErrorCode = "Unbound"          // the workspace belongs to no chat yet
	BoundToAnother   ErrorCode = "BoundToAnother"   // the workspace belongs to another chat
	NotFound         ErrorCode = "NotFound"         // there is no such process, file or directory
	OutsideWorkspace ErrorCode = "OutsideWorkspace" // the path leads out of the workspace's directory
	NotRegular       ErrorCode = "NotRegular"       // it is a directory, a device, a pipe or a socket
	NotText          ErrorCode = "NotText"          // the file is not UTF-8 text
	TooLarge         ErrorCode = "TooLarge"         // the file, the request or the answer exceeds the limit
	NotUnique        ErrorCode = "NotUnique"        // the text to replace, or what a path may mean, occurs more than once
	NoMatch          ErrorCode = "NoMatch"          // the text to replace does not occur
	NoShell          ErrorCode = "NoShell"          // the workspace's image has no /bin/sh
	CannotStart      ErrorCode = "CannotStart"      // the operating system did not start the command
	TooMany          ErrorCode = "TooMany"          // the limit of running commands is reached
	NotRunning       ErrorCode = "NotRunning"       // the process has ended
	NoSpace          ErrorCode = "NoSpace"          // the workspace's storage is full
	PermissionDenied ErrorCode = "PermissionDenied" // the agent's user has no permission
	OutcomeUnknown   ErrorCode = "OutcomeUnknown"   // the change began before, and may have been made
	Unavailable      ErrorCode = "Unavailable"      // the agent is busy; the same request may be repeated
	Internal         ErrorCode = "Internal"         // any other failure of the agent
)

// Error is the body of a refusal.
type Error struct {
	Code ErrorCode `json:"code"`
	// Message is for the model: what is wrong, where, and what to do.
	Message string `json:"message"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }
