// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fanout

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/stream/relay"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

var attempt = Episode{Namespace: "shop", Pod: "pod-1", Fence: fence.Fence{ChatUID: "uid-1", HistoryVersion: 7,
	Attempt: 2}}

var errCut = errors.New("the relay is away")

// sidecar is a relay's store without its network, which can be cut off. It implements Source.
type sidecar struct {
	t      *testing.T
	store  *relay.Store
	writer *relay.Writer

	mu sync.Mutex
	// link is done while the relay is away, and cut ends it.
	link context.Context
	cut  context.CancelFunc
	// begun and open count subscriptions.
	begun, open int
	said        int64
}

func newSidecar(t *testing.T) *sidecar {
	t.Helper()
	store, err := relay.NewStore(relay.Options{Now: time.Now})
	check.OK(t, err)
	s := &sidecar{t: t, store: store}
	s.comesBack()
	_, _, err = store.Open(attempt.Fence, "life-1")
	check.OK(t, err)
	s.writer, err = store.Writer(attempt.Fence, "life-1")
	check.OK(t, err)
	t.Cleanup(func() { check.Equal(t, "subscriptions at the end", 0, s.subscriptions()) })
	return s
}

// Subscribe implements Source.
func (s *sidecar) Subscribe(ctx context.Context, _, _ string, ep fence.Fence,
	after int64) iter.Seq2[parts.Frame, error] {
	return func(yield func(parts.Frame, error) bool) {
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		s.mu.Lock()
		link := s.link
		s.begun++
		s.open++
		s.mu.Unlock()
		defer func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.open--
		}()
		if link.Err() != nil { // AfterFunc might call only after a part was read.
			yield(parts.Frame{}, errCut)
			return
		}
		defer context.AfterFunc(link, func() { cancel(errCut) })() //nolint:contextcheck // The link is that of all.
		if err := s.copy(ctx, ep, after, yield); err != nil {
			yield(parts.Frame{}, err)
		}
	}
}

// copy yields frames until the episode is over, which is no error, or yield wants no more.
func (s *sidecar) copy(ctx context.Context, ep fence.Fence, after int64, yield func(parts.Frame, error) bool) error {
	sub := s.store.Subscribe(ep, after)
	defer sub.Close()
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		lines, err := sub.Next(ctx, nil)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		for line := range bytes.Lines(lines) {
			var frame parts.Frame
			if err := json.Unmarshal(line, &frame); err != nil {
				return err
			}
			if !yield(frame, nil) {
				return nil
			}
		}
	}
}

// comesBack ends that the relay cannot be reached, which s.cut begins.
func (s *sidecar) comesBack() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.link, s.cut = context.WithCancel(context.Background())
}

func (s *sidecar) subscriptions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.open
}

func (s *sidecar) everBegun() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.begun
}

// say streams so many parts, whose texts have their numbers and are padded to a length.
func (s *sidecar) say(n, length int) {
	s.t.Helper()
	for range n {
		s.said++
		frame := parts.Frame{Seq: s.said, Role: "Assistant",
			Part: parts.Part{Type: parts.Text, ID: "0", Text: strconv.FormatInt(s.said, 10) + strings.Repeat(".", length)}}
		check.OK(s.t, s.writer.Append(s.said, frame.AppendJSON(nil)))
	}
}

func (s *sidecar) end() {
	s.t.Helper()
	check.OK(s.t, s.store.Close(attempt.Fence))
}

// follower reads in the background, and checks that what it gets follows on what it has.
type follower struct {
	t      *testing.T
	reader *Reader
	stop   func()

	mu   sync.Mutex
	last int64
}

// follow begins to read behind a number, until the test ends or stop is called.
func follow(t *testing.T, h *Hub, after int64) *follower {
	t.Helper()
	f := &follower{t: t, last: after, reader: h.Join(t.Context(), attempt, after)}
	ctx, cancel := context.WithCancel(context.Background())
	var reading sync.WaitGroup
	reading.Go(func() {
		defer f.reader.Close()
		for {
			select {
			case <-f.reader.Ready():
				f.take(ctx)
			case <-ctx.Done():
				return
			}
		}
	})
	f.stop = sync.OnceFunc(func() { cancel(); reading.Wait() })
	t.Cleanup(f.stop)
	return f
}

func (f *follower) take(ctx context.Context) {
	for seq, data := range f.reader.Take(ctx).All() {
		f.mu.Lock()
		last := f.last
		f.last = seq
		f.mu.Unlock()
		var part stream.MessagePart
		if err := json.Unmarshal(data, &part); err != nil {
			f.t.Errorf("part %d: %v", seq, err)
		}
		if seq != last+1 || part.Seq != seq || !strings.HasPrefix(part.Part.Text+".", fmt.Sprint(seq, ".")) ||
			part.HistoryVersion != 7 || part.Attempt != 2 {
			f.t.Errorf("behind %d came part %d: %.100s", last, seq, data)
		}
	}
}

func (f *follower) at() int64 {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.last
}

// reaches waits until it has a part. It reports whether that came, for those who are not the test itself.
func (f *follower) reaches(seq int64) bool {
	deadline := time.After(time.Minute)
	for f.at() < seq {
		select {
		case <-time.After(time.Millisecond):
		case <-deadline:
			f.t.Errorf("waited in vain for part %d behind %d", seq, f.at())
			return false
		}
	}
	return true
}

// waitAll waits until all have a part.
func waitAll(t *testing.T, seq int64, followers ...*follower) {
	t.Helper()
	waiting.Until(t, time.Minute, fmt.Sprint("all have part ", seq), func() bool {
		return !slices.ContainsFunc(followers, func(f *follower) bool { return f.at() < seq })
	})
}
