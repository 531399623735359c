// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/capacity"
	"parley.dev/parley/internal/pods/modellimits"
	"parley.dev/parley/internal/pods/placement"
	"parley.dev/parley/internal/pods/podstate"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/fakeapi"
)

// onePod gives every attempt the same pod, which works.
type onePod struct {
	booked  map[types.NamespacedName]string
	refused error
}

func (p *onePod) Assign(_ context.Context, chat types.NamespacedName, _ []v1beta1.ChatModelConfig, _ placement.Want) (
	string, error) {
	if p.refused != nil {
		return "", p.refused
	}
	p.Book(chat, "pod")
	return "pod", nil
}

func (*onePod) Look(context.Context, types.NamespacedName, []v1beta1.ChatModelConfig) (podstate.State, error) {
	return podstate.State{Ready: true}, nil
}

func (p *onePod) Book(chat types.NamespacedName, pod string) {
	if p.booked[chat] = pod; pod == "" {
		delete(p.booked, chat)
	}
}

func (*onePod) Forget(types.NamespacedName) {}

// world is an API server with chat c, its ChatModelConfig and a message u, and the controller before it.
type world struct {
	*testing.T
	*fakeapi.Server
	cache *lagging
	gate  *capacity.Gate
	pods  *onePod
	*Reconciler
}

func newWorld(t *testing.T) *world {
	t.Helper()
	chat := chattest.In("ns", chattest.Chat("c", chattest.UID("chat-uid")))
	message := chattest.In("ns", chattest.User("c", "u", chattest.Defaulted))
	chat.Generation, message.Generation, message.UID = 1, 1, "u-uid"
	w := &world{
		T: t, Server: fakeapi.New(t, chat, message, chattest.In("ns", chattest.Config("default", chattest.Default))),
		gate: capacity.NewGate(), pods: &onePod{booked: map[types.NamespacedName]string{}},
	}
	w.cache = &lagging{Client: w.Client}
	w.Reconciler = New(Options{
		Client: w.cache, Live: w.Live, Recorder: &events.FakeRecorder{}, Pods: w.pods, Gate: w.gate,
		Calls:      modellimits.NewGate(),
		LoadLimits: func(context.Context) error { return nil }, Now: func() time.Time { return now },
	})
	return w
}

var ofChat = ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "c"}}

func (w *world) reconcile() (ctrl.Result, error) { return w.Reconcile(w.Context(), ofChat) }

func (w *world) chat() *v1beta1.Chat {
	w.Helper()
	return fakeapi.Read(w.T, w.Server, chattest.In("ns", chattest.Chat("c")))
}

// conflicts lets so many writes of the chat's status meet a conflict.
func (w *world) conflicts(n int) {
	w.Fail = func(call string) error {
		if call != "update status of chat" || n == 0 {
			return nil
		}
		n--
		return fakeapi.Conflict.Err()
	}
}

// answer lets the pod answer the attempt under way.
func (w *world) answer() {
	w.Helper()
	reply := chattest.Answer(w.chat(), chattest.Says("Hi."))
	reply.UID = types.UID(reply.Name)
	if err := w.Direct.Create(w.Context(), reply); err != nil {
		w.Fatal(err)
	}
}

// say lets a person say something more.
func (w *world) say(name string) {
	w.Helper()
	message := chattest.In("ns", chattest.User("c", name, chattest.Defaulted))
	message.Generation, message.UID = 1, types.UID(name+"-uid")
	if err := w.Direct.Create(w.Context(), message); err != nil {
		w.Fatal(err)
	}
}

func TestMessageIsAnsweredWithTwoStatusWrites(t *testing.T) {
	w := newWorld(t)
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	st := w.chat().Status
	if st.Phase != v1beta1.ChatRunning || st.History.Head != "u" || st.Generation.Pod != "pod" ||
		len(w.pods.booked) != 1 {
		t.Errorf("the chat is %s at %s, the pods have %v", st.Phase, st.History.Head, w.pods.booked)
	}
	w.answer()
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	st = w.chat().Status
	if st.Phase != v1beta1.ChatWaiting || st.History.Head != "c-1-1" || st.Generation != nil || len(w.pods.booked) != 0 {
		t.Errorf("the chat is %s at %s, the pods have %v", st.Phase, st.History.Head, w.pods.booked)
	}
	if writes := w.Writes(); !slices.Equal(writes, []string{"update status of chat", "update status of chat"}) {
		t.Errorf("it wrote %v", writes)
	}
	if generating, _ := w.gate.Counts(); generating != (capacity.Counts{}) {
		t.Errorf("%+v still have slots", generating)
	}
}

func TestNextTurnStartsBeforePreviousMessageStatusUpdate(t *testing.T) {
	w := newWorld(t)
	for _, step := range []func(){w.answer, func() { w.say("v") }, w.answer} {
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		step()
	}
	before := len(w.Calls())
	w.say("x")
	if _, err := w.reconcile(); err != nil { // It ends the turn of v, and begins that of x.
		t.Fatal(err)
	}
	st := w.chat().Status
	if tail := st.Internal.Tail; st.Turn.Message != "x" || len(tail) != 1 || tail[0].PreviousTurn.Message != "v" {
		t.Errorf("the turn is %+v, the tail %+v", st.Turn, tail)
	}
	want := []string{"live list chatmessages", "live get chatmessage", "update status of chat"}
	calls := slices.DeleteFunc(w.Calls()[before:], func(call string) bool {
		return !strings.HasPrefix(call, "live") && !strings.HasPrefix(call, "update")
	})
	if got := slices.Compact(calls); !slices.Equal(got, want) {
		t.Errorf("it called %v, want %v", got, want)
	}
}

func TestAConflictIsDecidedAnewWithinTheReconcile(t *testing.T) {
	w := newWorld(t)
	w.conflicts(2)
	result, err := w.reconcile()
	if err != nil || w.chat().Status.Phase != v1beta1.ChatRunning {
		t.Errorf("after %v, %v the chat is %s", result, err, w.chat().Status.Phase)
	}
}

func TestStatusIsNotWrittenOverANewerOne(t *testing.T) {
	w := newWorld(t)
	written := false
	w.Fail = func(call string) error {
		if call != "update status of chat" || written {
			return nil
		}
		written = true // Another manager is quicker.
		chat := w.chat()
		chat.Status.LastReply = "Hi."
		return w.Direct.Status().Update(t.Context(), chat)
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if st := w.chat().Status; st.LastReply != "Hi." || st.Phase != v1beta1.ChatRunning {
		t.Errorf("the chat is %s, and its last reply %q", st.Phase, st.LastReply)
	}
}

func TestConflictsThatDoNotEndRequeue(t *testing.T) {
	w := newWorld(t)
	w.conflicts(1000)
	result, err := w.reconcile()
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("got %v, %v", result, err)
	}
	if generating, _ := w.gate.Counts(); generating != (capacity.Counts{}) {
		t.Errorf("%+v keep slots from others", generating)
	}
}

func TestFaultOfAnyCallLosesNoCommit(t *testing.T) {
	faults := fakeapi.Reconcile{
		Begin: func(t *testing.T) (*fakeapi.Server, reconcile.Reconciler) {
			w := newWorld(t)
			if _, err := w.reconcile(); err != nil {
				t.Fatal(err)
			}
			w.answer()
			return w.Server, w.Reconciler
		},
		Request: ofChat, State: []client.ObjectList{&v1beta1.ChatList{}, &v1beta1.ChatMessageList{}},
		Settled: map[string][]fakeapi.Fault{"get chat": {fakeapi.NotFound}},
	}
	faults.Run(t)
}

// The event of a deletion comes once, and the pass that it causes may fail.
func TestFailedPassForgetsNoDeletion(t *testing.T) {
	for _, fails := range []string{"list chatmessages", "live list chatmessages", "update status of chat"} {
		t.Run(fails, func(t *testing.T) {
			w := newWorld(t)
			w.rec()
			w.answer()
			w.rec()
			if err := w.Direct.Delete(t.Context(), chattest.In("ns", chattest.User("c", "c-1-1"))); err != nil {
				t.Fatal(err)
			}
			w.memory.chains.forget(ofChat.NamespacedName) // As its event does.
			failed := false
			w.Fail = func(call string) error {
				if call != fails || failed {
					return nil
				}
				failed = true
				return fakeapi.Timeout.Err()
			}
			if _, err := w.reconcile(); err == nil {
				t.Error("nothing failed")
			}
			w.rec()
			if st := w.chat().Status; st.Phase != v1beta1.ChatRunning || st.History.Head != "u" {
				t.Errorf("the chat is %s at %s", st.Phase, st.History.Head)
			}
		})
	}
}

func TestRefusedPodIsReportedAndRetried(t *testing.T) {
	w := newWorld(t)
	w.pods.refused = &placement.RefusedError{Words: "exceeded quota: pods", Until: now.Add(time.Minute)}
	result, err := w.reconcile()
	if err != nil || result.RequeueAfter != time.Minute {
		t.Errorf("got %v, %v", result, err)
	}
	st := w.chat().Status
	if st.Generation != nil || !strings.Contains(fmt.Sprint(st.Conditions), "exceeded quota: pods") {
		t.Errorf("the attempt is %v, the conditions are %v", st.Generation, st.Conditions)
	}
}

func TestAChatThatIsGoneIsForgotten(t *testing.T) {
	w := newWorld(t)
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if err := w.Direct.Delete(t.Context(), w.chat()); err != nil {
		t.Fatal(err)
	}
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if generating, _ := w.gate.Counts(); len(w.pods.booked) != 0 || generating != (capacity.Counts{}) ||
		len(w.memory.written.chats) != 0 {
		t.Errorf("pods %v, slots %+v, memory %v are left", w.pods.booked, generating, w.memory.written.chats)
	}
}

func TestEditRemovesTheOldReply(t *testing.T) {
	w := newWorld(t)
	for _, step := range []func(){w.answer, func() {
		u := fakeapi.Read(t, w.Server, chattest.In("ns", chattest.User("c", "u")))
		u.Spec.Content, u.Generation = "Something else.", 2
		if err := w.Direct.Update(t.Context(), u); err != nil {
			t.Fatal(err)
		}
	}, func() {}, func() {}} {
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		step()
	}
	st := w.chat().Status
	old := client.ObjectKey{Namespace: "ns", Name: "c-1-1"}
	if err := w.Direct.Get(t.Context(), old, &v1beta1.ChatMessage{}); !apierrors.IsNotFound(err) ||
		st.Phase != v1beta1.ChatRunning || st.History.Head != "u" {
		t.Errorf("the chat is %s at %s, and reading the old reply says %v", st.Phase, st.History.Head, err)
	}
}
