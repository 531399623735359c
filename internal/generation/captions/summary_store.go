// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package captions

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// summaries asks models what became of turns, after the last reply of each. One that is not written when the chat goes
// on is given up. It belongs to the writer and not to an attempt, which is over by then.
type summaries struct {
	mu    sync.Mutex
	asked map[types.UID]*asking // by chat
	calls sync.WaitGroup
}

// asking is a call under way.
type asking struct{ cancel context.CancelFunc }

// begin asks in a goroutine of its own.
func (s *summaries) begin(ctx context.Context, chat types.UID, ask func(context.Context)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.asked[chat] != nil || ctx.Err() != nil {
		return
	}
	if s.asked == nil {
		s.asked = map[types.UID]*asking{}
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	this := &asking{cancel}
	s.asked[chat] = this
	s.calls.Go(func() {
		defer cancel()
		ask(ctx)
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.asked[chat] == this { // Otherwise it was given up, and another may be under way.
			delete(s.asked, chat)
		}
	})
}

// abandon gives up what is asked about the chat.
func (s *summaries) abandon(chat types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if this := s.asked[chat]; this != nil {
		this.cancel()
		delete(s.asked, chat)
	}
}

// stop ends all calls and waits for their end. No more may be begun.
func (s *summaries) stop() {
	s.mu.Lock()
	for _, this := range s.asked {
		this.cancel()
	}
	s.mu.Unlock()
	s.calls.Wait()
}
