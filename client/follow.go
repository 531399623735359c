// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"time"

	"parley.dev/parley/api/stream"
)

const (
	// firstPause is the least time before a lost stream is opened again, as streams ask for, and longestPause the most,
	// unless the gateway names another one.
	firstPause   = time.Second
	longestPause = 16 * time.Second
)

// FollowOptions say where a stream begins. The zero value is the start.
type FollowOptions struct {
	// FromNow leaves out what was committed before. It counts for chats alone, without LastEventID.
	FromNow bool
	// LastEventID is that of the last event that was taken: the stream continues behind it.
	LastEventID string
	// Lost is told why the stream cannot be opened, or has broken off, each time before it is opened again. It is called
	// by whoever takes the events, between two of them. nil: nobody is told.
	Lost func(err error)
}

// Follow tells the story of a chat: what is committed, and what is being said. It ends without an error behind
// stream.EventDeleted, and with one when ctx is done, when the gateway refuses, or when something else answers.
// A stream that is lost is opened again behind the last event that had an id, after a second, later after up to 16, or
// when the gateway says. A consumer that takes more than 10 seconds for an event loses the stream, too.
func (n Namespace) Follow(ctx context.Context, chat string, o FollowOptions) iter.Seq2[stream.Event, error] {
	return func(yield func(stream.Event, error) bool) {
		path, err := n.path("chats", chat, "stream")
		if err != nil {
			yield(stream.Event{}, err)
			return
		}
		query := url.Values{}
		if o.FromNow {
			query.Set("from", "now")
		}
		f := follower{way: *n.client, path: path, query: query, last: o.LastEventID, lost: o.Lost,
			endsWith: stream.EventDeleted}
		f.run(ctx, yield)
	}
}

// Watch tells how the chats of the namespace stand: all of them, stream.EventSynced, and then each change. It ends and
// resumes as Follow does, but for a chat that is deleted.
func (n Namespace) Watch(ctx context.Context, lastEventID string) iter.Seq2[stream.Event, error] {
	return func(yield func(stream.Event, error) bool) {
		path, err := n.path("chats")
		if err != nil {
			yield(stream.Event{}, err)
			return
		}
		f := follower{way: *n.client, path: path, query: url.Values{"watch": {"true"}}, last: lastEventID}
		f.run(ctx, yield)
	}
}

// follower follows one stream through its losses.
type follower struct {
	way   Client
	path  string
	query url.Values
	// last is the id to resume behind.
	last string
	// endsWith is the event that nothing follows.
	endsWith string
	lost     func(error)
	// begun is true once an event has come, and taken if one has come since a refusal of the token.
	begun, taken bool
	pause        time.Duration
}

// errOver means that whoever follows has had enough, or that nothing follows.
var errOver = errors.New("the stream is over")

// run yields events until they end. The last thing that it yields is the error that ended them, if one did.
func (f *follower) run(ctx context.Context, yield func(stream.Event, error) bool) {
	f.pause = firstPause
	for {
		lost := f.stream(ctx, func(e stream.Event) bool { return yield(e, nil) })
		if errors.Is(lost, errOver) {
			return
		}
		if ctx.Err() != nil {
			yield(stream.Event{}, context.Cause(ctx))
			return
		}
		if err := f.again(ctx, lost); err != nil {
			yield(stream.Event{}, err)
			return
		}
	}
}

// again waits until a stream that was lost can be opened again, and finds another way where there is one. It returns
// why the stream cannot be opened again.
func (f *follower) again(ctx context.Context, lost error) error {
	if refused, ok := errors.AsType[*Error](lost); ok && refused.Status == http.StatusUnauthorized {
		return f.renew(ctx, lost)
	}
	wait, ok := f.wait(lost)
	if !ok {
		return lost
	}
	if f.lost != nil {
		f.lost(lost)
	}
	select {
	case <-time.After(wait):
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	if f.way.Reopen != nil {
		_ = f.way.Reopen(ctx, &f.way, lost) // Until there is another way, the old one is tried.
	}
	return nil
}

// renew finds another token, unless nothing was heard since the last time.
func (f *follower) renew(ctx context.Context, refused error) error {
	if !f.taken {
		return refused
	}
	f.taken = false
	if f.way.Reopen != nil {
		if err := f.way.Reopen(ctx, &f.way, refused); err != nil {
			return refused
		}
		return nil
	}
	if f.way.Token == nil {
		return refused
	}
	return nil
}

// wait is how long to wait before a lost stream is opened again; false if that would not help.
func (f *follower) wait(lost error) (time.Duration, bool) {
	wait := f.pause
	f.pause = min(2*f.pause, longestPause)
	if refused, ok := errors.AsType[*Error](lost); ok {
		return max(wait, refused.RetryAfter), refused.passes(f.begun)
	}
	return wait, !final(lost)
}

// stream opens the stream once, and returns why it ended.
func (f *follower) stream(ctx context.Context, take func(stream.Event) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	query := f.query
	if f.last != "" && query.Has("from") {
		query = url.Values{}
	}
	request, err := f.way.request(ctx, http.MethodGet, f.path, query, nil)
	if err != nil {
		return err
	}
	if f.last != "" {
		request.Header.Set("Last-Event-ID", f.last)
	}
	return f.read(request, cancel, take)
}
