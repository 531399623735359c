// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"parley.dev/parley/api/stream"
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
			first = false
			f.story.take(e)
		})
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
