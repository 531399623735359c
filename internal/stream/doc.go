// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package stream has no code: its packages carry the parts of a reply from a generation pod to everyone who follows the
// chat. They may import chat, kube and netguard. What the events look like is in api/stream.
//
//	publish    the generator's side: never waits, and loses nothing while an episode is open
//	relay      the sidecar, which keeps the episodes of its pod in memory
//	subscribe  the gateway's side
//	framelog   the frames of an episode, for readers at different places
//	lifetime   how the relay notices that the generator has ended
package stream
