// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package relay

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/test/kit/check"
)

var episode1 = fence.Fence{ChatUID: "0d1c-uid", HistoryVersion: 7, Attempt: 1}

func newTestStore(t *testing.T, opts Options) *Store {
	t.Helper()
	if opts.Now == nil {
		opts.Now = time.Now
	}
	s, err := NewStore(opts)
	check.OK(t, err)
	return s
}

func (s *Store) lookup(ep fence.Fence) *episode {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.episodes[ep]
}

func openWriter(t *testing.T, s *Store, ep fence.Fence) *Writer {
	t.Helper()
	if _, _, err := s.Open(ep, "one"); err != nil {
		t.Fatal(err)
	}
	w, err := s.Writer(ep, "one")
	check.OK(t, err)
	return w
}

func line(seq int64) []byte {
	b, _ := json.Marshal(parts.Frame{Seq: seq, Role: "Assistant", Part: parts.Part{Type: parts.Text, Text: "x"}})
	return b
}

func appendFrames(t *testing.T, w *Writer, from, to int64) {
	t.Helper()
	for seq := from; seq <= to; seq++ {
		if err := w.Append(seq, line(seq)); err != nil {
			t.Fatalf("frame %d: %v", seq, err)
		}
	}
}

// sequences are the numbers of the frames in a batch.
func sequences(t *testing.T, batch []byte) []int64 {
	t.Helper()
	var got []int64
	for l := range bytes.Lines(batch) {
		var f parts.Frame
		if err := json.Unmarshal(l, &f); err != nil {
			t.Fatalf("line %q: %v", l, err)
		}
		got = append(got, f.Seq)
	}
	return got
}

// readAll reads to the end of the episode.
func readAll(t *testing.T, s *Store, ep fence.Fence, after int64) []int64 {
	t.Helper()
	sub := s.Subscribe(ep, after)
	defer sub.Close()
	var got []int64
	for {
		batch, err := sub.Next(t.Context(), nil)
		if errors.Is(err, io.EOF) {
			return got
		}
		check.OK(t, err)
		got = append(got, sequences(t, batch)...)
	}
}

func TestAnEpisodeIsOpenedOnce(t *testing.T) {
	s := newTestStore(t, Options{})
	if _, created, err := s.Open(episode1, "one"); err != nil || !created {
		t.Fatalf("first open: created %v, err %v", created, err)
	}
	w, err := s.Writer(episode1, "one")
	check.OK(t, err)
	appendFrames(t, w, 1, 3)
	if last, created, err := s.Open(episode1, "one"); err != nil || created || last != 3 {
		t.Errorf("same incarnation again: last %d, created %v, err %v; want 3, false, nil", last, created, err)
	}
	if _, _, err := s.Open(episode1, "two"); !errors.Is(err, ErrExists) {
		t.Errorf("another incarnation: %v, want ErrExists", err)
	}
	if _, err := s.Writer(episode1, "two"); !errors.Is(err, ErrExists) {
		t.Errorf("writer of another incarnation: %v, want ErrExists", err)
	}
	check.OK(t, s.Close(episode1))
	if _, _, err := s.Open(episode1, "one"); !errors.Is(err, ErrExists) {
		t.Errorf("open after close: %v, want ErrExists", err)
	}
	if err := w.Append(4, line(4)); !errors.Is(err, ErrClosed) {
		t.Errorf("append after close: %v, want ErrClosed", err)
	}
}

func TestFramesFollowOnEachOther(t *testing.T) {
	s := newTestStore(t, Options{})
	w := openWriter(t, s, episode1)
	appendFrames(t, w, 1, 2)
	if err := w.Append(4, line(4)); !errors.Is(err, ErrGap) {
		t.Errorf("gap: %v, want ErrGap", err)
	}
	appendFrames(t, w, 1, 4) // 1 and 2 are sent again
	check.OK(t, s.Close(episode1))
	check.Equal(t, "frames", "[1 2 3 4]", fmt.Sprint(readAll(t, s, episode1, 0)))
	check.Equal(t, "frames after 3", "[4]", fmt.Sprint(readAll(t, s, episode1, 3)))
}

func TestASubscriberMayComeBeforeTheEpisode(t *testing.T) {
	s := newTestStore(t, Options{})
	sub := s.Subscribe(episode1, 0)
	defer sub.Close()
	w := openWriter(t, s, episode1)
	appendFrames(t, w, 1, 1)
	batch, err := sub.Next(t.Context(), nil)
	if err != nil || fmt.Sprint(sequences(t, batch)) != "[1]" {
		t.Errorf("got %q, %v", batch, err)
	}
}

func TestAwaitedEpisodeIsRemovedWithItsLastSubscriber(t *testing.T) {
	s := newTestStore(t, Options{})
	a, b := s.Subscribe(episode1, 0), s.Subscribe(episode1, 0)
	a.Close()
	if s.lookup(episode1) == nil {
		t.Error("forgotten while somebody waits")
	}
	b.Close()
	if s.lookup(episode1) != nil {
		t.Error("kept for nobody")
	}
}

func TestClosingAMissingEpisodeCreatesItClosed(t *testing.T) {
	dir := t.TempDir()
	s := newTestStore(t, Options{MarkerDir: dir})
	for range 2 {
		check.OK(t, s.Close(episode1))
	}
	if got := readAll(t, s, episode1, 0); len(got) != 0 {
		t.Errorf("frames %v", got)
	}
	for name, store := range map[string]*Store{"at once": s, "after a restart": newTestStore(t, Options{MarkerDir: dir})} {
		if _, _, err := store.Open(episode1, "one"); !errors.Is(err, ErrExists) {
			t.Errorf("open %s: %v, want ErrExists", name, err)
		}
	}
}

func TestFullEpisodeDropsFurtherFramesWithoutFailing(t *testing.T) {
	s := newTestStore(t, Options{EpisodeBytes: 3*(len(line(1))+1) + 5})
	w := openWriter(t, s, episode1)
	appendFrames(t, w, 1, 9)
	sub := s.Subscribe(episode1, 0)
	defer sub.Close()
	batch, err := sub.Next(t.Context(), nil)
	if err != nil || fmt.Sprint(sequences(t, batch)) != "[1 2 3]" {
		t.Errorf("got %q, %v", batch, err)
	}
	if s.Dropped() != 6 || sub.Dropped() != 6 {
		t.Errorf("dropped %d, of the episode %d, want 6", s.Dropped(), sub.Dropped())
	}
	if want := int64(3 * (len(line(1)) + 1)); s.Size() != want {
		t.Errorf("size %d, want %d", s.Size(), want)
	}
}

func TestTheOldestClosedEpisodeMakesRoom(t *testing.T) {
	now := time.Unix(1000, 0)
	n := int64(len(line(1)) + 1)
	s := newTestStore(t, Options{TotalBytes: 3 * n, Now: func() time.Time { return now }})
	name := func(attempt int32) fence.Fence {
		return fence.Fence{ChatUID: "u", HistoryVersion: 1, Attempt: attempt}
	}
	for attempt := int32(1); attempt <= 3; attempt++ {
		appendFrames(t, openWriter(t, s, name(attempt)), 1, 1)
		now = now.Add(time.Second)
		if attempt < 3 {
			check.OK(t, s.Close(name(attempt)))
		}
	}
	sub := s.Subscribe(name(1), 0)
	defer sub.Close()
	appendFrames(t, openWriter(t, s, name(4)), 1, 1)
	if s.lookup(name(1)) != nil || s.lookup(name(2)) == nil || s.lookup(name(3)) == nil {
		t.Error("not the oldest closed episode went")
	}
	if batch, err := sub.Next(t.Context(), nil); err != nil || fmt.Sprint(sequences(t, batch)) != "[1]" {
		t.Errorf("who was reading it got %q, %v", batch, err)
	}
	w := openWriter(t, s, name(5)) // takes the room of 2; then only open ones are left
	appendFrames(t, w, 1, 3)
	if s.Dropped() != 2 || s.Size() != 3*n {
		t.Errorf("dropped %d with size %d, want 2 and %d", s.Dropped(), s.Size(), 3*n)
	}
}

// TestFullStoreFitsIntoTheRelaysMemory fills a sixteenth of a store with episodes of as many chats as a pod may have
// for a moment.
func TestFullStoreFitsIntoTheRelaysMemory(t *testing.T) {
	const (
		share    = 16
		episodes = 300 / share
		// memory is what Go may use of the memory limit of the relay's container, 384 MiB; a subscriber takes 30 KiB of it.
		memory = 384<<20*9/10 - DefaultMaxStreams*30<<10
	)
	live := func() uint64 {
		runtime.GC()
		var stats runtime.MemStats
		runtime.ReadMemStats(&stats)
		return stats.HeapAlloc
	}
	s, before := newTestStore(t, Options{TotalBytes: DefaultTotalBytes / share}), live()
	writers := make([]*Writer, episodes)
	for i := range writers {
		writers[i] = openWriter(t, s, fence.Fence{ChatUID: fmt.Sprint("chat-", i)})
	}
	for seq := int64(1); s.Dropped() == 0; seq++ {
		for _, w := range writers {
			check.OK(t, w.Append(seq, line(seq)))
		}
	}
	if used := (live() - before) * share; used > memory {
		t.Errorf("it takes %d MiB, and there are %d", used>>20, memory>>20)
	}
	runtime.KeepAlive(s)
}

func TestClosedEpisodesAreKeptForLateSubscribers(t *testing.T) {
	now := time.Unix(1000, 0)
	dir := t.TempDir()
	s := newTestStore(t, Options{MarkerDir: dir, Now: func() time.Time { return now }})
	appendFrames(t, openWriter(t, s, episode1), 1, 2)
	check.OK(t, s.Close(episode1))
	sub := s.Subscribe(episode1, 0)
	steps := []struct {
		after time.Duration
		do    func()
		kept  bool
	}{
		{keepClosed - time.Second, func() {}, true},
		{keepClosed + time.Second, func() {}, true}, // somebody reads
		{keepClosed + time.Second, sub.Close, false},
	}
	start := now
	for i, step := range steps {
		now = start.Add(step.after)
		step.do()
		check.OK(t, s.Collect())
		if kept := s.lookup(episode1) != nil; kept != step.kept {
			t.Fatalf("step %d: kept %v, want %v", i, kept, step.kept)
		}
	}
	if left, _ := os.ReadDir(dir); len(left) != 0 || s.Size() != 0 {
		t.Errorf("left: %d markers, %d bytes", len(left), s.Size())
	}
}

func TestAnAbandonedEpisodeIsClosed(t *testing.T) {
	now := time.Unix(1000, 0)
	s := newTestStore(t, Options{Now: func() time.Time { return now }})
	w := openWriter(t, s, episode1)
	now = now.Add(5 * time.Hour)
	check.OK(t, s.Collect())
	appendFrames(t, w, 1, 1) // a writer that is only silent keeps it open, such as that of a call which waits for hours
	w.Release()
	now = now.Add(abandonedAfter)
	check.OK(t, s.Collect())
	if err := w.Append(2, line(2)); !errors.Is(err, ErrClosed) {
		t.Errorf("append: %v, want ErrClosed", err)
	}
}

func TestEpisodeOwnerIsKnownAfterRestart(t *testing.T) {
	dir := t.TempDir()
	s := newTestStore(t, Options{MarkerDir: dir})
	appendFrames(t, openWriter(t, s, episode1), 1, 5)
	check.OK(t, os.WriteFile(filepath.Join(dir, "something-else"), nil, 0o600))
	again := newTestStore(t, Options{MarkerDir: dir})
	if _, _, err := again.Open(episode1, "two"); !errors.Is(err, ErrExists) {
		t.Errorf("another incarnation: %v, want ErrExists", err)
	}
	if last, created, err := again.Open(episode1, "one"); err != nil || created || last != 0 {
		t.Errorf("the same: last %d, created %v, err %v; want 0, false, nil", last, created, err)
	}
}

func TestMarkersOfOddNamesAreNotRead(t *testing.T) {
	for _, name := range []string{"", "-", "a-1", "a-1-x", "a-x-1", "../b-1-1", "a b-1-1",
		strings.Repeat("u", 65) + "-1-1", "a-1-99999999999"} {
		if ep, ok := parseMarker(name); ok {
			t.Errorf("%q was read as %v", name, ep)
		}
	}
	if ep, ok := parseMarker("6c-4d-8-12-3"); !ok ||
		ep != (fence.Fence{ChatUID: "6c-4d-8", HistoryVersion: 12, Attempt: 3}) {
		t.Errorf("got %v, %v", ep, ok)
	}
}

// TestEverySubscriberSeesEveryFrameOnce lets subscribers come, go and resume at random while frames are added.
func TestEverySubscriberSeesEveryFrameOnce(t *testing.T) {
	const frames, readers = 3000, 16
	s := newTestStore(t, Options{})
	var running sync.WaitGroup
	for r := range readers {
		running.Go(func() {
			rng := rand.New(rand.NewPCG(uint64(r), 1))
			if err := readWithCuts(t.Context(), s, rng, frames); err != nil {
				t.Errorf("reader %d: %v", r, err)
			}
		})
	}
	w := openWriter(t, s, episode1)
	rng := rand.New(rand.NewPCG(99, 1))
	for seq := int64(1); seq <= frames; {
		appendFrames(t, w, max(seq-int64(rng.IntN(3)), 1), seq) // sometimes a few are sent again
		seq++
	}
	check.OK(t, s.Close(episode1))
	running.Wait()
}

func readWithCuts(ctx context.Context, s *Store, rng *rand.Rand, frames int64) error {
	last := int64(0)
	for {
		sub := s.Subscribe(episode1, last)
		for range 1 + rng.IntN(20) {
			batch, err := sub.Next(ctx, nil)
			if errors.Is(err, io.EOF) {
				sub.Close()
				if last != frames {
					return fmt.Errorf("the end came after frame %d", last)
				}
				return nil
			}
			if err != nil {
				return err
			}
			for l := range bytes.Lines(batch) {
				var f parts.Frame
				if err := json.Unmarshal(l, &f); err != nil {
					return err
				}
				if f.Seq != last+1 {
					return fmt.Errorf("frame %d after %d", f.Seq, last)
				}
				last = f.Seq
			}
		}
		sub.Close() // cut, and resume
	}
}
