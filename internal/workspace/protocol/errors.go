// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package protocol

// ErrorCode says what kind of refusal an Error is.
type ErrorCode string

const (
	// BadRequest means that the request is not what the protocol knows.
	BadRequest ErrorCode = "BadRequest"
	// Unauthenticated means that the token does not prove who asks.
	Unauthenticated ErrorCode = "Unauthenticated"
	// Forbidden means that whoever asks may not.
	Forbidden ErrorCode = "Forbidden"
	// Unbound means that the workspace belongs to no chat yet.
	Unbound ErrorCode = "Unbound"
	// BoundToAnother means that the workspace belongs to another chat.
	BoundToAnother ErrorCode = "BoundToAnother"
	// NotFound means that there is no such process, file or directory.
	NotFound ErrorCode = "NotFound"
	// OutsideWorkspace means that the path leads out of the workspace's directory.
	OutsideWorkspace ErrorCode = "OutsideWorkspace"
	// NotRegular means that what is there is no regular file: a directory, a device, a pipe or a socket.
	NotRegular ErrorCode = "NotRegular"
	// NotText means that the file is not UTF-8 text.
	NotText ErrorCode = "NotText"
	// TooLarge means that the file, the request or the answer is larger than the limit.
	TooLarge ErrorCode = "TooLarge"
	// NotUnique means that the text to replace occurs more than once.
	NotUnique ErrorCode = "NotUnique"
	// NoMatch means that the text to replace does not occur.
	NoMatch ErrorCode = "NoMatch"
	// NoShell means that the workspace's image has no /bin/sh.
	NoShell ErrorCode = "NoShell"
	// CannotStart means that the operating system did not start the command.
	CannotStart ErrorCode = "CannotStart"
	// TooMany means that as many commands run as may.
	TooMany ErrorCode = "TooMany"
	// NotRunning means that the process has ended.
	NotRunning ErrorCode = "NotRunning"
	// NoSpace means that the workspace's storage is full.
	NoSpace ErrorCode = "NoSpace"
	// PermissionDenied means that the agent's user may not.
	PermissionDenied ErrorCode = "PermissionDenied"
	// OutcomeUnknown means that the change was begun before, and nobody knows whether it was made.
	OutcomeUnknown ErrorCode = "OutcomeUnknown"
	// Unavailable means that the agent cannot answer now. The same request may be made again in a moment.
	Unavailable ErrorCode = "Unavailable"
	// Internal means anything else that went wrong in the agent.
	Internal ErrorCode = "Internal"
)

// Error is the body of a refusal.
type Error struct {
	Code ErrorCode `json:"code"`
	// Message is for the model: what is wrong, where, and what to do.
	Message string `json:"message"`
}

// Error implements error.
func (e *Error) Error() string { return e.Message }
