// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package fanout reads the parts of an episode once for all in this process who follow the chat.
//
// The first reader of an episode makes a feed of it: one subscription to the relay of the episode's pod, and a log of
// the parts as the JSON that clients get, so that each part is decoded and encoded once. Every reader is at a place of
// its own in that log, behind which it gets each part once and in order, as a subscriber of the relay does. The last
// reader who leaves ends the feed.
//
// A reader that is slow holds up nobody: it costs its number, and what it has not read is in the log anyway. A log
// keeps all of its episode as long as there is room. Where there is none it forgets its oldest parts, once the foremost
// reader has them. Who wants those gets a feed that begins where it is, since the relay has the whole episode.
package fanout
