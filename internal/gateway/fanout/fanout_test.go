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
	waitAll(t, all, 100)
	s.end()
	late := follow(t, h, 40)
	waitAll(t, []*follower{late}, 100)
	if n := s.everBegun(); n != 1 {
		t.Errorf("there were %d subscriptions", n)
	}
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
	waiting.Until(t, 10*time.Second, "each is subscribed to", func() bool { return s.everBegun() == 3 })
	if len(h.feeds) != 3 {
		t.Errorf("%d feeds", len(h.feeds))
	}
}

func TestLostRelayIsResumedAfterLastPart(t *testing.T) {
	s := newSidecar(t)
	h := New(s, roomy)
	var all []*follower
	for range 50 {
		all = append(all, follow(t, h, 0))
	}
	s.say(20, 0)
	waitAll(t, all, 20)
	s.leaves()
	waiting.Until(t, 10*time.Second, "it is asked again in vain", func() bool { return s.everBegun() >= 3 })
	s.say(20, 0)
	while := follow(t, h, 10)
	waitAll(t, []*follower{while}, 20) // What is known needs no relay.
	s.comesBack()
	waitAll(t, append(all, while), 40)
	if n := s.subscriptions(); n != 1 {
		t.Errorf("%d subscriptions", n)
	}
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
	waitAll(t, []*follower{stays}, 2000)
	if n := s.everBegun(); n != 1 {
		t.Errorf("there were %d subscriptions", n)
	}
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
			waitAll(t, []*follower{follow(t, h, 0)}, said)
		})
	}
}

func TestReaderJoinsAsLastOneLeaves(t *testing.T) {
	s := newSidecar(t)
	h := New(s, roomy)
	s.say(10, 0)
	for range 100 {
		f := follow(t, h, 0)
		waitAll(t, []*follower{f}, 10)
		f.stop()
	}
	if n := s.subscriptions(); n != 0 {
		t.Errorf("%d subscriptions of nobody", n)
	}
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
				waitAll(t, []*follower{quick}, s.said)
			}
			f := &follower{t: t, reader: slow}
			for f.at() < s.said {
				<-slow.Ready()
				f.take(t.Context())
			}
			if n := s.everBegun(); n != test.want {
				t.Errorf("there were %d subscriptions, want %d", n, test.want)
			}
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
		waitAll(t, quick, s.said)
		f := h.feeds[attempt]
		f.mu.Lock()
		kept, used := f.log.Bytes(), f.share.bytes
		f.mu.Unlock()
		if kept > 100<<10+alwaysKept || used > 100<<10 || int64(kept-alwaysKept) > used {
			t.Fatalf("after part %d a log has %d bytes, and %d are taken", s.said, kept, used)
		}
	}
	late := follow(t, h, 0)
	waitAll(t, []*follower{late}, s.said)
}

func TestSingleReaderLogStaysShortUntilSecondReader(t *testing.T) {
	s := newSidecar(t)
	h := New(s, roomy)
	first := follow(t, h, 0)
	for range 40 {
		s.say(50, 100)
		waitAll(t, []*follower{first}, s.said)
	}
	f := h.feeds[attempt]
	f.mu.Lock()
	if kept := f.log.Bytes(); kept > singleKept {
		t.Errorf("it keeps %d bytes", kept)
	}
	f.mu.Unlock()
	all := []*follower{first, follow(t, h, 0), follow(t, h, s.said/2)}
	waitAll(t, all, s.said)
	waiting.Until(t, 10*time.Second, "all read one subscription", func() bool {
		s.say(1, 0)
		return s.subscriptions() == 1
	})
	all = append(all, follow(t, h, 0))
	waitAll(t, all, s.said)
	if n := s.everBegun(); n != 2 {
		t.Errorf("there were %d subscriptions, want one more for the second reader", n)
	}
	if first.stop(); h.feeds[attempt] == f {
		t.Error("the feed of the first reader is that of the others")
	}
}

func TestAFeedWithoutRoomWaitsForItsReader(t *testing.T) {
	s := newSidecar(t)
	h := New(s, 0)
	s.say(1000, 100)
	sleeps := h.Join(t.Context(), attempt, 0)
	f := h.feeds[attempt]
	waiting.Until(t, 10*time.Second, "the log is full", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.waits
	})
	f.mu.Lock()
	if kept := f.log.Bytes(); kept > alwaysKept || f.log.Dropped() != 0 {
		t.Errorf("it has %d bytes, and has forgotten %d parts that nobody has", kept, f.log.Dropped())
	}
	f.mu.Unlock()
	awake := &follower{t: t, reader: sleeps}
	for awake.at() < s.said {
		<-sleeps.Ready()
		awake.take(t.Context())
	}
	sleeps.Close()
}

func TestPartLargerThanReservedBufferIsDelivered(t *testing.T) {
	s := newSidecar(t)
	h := New(s, 0)
	f := follow(t, h, 0)
	for _, length := range []int{10, 20 << 10, 10, 31 << 10, 100 << 10, 10, 33 << 10, 10} {
		s.say(1, length)
	}
	waitAll(t, []*follower{f}, s.said)
}

func TestLastReaderLeavingWaitingFeedEndsIt(t *testing.T) {
	s := newSidecar(t)
	h := New(s, 0)
	s.say(1000, 100)
	r := h.Join(t.Context(), attempt, 0)
	f := h.feeds[attempt]
	waiting.Until(t, 10*time.Second, "the log is full", func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.waits
	})
	r.Close()
	if n := s.subscriptions(); n != 0 {
		t.Errorf("%d subscriptions are left", n)
	}
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
	waitAll(t, []*follower{second}, 5)
	if n := s.everBegun(); n != 1 {
		t.Errorf("there were %d subscriptions", n)
	}
}

func TestAPartIsEncodedAsEncodingJSONDoes(t *testing.T) {
	at := time.Date(2026, 2, 3, 4, 5, 6, 7, time.UTC)
	for _, part := range []parts.Part{
		{Type: parts.Text, ID: "0", Text: "a \"b\"\n<c> \u2028"}, {Type: parts.ToolResult, Name: "n", IsError: true, At: at},
		{Type: parts.Source, URL: "https://x/?a&b"},
	} {
		frame := parts.Frame{Seq: 42, Role: "Tool", Part: part}
		want, err := json.Marshal(stream.MessagePart{HistoryVersion: 7, Attempt: 2, Seq: 42, Role: "Tool", Part: part})
		if err != nil {
			t.Fatal(err)
		}
		if got := appendPart(nil, attempt.Fence, &frame); string(got) != string(want) {
			t.Errorf("got  %s\nwant %s", got, want)
		}
	}
}

func TestReaderJoiningWaitingFeedGetsNewParts(t *testing.T) {
	s := newSidecar(t)
	h := New(s, 0)
	s.say(1000, 100)
	sleeps := h.Join(t.Context(), attempt, 0)
	defer sleeps.Close()
	f := h.feeds[attempt]
	full := func() bool {
		f.mu.Lock()
		defer f.mu.Unlock()
		return f.waits
	}
	waiting.Until(t, 10*time.Second, "the log is full", full)
	f.mu.Lock()
	last := f.log.Last()
	f.mu.Unlock()
	ahead := follow(t, h, last) // It has nothing to take that would make room.
	waitAll(t, []*follower{ahead}, s.said)
}
