// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/client"
	"parley.dev/parley/internal/stream/publish"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realgateway"
	"parley.dev/parley/test/kit/waiting"
)

// service is an address that leads to each of the gateways that are ready in turn, as a Service does.
type service struct {
	url      string
	gateways []*realgateway.Gateway
	next     atomic.Int64
	carrying sync.WaitGroup
}

func serve(t *testing.T, gateways ...*realgateway.Gateway) *service {
	t.Helper()
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	check.OK(t, err)
	s := &service{url: "http://" + listener.Addr().String(), gateways: gateways}
	s.carrying.Go(func() {
		for from, err := listener.Accept(); err == nil; from, err = listener.Accept() {
			s.carrying.Go(func() { s.carry(from) })
		}
	})
	t.Cleanup(func() { _ = listener.Close(); s.carrying.Wait() })
	return s
}

// carry carries a connection until one of its ends is closed.
func (s *service) carry(from net.Conn) {
	defer func() { _ = from.Close() }()
	for range s.gateways {
		g := s.gateways[int(s.next.Add(1))%len(s.gateways)]
		if !g.Ready() {
			continue
		}
		to, err := net.Dial("tcp4", strings.TrimPrefix(g.URL, "http://"))
		if err != nil {
			continue
		}
		var ends sync.WaitGroup
		for _, pair := range [][2]net.Conn{{from, to}, {to, from}} {
			ends.Go(func() { _, _ = io.Copy(pair[1], pair[0]); _ = from.Close(); _ = to.Close() })
		}
		ends.Wait()
		return
	}
}

// reader follows a chat, and holds that nothing of it is lost or comes twice.
type reader struct {
	mu         sync.Mutex
	transcript client.Transcript
	// seq is the number of the last part, and closings are why streams ended.
	seq      int64
	closings []string
	problems []string
}

func (r *reader) follow(ctx context.Context, chats client.Namespace, chat string) {
	for e, err := range chats.Follow(ctx, chat, client.FollowOptions{}) {
		if err != nil && ctx.Err() == nil {
			r.wrong("the stream ended: %v", err)
		}
		if err != nil {
			return
		}
		update, err := client.Decode(e)
		if err != nil {
			r.wrong("event %s: %v", e.ID, err)
			continue
		}
		r.take(e, update)
	}
}

func (r *reader) take(e stream.Event, update client.Update) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.Name == stream.EventClosing {
		r.closings = append(r.closings, string(e.Data))
	}
	switch u := update.(type) {
	case *stream.MessageCommitted:
		if want := int64(len(r.transcript.Messages)); u.Index != want {
			r.problems = append(r.problems, fmt.Sprintf("message %d comes after %d", u.Index, want-1))
		}
	case *stream.MessagePart:
		if u.Seq != r.seq+1 {
			r.problems = append(r.problems, fmt.Sprintf("part %d comes after %d", u.Seq, r.seq))
		}
		r.seq = u.Seq
	case *client.Reset:
		r.problems = append(r.problems, "the history is reset")
	}
	r.transcript.Take(update)
}

func (r *reader) wrong(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.problems = append(r.problems, fmt.Sprintf(format, args...))
}

// hears waits until the reader has so many parts more.
func (r *reader) hears(t *testing.T, more int64) {
	t.Helper()
	seq := func() int64 { r.mu.Lock(); defer r.mu.Unlock(); return r.seq }
	before := seq()
	waiting.Until(t, time.Minute, fmt.Sprintf("%d more parts come", more), func() bool { return seq() >= before+more })
}

// speak publishes parts until it is stopped, which returns their text.
func speak(episode *publish.Episode) (stop func() string) {
	ctx, cancel := context.WithCancel(context.Background())
	said := make(chan string)
	go func() {
		var text strings.Builder
		for i := 0; ctx.Err() == nil; i++ {
			word := fmt.Sprintf("w%d ", i)
			text.WriteString(word)
			episode.Publish("Assistant", parts.Part{Type: parts.Text, ID: "0", Text: word})
			select {
			case <-ctx.Done():
			case <-time.After(10 * time.Millisecond):
			}
		}
		said <- text.String()
	}()
	return func() string { cancel(); return <-said }
}

// TestStreamsMoveBetweenGatewaysWithoutLoss rolls two gateways behind one address, as a rollout or a drain does, and
// then kills one of them.
func TestStreamsMoveBetweenGatewaysWithoutLoss(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := w.startGateway()
	address := serve(t, w.gateway, second)
	s := w.tell("c", 4)
	token := w.person("anna", "parley-chat-user")
	chats := (&client.Client{URL: address.url, Token: func(context.Context) (string, error) { return token, nil }}).
		Namespace(w.namespace)
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	readers := []*reader{{}, {}} // One at each gateway.
	for _, r := range readers {
		following.Go(func() { r.follow(ctx, chats, "c") })
	}
	defer following.Wait()
	defer cancel()
	stop := speak(s.attempt())
	all := func(do func(*reader)) {
		for _, r := range readers {
			do(r)
		}
	}
	all(func(r *reader) { r.hears(t, 10) })
	for _, g := range []*realgateway.Gateway{w.gateway, second} {
		g.Stop()
		all(func(r *reader) { r.hears(t, 10) })
		g.Again()
	}
	second.Kill()
	all(func(r *reader) { r.hears(t, 10) })
	s.finish(stop())
	all(func(r *reader) {
		waiting.Until(t, time.Minute, "the reply is committed", func() bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return len(r.transcript.Messages) == 5
		})
		check.Equal(t, "problems", nil, r.problems)
		check.Contains(t, strings.Join(r.closings, "\n"), stream.ClosingShutdown)
	})
}

// finish commits the reply of the attempt.
func (s *story) finish(text string) {
	s.t.Helper()
	write(s.t, []*v1beta1.ChatMessage{s.answer(chattest.Says(text))})
	s.chat.Status.Phase = v1beta1.ChatWaiting
	s.commit()
}

// TestGatewaysShareWhatOneHasWritten sends messages by one gateway, and again and again by the other.
func TestGatewaysShareWhatOneHasWritten(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	second := w.startGateway()
	w.tell("c", 2)
	token := w.person("anna", "parley-chat-user")
	at := func(g *realgateway.Gateway) client.Namespace {
		return (&client.Client{URL: g.URL, Token: func(context.Context) (string, error) { return token, nil }}).
			Namespace(w.namespace)
	}
	message := client.NewMessage{Name: "once", Content: "Are you there?"}
	_, err := at(w.gateway).Send(t.Context(), "c", message)
	check.OK(t, err)
	_, err = at(second).Send(t.Context(), "c", message)
	if refused, ok := errors.AsType[*client.Error](err); !ok || refused.Reason != "AlreadyExists" {
		t.Errorf("a repeated message: %v", err)
	}
	_, err = at(w.gateway).CreateChat(t.Context(), client.NewChat{Name: "new"})
	check.OK(t, err)
	for e, err := range at(second).Follow(t.Context(), "new", client.FollowOptions{}) {
		check.OK(t, err)
		if e.Name == stream.EventStatus {
			break
		}
	}
}
