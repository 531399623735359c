// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/netguard/retry"
	"parley.dev/parley/test/kit/check"
)

// slow is a world whose API server takes five seconds for a message, and is away for a while.
type slow struct {
	*world
	awayFrom, awayUntil time.Time
}

func (s slow) Get(ctx context.Context, chat *v1beta1.Chat, place Place) (*Committed, error) {
	if err := retry.Sleep(ctx, 5*time.Second); err != nil {
		return nil, err
	}
	if now := time.Now(); now.After(s.awayFrom) && now.Before(s.awayUntil) {
		return nil, errors.New("the API server is away")
	}
	return s.world.Get(ctx, chat, place)
}

var errLeft = errors.New("the client left")

// followSlowly follows a chat of 20 messages, none of which is kept, until its status comes. It returns how long
// nothing was sent at most, and the error. Keep-alives fail once the client has left.
func followSlowly(t *testing.T, leaves time.Duration) (silence time.Duration, err error) {
	t.Helper()
	w := newWorld()
	w.change(func() {
		for range 10 {
			w.user("u"+string(rune('a'+w.chat.Status.History.Length)), true)
			w.attempt(1)
			w.step(v1beta1.RoleAssistant)
		}
	})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	began, last := time.Now(), time.Now()
	sent := func() { silence, last = max(silence, time.Since(last)), time.Now() }
	f := Follower{
		Chats: w.view(ctx), Memory: NewMemory(1), KeepAliveEvery: 15 * time.Second,
		Messages: slow{w, began.Add(3 * time.Minute), began.Add(5 * time.Minute)},
		KeepAlive: func() error {
			if sent(); leaves > 0 && time.Since(began) > leaves {
				return errLeft
			}
			return nil
		},
		Send: func(e stream.Event) error {
			if sent(); e.Name == stream.EventStatus {
				stop()
			}
			return nil
		},
	}
	err = f.Run(ctx, Position{})
	return silence, err
}

func TestKeepAlivesComeWhileMessagesAreRead(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		silence, err := followSlowly(t, 0)
		if !errors.Is(err, context.Canceled) || silence > 30*time.Second {
			t.Errorf("nothing was sent for %s; %v", silence, err)
		}
	})
}

func TestReadingEndsWhenTheClientIsGone(t *testing.T) {
	for name, leaves := range map[string]time.Duration{"in the walk": time.Minute, "while sending": 4 * time.Minute} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began := time.Now()
				_, err := followSlowly(t, leaves)
				check.Equal(t, "ended", true, err != nil && time.Since(began) < leaves+30*time.Second)
			})
		})
	}
}
