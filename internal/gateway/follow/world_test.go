// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/gateway/fanout"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// world is a chat, its messages and its relay, as a test says they are.
type world struct {
	mu       sync.Mutex
	chat     *v1beta1.Chat
	messages map[string]*v1beta1.ChatMessage
	frames   map[fence.Fence][]parts.Frame
	parts    *fanout.Hub // of frames
	failures int         // of the next Gets and Looks
	looks    int
	memory   *Memory
	lent     int // reads while memory was acquired for one
	changed  chan struct{}
	onGet    func(Place) // called under mu
}

func newWorld() *world {
	w := &world{messages: map[string]*v1beta1.ChatMessage{}, frames: map[fence.Fence][]parts.Frame{},
		changed: make(chan struct{})}
	w.parts = fanout.New(w, 1<<20)
	w.chat = newChat("uid-1")
	return w
}

func newChat(uid types.UID) *v1beta1.Chat {
	return chattest.In("demo", chattest.Chat("c", chattest.UID(uid)))
}

func (w *world) change(f func()) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.chat != nil {
		w.chat = w.chat.DeepCopy()
	}
	f()
	close(w.changed)
	w.changed = make(chan struct{})
}

// view is one follower's view of the world. Its notices are as lossy as Chats allows.
type view struct {
	*world
	notices chan struct{}
}

func (w *world) view(ctx context.Context) *view {
	v := &view{world: w, notices: make(chan struct{}, 1)}
	go func() {
		for ctx.Err() == nil {
			w.mu.Lock()
			changed := w.changed
			w.mu.Unlock()
			select {
			case v.notices <- struct{}{}: // now and then one too many, as informers do
			default:
			}
			select {
			case <-changed:
			case <-ctx.Done():
			}
		}
	}()
	return v
}

func (v *view) Latest() *v1beta1.Chat {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.chat
}

func (v *view) Changed() <-chan struct{} { return v.notices }

func (w *world) Get(_ context.Context, chat *v1beta1.Chat, place Place) (*Committed, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failures > 0 {
		w.failures--
		return nil, errors.New("the API server is away")
	}
	w.countLent()
	if w.onGet != nil {
		w.onGet(place)
	}
	msg := w.messages[place.Name]
	if msg == nil {
		return nil, ErrMissing
	}
	return Commit(chat, msg, place)
}

// countLent counts a read for which memory was acquired. The caller holds mu.
func (w *world) countLent() {
	if w.memory == nil {
		return
	}
	if !w.memory.sent.TryAcquire(w.memory.sent.Size) {
		w.lent++
		return
	}
	w.memory.sent.Release(w.memory.sent.Size)
}

// Of implements Notes.
func (w *world) Of(chat *v1beta1.Chat) (refs []NoteRef) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, msg := range w.messages {
		if note, ok := NoteOf(chat, msg); ok {
			refs = append(refs, note)
		}
	}
	return refs
}

// Read implements Notes.
func (w *world) Read(_ context.Context, _ *v1beta1.Chat, note NoteRef) (*v1beta1.ChatMessage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.failures > 0 {
		w.failures--
		return nil, errors.New("the API server is away")
	}
	w.countLent()
	if msg := w.messages[note.Name]; msg != nil {
		return msg.DeepCopy(), nil
	}
	return nil, ErrMissing
}

// Look implements Queue.
func (w *world) Look(_ context.Context, chat *v1beta1.Chat, name string) (stream.QueuedMessage, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.looks++
	if w.failures > 0 {
		w.failures--
		return stream.QueuedMessage{}, errors.New("the API server is away")
	}
	if msg := w.messages[name]; msg != nil {
		return Queued(chat, msg)
	}
	return stream.QueuedMessage{}, ErrMissing
}

// Subscribe implements fanout.Source.
func (w *world) Subscribe(ctx context.Context, _, _ string, ep fence.Fence, after int64) iter.Seq2[parts.Frame, error] {
	return func(yield func(parts.Frame, error) bool) {
		for {
			w.mu.Lock()
			frames, changed := w.frames[ep], w.changed
			w.mu.Unlock()
			for ; after < int64(len(frames)); after++ {
				if !yield(frames[after], nil) {
					return
				}
			}
			select {
			case <-changed:
			case <-ctx.Done():
				yield(parts.Frame{}, ctx.Err())
				return
			}
		}
	}
}

// user commits a User message, as the operator does when a turn begins.
func (w *world) user(name string, settled bool) {
	h := &w.chat.Status.History
	index, parent := h.Length, h.Head
	h.Version++
	h.Length, h.Head = index+1, name
	w.chat.Status.Turn = &v1beta1.TurnStatus{Message: name, Parent: parent, Index: index, HistoryVersion: h.Version}
	w.chat.Status.LastError = nil
	w.said(name, chattest.Content("say something about "+name))
	if settled {
		w.settle()
	}
}

// settle writes the status of the turn's message, which the operator does later.
func (w *world) settle() {
	turn := w.chat.Status.Turn
	w.messages[turn.Message].Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageCommitted,
		ChatUID: string(w.chat.UID), Parent: turn.Parent, Index: &turn.Index, HistoryVersion: turn.HistoryVersion}
}

// step commits what the attempt under way yielded.
func (w *world) step(role v1beta1.MessageRole) {
	msg := chattest.Answer(w.chat)
	chattest.Says("said by " + msg.Name)(msg)
	msg.Spec.Role, msg.Spec.Parts[0].ProviderMetadata = role, "opaque"
	w.holds(msg)
	h := &w.chat.Status.History
	h.Version, h.Length, h.Head = h.Version+1, h.Length+1, msg.Name
	w.chat.Status.Generation = nil
}

// said is a message of a person that is there, and in no history.
func (w *world) said(name string, change ...func(*v1beta1.ChatMessage)) {
	w.holds(chattest.User("c", name, append(change, chattest.Defaulted)...))
}

func (w *world) holds(msg *v1beta1.ChatMessage) {
	msg.UID = types.UID("uid-of-" + msg.Name)
	w.messages[msg.Name] = msg
}

func (w *world) attempt(n int32) {
	w.chat.Status.Phase = v1beta1.ChatRunning
	w.chat.Status.Generation = &v1beta1.GenerationStatus{Attempt: n, Action: v1beta1.ActionGenerateAssistant, Pod: "p"}
}

func (w *world) say(n int) {
	ep := fence.Fence{ChatUID: string(w.chat.UID), HistoryVersion: w.chat.Status.History.Version,
		Attempt: w.chat.Status.Generation.Attempt}
	for range n {
		seq := int64(len(w.frames[ep]) + 1)
		w.frames[ep] = append(w.frames[ep], parts.Frame{Seq: seq, Role: "Assistant",
			Part: parts.Part{Type: parts.Text, Text: fmt.Sprintf("%s#%d ", ep, seq)}})
	}
}

// client follows the world, and is cut after as many events with an id as cutAfter says (0: never), to come back with
// its last id.
type client struct {
	t        *testing.T
	w        *world
	cutAfter int
	from     Position

	mu     sync.Mutex
	events []stream.Event
	lastID string
	more   chan struct{}
	done   chan error
}

var errCut = errors.New("cut")

func (w *world) follow(t *testing.T, from Position, cutAfter int) *client {
	c := &client{t: t, w: w, cutAfter: cutAfter, from: from, more: make(chan struct{}, 1), done: make(chan error, 1)}
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(func() { cancel(); <-c.done })
	go func() {
		defer close(c.done)
		c.done <- c.run(ctx)
	}()
	return c
}

func (c *client) run(ctx context.Context) error {
	for {
		err := c.connect(ctx)
		if !errors.Is(err, errCut) {
			return err
		}
		if c.from, err = ParsePosition(c.lastID); err != nil {
			return err
		}
	}
}

func (c *client) connect(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	numbered := 0
	f := Follower{Chats: c.w.view(ctx), Messages: c.w, Parts: c.w.parts, Queue: c.w, Notes: c.w, Memory: c.w.memory,
		Send: func(e stream.Event) error {
			c.mu.Lock()
			defer c.mu.Unlock()
			c.events = append(c.events, e)
			if e.ID != "" {
				c.lastID = e.ID
				numbered++
			}
			select {
			case c.more <- struct{}{}:
			default:
			}
			if c.cutAfter > 0 && numbered == c.cutAfter {
				return errCut
			}
			return nil
		}}
	return f.Run(ctx, c.from)
}

// wait waits until the events satisfy a condition.
func (c *client) wait(what string, done func([]stream.Event) bool) []stream.Event {
	c.t.Helper()
	timeout := time.After(30 * time.Second)
	for {
		c.mu.Lock()
		events := append([]stream.Event(nil), c.events...)
		c.mu.Unlock()
		if done(events) {
			return events
		}
		select {
		case <-c.more:
		case <-timeout:
			c.t.Fatalf("waited in vain for %s; got %s", what, show(events))
		}
	}
}

func (c *client) waitID(id string) []stream.Event {
	c.t.Helper()
	return c.wait("event "+id, func(events []stream.Event) bool {
		for _, e := range events {
			if short(e.ID) == id {
				return true
			}
		}
		return false
	})
}

func (c *client) waitName(name string) []stream.Event {
	c.t.Helper()
	return c.wait("event "+name, func(events []stream.Event) bool { return count(events, name) > 0 })
}

func count(events []stream.Event, name string) (n int) {
	for _, e := range events {
		if e.Name == name {
			n++
		}
	}
	return n
}

// show writes events in short: ids where there are any, else names.
func show(events []stream.Event) []string {
	var out []string
	for _, e := range events {
		if e.ID != "" {
			out = append(out, short(e.ID))
		} else {
			out = append(out, e.Name)
		}
	}
	return out
}

func numbered(events []stream.Event) []stream.Event {
	var out []stream.Event
	for _, e := range events {
		if e.ID != "" {
			out = append(out, e)
		}
	}
	return out
}

func decode[T any](t *testing.T, e stream.Event) (v T) {
	t.Helper()
	check.OK(t, json.Unmarshal(e.Data, &v))
	return v
}

// at is where a client is behind an event of the first chat, whose id is written without the chat's identity.
func at(t *testing.T, id string) Position {
	t.Helper()
	if id != "" {
		id = identity("uid-1") + "." + id
	}
	p, err := ParsePosition(id)
	check.OK(t, err)
	return p
}

// short is an event id without the chat's identity.
func short(id string) string {
	_, rest, _ := strings.Cut(id, ".")
	return rest
}
