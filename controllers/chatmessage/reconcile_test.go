// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatmessage

import (
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/kube/requeue"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/fakeapi"
)

// asked is message a, which chat c answers.
func asked() *v1beta1.ChatMessage {
	return chattest.In("ns", chattest.User("c", "a", chattest.Defaulted))
}

// answering is chat c, at work at that for ten seconds, and changed.
func answering(change ...func(*v1beta1.ChatStatus)) *v1beta1.Chat {
	chat := chattest.Generating()
	chat.Status.History.Length, chat.Status.Turn.Index = 1, 0
	chat.Status.Internal.Turn.ContentHash = content.Of(asked())
	for _, c := range change {
		c(&chat.Status)
	}
	return chat
}

// reply is what its pod has answered.
func reply(replies ...chattest.Reply) *v1beta1.ChatMessage {
	return chattest.Answer(chattest.Generating(), replies...)
}

// movedOn is the status of the chat after its message was edited.
func movedOn(st *v1beta1.ChatStatus) { st.History.Version = 4 }

// committed is its status after the reply.
func committed(st *v1beta1.ChatStatus) {
	st.History = v1beta1.HistoryStatus{Version: 4, Head: "c-3-1", Length: 2}
	st.Generation, st.Turn.Result = nil, v1beta1.TurnAnswered
}

func begin(t *testing.T, objects ...client.Object) (*fakeapi.Server, *Reconciler) {
	t.Helper()
	s := fakeapi.New(t, objects...)
	return s, &Reconciler{Client: s.Client, Live: s.Live, Now: func() time.Time { return chattest.Now }}
}

func request(name string) ctrl.Request {
	return ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: name}}
}

func TestAUserMessageSaysWhereItStands(t *testing.T) {
	for name, c := range map[string]struct {
		chat   *v1beta1.Chat
		state  v1beta1.MessageState
		reason v1beta1.ConditionReason
		again  time.Duration
	}{
		"its chat does not exist": {nil, v1beta1.MessagePending, v1beta1.ReasonChatNotFound, 0},
		"it is being answered":    {answering(), v1beta1.MessageCommitted, v1beta1.ReasonAnswering, 0},
		"it has been answered for less than five seconds": {answering(func(st *v1beta1.ChatStatus) {
			st.Generation.StartedAt = *chattest.Ago(300 * time.Millisecond)
		}), "", "", 4700 * time.Millisecond},
		"it is answered": {answering(committed), v1beta1.MessageCommitted, v1beta1.ReasonAnswered, 0},
		"it is queued": {answering(func(st *v1beta1.ChatStatus) {
			st.Turn.Message, st.History.Head, st.Queue = "other", "other", []v1beta1.QueuedMessage{{Name: "a"}}
		}), v1beta1.MessageQueued, v1beta1.ReasonQueued, 0},
		"it is queued and held": {answering(func(st *v1beta1.ChatStatus) {
			st.Turn.Message, st.History.Head = "other", "other"
			st.Queue = []v1beta1.QueuedMessage{{Name: "a", HeldUntil: new(metav1.Now())}}
		}), v1beta1.MessageQueued, v1beta1.ReasonWaitingForEdit, 0},
		"its chat is archived": {chattest.In("ns", chattest.Chat("c", func(c *v1beta1.Chat) {
			c.Status.Archived = true
		})), v1beta1.MessagePending, v1beta1.ReasonChatArchived, 0},
		"its chat takes it up at any moment": {chattest.In("ns", chattest.Chat("c")), "", "", 0},
		"its chat takes its edit up at any moment": {answering(func(st *v1beta1.ChatStatus) {
			st.Internal.Turn.ContentHash = "of what it said before"
		}), "", "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{asked()}
			if c.chat != nil {
				objects = append(objects, c.chat)
			}
			s, r := begin(t, objects...)
			result, err := r.Reconcile(t.Context(), request("a"))
			if err != nil || result.RequeueAfter != c.again {
				t.Errorf("got %v, %v", result, err)
			}
			st := fakeapi.Read(t, s, asked()).Status
			reason := v1beta1.ReasonOf(meta.FindStatusCondition(st.Conditions, v1beta1.ConditionReady))
			if st.State != c.state || reason != c.reason {
				t.Errorf("it is %q because of %q, want %q because of %q", st.State, reason, c.state, c.reason)
			}
			if _, err := r.Reconcile(t.Context(), request("a")); err != nil || len(s.Writes()) > 1 {
				t.Errorf("what it says already is written again: %v, %v", s.Writes(), err)
			}
		})
	}
}

func TestMessageReportsWaitWhileChatFamilyIsArchived(t *testing.T) {
	for name, toBeArchived := range map[string]string{"the chat is to be archived": "c", "the chat above it is": "above"} {
		t.Run(name, func(t *testing.T) {
			chat := answering(func(st *v1beta1.ChatStatus) { st.Turn.Message, st.History.Head = "other", "other" })
			chat.Spec.ParentRef = &v1beta1.ChatReference{Name: "above"}
			above := chattest.In("ns", chattest.Chat("above"))
			for _, c := range []*v1beta1.Chat{chat, above} {
				c.Spec.Archived = c.Name == toBeArchived
			}
			s, r := begin(t, asked(), chat, above)
			if _, err := r.Reconcile(t.Context(), request("a")); err != nil {
				t.Fatal(err)
			}
			st := fakeapi.Read(t, s, asked()).Status
			reason := v1beta1.ReasonOf(meta.FindStatusCondition(st.Conditions, v1beta1.ConditionReady))
			if st.State != v1beta1.MessagePending || reason != v1beta1.ReasonChatArchived {
				t.Errorf("it is %q because of %q", st.State, reason)
			}
		})
	}
}

func TestChatDecidesAboutMessageThatWasRejectedLate(t *testing.T) {
	queued := answering()
	queued.Status.Turn, queued.Status.Queue = nil, []v1beta1.QueuedMessage{{Name: "a"}}
	for want, chat := range map[v1beta1.MessageState]*v1beta1.Chat{v1beta1.MessageCommitted: answering(),
		v1beta1.MessageQueued: queued, v1beta1.MessageRejected: chattest.In("ns", chattest.Chat("c"))} {
		rejected := asked()
		rejected.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageRejected,
			ObservedGeneration: rejected.Generation,
			Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse,
				Reason: string(v1beta1.ReasonQueueFull)}}}
		s, r := begin(t, rejected, chat)
		_, err := r.Reconcile(t.Context(), request("a"))
		check.Equal(t, "error, state", []any{nil, want}, []any{err, fakeapi.Read(t, s, asked()).Status.State})
	}
}

func TestStaleChatDoesNotReviveSupersededMessage(t *testing.T) {
	superseded := asked()
	superseded.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageSuperseded,
		ObservedGeneration: superseded.Generation,
		Conditions: []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionFalse,
			Reason: string(v1beta1.ReasonSuperseded)}}}
	s, r := begin(t, superseded, answering())
	if _, err := r.Reconcile(t.Context(), request("a")); err != nil || len(s.Writes()) > 0 {
		t.Errorf("it wrote %v, %v", s.Writes(), err)
	}
}

func TestGeneratedMessageOutsideTheHistoryIsRemoved(t *testing.T) {
	other := func(*v1beta1.ChatStatus) {}
	for name, c := range map[string]struct {
		chat  *v1beta1.Chat
		reply *v1beta1.ChatMessage
		gone  bool
	}{
		"it answers the attempt under way": {answering(other), reply(chattest.Says("hi")), false},
		"it is in the history":             {answering(committed), reply(chattest.Says("hi")), false},
		"the chat has moved on":            {answering(movedOn), reply(chattest.Says("hi")), true},
		"another attempt is under way": {answering(func(st *v1beta1.ChatStatus) { st.Generation.Attempt = 2 }),
			reply(chattest.Says("hi")), true},
		"a report that waits to be acted on": {answering(), reply(chattest.Fails(v1beta1.ErrorOverloaded)), false},
		"a report that was acted on": {answering(func(st *v1beta1.ChatStatus) { st.Generation = nil }),
			reply(chattest.Fails(v1beta1.ErrorOverloaded)), true},
		"of a chat that is gone":       {nil, reply(chattest.Says("hi")), true},
		"of another chat of that name": {chattest.In("ns", chattest.Chat("c", chattest.UID("new"))), reply(), true},
		"the history is not whole": {answering(movedOn, func(st *v1beta1.ChatStatus) { st.History.Head = "gone" }),
			reply(chattest.Says("hi")), false},
	} {
		t.Run(name, func(t *testing.T) {
			objects := []client.Object{c.reply, asked()}
			if c.chat != nil {
				objects = append(objects, c.chat)
			}
			s, r := begin(t, objects...)
			if result, err := r.Reconcile(t.Context(), request("c-3-1")); err != nil || !result.IsZero() {
				t.Errorf("got %v, %v", result, err)
			}
			var left v1beta1.ChatMessageList
			if err := s.Direct.List(t.Context(), &left); err != nil {
				t.Fatal(err)
			}
			if gone := len(left.Items) == 1; gone != c.gone {
				t.Errorf("it is gone: %t", gone)
			}
		})
	}
}

// A manager whose cache still shows a chat that is gone may create that chat's prompt.
func TestPromptOfDeletedChatIsRemoved(t *testing.T) {
	prompted := func(uid types.UID) *v1beta1.Chat {
		return chattest.In("ns", chattest.Chat("c", chattest.UID(uid), chattest.Prompt("hello")))
	}
	prompt := plan.PromptMessage(prompted("old"))
	for name, c := range map[string]struct {
		cached, live *v1beta1.Chat
		gone         bool
	}{
		"its chat is there":              {prompted("old"), prompted("old"), false},
		"another chat took its name":     {prompted("new"), prompted("new"), true},
		"the cache shows an older chat":  {prompted("older"), prompted("old"), false},
		"the cache shows the chat still": {prompted("old"), prompted("new"), false}, // The new one's event wakes it.
	} {
		t.Run(name, func(t *testing.T) {
			s, r := begin(t, prompt.DeepCopy(), c.cached)
			r.Live = fakeapi.New(t, c.live, prompt.DeepCopy()).Live
			if _, err := r.Reconcile(t.Context(), request(prompt.Name)); err != nil {
				t.Error(err)
			}
			err := s.Direct.Get(t.Context(), client.ObjectKeyFromObject(prompt), &v1beta1.ChatMessage{})
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) != c.gone {
				t.Errorf("reading it: %v", err)
			}
		})
	}
}

func TestStaleCacheRemovesNoMessage(t *testing.T) {
	for name, c := range map[string]struct {
		cached, live *v1beta1.Chat
	}{
		"the cache lacks the chat":             {nil, answering()},
		"the cache lacks the commit":           {answering(movedOn), answering(committed)},
		"the cache has an attempt that is not": {answering(movedOn), answering()},
	} {
		t.Run(name, func(t *testing.T) {
			cache := []client.Object{reply(chattest.Says("hi")), asked()}
			if c.cached != nil {
				cache = append(cache, c.cached)
			}
			s, r := begin(t, cache...)
			r.Live = fakeapi.New(t, c.live, reply(chattest.Says("hi")), asked()).Live
			if result, err := r.Reconcile(t.Context(), request("c-3-1")); err != nil || !result.IsZero() {
				t.Errorf("got %v, %v", result, err)
			}
			if writes := s.Writes(); len(writes) != 0 {
				t.Errorf("it writes %v", writes)
			}
		})
	}
}

func TestFaultOfAnyCallLosesNoMessageStatus(t *testing.T) {
	gone := []fakeapi.Fault{fakeapi.NotFound}
	removed := []fakeapi.Fault{fakeapi.NotFound, fakeapi.Conflict} // It is, or another one has its name.
	for name, c := range map[string]struct {
		chat    *v1beta1.Chat
		message string
		settled map[string][]fakeapi.Fault
	}{
		"its status is written": {answering(), "a",
			map[string][]fakeapi.Fault{"get chatmessage": gone, "get chat": gone}},
		"it goes with its chat": {nil, "c-3-1",
			map[string][]fakeapi.Fault{"get chatmessage": gone, "delete chatmessage": removed}},
		"it goes as it is in no history": {answering(movedOn), "c-3-1", map[string][]fakeapi.Fault{
			// That the chat is gone is believed only if cache and API server say so.
			"get chatmessage": gone, "get chat": gone, "live get chat": gone, "delete chatmessage": removed,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			faults := fakeapi.Reconcile{
				Begin: func(t *testing.T) (*fakeapi.Server, reconcile.Reconciler) {
					objects := []client.Object{asked(), reply(chattest.Says("hi"))}
					if c.chat != nil {
						objects = append(objects, c.chat.DeepCopy())
					}
					return begin(t, objects...)
				},
				Request: request(c.message), Settled: c.settled,
				State: []client.ObjectList{&v1beta1.ChatMessageList{}, &v1beta1.ChatList{}},
			}
			faults.Run(t)
		})
	}
}

func TestAConflictIsTriedAgainSoon(t *testing.T) {
	s, r := begin(t, asked(), answering())
	s.Fail = func(call string) error {
		if slices.Contains(s.Writes(), call) {
			return fakeapi.Conflict.Err()
		}
		return nil
	}
	if result, err := r.Reconcile(t.Context(), request("a")); err != nil || result.RequeueAfter != requeue.Conflict {
		t.Errorf("got %v, %v", result, err)
	}
}
