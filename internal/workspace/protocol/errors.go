// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

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
	NotUnique        ErrorCode = "NotUnique"        // the text to replace occurs more than once
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
