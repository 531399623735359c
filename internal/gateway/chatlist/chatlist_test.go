// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatlist

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// world is what exists, as an informer would know it.
type world struct {
	logs *Logs

	mu    sync.Mutex
	chats map[string]*v1beta1.Chat
}

func newWorld() *world { return &world{logs: NewLogs(), chats: map[string]*v1beta1.Chat{}} }

func (w *world) List(namespace string) (all []*v1beta1.Chat) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, chat := range w.chats {
		if chat.Namespace == namespace {
			all = append(all, chat)
		}
	}
	slices.SortFunc(all, func(a, b *v1beta1.Chat) int { return strings.Compare(a.Name, b.Name) })
	return all
}

func (w *world) Get(namespace, name string) *v1beta1.Chat {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.chats[namespace+"/"+name]
}

// put changes a chat, makes it, or with no change at all removes it.
func (w *world) put(namespace, name string, change func(*v1beta1.Chat)) {
	key := namespace + "/" + name
	w.mu.Lock()
	before := w.chats[key]
	var after *v1beta1.Chat
	switch {
	case change == nil:
		delete(w.chats, key)
	case before == nil:
		after = &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name, UID: types.UID("uid-" + name)}}
	default:
		after = before.DeepCopy()
	}
	if after != nil {
		change(after)
		w.chats[key] = after
	}
	w.mu.Unlock()
	w.logs.Changed(before, after)
}

func titled(title string) func(*v1beta1.Chat) {
	return func(c *v1beta1.Chat) { c.Status.Title = title }
}

// client is what somebody was told.
type client struct {
	told []string
	last string
	stop context.CancelFunc
	done chan error
}

// listen tells a client from a position. Within a bubble, synctest.Wait settles what it was told.
func (w *world) listen(t *testing.T, from string) *client {
	t.Helper()
	at, err := ParsePosition(from)
	check.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	c := &client{stop: cancel, done: make(chan error, 1)}
	lister := Lister{Chats: w, Logs: w.logs, Namespace: "demo", Send: func(e stream.Event) error {
		var s struct{ Name, Title string }
		if err := json.Unmarshal(e.Data, &s); err != nil {
			return err
		}
		c.told = append(c.told, strings.TrimSpace(fmt.Sprintf("%s %s %s", e.Name, s.Name, s.Title)))
		if e.ID != "" {
			c.last = e.ID
		}
		return nil
	}}
	go func() { c.done <- lister.Run(ctx, at) }()
	settle()
	return c
}

func settle() {
	<-time.After(2 * debounce)
	synctest.Wait()
}

func (c *client) expect(t *testing.T, what string, want ...string) {
	t.Helper()
	settle()
	check.Equal(t, what, want, c.told)
	c.told = nil
}

func TestListStreamSendsSnapshotThenChanges(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put("demo", "a", titled("A"))
		w.put("demo", "b", titled("B"))
		w.put("other", "x", titled("X"))
		c := w.listen(t, "")
		c.expect(t, "the list", "added a A", "added b B", "synced")
		w.put("demo", "c", titled("C"))
		w.put("other", "y", titled("Y"))
		c.expect(t, "another chat", "added c C")
		w.put("demo", "a", titled("A2"))
		w.put("demo", "a", titled("A3"))
		w.put("demo", "b", nil)
		c.expect(t, "changes that follow closely", "modified a A3", "deleted b")
		w.put("demo", "a", func(c *v1beta1.Chat) { c.Status.History.Version++ })
		c.expect(t, "what a list does not show")
		w.put("demo", "a", func(c *v1beta1.Chat) { c.UID, c.Status.Title = "uid-new", "new" })
		c.expect(t, "a chat that was created again unseen", "deleted a", "added a new")
		c.stop()
		if err := <-c.done; !errors.Is(err, context.Canceled) {
			t.Errorf("it ended in %v", err)
		}
	})
}

func TestListIsResumedWhileChangesAreRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put("demo", "a", titled("A"))
		w.put("demo", "b", titled("B"))
		c := w.listen(t, "")
		settle()
		c.stop()
		<-c.done
		w.put("demo", "a", titled("A2"))
		w.put("demo", "b", nil)
		back := w.listen(t, c.last)
		back.expect(t, "what changed meanwhile", "modified a A2", "deleted b", "synced")
		back.stop()
		<-back.done
		w.listen(t, back.last).expect(t, "nothing changed", "synced")
		w.listen(t, "01234567.2").expect(t, "an id of another process", "list_reset", "added a A2", "synced")
		for i := range 2 * maxEntries {
			w.put("demo", "a", titled(fmt.Sprint(i)))
		}
		w.listen(t, c.last).expect(t, "after too many changes", "list_reset", "added a 2047", "synced")
	})
}

func TestANamespaceThatWasForgottenIsToldAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld()
		w.put("demo", "a", titled("A"))
		c := w.listen(t, "")
		c.stop()
		<-c.done
		for i := range maxIdle {
			w.logs.read(fmt.Sprint(i)).stop()
		}
		if w.logs.has("demo") {
			t.Fatal("it is remembered")
		}
		w.put("demo", "a", titled("A2"))
		w.listen(t, c.last).expect(t, "the list", "list_reset", "added a A2", "synced")
	})
}

func TestAListShowsWhatAListNeeds(t *testing.T) {
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
	chat.Spec.ParentRef, chat.Spec.Suspend = &v1beta1.ChatReference{Name: "p"}, true
	chat.Status = v1beta1.ChatStatus{
		Root:  &v1beta1.FamilyRoot{Name: "top", UID: "top-uid", Workspace: "top"},
		Phase: v1beta1.ChatError, Title: "T", LastReply: "R", Model: "m", Archived: true,
		History: v1beta1.HistoryStatus{Length: 3, Version: 7},
		Queue:   []v1beta1.QueuedMessage{{Name: "q"}},
		Turn:    &v1beta1.TurnStatus{Message: "t", Summary: "S"},
		Cost:    []v1beta1.Cost{{Currency: "EUR"}},
		Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse, Reason: "RateLimited",
			Message: "wait"}},
	}
	s := SummaryOf(chat)
	if s.Parent != "p" || *s.Root != *chat.Status.Root ||
		!s.Suspended || !s.Archived || s.Length != 3 || s.Queued != 1 || s.Turn.Summary != "S" ||
		s.Cost[0].Currency != "EUR" ||
		s.Ready != metav1.ConditionFalse || s.Reason != "RateLimited" || s.Message != "wait" || s.Since == nil ||
		s.LastReply != "R" || s.Title != "T" || s.Model != "m" {
		t.Errorf("got %+v", s)
	}
}

func TestPositionsInAListAreReadBack(t *testing.T) {
	for _, id := range []string{"7", "7.1", "0123456.1", "01234567.", "01234567.-1", "01234567.x", "ABCDEFGH.1"} {
		if got, err := ParsePosition(id); err == nil {
			t.Errorf("%q was read as %v", id, got)
		}
	}
	if p, err := ParsePosition("01234567.42"); err != nil || p.String() != "01234567.42" {
		t.Errorf("got %v, %v", p, err)
	}
}
