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

// maxTitles is how many titles are kept, those under way included. A title that is forgotten is none.
const maxTitles = 1024

// beginning names the message that a title is of, and its edition: what says something else has another title. Where
// another title was asked for, the token of the request stands for both.
type beginning struct {
	chat, message types.UID
	edition       int64
	asked         string
}

// titles asks models for titles, each once, and keeps the answers until a step of the chat takes them along: a title
// has no write of its own. It belongs to the writer and not to an attempt, since a reply that is done first does not
// wait for it.
type titles struct {
	mu    sync.Mutex
	made  map[beginning]*madeTitle
	order []beginning // oldest first
	calls sync.WaitGroup
}

type madeTitle struct {
	// text is empty while the call is under way, and if nothing came of it.
	text string
	// call is what it used up; nil until it is over, and again once a result accounts for it.
	call   *v1alpha1.CallAccount
	cancel context.CancelFunc
}

// begin asks for a title in a goroutine of its own, unless that has been done before.
func (t *titles) begin(ctx context.Context, of beginning, ask func(context.Context) (string, *v1alpha1.CallAccount)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.made[of] != nil || ctx.Err() != nil {
		return
	}
	if t.made == nil {
		t.made = map[beginning]*madeTitle{}
	}
	if len(t.order) == maxTitles {
		t.made[t.order[0]].cancel()
		delete(t.made, t.order[0])
		t.order = t.order[1:]
	}
	asking, cancel := context.WithTimeout(ctx, timeout)
	made := &madeTitle{cancel: cancel}
	t.made[of] = made
	t.order = append(t.order, of)
	t.calls.Go(func() {
		defer cancel()
		text, call := ask(asking)
		t.mu.Lock()
		defer t.mu.Unlock()
		made.text, made.call = text, call
	})
}

// begun is what the newest title of the chat is of; zero if none was asked for.
func (t *titles) begun(chat types.UID) beginning {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, of := range slices.Backward(t.order) {
		if of.chat == chat {
			return of
		}
	}
	return beginning{}
}

// of is the title that was made.
func (t *titles) of(of beginning) string {
	t.mu.Lock()
	defer t.mu.Unlock()
	if made := t.made[of]; made != nil {
		return made.text
	}
	return ""
}

// takeCall is the account of the call for a title, for the one result that accounts for it: nobody else gets it, since
// the next step can be done before it is known that the result exists.
func (t *titles) takeCall(of beginning) *v1alpha1.CallAccount {
	t.mu.Lock()
	defer t.mu.Unlock()
	made := t.made[of]
	if made == nil {
		return nil
	}
	call := made.call
	made.call = nil
	return call
}

// returnCall takes the account back from a result that does not come to be.
func (t *titles) returnCall(of beginning, call *v1alpha1.CallAccount) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if made := t.made[of]; made != nil && call != nil {
		made.call = call
	}
}

// abandon ends the call if it is under way, and forgets it.
func (t *titles) abandon(of beginning) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if made := t.made[of]; made != nil {
		made.cancel()
		delete(t.made, of)
		t.order = slices.DeleteFunc(t.order, func(other beginning) bool { return other == of })
	}
}

// stop ends all calls and waits for their end. No more may be begun.
func (t *titles) stop() {
	t.mu.Lock()
	for _, made := range t.made {
		made.cancel()
	}
	t.mu.Unlock()
	t.calls.Wait()
}
