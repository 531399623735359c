// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package stream

// Closing is the data of EventClosing: the gateway ends the stream, though the chat continues. As an error it is why a
// stream ended.
type Closing struct {
	// Reason is one of those below.
	Reason string `json:"reason"`
	// Message is the reason in words.
	Message string `json:"message,omitempty"`
}

// Reasons why the gateway ends a stream.
const (
	// ClosingExpired means that the token has expired.
	ClosingExpired = "TokenExpired"
	// ClosingWithdrawn means that the caller may no longer listen.
	ClosingWithdrawn = "AccessWithdrawn"
	// ClosingUnverified means that the permission could not be checked for a minute.
	ClosingUnverified = "AccessUnverified"
	// ClosingShutdown means that the gateway ends: reconnect at once, since another one serves.
	ClosingShutdown = "ShuttingDown"
)

func (c *Closing) Error() string { return c.Reason + ": " + c.Message }
