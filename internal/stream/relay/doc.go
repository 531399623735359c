// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package relay keeps the parts of the attempts that are under way, and hands them to whoever follows a chat.
//
// An episode is the parts of one attempt, numbered from 1 without gaps, in memory only. The package keeps these
// invariants: an episode is opened by one incarnation of one generator and by nobody else, also after the relay itself
// was restarted; every subscriber sees the frames of an episode in order, each once, whether it came before the
// episode, in the middle or after its end; and nobody who reads slowly holds up anybody who writes. A frame is kept
// once, in the encoding that the generator sent, however many subscribers there are.
//
// What is lost here is lost for the preview only: a finished step is a ChatMessage, and does not depend on the relay.
package relay
