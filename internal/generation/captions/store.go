// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package captions

import (
	"context"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
)

// maxKept limits the captions in the store. The oldest are dropped.
const maxKept = 2048

// caption identifies a caption. A chat has one summary at a time. A title belongs to one edition of a message, or to
// the token of a person's request for another title.
type caption struct {
	action        v1beta1.GenerationAction
	chat, message types.UID
	edition       int64
	token         string
}

// store asks models for captions, each once, and keeps the answers until a step of the chat writes them.
type store struct {
	mu    sync.Mutex
	kept  map[caption]*sideCall
	order []caption // oldest first
	calls sync.WaitGroup
}

// sideCall is a call of a model for a caption.
type sideCall struct {
	text string // empty until the call has ended
	// account is nil until the call has ended, and after a result has accounted for it.
	account *v1beta1.CallAccount
	cancel  context.CancelFunc
}

// begin asks for a caption in the background, unless it has been asked for before.
func (s *store) begin(ctx context.Context, of caption, ask func(context.Context) (string, *v1beta1.CallAccount)) {
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

// newestTitle is the newest title of the chat; zero if there is none.
func (s *store) newestTitle(chat types.UID) caption {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, of := range slices.Backward(s.order) {
		if of.chat == chat && of.action == v1beta1.ActionWriteTitle {
			return of
		}
	}
	return caption{}
}

func (s *store) text(of caption) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if call := s.kept[of]; call != nil {
		return call.text
	}
	return ""
}

// swapAccount returns the account of the call, and replaces it. The result that accounts for the call leaves nil,
// because the next step can end before that result is known to exist. A result that is not created puts the account
// back.
func (s *store) swapAccount(of caption, account *v1beta1.CallAccount) *v1beta1.CallAccount {
	s.mu.Lock()
	defer s.mu.Unlock()
	call := s.kept[of]
	if call == nil {
		return nil
	}
	account, call.account = call.account, account
	return account
}

// abandon cancels and drops the call.
func (s *store) abandon(of caption) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.forget(of)
}

// forget is abandon. The caller holds mu.
func (s *store) forget(of caption) {
	if call := s.kept[of]; call != nil {
		call.cancel()
		delete(s.kept, of)
		s.order = slices.DeleteFunc(s.order, func(other caption) bool { return other == of })
	}
}

// stop cancels all calls and waits for their end.
func (s *store) stop() {
	s.mu.Lock()
	for _, call := range s.kept {
		call.cancel()
	}
	s.mu.Unlock()
	s.calls.Wait()
}
