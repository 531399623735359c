// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package follow tells the story of one chat as a stream of events: what is committed, from the API server, and what is
// being said, from the relay of the generation pod.
//
// # Events
//
//   - message_part {historyVersion, attempt, seq, role, part}, id "V.A.S": one part of the attempt under way.
//   - message {historyVersion, index, message}, id "V.0.N": a committed message. historyVersion is the one that its
//     commit made, N is index+1. Several messages can share a version (a reply and the queued message that its commit
//     promoted); N tells them apart.
//   - queue_update {queue}, no id: the names of the messages that wait, next first.
//   - status {phase, ready, reason, message, historyVersion, attempt, action, length, model, turn}, no id.
//   - error {historyVersion, reason, message, provider, statusCode}, no id: why the last turn failed, once per history
//     version and stream.
//   - preview_reset {historyVersion, attempt}, no id: the parts of this attempt are void. A message that the attempt
//     yielded voids them too, without this event.
//   - history_reset {}, no id: what the client holds is not this chat's history; everything follows from the start.
//   - deleted {}, no id: the chat is gone, and the stream ends.
//
// # Order
//
// At any moment the messages that are committed come first, then the queue, the status, the error, and then the parts of
// the attempt under way. A part is sent only if its attempt is the chat's current one and its number follows on the last
// one sent.
//
// # Resuming
//
// A client that comes back with its last event id neither misses nor gets again a message or a part. After "V.0.N" come
// the messages with index N and up. After "V.A.S" come the messages with a commit version above V, and the parts behind
// S if the attempt is still under way. The events without an id describe the present; each stream begins with them.
package follow
