// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import "fmt"

// MissingError means that a message names a parent that does not exist.
type MissingError struct {
	// Child is the message that names the missing one; empty when it is the head that is missing.
	Child string
	// Parent is the missing message.
	Parent string
}

// Error says which message is missing and who names it.
func (e *MissingError) Error() string {
	if e.Child == "" {
		return fmt.Sprintf("message %s, the head of the history, does not exist", e.Parent)
	}
	return fmt.Sprintf("message %s, the parent of %s, does not exist", e.Parent, e.Child)
}

// UnplacedError means that a User message does not say where it stands, and that the turn record does not either.
type UnplacedError struct {
	Message string
}

// Error names the message.
func (e *UnplacedError) Error() string {
	return fmt.Sprintf("message %s does not say which message is its parent", e.Message)
}

// CycleError means that a message is its own ancestor.
type CycleError struct {
	// Message that was met twice.
	Message string
}

// Error names the message.
func (e *CycleError) Error() string {
	return fmt.Sprintf("message %s is its own ancestor", e.Message)
}

// LengthError means that the chain from the head has another length than the chat says.
type LengthError struct {
	// Want is the length that the chat says.
	Want int64
	// Got is the number of messages that the chain has; when it is longer than Want, one more than that.
	Got int64
}

// Error says both lengths.
func (e *LengthError) Error() string {
	if e.Got > e.Want {
		return fmt.Sprintf("the history has more than the %d messages that it should have", e.Want)
	}
	return fmt.Sprintf("the history has %d messages and should have %d", e.Got, e.Want)
}

// IndexError means that a message says another place in the history than the one it has.
type IndexError struct {
	Message   string
	Want, Got int64
}

// Error names the message and both indices.
func (e *IndexError) Error() string {
	return fmt.Sprintf("message %s says that it has index %d, and has %d", e.Message, e.Got, e.Want)
}
