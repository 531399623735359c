// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"math/rand/v2"
	"net/http"
	"net/url"
	"strings"
	"time"

	"parley.dev/parley/api/stream"
)

const (
	// firstPause is the least time before a lost stream is opened again, as streams ask for, and longestPause the most,
	// unless the gateway names another one.
	firstPause   = time.Second
	longestPause = 16 * time.Second
	// handoverPause is the most time before a stream of a gateway that shuts down is opened at another one. It differs, so
	// that not all streams come at once.
	handoverPause = 250 * time.Millisecond
	// MaxEvent is the most bytes of one event: 16 MiB, a committed message of 1 MiB with its escapes.
	MaxEvent = 16 << 20
	// maxSilence is how long a stream may be silent: the gateway sends a comment every 15 s.
	maxSilence = time.Minute
)

var (
	// errOver means that the consumer stops, or that no event follows.
	errOver   = errors.New("the stream is over")
	errSilent = errors.New("the gateway has sent nothing for a minute")
)

// FollowOptions define where a stream begins. The zero value is the start.
type FollowOptions struct {
	// FromNow omits what was committed before. It counts for chats alone, without LastEventID.
	FromNow bool
	// LastEventID is the id of the last event that was read: the stream continues behind it.
	LastEventID string
	// Lost is called with the reason before a stream that cannot be opened, or has ended, is opened again. The goroutine
	// that reads the events calls it, between two events. Optional.
	Lost func(err error)
}

// Follow yields the events of a chat: committed messages and replies as they are generated. It ends without an error
// behind stream.EventDeleted, and with one when ctx is done, when the gateway refuses, or when something else answers.
// A lost stream is opened again behind the last event that had an id, after a second, later after up to 16, or
// when the gateway says. A stream of a gateway that shuts down is opened again within 250 ms. A consumer that takes
// more than 10 seconds for an event loses the stream, too.
func (n Namespace) Follow(ctx context.Context, chat string, o FollowOptions) iter.Seq2[stream.Event, error] {
	query := url.Values{}
	if o.FromNow {
		query.Set("from", "now")
	}
	return n.follow(ctx, follower{query: query, last: o.LastEventID, lost: o.Lost, endsWith: stream.EventDeleted},
		"chats", chat, "stream")
}

// Watch yields the chats of the namespace: all of them, stream.EventSynced, and then each change. It ends and
// resumes as Follow does, but for a chat that is deleted.
func (n Namespace) Watch(ctx context.Context, lastEventID string) iter.Seq2[stream.Event, error] {
	return n.follow(ctx, follower{query: url.Values{"watch": {"true"}}, last: lastEventID}, "chats")
}

func (n Namespace) follow(ctx context.Context, f follower, words ...string) iter.Seq2[stream.Event, error] {
	return func(yield func(stream.Event, error) bool) {
		path, err := n.path(words...)
		if err != nil {
			yield(stream.Event{}, err)
			return
		}
		f := f
		f.way, f.path, f.pause = *n.client, path, firstPause
		f.run(ctx, yield)
	}
}

type follower struct {
	way   Client
	path  string
	query url.Values
	// last is the id to resume behind.
	last string
	// endsWith is the event that nothing follows.
	endsWith string
	lost     func(error)
	// started is true after the first event, and renewable after the first event since the token was refused.
	started, renewable bool
	pause              time.Duration
}

// run yields events until they end. If an error ended them, it is the last thing that run yields.
func (f *follower) run(ctx context.Context, yield func(stream.Event, error) bool) {
	for {
		err := f.stream(ctx, yield)
		if errors.Is(err, errOver) {
			return
		}
		if ctx.Err() != nil {
			err = context.Cause(ctx)
		} else {
			err = f.prepareRetry(ctx, err)
		}
		if err != nil {
			yield(stream.Event{}, err)
			return
		}
	}
}

// prepareRetry waits until a lost stream can be opened again, and finds another way where there is one. It returns
// why the stream cannot be opened again.
func (f *follower) prepareRetry(ctx context.Context, lost error) error {
	refused, isRefused := errors.AsType[*Error](lost)
	switch {
	case isRefused && refused.Status == http.StatusUnauthorized:
		return f.renewToken(ctx, lost)
	case isRefused && !refused.isTransient(f.started), isPermanent(lost):
		return lost
	}
	wait := f.pause
	if isRefused {
		wait = max(wait, refused.RetryAfter)
	}
	f.pause = min(max(firstPause, 2*f.pause), longestPause)
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

// renewToken finds another token, unless no event has come since the last time.
func (f *follower) renewToken(ctx context.Context, refused error) error {
	renewable := f.renewable
	f.renewable = false
	switch {
	case !renewable:
		return refused
	case f.way.Reopen != nil:
		if f.way.Reopen(ctx, &f.way, refused) != nil {
			return refused
		}
	case f.way.Token == nil:
		return refused
	}
	return nil
}

// stream opens the stream once and yields its events. It returns why the stream ended.
func (f *follower) stream(ctx context.Context, yield func(stream.Event, error) bool) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	query, header := f.query, http.Header{}
	if f.last != "" {
		header.Set("Last-Event-ID", f.last)
		if query.Has("from") {
			query = nil
		}
	}
	silence := time.AfterFunc(maxSilence, func() { cancel(errSilent) })
	defer silence.Stop()
	response, err := f.way.send(ctx, http.MethodGet, f.path, query, header, nil)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }()
	return readEvents(response.Body, func(e stream.Event) error {
		if e.Name == "" { // A sign of life.
			silence.Reset(maxSilence)
			return nil
		}
		silence.Stop() // The consumer may take its time.
		defer silence.Reset(maxSilence)
		f.started, f.renewable, f.pause = true, true, firstPause
		if e.ID != "" {
			f.last = e.ID
		}
		if isHandover(e) {
			f.pause = rand.N(handoverPause)
		}
		if !yield(e, nil) || e.Name == f.endsWith {
			return errOver
		}
		return nil
	})
}

// isHandover reports whether the gateway ends the stream because it shuts down.
func isHandover(e stream.Event) bool {
	if e.Name != stream.EventClosing {
		return false
	}
	closing, err := stream.Decode[stream.Closing](e)
	return err == nil && closing.Reason == stream.ClosingShutdown
}

// readEvents reads server-sent events. A block that is no event, such as a comment, is passed on without a name. An
// event that the end of the stream cuts is dropped, and an event without an id inherits none. go-sse differs in all
// three.
func readEvents(body io.Reader, each func(stream.Event) error) error {
	lines := bufio.NewScanner(body)
	lines.Buffer(make([]byte, 0, 64<<10), MaxEvent)
	var e stream.Event
	for lines.Scan() {
		field, value, _ := strings.Cut(lines.Text(), ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "id":
			e.ID = value
		case "event":
			e.Name = value
		case "data":
			e.Data = []byte(value)
		case "":
			if lines.Text() != "" {
				continue // A comment belongs to no event.
			}
			if err := each(e); err != nil {
				return err
			}
			e = stream.Event{}
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("reading the stream: %w", err)
	}
	return io.ErrUnexpectedEOF
}
