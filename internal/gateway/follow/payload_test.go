// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package follow

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestStatusHasModeUntilPlanIsApproved(t *testing.T) {
	chat := &v1beta1.Chat{Spec: v1beta1.ChatSpec{Mode: v1beta1.ModePlan}}
	check.Equal(t, "mode", v1beta1.ModePlan, statusOf(chat).Mode)
	chat.Status.Turn = &v1beta1.TurnStatus{PlanApproved: true}
	check.Equal(t, "mode", "", statusOf(chat).Mode)
}

func TestRetryEventReportsFailureAndDueTime(t *testing.T) {
	w := newWorld()
	failed := time.Unix(1_800_000_000, 500_000_000)
	w.change(func() {
		w.user("q1", true)
		w.chat.Status.Retry = &v1beta1.RetryStatus{
			Attempt: 2, Action: v1beta1.ActionCompact, FailedAt: metav1.NewMicroTime(failed),
			At:     metav1.NewMicroTime(failed.Add(1500 * time.Millisecond)),
			Reason: v1beta1.ErrorRateLimited, Message: "slow down", Provider: "openai", StatusCode: 429, ModelConfig: "next",
		}
	})
	got := w.follow(t, Position{}, 0).waitName(stream.EventRetry)
	r := decode[stream.Retry](t, got[len(got)-1])
	if r.Attempt != 2 || r.Action != v1beta1.ActionCompact ||
		r.DelayMS != 1500 || r.Provider != "openai" || r.StatusCode != 429 ||
		r.Reason != v1beta1.ErrorRateLimited || r.Message != "slow down" || r.ModelConfig != "next" {
		t.Errorf("got %+v", r)
	}
}

func TestErrorCarriesMessageAdviceAndRetryability(t *testing.T) {
	w := newWorld()
	w.change(func() {
		w.user("q1", true)
		w.chat.Status.LastError = &v1beta1.LastError{GenerationError: v1beta1.GenerationError{
			Reason: v1beta1.ErrorOverloaded, Message: "too busy", Advice: "wait", Provider: "anthropic", StatusCode: 529,
			Retryable: true}, Action: v1beta1.ActionExecuteTools}
	})
	got := w.follow(t, Position{}, 0).waitName(stream.EventError)
	e := decode[stream.Error](t, got[len(got)-1])
	if e.Message != "too busy" || e.Action != v1beta1.ActionExecuteTools ||
		e.Advice != "wait" || !e.Retryable || e.StatusCode != 529 || e.Provider != "anthropic" ||
		e.Text() != "too busy. wait" {
		t.Errorf("got %+v", e)
	}
}

func TestTheStatusNamesPodParentAndRoot(t *testing.T) {
	w := newWorld()
	root := v1beta1.FamilyRoot{Name: "top", UID: "top-uid", Workspace: "top"}
	w.change(func() {
		w.user("q1", true)
		w.attempt(1)
		w.chat.Spec.ParentRef, w.chat.Status.Root = &v1beta1.ChatReference{Name: "above"}, &root
	})
	got := w.follow(t, Position{}, 0).waitName(stream.EventStatus)
	if s := decode[stream.Status](t, got[len(got)-1]); s.Pod != "p" || s.Attempt != 1 || s.Parent != "above" ||
		s.Root == nil || *s.Root != root {
		t.Errorf("got %+v", s)
	}
}

func TestAMessageCarriesItsAccounts(t *testing.T) {
	w := newWorld()
	account := &v1beta1.CompactionAccount{Source: v1beta1.CompactionThreshold, Messages: 7, ContextStart: 8}
	full := &v1beta1.ContextStatus{Tokens: 900, Limit: 1000, Compacted: true}
	cost := &v1beta1.Cost{Currency: "EUR"}
	w.change(func() {
		w.user("q1", true)
		w.attempt(1)
		w.step(v1beta1.RoleSystem)
		g := w.messages["c-1-1"].Spec.Generation
		g.Action, g.Compaction, g.Context, g.Cost, g.Usage = v1beta1.ActionCompact, account, full, cost,
			&v1beta1.TokenUsage{}
		g.Warnings = []string{"no thinking"}
	})
	got := w.follow(t, Position{}, 0).waitID("2.0.2")
	m := decode[stream.MessageCommitted](t, got[1]).Message
	if diff := cmp.Diff(account, m.Compaction); diff != "" || !cmp.Equal(full, m.Context) || !cmp.Equal(cost, m.Cost) ||
		m.Usage == nil ||
		m.Action != v1beta1.ActionCompact || len(m.Warnings) != 1 {
		t.Errorf("got %+v %s", m, diff)
	}
}

// wait puts messages into the queue.
func (w *world) wait(names ...string) {
	w.chat.Status.Queue = nil
	for _, name := range names {
		w.chat.Status.Queue = append(w.chat.Status.Queue, v1beta1.QueuedMessage{Name: name, Interrupts: name == "stop"})
	}
}

func TestTheQueueShowsHowItsMessagesBegin(t *testing.T) {
	w := newWorld()
	created := metav1.NewTime(time.Unix(1_800_000_000, 0).UTC())
	text := "\x1b[2J\u202eevil\u009b\n\n  " + strings.Repeat("wörter ", 100)
	w.change(func() {
		w.user("q1", true)
		w.attempt(1)
		w.said("long", func(m *v1beta1.ChatMessage) {
			m.Spec.Content, m.Spec.WhenBusy, m.CreationTimestamp = text, v1beta1.WhenBusyQueue, created
			m.Spec.ModelConfigRef = &v1beta1.ModelConfigReference{Name: "best"}
		})
		w.said("files", func(m *v1beta1.ChatMessage) {
			m.Spec.Content, m.Spec.Parts = "", []v1beta1.MessagePart{{Type: v1beta1.PartFile},
				{Type: v1beta1.PartText, Text: &text}}
		})
		w.said("foreign", func(m *v1beta1.ChatMessage) { m.Spec.ChatRef.Name = "other" })
		w.said("stop", func(m *v1beta1.ChatMessage) { m.Spec.Visibility = v1beta1.VisibleToModel })
		w.wait("stop", "long", "files", "foreign", "gone")
	})
	c := w.follow(t, Position{}, 0)
	got := c.waitName(stream.EventStatus)
	queue := decode[stream.QueueUpdate](t, got[1]).Queue
	if len(queue) != 5 || !queue[0].Interrupts || queue[0].Preview != "" || queue[3].Preview != "" ||
		queue[3].CreatedAt != nil || queue[4].Name != "gone" {
		t.Fatalf("got %+v", queue)
	}
	long := queue[1]
	if n := utf8.RuneCountInString(long.Preview); n != 100 || !strings.HasPrefix(long.Preview, "[2Jevil wörter ") ||
		!strings.HasSuffix(long.Preview, "…") {
		t.Errorf("%d characters: %q", n, long.Preview)
	}
	if long.Model != "best" || long.WhenBusy != v1beta1.WhenBusyQueue || !long.CreatedAt.Equal(&created) ||
		queue[2].Preview != long.Preview {
		t.Errorf("got %+v", queue)
	}
	w.change(func() { w.looks = 0; w.wait("long", "files") })
	c.wait("a shorter queue", func(events []stream.Event) bool { return count(events, stream.EventQueueUpdate) == 2 })
	check.Equal(t, "looks at known messages", 0, w.looks)
}

func TestAbsentAPIServerDelaysTheQueueAlone(t *testing.T) {
	w := newWorld()
	w.change(func() {
		w.user("q1", true)
		w.said("next", chattest.Content("and then?"))
		w.messages["next"].CreationTimestamp = metav1.Now()
	})
	c := w.follow(t, Position{}, 0)
	c.waitName(stream.EventStatus)
	w.change(func() { w.failures = 1; w.wait("next") })
	got := c.wait("the whole queue", func(events []stream.Event) bool {
		return count(events, stream.EventQueueUpdate) == 3
	})
	var previews []string
	for _, e := range got {
		if e.Name == stream.EventQueueUpdate {
			for _, q := range decode[stream.QueueUpdate](t, e).Queue {
				previews = append(previews, q.Name+":"+q.Preview)
			}
		}
	}
	check.Equal(t, "events", []string{"next:", "next:and then?"}, previews)
}

func TestQueueShowsEditsAndTheirResult(t *testing.T) {
	w := newWorld()
	until := metav1.NewTime(time.Unix(1_800_000_000, 0))
	w.change(func() {
		w.user("q1", true)
		w.said("next", chattest.Content("before"), func(m *v1beta1.ChatMessage) { m.CreationTimestamp = until })
		w.wait("next")
	})
	c := w.follow(t, Position{}, 0)
	c.waitName(stream.EventStatus)
	w.change(func() { w.chat.Status.Queue[0].HeldUntil = &until })
	c.wait("the hold", func(events []stream.Event) bool { return count(events, stream.EventQueueUpdate) == 2 })
	w.change(func() {
		w.said("next", chattest.Content("after"), func(m *v1beta1.ChatMessage) { m.CreationTimestamp = until })
		w.wait("next")
	})
	got := c.wait("the edit", func(events []stream.Event) bool { return count(events, stream.EventQueueUpdate) == 3 })
	var seen []string
	for _, e := range got {
		if e.Name == stream.EventQueueUpdate {
			q := decode[stream.QueueUpdate](t, e).Queue[0]
			seen = append(seen, fmt.Sprint(q.Preview, " ", q.HeldUntil.Equal(&until)))
		}
	}
	check.Equal(t, "events", []string{"before false", "before true", "after false"}, seen)
}

// isUnused reports whether nothing is held of the memory.
func (m *Memory) isUnused() bool {
	return m.kept.TryAcquire(m.kept.Size) && m.sent.TryAcquire(m.sent.Size)
}

func TestMemoryIsBoundedInTwoHalves(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := NewMemory(100)
		if !m.keep(40) || m.keep(20) || !m.keep(10) {
			t.Error("the half that is kept is not 50")
		}
		release, err := m.acquire(t.Context()) // A message is larger than there is: all of it.
		check.OK(t, err)
		short, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if _, err := m.acquire(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("it was given twice: %v", err)
		}
		release()
		m.release(&item{message: &Committed{Data: make([]byte, 50)}})
		if !m.isUnused() {
			t.Error("what was released is not there")
		}
	})
}

func TestWholeHistoryIsSentWithMinimalMemory(t *testing.T) {
	for name, most := range map[string]int64{"nothing": 0, "a message or two": 400, "all": 1 << 20} {
		t.Run(name, func(t *testing.T) {
			w := newWorld()
			w.memory = NewMemory(2 * most)
			w.change(w.talk)
			c := w.follow(t, Position{}, 0)
			check.Equal(t, "events", []string{"1.0.1", "2.0.2", "3.0.3", "4.0.4"},
				show(numbered(c.waitName(stream.EventStatus))))
			if !w.memory.isUnused() || (w.lent == 0) != (name == "all") || name == "nothing" && w.lent != 4 {
				t.Errorf("bytes are kept, or %d messages were fetched again", w.lent)
			}
		})
	}
}

func TestCommittedMessageReportsAbandonedCallsBeforeStatusUpdate(t *testing.T) {
	chat := newChat("uid-1")
	chat.Status.Turn = &v1beta1.TurnStatus{Message: "b", Index: 2, HistoryVersion: 3}
	chat.Status.Internal.Turn.CallsCanceledReasonBefore = v1beta1.CallsFailed
	chat.Status.Internal.Tail = []v1beta1.CommittedMessage{{Message: "a", HistoryVersion: 1,
		CallsCanceledReasonBefore: v1beta1.CallsTimedOut}}
	for name, c := range map[string]struct {
		index int64
		want  v1beta1.CallsCanceledReason
	}{"b": {2, v1beta1.CallsFailed}, "a": {0, v1beta1.CallsTimedOut}} {
		committed, err := Commit(chat, chattest.In("demo", chattest.User("c", name)), PlaceOf(chat, name, c.index, nil))
		check.OK(t, err)
		said := decode[stream.MessageCommitted](t, stream.Event{Data: committed.Data}).Message.CallsCanceledReasonBefore
		check.Equal(t, name, c.want, said)
	}
}
