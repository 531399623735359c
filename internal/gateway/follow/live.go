// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/gateway/fanout"
)

// live is where the parts of the attempt under way come from.
type live struct {
	parts   *fanout.Hub // nil: there are only whole messages
	episode fanout.Episode
	reader  *fanout.Reader // nil: no attempt is under way
}

// follow reads the attempt under way behind a number, if there is one.
func (l *live) follow(ctx context.Context, chat *v1alpha1.Chat, after int64) {
	g := chat.Status.Generation
	if g == nil || l.parts == nil {
		l.stop()
		return
	}
	episode := fanout.Episode{Namespace: chat.Namespace, Pod: g.Pod, Fence: attempts.Of(chat.UID, &chat.Status)}
	if l.reader != nil && l.episode == episode {
		return
	}
	l.stop()
	l.episode, l.reader = episode, l.parts.Join(ctx, episode, after)
}

func (l *live) stop() {
	if l.reader != nil {
		l.reader.Close()
		l.reader = nil
	}
}

// ready carries a value when there may be parts; nil, which never does, if no attempt is under way.
func (l *live) ready() <-chan struct{} {
	if l.reader == nil {
		return nil
	}
	return l.reader.Ready()
}
