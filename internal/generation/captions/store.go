// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package captions

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1alpha1"
)

// maxKept is how many captions are kept, those under way included. One that is forgotten is none.
const maxKept = 2048

// caption names what a model is asked for. There is one summary per chat at a time. A title belongs to one edition of a
// message: an edited message gets another title. Where a person asked for another title, the token of the request
// stands for message and edition.
type caption struct {
	action        v1alpha1.GenerationAction
	chat, message types.UID
	edition       int64
	token         string
}

// store asks models for captions, each once, and keeps the answers: a title has no write of its own, so a step of the
// chat takes it along. It belongs to the writer and not to an attempt, which does not wait for it.
type store struct {
	mu    sync.Mutex
	kept  map[caption]*sideCall
	order []caption // oldest first
	calls sync.WaitGroup
}

// sideCall is a call of a model for a caption.
type sideCall struct {
	// text is empty while the call is under way, and if nothing came of it.
	text string
	// account is what it used up; nil until it is over, and again once a result accounts for it.
	account *v1alpha1.CallAccount
	cancel  context.CancelFunc
}

// begin asks for a caption in a goroutine of its own, unless that has been done before.
func (s *store) begin(ctx context.Context, of caption, ask func(context.Context) (string, *v1alpha1.CallAccount)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.kept[of] != nil || ctx.Err() != nil {
		return
	}
	if s.kept == nil {
		s.kept = map[caption]*sideCall{}
	}
	if len(s.order) == maxKept {
		s.forget(s.order[0])
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	call := &sideCall{cancel: cancel}
	s.kept[of] = call
	s.order = append(s.order, of)
	s.calls.Go(func() {
		defer cancel()
		text, account := ask(asking)
		s.mu.Lock()
		defer s.mu.Unlock()
		call.text, call.account = text, account
	})
}

// newestTitle is the newest title of the chat; zero if none was asked for.
func (s *store) newestTitle(chat types.UID) caption {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range slices.Backward(s.order) {
		if of.chat == chat && of.action == v1alpha1.ActionWriteTitle {
			return of
		}
	}
	return caption{}
}

// text is what was written.
func (s *store) text(of caption) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call := s.kept[of]; call != nil {
		return call.text
	}
	return ""
}

// swapAccount returns the account of the call, and keeps the given one in its place. The one result that accounts for
// the call takes it and leaves nil: the next step can end before it is known that the result exists. A result that is
// not created gives it back.
func (s *store) swapAccount(of caption, account *v1alpha1.CallAccount) *v1alpha1.CallAccount {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.kept[of]
	if call == nil {
		return nil
	}
	account, call.account = call.account, account
	return account
}

// abandon ends the call if it is under way, and forgets it.
func (s *store) abandon(of caption) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(of)
}

// forget is abandon for who holds mu.
func (s *store) forget(of caption) {
	if call := s.kept[of]; call != nil {
		call.cancel()
		delete(s.kept, of)
		s.order = slices.DeleteFunc(s.order, func(other caption) bool { return other == of })
	}
}

// stop ends all calls and waits for their end. No more may be begun.
func (s *store) stop() {
	s.mu.Lock()
	for _, call := range s.kept {
		call.cancel()
	}
	s.mu.Unlock()
	s.calls.Wait()
}
