// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package cli has the errors that verbs of the kubectl plug-in end with. The packages below it are the plug-in itself:
//
//   - verbs: kubectl chat with its verbs, a file each, named after the verb. A verb that only annotates a chat is a row
//     of the table in request.go, one that sets a field a row of field.go; approve and deny share decide.go. root.go
//     has all of them.
//   - cluster: reads and watches Parley's objects, and finds a way to the gateway.
//   - render: prints chats, messages, calls, settings, usage and recordings, as they come or as a whole.
//   - terminal: escapes and styles what is printed, and reads what a person types.
//   - prior: reads conversations that were led elsewhere, and says what an export is.
//   - ui: serves the page on this machine.
//
// The plug-in reaches the gateway through the API server, with the identity of the kubeconfig, so that whoever may use
// kubectl in a namespace needs nothing else. Every verb but send and tail does what kubectl could do to the resources,
// and waits for what becomes of it.
package cli

// NotFoundError means that there is no object of that name.
type NotFoundError string

func (e NotFoundError) Error() string { return string(e) }

// NotReadyError is why an object is not Ready for good: the reason and message of its condition.
type NotReadyError struct{ Reason, Message string }

func (e NotReadyError) Error() string { return e.Reason + ": " + e.Message }
