// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli is the kubectl plug-in, in the packages below it. It has the errors that they share itself.
//
//   - verbs: the subcommands of kubectl chat, which root.go lists. One that only annotates a chat is a row of requests
//     in request.go, one that sets a field a row of fields.
//   - cluster: reads and watches Parley's objects, and connects to the gateway.
//   - doctor: checks what was read of an installation, and selects the fields of a support archive.
//   - render: prints chats, messages, calls, settings, usage and recordings.
//   - terminal: escapes and styles output.
//   - converse: shows a conversation on the whole screen.
//   - prior: reads earlier conversations, and defines the format of an export.
//   - ui: serves the page on this machine.
//
// The plug-in connects to the gateway through the API server, with the identity of the kubeconfig, so that users of
// kubectl need nothing else. Every verb but send and tail does what kubectl could do to the resources, and waits for
// the outcome.
package cli

// NotFoundError means that there is no object of that name.
type NotFoundError string

func (e NotFoundError) Error() string { return string(e) }

// NotReadyError is why an object is not Ready for good: the reason and message of its condition.
type NotReadyError struct{ Reason, Message string }

func (e NotReadyError) Error() string { return e.Reason + ": " + e.Message }
