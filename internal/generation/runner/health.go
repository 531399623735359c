// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
)

const (
	// stuckAfter is how long work may go on after it was told to end: 45 s. A create of a result that had begun may take
	// 30 s.
	stuckAfter = 45 * time.Second
	// watchSilence is how long the watch of chats may be silent before the API server is asked whether it misses
	// something: 90 s. The API server sends a bookmark each minute.
	watchSilence = 90 * time.Second
	// askTimeout bounds that question. The kubelet waits 5 s for the answer to its probe.
	askTimeout = 3 * time.Second
)

// errStuck says that work was told to end and did not.
var errStuck = errors.New("a call or an attempt that was canceled is still running")

// Healthy reports whether this process can still do its work: nil if it can. It cannot when something that was told to
// end (by a provider's silence, an interruption, or because the chat has moved on) does not, and when the watch of
// chats has gone silent and misses an attempt. An API server that does not answer is no reason: a restart would only
// lose the calls under way.
func (r *Runner) Healthy(ctx context.Context) error {
	r.mu.Lock()   // A lock that is never given back makes the probe time out, too.
	r.mu.Unlock() //nolint:staticcheck // That is all that it is taken for.
	if r.endings.late() {
		return errStuck
	}
	if !r.ready.Load() || r.pulse.silence(r.options.Now()) < watchSilence {
		return nil
	}
	return r.missesNothing(ctx)
}

// missesNothing asks the API server which chats this pod has, and reports one whose attempt the watch has not shown.
func (r *Runner) missesNothing(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	options := metav1.ListOptions{FieldSelector: "status.generation.pod=" + r.options.Pod}
	chats, err := r.options.Client.Chats(r.options.Namespace).List(asking, options)
	if err != nil {
		return nil // It does not answer: see Healthy.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range chats.Items {
		if chat := &chats.Items[i]; r.unseen(chat) {
			return fmt.Errorf("the watch of chats is silent and does not show the attempt at chat %s", chat.Name)
		}
	}
	r.pulse.beat(r.options.Now())
	return nil
}

// unseen reports whether the chat has an attempt for this pod that was never begun. The caller holds mu.
func (r *Runner) unseen(chat *v1alpha1.Chat) bool {
	if chat.Status.Generation == nil || !chat.DeletionTimestamp.IsZero() {
		return false
	}
	of, current := attempts.Of(chat.UID, &chat.Status), r.attempts[string(chat.UID)]
	underWay := current != nil && current.fence == of // Its fence may be forgotten by now: not all are kept.
	return !underWay && !r.done.has(of)
}

// pulse is when a watch was last heard of.
type pulse struct{ at atomic.Int64 }

func (p *pulse) beat(now time.Time) { p.at.Store(now.UnixNano()) }

func (p *pulse) silence(now time.Time) time.Duration { return now.Sub(time.Unix(0, p.at.Load())) }

// follow notes each sign of life of the source: lists, events and bookmarks.
func (p *pulse) follow(source cache.ListerWatcher, now func() time.Time) cache.ListerWatcher {
	s := cache.ToListerWatcherWithContext(source)
	return &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			list, err := s.ListWithContext(ctx, options)
			if err == nil {
				p.beat(now())
			}
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			events, err := s.WatchWithContext(ctx, options)
			if err != nil {
				return nil, err
			}
			p.beat(now())
			return watch.Filter(events, func(e watch.Event) (watch.Event, bool) {
				p.beat(now())
				return e, true
			}), nil
		},
	}
}

// endings watches over work that has been told to end. The zero value is ready.
type endings struct {
	mu      sync.Mutex
	overdue map[*ending]bool
}

// ending is one piece of work that may be told to end.
type ending struct {
	timer *time.Timer
	over  bool
}

// expect notes the work as late if it still goes on so long after its context has ended. The returned function says
// that it is over.
func (e *endings) expect(ctx context.Context, within time.Duration) (over func()) {
	work := &ending{}
	told := context.AfterFunc(ctx, func() {
		e.mu.Lock()
		defer e.mu.Unlock()
		if !work.over {
			work.timer = time.AfterFunc(within, func() { e.note(work) })
		}
	})
	return func() {
		told()
		e.mu.Lock()
		defer e.mu.Unlock()
		work.over = true
		if work.timer != nil {
			work.timer.Stop()
		}
		delete(e.overdue, work)
	}
}

func (e *endings) note(work *ending) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if work.over {
		return
	}
	if e.overdue == nil {
		e.overdue = map[*ending]bool{}
	}
	e.overdue[work] = true
}

// late reports whether anything is late.
func (e *endings) late() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return len(e.overdue) > 0
}
