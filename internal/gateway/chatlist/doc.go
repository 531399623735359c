// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package chatlist tells how the chats of a namespace stand, as a stream of events:
// first all of them, then each change.
//
// # Events
//
//   - added and modified {name, uid, ...}, id "LOG.N" behind a change, none in the list that a stream begins with: how
//     a chat is now. Changes that follow each other closely are told as one.
//     A chat may be told again that has not changed.
//   - deleted {name, uid}, id "LOG.N": the chat is gone. It may be one that the client was not told of.
//   - synced {}, id "LOG.N": the list is whole; what follows are changes.
//   - list_reset {}, no id: what the client holds is not to be relied on any more.
//     The whole list follows, as from the start.
//   - closing {reason, message}, no id: the gateway ends the stream.
//
// # Resuming
//
// A client that comes back with its last event id gets what has changed since, for as long as the gateway remembers:
// the last 1024 changes of the namespace, in the process that gave the id. After that, and after a cut within the list
// at the beginning, which has no ids, it gets everything.
package chatlist
