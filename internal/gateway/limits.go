// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

// Limits bound what callers can cost. A limit of 0 is its default.
type Limits struct {
	// Streams is how many streams are open at the same time. Default DefaultStreams.
	Streams int
	// StreamsPerCaller is how many of them one caller has. Default DefaultStreamsPerCaller.
	StreamsPerCaller int
	// StreamMemory is how many bytes of messages streams hold together, besides the 64 MiB of the newest ones that they
	// share. Default DefaultStreamMemory.
	StreamMemory int64
	// Requests is how many requests that are no streams are under way at the same time. Default rest.DefaultRequests.
	Requests int
}

// partsBytes is what the parts of episodes take that streams share, besides 16 KiB of each episode.
const partsBytes = 32 << 20

// Defaults of Limits, for 512 MiB of memory: a stream costs some 80 KiB besides messages.
const (
	DefaultStreams                = 1024
	DefaultStreamsPerCaller       = 128
	DefaultStreamMemory     int64 = 128 << 20
)

func (l Limits) orDefaults() Limits {
	if l.Streams <= 0 {
		l.Streams = DefaultStreams
	}
	if l.StreamsPerCaller <= 0 {
		l.StreamsPerCaller = DefaultStreamsPerCaller
	}
	if l.StreamMemory <= 0 {
		l.StreamMemory = DefaultStreamMemory
	}
	return l
}
