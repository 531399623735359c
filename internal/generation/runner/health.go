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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
)

const (
	// stuckAfter is how long canceled work may continue. The create of a result can take 30 s.
	stuckAfter = 45 * time.Second
	// watchSilence is how long the watch of chats may be silent before it is checked. The API server sends a bookmark
	// each minute.
	watchSilence = 90 * time.Second
	// askTimeout limits this check. The kubelet's probe waits 5 s.
	askTimeout = 3 * time.Second
)

// errStuck means that canceled work did not end.
var errStuck = errors.New("a call or an attempt that was canceled is still running")

// Healthy returns an error if this process cannot do its work: if canceled work does not end, or if the watch of chats
// is silent and misses an attempt. An unavailable API server is no error: a restart would only lose the running calls.
func (r *Runner) Healthy(ctx context.Context) error {
	r.mu.Lock()   // A deadlock makes the probe time out.
	r.mu.Unlock() //nolint:staticcheck // The lock itself is checked.
	if r.endings.isLate() {
		return errStuck
	}
	if !r.ready.Load() || r.pulse.silence(r.options.Now()) < watchSilence {
		return nil
	}
	return r.checkWatch(ctx)
}

// checkWatch lists the chats of this pod, and returns an error if the watch has missed an attempt.
func (r *Runner) checkWatch(ctx context.Context) error {
	asking, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	options := metav1.ListOptions{FieldSelector: "status.generation.pod=" + r.options.Pod}
	chats, err := r.options.Client.Chats(r.options.Namespace).List(asking, options)
	if err != nil {
		return nil // See Healthy.
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range chats.Items {
		if chat := &chats.Items[i]; r.isMissed(chat) {
			return fmt.Errorf("the watch of chats is silent and does not show the attempt at chat %s", chat.Name)
		}
	}
	r.pulse.beat(r.options.Now())
	return nil
}

// isMissed reports whether the chat has an attempt for this pod that never began. The caller holds mu.
func (r *Runner) isMissed(chat *v1beta1.Chat) bool {
	if chat.Status.Generation == nil || !chat.DeletionTimestamp.IsZero() {
		return false
	}
	of, current := attempts.Of(chat.UID, &chat.Status), r.attempts[string(chat.UID)]
	isRunning := current != nil && current.fence == of // Its fence may have been evicted.
	return !isRunning && !r.hasBegun(of)
}

// pulse is the time of the last event of a watch.
type pulse struct{ at atomic.Int64 }

func (p *pulse) beat(now time.Time) { p.at.Store(now.UnixNano()) }

func (p *pulse) silence(now time.Time) time.Duration { return now.Sub(time.Unix(0, p.at.Load())) }

// follow beats for each list, event and bookmark of the source.
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

// endings monitors work that must end soon after its context.
type endings struct {
	now func() time.Time
	// running has the times at which the contexts of running work ended, in Unix nanoseconds; 0: not yet.
	running sync.Map
}

// expect begins to monitor work. The returned function ends that.
func (e *endings) expect(ctx context.Context) (over func()) {
	canceledAt := &atomic.Int64{}
	e.running.Store(canceledAt, nil)
	stop := context.AfterFunc(ctx, func() { canceledAt.Store(e.now().UnixNano()) })
	return func() {
		stop()
		e.running.Delete(canceledAt)
	}
}

// isLate reports whether any work is still running long after its context.
func (e *endings) isLate() (isLate bool) {
	e.running.Range(func(key, _ any) bool {
		canceledAt := key.(*atomic.Int64).Load()
		isLate = canceledAt != 0 && e.now().Sub(time.Unix(0, canceledAt)) > stuckAfter
		return !isLate
	})
	return isLate
}
