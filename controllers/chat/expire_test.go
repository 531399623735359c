// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/events"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/fakeapi"
)

// expired is a world whose chat was answered and is to go with the next reconcile.
func expired(t *testing.T) *world {
	t.Helper()
	w := newWorld(t)
	w.change(func(c *v1beta1.Chat) { c.Spec.Retention = &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(60))} })
	w.mustReconcile()
	w.answer()
	w.mustReconcile()
	committed := fakeapi.Read(t, w.Server, chattest.In("ns", chattest.User("c", "u")))
	committed.Status = v1beta1.ChatMessageStatus{
		State: v1beta1.MessageCommitted, ChatUID: "chat-uid", ObservedGeneration: 1,
		ContentHash: w.chat().Status.Internal.Turn.ContentHash,
		Conditions:  []metav1.Condition{{Type: v1beta1.ConditionReady, Status: metav1.ConditionTrue}},
	}
	if err := w.Direct.Status().Update(t.Context(), committed); err != nil {
		t.Fatal(err)
	}
	w.later(time.Minute)
	return w
}

// later begins the controller again when the time has gone on.
func (w *world) later(by time.Duration) {
	o := w.options
	o.Now = func() time.Time { return now.Add(by) }
	o.Recorder = events.NewFakeRecorder(9)
	w.Reconciler = New(o)
}

// change changes the chat as a person does.
func (w *world) change(change func(*v1beta1.Chat)) {
	w.Helper()
	chat := w.chat()
	change(chat)
	if err := w.Direct.Update(w.Context(), chat); err != nil {
		w.Fatal(err)
	}
}

func (w *world) mustReconcile() reconcile.Result {
	w.Helper()
	result, err := w.reconcile()
	if err != nil {
		w.Fatal(err)
	}
	return result
}

func (w *world) isThere() bool {
	w.Helper()
	var chat v1beta1.Chat
	err := w.Direct.Get(w.Context(), ofChat.NamespacedName, &chat)
	if err != nil && !apierrors.IsNotFound(err) {
		w.Fatal(err)
	}
	return err == nil
}

func TestExpiredChatIsDeletedWithEvent(t *testing.T) {
	w := expired(t)
	w.mustReconcile()
	if w.isThere() {
		t.Fatal("the chat is still there")
	}
	select {
	case event := <-w.options.Recorder.(*events.FakeRecorder).Events:
		if event != "Normal Expired The chat had rested for 1m0s (spec.retention, or retention or keep of its ChatClass) "+
			"and was deleted with all below it" {
			t.Errorf("the Event is %q", event)
		}
	default:
		t.Error("no Event says so")
	}
}

func TestUncachedWorkPreventsDeletionOfExpiredChat(t *testing.T) {
	sub := func() *v1beta1.Chat { return chattest.In("ns", chattest.Chat("sub", chattest.ChildOf("c"))) }
	resting := func(change func(*v1beta1.Chat)) *v1beta1.Chat {
		c := sub()
		c.Status.IdleSince, c.Status.Phase = new(metav1.NewTime(now)), v1beta1.ChatWaiting
		change(c)
		return c
	}
	nothing := func(*v1beta1.Chat) {}
	toSub := chattest.In("ns", chattest.User("sub", "s", chattest.Defaulted))
	beyond := func(c *v1beta1.Chat) {
		c.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Reason: "SubChatLimitExceeded"}}
	}
	archived := func(c *v1beta1.Chat) { c.Status.Archived = true }
	for name, c := range map[string]struct {
		live []client.Object
		kept bool
	}{
		"nothing":               {nil, false},
		"a message":             {[]client.Object{chattest.In("ns", chattest.User("c", "v", chattest.Defaulted))}, true},
		"a note":                {[]client.Object{chattest.In("ns", chattest.User("c", "v", toUsers))}, false},
		"a sub-chat at work":    {[]client.Object{sub()}, true},
		"a sub-chat at rest":    {[]client.Object{resting(nothing)}, false},
		"a message to one":      {[]client.Object{resting(nothing), toSub}, true},
		"one that cannot begin": {[]client.Object{resting(beyond), toSub}, false},
		"one that is archived":  {[]client.Object{resting(archived), toSub}, false},
		"a class":               {[]client.Object{chattest.In("ns", chattest.Class("new", isDefault))}, true},
	} {
		t.Run(name, func(t *testing.T) {
			w := expired(t)
			o := w.options
			o.Live = fakeapi.New(t, append(slices.Clone(c.live), w.chat())...).Live
			w.Reconciler = New(o)
			result := w.mustReconcile()
			if w.isThere() != c.kept || c.kept && result.RequeueAfter != lookAtRest {
				t.Errorf("it is there: %v; it is looked at again in %v", w.isThere(), result.RequeueAfter)
			}
		})
	}
}

func isDefault(s *v1beta1.ChatClassSpec) { s.Default = true }

func TestUncachedMessageEditPreventsDeletionOfExpiredChat(t *testing.T) {
	w := expired(t)
	edited := fakeapi.Read(t, w.Server, chattest.In("ns", chattest.User("c", "u")))
	edited.Spec.Content = "something else"
	o := w.options
	o.Live = fakeapi.New(t, edited, w.chat()).Live
	w.Reconciler = New(o)
	if w.mustReconcile(); !w.isThere() {
		t.Error("the edit went with the chat")
	}
}

func TestAChatThatChangesMeanwhileIsDecidedAnew(t *testing.T) {
	w := expired(t)
	changed := false
	w.Fail = func(call string) error {
		if call == "delete chat" && !changed {
			changed = true
			w.change(func(c *v1beta1.Chat) { c.Spec.Retention = nil })
		}
		return nil
	}
	w.mustReconcile()
	if !changed || !w.isThere() || w.chat().Status.ExpiresAt != nil {
		t.Errorf("the chat is there: %v", w.isThere())
	}
}

func TestTheDeletionOfAnExpiredChatSurvivesFaults(t *testing.T) {
	(&fakeapi.Reconcile{
		Begin: func(t *testing.T) (*fakeapi.Server, reconcile.Reconciler) {
			w := expired(t)
			return w.Server, w.Reconciler
		},
		Request: ofChat, State: []client.ObjectList{&v1beta1.ChatList{}, &v1beta1.ChatMessageList{}},
		// Somebody else has deleted it.
		Settled: map[string][]fakeapi.Fault{"get chat": {fakeapi.NotFound}, "delete chat": {fakeapi.NotFound}},
	}).Run(t)
}

func toUsers(m *v1beta1.ChatMessage) { m.Spec.Visibility = v1beta1.VisibleToUsers }
