// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"slices"
	"strconv"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/chatlist"
	"parley.dev/parley/internal/gateway/compat"
	"parley.dev/parley/internal/gateway/follow"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/netguard/slowclient"
	"parley.dev/parley/internal/telemetry"
)

// eventStream sends events to one client until ctx is done or the client takes no more, or until the last event, which
// is no error.
type eventStream func(ctx context.Context, out *eventWriter) error

// opener prepares the stream of a caller that is authorized.
type opener func(r *http.Request, access auth.Access) (eventStream, *refusal.Error)

// handle serves a kind of stream.
func (g *Gateway) handle(open opener) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if refused := g.answer(w, r, open); refused != nil {
			g.refuse(w, r, refused)
		}
	}
}

// answer serves a stream to its end, or refuses to.
func (g *Gateway) answer(w http.ResponseWriter, r *http.Request, open opener) *refusal.Error {
	if r.ContentLength != 0 {
		w.Header().Set("Connection", "close") // The body is not read.
		return badRequest("a stream is asked for without a body")
	}
	access := auth.Access{Namespace: r.PathValue("namespace"), Chat: r.PathValue("chat")}
	caller, refused := g.admit(r.Context(), refusal.BearerToken(r.Header.Get("Authorization")), access)
	if refused != nil {
		return refused
	}
	defer caller.lease.Release()
	events, refused := open(r, access)
	if refused != nil {
		return refused
	}
	g.serve(w, r, events, caller)
	return nil
}

// serve sends the events. An error ends the stream, and the client resumes it if it wants to.
func (g *Gateway) serve(w http.ResponseWriter, r *http.Request, events eventStream, caller *session) {
	ctx, stop := caller.whilePermitted(r.Context())
	defer stop()
	out := &eventWriter{Writer: slowclient.New(w, g.writeTimeout), w: w}
	defer out.Close()
	out.begin()
	closed := g.config.Metrics.StreamOpened()
	err := events(ctx, out)
	reason := endStream(ctx, out, err)
	closed(reason)
	g.config.Log.DebugContext(ctx, "stream ended", "path", r.URL.Path, "reason", reason, "error", err)
}

// endStream returns why a stream ended. If the gateway ended it, the client receives why.
func endStream(ctx context.Context, out *eventWriter, err error) (reason string) {
	closing, ok := errors.AsType[*stream.Closing](context.Cause(ctx))
	switch {
	case ok:
		if event, err := stream.New(stream.EventClosing, "", closing); err == nil {
			_ = out.send(event) // or the client is gone
		}
		return closing.Reason
	case err == nil:
		return telemetry.StreamOver
	case errors.Is(out.Err(), os.ErrDeadlineExceeded):
		return telemetry.StreamTooSlow
	}
	return telemetry.StreamLeft
}

// openChat prepares the stream of a chat.
func (g *Gateway) openChat(r *http.Request, access auth.Access) (eventStream, *refusal.Error) {
	from, err := position(r)
	if err != nil {
		return nil, badRequest(err.Error())
	}
	watcher := g.chats.watch(access.Namespace, access.Chat)
	// An event id proves that there was a chat: a client that resumes receives its deletion, as if it had listened.
	if g.await(r.Context(), watcher) == nil && from.Chat == "" {
		watcher.stop()
		return nil, &refusal.Error{Status: http.StatusNotFound, Reason: refusal.NotFound,
			Message: fmt.Sprintf("there is no chat %s in namespace %s", access.Chat, access.Namespace)}
	}
	return func(ctx context.Context, out *eventWriter) error {
		defer watcher.stop()
		follower := g.follower(watcher)
		follower.Queue, follower.Notes = g.messages, g.notes
		follower.Send, follower.SendParts, follower.KeepAlive = out.send, out.sendAll, out.keepAlive
		return follower.Run(ctx, from)
	}, nil
}

func (g *Gateway) follower(chat *watcher) *follow.Follower {
	return &follow.Follower{Chats: chat, Messages: g.messages, Parts: g.parts, Memory: g.memory, Encodings: g.encoded,
		KeepAliveEvery: g.keepAlive}
}

// await returns the chat. It waits a moment for a chat that the gateway does not know, so that a new chat can be
// followed before the watch has reported it, and then returns nil.
func (g *Gateway) await(ctx context.Context, w *watcher) *v1beta1.Chat {
	ctx, cancel := context.WithTimeout(ctx, g.arrival)
	defer cancel()
	for {
		if chat := w.Latest(); chat != nil {
			return chat
		}
		select {
		case <-w.Changed():
		case <-ctx.Done():
			return nil
		}
	}
}

// openList prepares the stream of a namespace's chats.
func (g *Gateway) openList(r *http.Request, access auth.Access) (eventStream, *refusal.Error) {
	if !slices.Contains([]string{"", "1", "true"}, r.URL.Query().Get("watch")) {
		return nil, badRequest("watch must be true, 1 or empty; without it the list comes once")
	}
	from, err := chatlist.ParsePosition(lastEventID(r))
	if err != nil {
		return nil, badRequest(err.Error())
	}
	return func(ctx context.Context, out *eventWriter) error {
		lister := chatlist.Lister{
			Chats: g.chats, Logs: g.chats.logs, Namespace: access.Namespace,
			Send: out.send, KeepAlive: out.keepAlive, KeepAliveEvery: g.keepAlive,
		}
		return lister.Run(ctx, from)
	}, nil
}

func badRequest(message string) *refusal.Error {
	return &refusal.Error{Status: http.StatusBadRequest, Reason: refusal.BadRequest, Message: message}
}

// lastEventID is the id of the last event that the client has; empty if it has none.
func lastEventID(r *http.Request) string {
	if id := r.Header.Get("Last-Event-ID"); id != "" {
		return id
	}
	return r.URL.Query().Get("lastEventId")
}

// position is where in the chat the stream of a request begins.
func position(r *http.Request) (follow.Position, error) {
	query := r.URL.Query()
	at, err := follow.ParsePosition(lastEventID(r))
	if last := query.Get("last"); last != "" {
		var invalid error
		if at.Last, invalid = strconv.ParseInt(last, 10, 64); invalid != nil || at.Last <= 0 {
			return at, fmt.Errorf("last must be how many messages to begin with, not %.100q", last)
		}
	}
	switch from := query.Get("from"); {
	case from == "now" && at.Last > 0:
		return at, errors.New("from=now begins with no message, and last with some: leave one of them out")
	case err != nil || at.Chat != "" || from == "":
		return at, err
	case from == "now":
		return follow.Position{Now: true}, nil
	default:
		return at, fmt.Errorf("from must be now or left out, not %.100q", from)
	}
}

// may returns why a caller may not listen to a chat; nil if it may.
func (g *Gateway) may(ctx context.Context, token string, access auth.Access) *refusal.Error {
	if _, refused := g.config.Checker.Check(ctx, token, access); refused != nil {
		return refused
	}
	return g.refusesNamespace(access.Namespace)
}

// follow follows a chat for a caller of a protocol as a stream does: it counts as one, and ends with the permission. It
// returns why it ended.
func (g *Gateway) follow(ctx context.Context, f compat.Follow) error {
	caller, refused := g.admit(ctx, f.Token, f.Access)
	if refused != nil {
		return refused
	}
	defer caller.lease.Release()
	watcher := g.chats.watch(f.Access.Namespace, f.Access.Chat)
	defer watcher.stop()
	chat := g.await(ctx, watcher)
	if chat == nil {
		return &refusal.Error{Status: http.StatusServiceUnavailable, Reason: refusal.NotFound, RetryAfter: time.Second,
			Message: fmt.Sprintf("the gateway does not know chat %s: it is new, or was deleted. Try again", f.Access.Chat)}
	}
	closed := g.config.Metrics.StreamOpened()
	permitted, stop := caller.whilePermitted(ctx)
	defer stop()
	follower := g.follower(watcher)
	follower.Send, follower.KeepAlive = f.Send, f.Alive
	if !f.Live {
		follower.Parts = nil
	}
	err := follower.Run(permitted, f.From(chat))
	reason := telemetry.StreamOver
	if closing, ok := errors.AsType[*stream.Closing](err); ok {
		reason = closing.Reason
	} else if ctx.Err() != nil {
		reason = telemetry.StreamLeft
	}
	closed(reason)
	if err != nil {
		return fmt.Errorf("following chat %s: %w", f.Access.Chat, err)
	}
	return nil
}

// eventWriter writes server-sent events, which are sent when a call returns. It belongs to one goroutine.
type eventWriter struct {
	*slowclient.Writer
	w    http.ResponseWriter
	head []byte
}

// begin sends the header, and how long a client should wait before it reconnects. The client sends nothing from now on,
// so reads have no deadline. If it fails, so does every later write.
func (e *eventWriter) begin() {
	e.IgnoreReads()
	h := e.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Accel-Buffering", "no")
	e.w.WriteHeader(http.StatusOK)
	_ = e.write("retry: 1000\n\n")
}

func (e *eventWriter) send(event stream.Event) error { return e.sendAll([]stream.Event{event}) }

// sendAll sends events together.
func (e *eventWriter) sendAll(events []stream.Event) error {
	for _, event := range events {
		e.head = e.head[:0]
		if event.ID != "" {
			e.head = append(append(append(e.head, "id: "...), event.ID...), '\n')
		}
		e.head = append(append(append(e.head, "event: "...), event.Name...), "\ndata: "...)
		for _, piece := range [][]byte{e.head, event.Data, []byte("\n\n")} { // without a copy of long data
			_, _ = e.Write(piece) // Flush returns the error.
		}
	}
	return e.Flush()
}

// keepAlive sends a comment.
func (e *eventWriter) keepAlive() error { return e.write(": keep-alive\n\n") }

func (e *eventWriter) write(text string) error {
	_, _ = e.Write([]byte(text)) // Flush returns the error.
	return e.Flush()
}
