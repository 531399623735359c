// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package follow tells the story of one chat as a stream of events: what is committed, from the API server, and what is
// being said, from the relay of the generation pod.
//
// # Events
//
//   - message_part {historyVersion, attempt, seq, role, part}, id "V.A.S.N": one part of the attempt under way; N is the
//     length of the history that it builds on.
//   - message {historyVersion, index, message}, id "V.0.N": a committed message. historyVersion is the one that its
//     commit made, N is index+1. Several messages can share a version (a reply and the queued message that its commit
//     promoted); N tells them apart. A message that is edited is committed anew: it keeps its name and index, and has
//     another version.
//   - queue_update {queue}, no id: the names of the messages that wait, next first.
//   - status {phase, ready, reason, message, historyVersion, attempt, action, length, model, contextStart, turn, result},
//     no id.
//   - error {historyVersion, reason, message, provider, statusCode}, no id: why the last turn failed, once per history
//     version and stream.
//   - action_required {historyVersion, deadline, message, toolCalls}, no id: the turn waits for a client's results or for
//     people's decisions, once per history version and stream. message is the name of the reply that made the calls.
//   - preview_reset {historyVersion, attempt}, no id: the parts of this attempt are void. A message that the attempt
//     yielded voids them too, without this event.
//   - history_reset {}, no id: what the client holds, parts included, is not the beginning of this chat's history any more:
//     a message was edited or deleted, or the chat is another one. The whole history follows from the start, which may be
//     nothing, and then the present.
//   - deleted {}, no id: the chat is gone, and the stream ends.
//
// # Order
//
// At any moment the messages that are committed come first, then the queue, the status, the error, the action, and then the
// parts of the attempt under way. A part is sent only if its attempt is the chat's current one and its number follows on the last
// one sent.
//
// # Resuming
//
// A client that comes back with its last event id neither misses nor gets again a message or a part. After "V.0.N" come
// the messages with index N and up. After "V.A.S.N" the same, and the parts behind S if the attempt is still under way. If
// one of the first N messages was edited or deleted since, the stream begins with history_reset instead. N may be left out
// of the id of a part; then history_reset also comes if nothing tells whether the history was cut. The events without an
// id describe the present; each stream begins with them.
package follow
