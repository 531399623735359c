// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/fence"
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

// live is where the parts of the attempt under way come from.
type live struct {
	parts Parts // nil: there are only whole messages
	pump  *pump
}

// follow makes the pump read the attempt under way behind a number, if there is one.
func (l *live) follow(ctx context.Context, chat *v1alpha1.Chat, after int64) {
	g := chat.Status.Generation
	if g == nil || l.parts == nil {
		l.stop()
		return
	}
	ep := attempts.Of(chat.UID, &chat.Status)
	if l.pump != nil && l.pump.episode == ep && l.pump.pod == g.Pod {
		return
	}
	l.stop()
	ctx, stop := context.WithCancel(ctx)
	p := &pump{episode: ep, pod: g.Pod, frames: make(chan parts.Frame), stop: stop, done: make(chan struct{})}
	namespace, source := chat.Namespace, l.parts
	go func() {
		defer close(p.done)
		p.run(ctx, source, namespace, after)
	}()
	l.pump = p
}

func (l *live) stop() {
	if l.pump == nil {
		return
	}
	l.pump.stop()
	<-l.pump.done
	l.pump = nil
}

// out is where the frames come from; nil, which never yields, if there is no pump.
func (l *live) out() <-chan parts.Frame {
	if l.pump == nil {
		return nil
	}
	return l.pump.frames
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
