// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

// roomy is more than the logs of these tests need.
const roomy = 64 << 20

func TestManyReadersCostOneSubscription(t *testing.T) {
	s := newSidecar(t)
	h := New(s, roomy)
	var all []*follower
	for i := range 200 {
		all = append(all, follow(t, h, 0))
		if i%20 == 0 {
			s.say(10, 0)
		}
	}
	waitAll(t, 100, all...)
	s.end()
	late := follow(t, h, 40)
	waitAll(t, 100, late)
	check.Equal(t, "subscriptions so far", 1, s.everBegun())
	for _, f := range append(all, late) {
		f.stop()
	}
	if len(h.feeds) != 0 || !h.memory.TryAcquire(h.memory.Size) {
		t.Errorf("%d feeds, or bytes, are left when all readers have gone", len(h.feeds))
	}
}

func TestEachPodAndAttemptHasItsOwnFeed(t *testing.T) {
	s := newSidecar(t)
	h := New(s, roomy)
	moved, next := attempt, attempt
	moved.Pod = "pod-2"
	next.Fence.Attempt++
	for _, ep := range []Episode{attempt, moved, next, attempt} {
		t.Cleanup(h.Join(t.Context(), ep, 0).Close)
	}
	waiting.Until(t, 30*time.Second, "each is subscribed to", func() bool { return s.everBegun() == 3 })
	check.Equal(t, "feeds", 3, len(h.feeds))
}

func TestLostRelayIsResumedAfterLastPart(t *testing.T) {
	s := newSidecar(t)
	h := New(s, roomy)
	var all []*follower
	for range 50 {
		all = append(all, follow(t, h, 0))
	}
	s.say(20, 0)
	waitAll(t, 20, all...)
	s.cut()
	waiting.Until(t, 30*time.Second, "it is asked again without success", func() bool { return s.everBegun() >= 3 })
	s.say(20, 0)
	while := follow(t, h, 10)
	waitAll(t, 20, while) // What is known needs no relay.
	s.comesBack()
	waitAll(t, 40, append(all, while)...)
	check.Equal(t, "open subscriptions", 1, s.subscriptions())
}

func TestReaderLeavingDuringSnapshotDoesNotAffectOthers(t *testing.T) {
	s := newSidecar(t)
	h := New(s, roomy)
	s.say(2000, 100) // several batches
	leaver := h.Join(t.Context(), attempt, 0)
	stays := follow(t, h, 0)
	for taken := 0; taken == 0; {
		<-leaver.Ready()
		for range leaver.Take(t.Context()).All() {
			taken++
		}
	}
	leaver.Close()
	waitAll(t, 2000, stays)
	check.Equal(t, "subscriptions so far", 1, s.everBegun())
}

// TestConcurrentReadersGetEveryPartOnce lets readers join and leave while an episode is streamed and
// closed, at the moment that it closes, too, and lets the last one leave as the next one joins.
func TestConcurrentReadersGetEveryPartOnce(t *testing.T) {
	const said = 1500
	for _, room := range []int64{roomy, 0} {
		t.Run(fmt.Sprint(room, " bytes of room"), func(t *testing.T) {
			s := newSidecar(t)
			h := New(s, room)
			var coming sync.WaitGroup
			for i := range uint64(8) {
				coming.Go(func() {
					random := rand.New(rand.NewPCG(i, 0))
					for after := int64(0); after < said; {
						f := follow(t, h, after)
						goal := min(said, after+1+random.Int64N(400))
						if !f.reaches(goal) {
							return
						}
						f.stop()
						after = f.at()
						if random.IntN(3) == 0 && after < said {
							after = random.Int64N(after + 1) // It comes back with an older place.
						}
					}
				})
			}
			s.say(said, 20)
			s.end()
			coming.Wait()
			waitAll(t, said, follow(t, h, 0))
		})
	}
}

func TestReaderJoinsAsLastOneLeaves(t *testing.T) {
	s := newSidecar(t)
	h := New(s, roomy)
	s.say(10, 0)
	for range 100 {
		f := follow(t, h, 0)
		waitAll(t, 10, f)
		f.stop()
	}
	check.Equal(t, "open subscriptions", 0, s.subscriptions())
}

func TestSlowReaderBlocksNoOtherAndMissesNothing(t *testing.T) {
	for _, test := range []struct {
		name string
		room int64
		want int // subscriptions
	}{
		{"where there is room it reads on from the log", roomy, 1},
		{"where there is none it gets a feed of its own", 0, 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := newSidecar(t)
			h := New(s, test.room)
			slow, quick := h.Join(t.Context(), attempt, 0), follow(t, h, 0)
			for range 40 {
				s.say(50, 100)
				waitAll(t, s.said, quick)
			}
			takeAll(t, slow, s.said)
			check.Equal(t, "subscriptions so far", test.want, s.everBegun())
			slow.Close()
		})
	}
}

func TestLogsStayWithinTheirRoom(t *testing.T) {
	s := newSidecar(t)
	h := New(s, 100<<10)
	quick := []*follower{follow(t, h, 0), follow(t, h, 0)}
	for range 100 {
		s.say(50, 100) // of 200 bytes: a megabyte in all
		waitAll(t, s.said, quick...)
		f := h.feeds[attempt]
		f.mu.Lock()
		kept, used := f.log.Bytes(), f.reserved
		f.mu.Unlock()
		if kept > 100<<10+alwaysKept || used > 100<<10 || int64(kept-alwaysKept) > used {
			t.Fatalf("after part %d a log has %d bytes, and %d are taken", s.said, kept, used)
		}
	}
	late := follow(t, h, 0)
	waitAll(t, s.said, late)
}

// fullFeed is a feed whose log has no room, and its only reader, which has taken nothing.
func fullFeed(t *testing.T) (*sidecar, *Hub, *feed, *Reader) {
	t.Helper()
	s := newSidecar(t)
	h := New(s, 0)
	s.say(1000, 100)
	r := h.Join(t.Context(), attempt, 0)
	f := h.feeds[attempt]
	waiting.Until(t, 30*time.Second, "the log is full", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.log.Bytes() > alwaysKept-300 // A part has some 200 bytes.
	})
	return s, h, f, r
}

func TestAFeedWithoutRoomWaitsForItsReader(t *testing.T) {
	s, _, f, r := fullFeed(t)
	defer r.Close()
	f.mu.Lock()
	if kept := f.log.Bytes(); kept > alwaysKept || f.log.Dropped() != 0 {
		t.Errorf("the log has %d bytes, and has dropped %d parts that no reader has", kept, f.log.Dropped())
	}
	f.mu.Unlock()
	takeAll(t, r, s.said)
}

// takeAll reads until a reader has a part.
func takeAll(t *testing.T, r *Reader, seq int64) {
	t.Helper()
	for f := (&follower{t: t, reader: r}); f.at() < seq; {
		<-r.Ready()
		f.take(t.Context())
	}
}

func TestPartLargerThanReservedBufferIsDelivered(t *testing.T) {
	s := newSidecar(t)
	h := New(s, 0)
	f := follow(t, h, 0)
	for _, length := range []int{10, 20 << 10, 10, 31 << 10, 100 << 10, 10, 33 << 10, 10} {
		s.say(1, length)
	}
	waitAll(t, s.said, f)
}

func TestLastReaderLeavingWaitingFeedEndsIt(t *testing.T) {
	s, _, _, r := fullFeed(t)
	r.Close()
	check.Equal(t, "open subscriptions", 0, s.subscriptions())
}

func TestCanceledRequestKeepsFeedOpen(t *testing.T) {
	s := newSidecar(t)
	h := New(s, roomy)
	ctx, cancel := context.WithCancel(t.Context())
	first := h.Join(ctx, attempt, 0)
	second := follow(t, h, 0)
	cancel()
	first.Close()
	s.say(5, 0)
	waitAll(t, 5, second)
	check.Equal(t, "subscriptions so far", 1, s.everBegun())
}

func TestAPartIsEncodedAsEncodingJSONDoes(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	for _, part := range []parts.Part{
		{Type: parts.Text, ID: "0", Text: "a \"b\"\n<c> \u2028"}, {Type: parts.ToolResult, Name: "n", IsError: true, At: at},
		{Type: parts.Source, URL: "https://x/?a&b"},
	} {
		frame := parts.Frame{Seq: 42, Role: "Tool", Part: part}
		want, err := json.Marshal(stream.MessagePart{HistoryVersion: 7, Attempt: 2, Seq: 42, Role: "Tool", Part: part})
		check.OK(t, err)
		check.Equal(t, "the event", string(want), string(appendPart(nil, attempt.Fence, &frame)))
	}
}

func TestReaderJoiningWaitingFeedGetsNewParts(t *testing.T) {
	s, h, f, r := fullFeed(t)
	defer r.Close()
	ahead := follow(t, h, f.last()) // It has nothing to take that would make room.
	waitAll(t, s.said, ahead)
}
