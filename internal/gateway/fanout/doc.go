// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fanout reads the parts of an episode once for all in this process who follow the chat.
//
// The first reader of an episode makes a feed of it: one subscription to the relay of the episode's pod, and a log of
// the parts as the JSON that clients get, so that each part is decoded and encoded once. Every reader is at a place of
// its own in that log, behind which it gets each part once and in order, as a subscriber of the relay does. The last
// reader who leaves ends the feed.
//
// A reader that is slow holds up nobody: it costs its number, and what it has not read is in the log anyway. The log of
// a feed with several readers keeps all of the episode as long as there is room. That of a single reader, and one that
// finds no room, forgets its oldest parts once the foremost reader has them. Who wants those begins a new feed, since
// the relay has the whole episode, and the readers of the old one join it once it has come as far as they are.
package fanout
