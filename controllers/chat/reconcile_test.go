// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/capacity"
	"parley.dev/parley/internal/index"
	"parley.dev/parley/internal/placement"
	"parley.dev/parley/internal/podstate"
)

// onePod gives every attempt the same pod, which works.
type onePod struct {
	booked  map[types.NamespacedName]string
	refused error
}

func (p *onePod) Assign(_ context.Context, chat types.NamespacedName, _ []v1alpha1.ChatModelConfig, _ placement.Want) (
	string, error) {
	if p.refused != nil {
		return "", p.refused
	}
	p.Book(chat, "pod")
	return "pod", nil
}

func (*onePod) Look(context.Context, types.NamespacedName, []v1alpha1.ChatModelConfig) (podstate.State, error) {
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
	client client.WithWatch
	gate   *capacity.Gate
	pods   *onePod
	// fail is asked before each call of the controller, such as "update chats/status": what it returns is the answer.
	fail  func(call string) error
	calls []string
	*Reconciler
}

// indexer adds the indexes of the manager's cache to a fake client.
type indexer struct{ *fake.ClientBuilder }

func (i indexer) IndexField(_ context.Context, o client.Object, field string, keys client.IndexerFunc) error {
	i.WithIndex(o, field, keys)
	return nil
}

func newWorld(t *testing.T) *world {
	w := &world{T: t, gate: capacity.NewGate(), pods: &onePod{booked: map[types.NamespacedName]string{}}}
	scheme := runtime.NewScheme()
	if err := v1alpha1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	config := modelConfig("default", func(s *v1alpha1.ChatModelConfigSpec) { s.Default = true })
	config.Namespace = "ns"
	builder := fake.NewClientBuilder().WithScheme(scheme).
		WithStatusSubresource(&v1alpha1.Chat{}, &v1alpha1.ChatMessage{}, &v1alpha1.ToolApproval{}).
		WithObjects(&config,
			&v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", UID: "chat-uid", Generation: 1}},
			&v1alpha1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "u", UID: "u-uid", Generation: 1},
				Spec: v1alpha1.ChatMessageSpec{ChatRef: v1alpha1.ChatReference{Name: "c"}, Role: v1alpha1.RoleUser,
					Content: "Hello"}}).
		WithInterceptorFuncs(w.interceptor())
	if err := index.Register(t.Context(), indexer{builder}); err != nil {
		t.Fatal(err)
	}
	w.client = builder.Build()
	w.Reconciler = New(Options{
		Client: w.client, Live: w.client, Recorder: &events.FakeRecorder{}, Pods: w.pods, Gate: w.gate,
		LoadLimits: func(context.Context) error { return nil }, Now: func() time.Time { return now },
	})
	return w
}

func (w *world) call(verb string, o any) error {
	call := verb + " " + strings.ToLower(strings.TrimPrefix(fmt.Sprintf("%T", o), "*v1alpha1."))
	w.calls = append(w.calls, call)
	if w.fail == nil {
		return nil
	}
	return w.fail(call)
}

func (w *world) interceptor() interceptor.Funcs {
	return interceptor.Funcs{
		Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object,
			opts ...client.GetOption) error {
			return errors.Join(w.call("get", o), c.Get(ctx, key, o, opts...))
		},
		List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
			if err := w.call("list", list); err != nil {
				return err
			}
			return c.List(ctx, list, opts...)
		},
		SubResourceUpdate: func(ctx context.Context, c client.Client, sub string, o client.Object,
			opts ...client.SubResourceUpdateOption) error {
			if err := w.call("update "+sub+" of", o); err != nil {
				return err
			}
			return c.SubResource(sub).Update(ctx, o, opts...)
		},
	}
}

func (w *world) reconcile() (ctrl.Result, error) {
	w.calls = nil
	return w.Reconcile(w.Context(), ctrl.Request{NamespacedName: types.NamespacedName{Namespace: "ns", Name: "c"}})
}

func (w *world) chat() *v1alpha1.Chat {
	w.Helper()
	fail := w.fail
	w.fail = nil
	defer func() { w.fail = fail }()
	var chat v1alpha1.Chat
	if err := w.client.Get(w.Context(), client.ObjectKey{Namespace: "ns", Name: "c"}, &chat); err != nil {
		w.Fatal(err)
	}
	return &chat
}

// answer is the result of the attempt under way, as its pod creates it.
func (w *world) answer() {
	w.Helper()
	st := w.chat().Status
	name := fmt.Sprintf("c-%d-%d", st.History.Version, st.Generation.Attempt)
	err := w.client.Create(w.Context(), &v1alpha1.ChatMessage{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name)},
		Spec: v1alpha1.ChatMessageSpec{
			ChatRef: v1alpha1.ChatReference{Name: "c"}, Role: v1alpha1.RoleAssistant, Parent: st.History.Head,
			Index: new(st.History.Length),
			Generation: &v1alpha1.MessageGeneration{ChatUID: "chat-uid", HistoryVersion: st.History.Version,
				Attempt: st.Generation.Attempt, Pod: "pod", Action: st.Generation.Action,
				Outcome: v1alpha1.OutcomeCompleted, StartedAt: metav1.NewMicroTime(now), FinishedAt: metav1.NewMicroTime(now)},
		},
	})
	if err != nil {
		w.Fatal(err)
	}
}

func TestAMessageIsAnsweredInTwoWritesOfTheStatus(t *testing.T) {
	w := newWorld(t)
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	st := w.chat().Status
	if st.Phase != v1alpha1.ChatRunning || st.History.Head != "u" || st.Generation.Pod != "pod" ||
		len(w.pods.booked) != 1 {
		t.Errorf("the chat is %s at %s, the pods have %v", st.Phase, st.History.Head, w.pods.booked)
	}
	w.answer()
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	st = w.chat().Status
	if st.Phase != v1alpha1.ChatWaiting || st.History.Head != "c-1-1" || st.Generation != nil || len(w.pods.booked) != 0 {
		t.Errorf("the chat is %s at %s, the pods have %v", st.Phase, st.History.Head, w.pods.booked)
	}
	writes := slices.DeleteFunc(slices.Clone(w.calls),
		func(call string) bool { return !strings.HasPrefix(call, "update") })
	if !slices.Equal(writes, []string{"update status of chat"}) {
		t.Errorf("the commit wrote %v", writes)
	}
	if generating, _ := w.gate.Counts(); generating != (capacity.Counts{}) {
		t.Errorf("%+v still have slots", generating)
	}
}

func TestAConflictIsDecidedAnewWithinTheReconcile(t *testing.T) {
	w := newWorld(t)
	conflicts := 0
	w.fail = func(call string) error {
		if call != "update status of chat" || conflicts == 2 {
			return nil
		}
		conflicts++
		return apierrors.NewConflict(schema.GroupResource{Resource: "chats"}, "c", errors.New("it was changed"))
	}
	result, err := w.reconcile()
	if err != nil || w.chat().Status.Phase != v1alpha1.ChatRunning {
		t.Errorf("after %v, %v the chat is %s", result, err, w.chat().Status.Phase)
	}
}

func TestConflictsThatDoNotEndRequeue(t *testing.T) {
	w := newWorld(t)
	w.fail = func(call string) error {
		if call != "update status of chat" {
			return nil
		}
		return apierrors.NewConflict(schema.GroupResource{Resource: "chats"}, "c", errors.New("it was changed"))
	}
	result, err := w.reconcile()
	if err != nil || result.RequeueAfter == 0 {
		t.Errorf("got %v, %v", result, err)
	}
	if generating, _ := w.gate.Counts(); generating != (capacity.Counts{}) {
		t.Errorf("%+v keep slots from others", generating)
	}
}

// TestAnErrorOfAnyCallEndsTheReconcileAndIsMadeGoodByTheNext fails each call that a commit makes, in its turn.
func TestAnErrorOfAnyCallEndsTheReconcileAndIsMadeGoodByTheNext(t *testing.T) {
	begun := func(t *testing.T) *world {
		w := newWorld(t)
		if _, err := w.reconcile(); err != nil {
			t.Fatal(err)
		}
		w.answer()
		return w
	}
	w := begun(t)
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	for n, call := range w.calls {
		t.Run(fmt.Sprint(n, " ", call), func(t *testing.T) {
			w := begun(t)
			down, calls := errors.New("etcdserver: request timed out"), 0
			w.fail = func(string) error {
				if calls++; calls == n+1 {
					return down
				}
				return nil
			}
			if _, err := w.reconcile(); !errors.Is(err, down) {
				t.Fatalf("the error is %v", err)
			}
			if phase := w.chat().Status.Phase; phase != v1alpha1.ChatRunning {
				t.Errorf("the chat is %s though a call failed", phase)
			}
			w.fail = nil
			if _, err := w.reconcile(); err != nil || w.chat().Status.Phase != v1alpha1.ChatWaiting {
				t.Errorf("after %v the chat is %s", err, w.chat().Status.Phase)
			}
		})
	}
}

func TestARefusedPodIsSaidInTheStatusAndTriedAgain(t *testing.T) {
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
	if err := w.client.Delete(t.Context(), w.chat()); err != nil {
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
