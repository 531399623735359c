// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bufio"
	"context"
	"fmt"
	"hash/fnv"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"
)

// event is a server-sent event as it came.
type event struct{ ID, Name, Data string }

// listener follows a chat over HTTP, and hangs up after as many events with an id as cutAfter says (0: never), to come
// back with the last id that it saw.
type listener struct {
	in       *installation
	path     string
	cutAfter int

	mu     sync.Mutex
	events []event
	lastID string
	// ended is how the last connection ended.
	ended string
	more  chan struct{}
	done  chan struct{}
	// stop hangs up for good.
	stop func()
}

func (in *installation) listen(chat, query string, cutAfter int) *listener {
	return in.listenTo(&listener{path: in.path(chat) + query, cutAfter: cutAfter})
}

// listenAt follows whatever is at a path.
func (in *installation) listenAt(path, last string) *listener {
	return in.listenTo(&listener{path: path, lastID: last})
}

func (in *installation) listenTo(l *listener) *listener {
	l.in, l.more, l.done = in, make(chan struct{}, 1), make(chan struct{})
	ctx, cancel := context.WithCancel(context.Background())
	l.stop = func() { cancel(); <-l.done }
	in.t.Cleanup(l.stop)
	go func() {
		defer close(l.done)
		for l.connect(ctx) {
		}
	}()
	return l
}

// connect follows until it hangs up, which it tells, or the stream ends.
func (l *listener) connect(ctx context.Context) bool {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, l.in.url+l.path, nil)
	if err != nil {
		l.in.t.Error(err)
		return false
	}
	req.Header.Set("Authorization", "Bearer "+l.in.token)
	if l.lastID != "" {
		req.Header.Set("Last-Event-ID", l.lastID)
	}
	resp, err := l.in.client.Do(req)
	if err != nil {
		return l.ends(err.Error())
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(resp.Body)
		return l.ends(fmt.Sprintf("%s: %s", resp.Status, body))
	}
	numbered := 0
	var e event
	for lines := bufio.NewReader(resp.Body); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			return l.ends(err.Error())
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			e.ID = value
		case "event":
			e.Name = value
		case "data":
			e.Data = value
		case "":
			if e.ID != "" {
				numbered++
			}
			l.add(e)
			e = event{}
			if l.cutAfter > 0 && numbered == l.cutAfter {
				return true
			}
		}
	}
}

// ends notes how a connection ended. There is no other.
func (l *listener) ends(how string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.ended = how
	return false
}

func (l *listener) add(e event) {
	if e.Name == "" { // a comment, or retry
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.events = append(l.events, e)
	if e.ID != "" {
		l.lastID = e.ID
	}
	select {
	case l.more <- struct{}{}:
	default:
	}
}

func (l *listener) wait(what string, found func(event) bool) []event {
	l.in.t.Helper()
	timeout := time.After(time.Minute)
	for {
		l.mu.Lock()
		events := append([]event(nil), l.events...)
		l.mu.Unlock()
		if slices.ContainsFunc(events, found) {
			return events
		}
		select {
		case <-l.more:
		case <-timeout:
			l.mu.Lock()
			defer l.mu.Unlock()
			l.in.t.Fatalf("the wait for %s timed out; got %v; the connection ended with %q", what, events, l.ended)
		}
	}
}

func (l *listener) waitID(id string) []event {
	l.in.t.Helper()
	return l.wait("event "+id, func(e event) bool { return short(e.ID) == id })
}

func (l *listener) waitName(name string) []event {
	l.in.t.Helper()
	return l.wait("event "+name, func(e event) bool { return e.Name == name })
}

func numbered(events []event) (out []event) {
	for _, e := range events {
		if e.ID != "" {
			out = append(out, e)
		}
	}
	return out
}

func ids(events []event) (out []string) {
	for _, e := range numbered(events) {
		out = append(out, short(e.ID))
	}
	return out
}

// short is an event id without the chat's identity.
func short(id string) string {
	_, rest, _ := strings.Cut(id, ".")
	return rest
}

// idOf is the event id of which one without the chat's identity is short.
func (c *conversation) idOf(id string) string {
	h := fnv.New32a()
	_, _ = h.Write([]byte(c.chat.UID))
	return fmt.Sprintf("%08x.%s", h.Sum32(), id)
}
