// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package follow tells the story of one chat as a stream of events: what is committed, from the API server, and what is
// being said, from the relay of the generation pod.
//
// # Events
//
// docs/stream.md has their fields.
//
//   - message, id "C.V.0.N": a committed message. V is the version that its commit made, N is index+1. Several messages
//     can share a version (a reply and the queued message that its commit promoted); N tells them apart.
//     A message that is edited is committed again: it keeps its name and index, and has another version.
//   - message_part, id "C.V.A.S.N": one part of the attempt under way;
//     N is the length of the history that it builds on.
//   - note: a message for people alone, at its place: before the message of its index, or behind all. One that is
//     edited comes again with another generation; note_deleted says that one is gone.
//   - queue_update: the messages that wait, next first, and how each begins.
//   - status: how the chat stands.
//   - error, requires_action: why the last turn failed, and what the turn waits for,
//     once per history version and stream.
//   - retry: an attempt has failed and another one is due.
//   - preview_reset: the parts of an attempt are void. A message that the attempt yielded voids them too,
//     without this event.
//   - history_reset: what the client holds, parts included, is not the beginning of this chat's history any more: a
//     message was edited or deleted, or the chat is another one.
//     The whole history follows from the start, which may be nothing, and then the present.
//   - deleted: the chat is gone, and the stream ends.
//   - closing: the gateway ends the stream.
//
// C is a short form of the chat's UID: another chat of the same name has other ids.
// Events without an id describe the present.
//
// # Order
//
// At any moment the messages that are committed come first, then the queue, the status, the error, the retry, the
// action, and then the parts of the attempt under way. A part is sent only if its attempt is the chat's current one and
// its number follows on the last one sent.
//
// # Resuming
//
// A client that comes back with its last event id neither misses nor gets again a message or a part. After "C.V.0.N"
// come the messages with index N and up. After "C.V.A.S.N" the same, and the parts behind S if the attempt is still
// under way. If one of the first N messages was edited or deleted since, or C is another chat, the stream begins with
// history_reset instead. Each stream begins with the events without an id, and tells all notes; one from now on tells
// those that come.
package follow
