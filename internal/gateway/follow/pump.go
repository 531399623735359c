// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/fence"
	"parley.dev/parley/internal/stream/parts"
)

// pump reads the parts of one attempt in the background, until it is stopped or the episode is over. The relay may be
// unreachable, or the pod have no address yet: it keeps trying.
type pump struct {
	episode fence.Fence
	pod     string
	frames  chan parts.Frame
	stop    context.CancelFunc
	done    chan struct{}
}

// follow makes the pump read the attempt under way, if there is one.
func (f *Follower) follow(ctx context.Context, chat *v1alpha1.Chat) {
	g := chat.Status.Generation
	if g == nil || f.Parts == nil {
		f.stopPump()
		return
	}
	ep := attempts.Of(chat.UID, &chat.Status)
	if f.pump != nil && f.pump.episode == ep && f.pump.pod == g.Pod {
		return
	}
	f.stopPump()
	ctx, stop := context.WithCancel(ctx)
	p := &pump{episode: ep, pod: g.Pod, frames: make(chan parts.Frame), stop: stop, done: make(chan struct{})}
	namespace, after := chat.Namespace, f.seq
	go func() {
		defer close(p.done)
		p.run(ctx, f.Parts, namespace, after)
	}()
	f.pump = p
}

func (f *Follower) stopPump() {
	if f.pump == nil {
		return
	}
	f.pump.stop()
	<-f.pump.done
	f.pump = nil
}

// out is where the frames come from; nil, which never yields, if there is no pump.
func (p *pump) out() <-chan parts.Frame {
	if p == nil {
		return nil
	}
	return p.frames
}

func (p *pump) run(ctx context.Context, source Parts, namespace string, after int64) {
	for retries := backoff(); ctx.Err() == nil; {
		seen, whole := p.read(ctx, source, namespace, after)
		if whole {
			return
		}
		if seen > after {
			after, retries = seen, backoff()
		}
		select {
		case <-time.After(retries.Step()):
		case <-ctx.Done():
		}
	}
}

// read hands over the frames of one subscription. It tells the last one, and whether the episode is over.
func (p *pump) read(ctx context.Context, source Parts, namespace string, after int64) (last int64, whole bool) {
	last = after
	for frame, err := range source.Subscribe(ctx, namespace, p.pod, p.episode, after) {
		if err != nil {
			return last, false
		}
		select {
		case p.frames <- frame:
			last = frame.Seq
		case <-ctx.Done():
			return last, false
		}
	}
	return last, true
}
