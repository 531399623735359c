// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/cli/cluster"
)

// meanFollow is how long a follower stays connected, if nothing else ends the stream: it comes back by its last event's
// id, as a phone does that changes its network.
const meanFollow = 20 * time.Second

// follower follows one chat through the gateway all the time.
type follower struct {
	*world
	chat   string
	random *rand.Rand
	cancel context.CancelFunc
	ended  chan struct{}

	mu       sync.Mutex
	story    story
	connects int
	// gap is the longest time without a stream after one that was lost.
	gap time.Duration
}

// follow begins to follow the first chats.
func (w *world) follow(ctx context.Context) []*follower {
	var all []*follower
	for i := range w.followed {
		following, cancel := context.WithCancel(ctx)
		f := &follower{
			world: w, chat: chatName(i), random: rand.New(rand.NewPCG(w.seed, 2<<32+uint64(i))), cancel: cancel,
			ended: make(chan struct{}),
		}
		all = append(all, f)
		go func() {
			defer close(f.ended)
			f.run(following)
		}()
	}
	return all
}

func (f *follower) run(ctx context.Context) {
	var lost time.Time
	for pause(ctx, 200*time.Millisecond) {
		following, cancel := context.WithTimeout(ctx, meanFollow/2+time.Duration(f.random.Int64N(int64(meanFollow))))
		f.mu.Lock()
		last := f.story.last
		f.mu.Unlock()
		first := true
		// A stream that ends, or cannot be had, is what happens here all the time.
		_ = f.stream(following, f.chat, last, func(e stream.Event) {
			f.mu.Lock()
			defer f.mu.Unlock()
			if first {
				f.connects++
			}
			if first && !lost.IsZero() {
				f.gap = max(f.gap, time.Since(lost))
				lost = time.Time{}
			}
			first = false
			f.story.take(e)
		})
		if following.Err() == nil && lost.IsZero() {
			lost = time.Now()
		}
		cancel()
	}
}

// end waits until the follower has seen the whole history, stops it and returns what was wrong with its story.
func (f *follower) end(ctx context.Context, chain []string) []string {
	err := until(ctx, time.Minute, func(context.Context) error {
		f.mu.Lock()
		defer f.mu.Unlock()
		if n := len(f.story.chat.Messages); n < len(chain) {
			return fmt.Errorf("the follower of %s has seen %d of %d messages", f.chat, n, len(chain))
		}
		return nil
	})
	f.cancel()
	<-f.ended
	problems := f.story.problems
	if f.maxGap > 0 && f.gap > f.maxGap {
		problems = append(problems, fmt.Sprintf("the follower of %s had no stream for %s", f.chat, f.gap))
	}
	if err != nil {
		problems = append(problems, err.Error())
	}
	for i := range min(len(chain), len(f.story.chat.Messages)) {
		if name := f.story.chat.Messages[i].Message.Name; chain[i] != name {
			problems = append(problems,
				fmt.Sprintf("message %d of %s is %s, its follower was told %s", i, f.chat, chain[i], name))
			break
		}
	}
	if n := len(f.story.chat.Messages); n > len(chain) {
		problems = append(problems, fmt.Sprintf("the follower of %s was told %d messages, it has %d", f.chat, n, len(chain)))
	}
	return problems
}

// stream reads a chat's events behind the last one until the stream ends, for whatever reason.
func (w *world) stream(ctx context.Context, chat, last string, each func(stream.Event)) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	dialer := &cluster.Dialer{Options: cluster.GatewayOptions{Namespace: systemNamespace}, Config: w.cfg, Core: w.core}
	address, stop, err := dialer.Forward(ctx)
	if err != nil {
		return err
	}
	defer stop()
	gateway := &client.Client{URL: address,
		Token: func(context.Context) (string, error) { return w.token, nil },
		HTTP:  &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}}
	options := client.FollowOptions{LastEventID: last, Lost: func(error) { cancel() }}
	for e, err := range gateway.Namespace(w.ns).Follow(ctx, chat, options) {
		if err != nil {
			return err
		}
		each(e)
	}
	return nil
}

func isReady(p *corev1.Pod) bool {
	for _, c := range p.Status.Conditions {
		if c.Type == corev1.PodReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// story is what a follower of a chat was told, over all its connections. It holds that each committed message came once
// and in its place, that parts came without a gap, and that what was shown of a reply is how the reply begins.
type story struct {
	chat client.Transcript
	// last is the id to resume behind.
	last string
	// attempt whose parts came last, with the version of the history that it builds on.
	attempt  [2]int64
	parts    int
	problems []string
}

func (s *story) wrong(format string, args ...any) {
	s.problems = append(s.problems, "a follower: "+fmt.Sprintf(format, args...))
}

func (s *story) take(e stream.Event) {
	if e.ID != "" {
		s.last = e.ID
	}
	update, err := client.Decode(e)
	if err != nil {
		s.wrong("event %s cannot be read: %v", e.ID, err)
		return
	}
	switch u := update.(type) {
	case *stream.MessageCommitted:
		s.message(e.ID, u)
	case *stream.MessagePart:
		s.part(e.ID, u)
	case *client.Reset, client.Deleted, *stream.Error:
		s.wrong("%s: %s", e.Name, e.Data)
	}
	s.chat.Take(update)
}

// message checks a message before it is taken.
func (s *story) message(id string, m *stream.MessageCommitted) {
	if want := int64(len(s.chat.Messages)); m.Index != want {
		s.wrong("message %s (event %s) has index %d, the next is %d", m.Message.Name, id, m.Index, want)
	}
	shown := s.chat.Live.Text()
	if s.chat.Live.Previews(m.HistoryVersion-1, m.Message.Attempt) &&
		!strings.HasPrefix(text(m.Message.Content, m.Message.Parts), shown) {
		s.wrong("what was shown of %s is not how it begins: %q", m.Message.Name, shown)
	}
}

// part checks a part before it is taken.
func (s *story) part(id string, p *stream.MessagePart) {
	s.parts++
	seq, attempt := int64(0), [2]int64{p.HistoryVersion, int64(p.Attempt)}
	if s.chat.Live.Previews(p.HistoryVersion, p.Attempt) {
		seq = s.chat.Live.Seq
	}
	if attempt[0] < s.attempt[0] || attempt[0] == s.attempt[0] && attempt[1] < s.attempt[1] {
		s.wrong("part %s is of an older attempt than %v", id, s.attempt)
	}
	s.attempt = attempt
	if n := len(s.chat.Messages); n > 0 && p.HistoryVersion < s.chat.Messages[n-1].HistoryVersion {
		s.wrong("part %s came after the message that it is part of", id)
	}
	if p.Seq != seq+1 {
		s.wrong("part %s came after part %d", id, seq)
	}
}

// text is the whole text of a message.
func text(content string, all []v1beta1.MessagePart) string {
	b := strings.Builder{}
	b.WriteString(content)
	for _, p := range all {
		if p.Type == v1beta1.PartText {
			b.WriteString(*p.Text)
		}
	}
	return b.String()
}
