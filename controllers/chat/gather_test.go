// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"errors"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/modellimits"
	"parley.dev/parley/internal/testing/chattest"
	"parley.dev/parley/internal/testing/fakeapi"
)

// at is the object as the API server has it at that resourceVersion.
func at[O client.Object](version string, o O) O {
	o.SetResourceVersion(version)
	o.SetUID(types.UID(o.GetName()))
	o.SetNamespace("ns")
	return o
}

func TestADecisionRestsOnTheNewestThatWasWritten(t *testing.T) {
	message := func(version string) *v1alpha1.ChatMessage { return at(version, chattest.User("c", "m"+version)) }
	approval := &v1alpha1.ToolApproval{ObjectMeta: metav1.ObjectMeta{Name: "yes", Generation: 1},
		Spec: v1alpha1.ToolApprovalSpec{ChatRef: v1alpha1.ChatReference{Name: "c"}}}
	asks := func(c *v1alpha1.Chat) { c.Annotations = map[string]string{v1alpha1.AnnotationInterrupt: "now"} }
	for name, c := range map[string]struct {
		chat *v1alpha1.Chat
		more []client.Object
		want string
	}{
		"the chat":                 {at("10", chattest.Chat("c")), nil, "10"},
		"a message":                {at("10", chattest.Chat("c")), []client.Object{message("12"), message("11")}, "12"},
		"the chat, an old message": {at("10", chattest.Chat("c")), []client.Object{message("9")}, "10"},
		"an approval":              {at("10", chattest.Chat("c")), []client.Object{message("12"), at("13", approval)}, "13"},
		"what it is asked for":     {at("14", chattest.Chat("c", asks)), nil, "14"},
	} {
		t.Run(name, func(t *testing.T) {
			server := fakeapi.New(t, append(c.more, c.chat, at("5", chattest.Config("default", chattest.Default)))...)
			g := newGatherer(optionsOf(server), &memory{})
			g.fresh.specs.Add(spec{"c", 0}, "10") // Its status has been written since.
			s, err := g.gather(t.Context(), keyOf(c.chat), "")
			if err != nil || s.basis != c.want {
				t.Fatalf("it rests on %+v: %v", s, err)
			}
		})
	}
}

// withoutClasses is a cache that shows no class yet.
type withoutClasses struct{ client.Client }

func (c withoutClasses) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if _, ok := into.(*v1alpha1.ChatClassList); ok {
		return nil
	}
	return c.Client.List(ctx, into, opts...)
}

func TestAPromptIsNotAnsweredWithoutADefaultClassThatTheCacheDoesNotShowYet(t *testing.T) {
	w := newWorld(t)
	if err := w.Direct.Create(t.Context(), chattest.In("ns", chattest.Class("everybody",
		func(s *v1alpha1.ChatClassSpec) { s.Default = true }))); err != nil {
		t.Fatal(err)
	}
	chat := chattest.In("ns", chattest.Chat("p", chattest.UID("p-uid"), chattest.Prompt("Write a poem.")))
	chat.Generation = 1
	if err := w.Direct.Create(t.Context(), chat); err != nil {
		t.Fatal(err)
	}
	w.gatherer.classes.cache = withoutClasses{w.Client}
	if _, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: keyOf(chat)}); err != nil {
		t.Fatal(err)
	}
	st := fakeapi.Read(t, w.Server, chattest.In("ns", chattest.Chat("p"))).Status
	if st.Generation == nil || st.ChatClass == nil || st.ChatClass.Name != "everybody" {
		t.Errorf("the chat is %s, by class %+v", st.Phase, st.ChatClass)
	}
}

// telling is an API server that lists nothing, and in which more is written meanwhile.
type telling struct {
	view
	meanwhile func()
}

func (l *telling) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	defer l.meanwhile()
	return l.view.List(ctx, into, opts...)
}

// outdated is the basis from which the pass has to read again; empty if it has not.
func outdated(err error) string {
	if e, ok := errors.AsType[*outdatedError](err); ok {
		return e.basis
	}
	return ""
}

func TestAMessageThatComesWhileItsClassIsLookedForIsReadWithTheNextPass(t *testing.T) {
	chat := at("10", chattest.Chat("c", chattest.Prompt("Write a poem.")))
	server := fakeapi.New(t, chat, at("5", chattest.Config("default", chattest.Default)))
	g := newGatherer(optionsOf(server), &memory{})
	cached, live := &view{}, &telling{view: view{version: "20"}}
	live.meanwhile = func() { cached.said = []v1alpha1.ChatMessage{*at("30", chattest.User("c", "m"))} }
	g.fresh.cache, g.fresh.live = cached, live
	s, err := g.gather(t.Context(), keyOf(chat), "")
	if outdated(err) != "30" {
		t.Errorf("with what the list of 20 does not tell it rests on %+v: %v", s, err)
	}
	live.version = "40"
	s, err = g.gather(t.Context(), keyOf(chat), "30")
	if err != nil || s.basis != "30" || s.judged != "40" || live.asked != 2 {
		t.Errorf("the API server was asked %d times: %+v: %v", live.asked, s, err)
	}
}

func TestAFirstMessageThatComesWhileTheModelIsLookedForWaitsForTheDefaultClass(t *testing.T) {
	chat := at("10", chattest.Chat("c")) // Nothing was said, so that nobody asks for a default class.
	server := fakeapi.New(t, chat)
	g := newGatherer(optionsOf(server), &memory{})
	everybody := *at("15", chattest.Class("everybody", func(s *v1alpha1.ChatClassSpec) { s.Default = true }))
	model := *at("16", chattest.Config("default", chattest.Default))
	first := *at("30", chattest.User("c", "m"))
	first.Spec.Role = v1alpha1.RoleUser
	cached := &view{}
	live := &telling{view: view{version: "40", classes: []v1alpha1.ChatClass{everybody},
		configs: []v1alpha1.ChatModelConfig{model}}}
	live.meanwhile = func() { cached.said = []v1alpha1.ChatMessage{first} }
	g.fresh.cache, g.fresh.live = cached, live
	s, err := g.gather(t.Context(), keyOf(chat), "")
	if outdated(err) != "30" {
		t.Fatalf("it would begin without asking for a default class: %+v: %v", s, err)
	}
	s, err = g.gather(t.Context(), keyOf(chat), "30")
	if err != nil || len(s.facts.Open) != 1 || s.facts.Class == nil || s.facts.Class.Name != "everybody" {
		t.Errorf("it would begin with %+v: %v", s, err)
	}
}

func TestAPassThatReadsAgainRestsOnWhatTheOneBeforeHasRead(t *testing.T) {
	chat := at("10", chattest.Chat("c"))
	chat.Status.Queue = []v1alpha1.QueuedMessage{{Name: "m"}}
	chat.Status.Phase, chat.Status.History.Version = v1alpha1.ChatRunning, 1
	m := at("50", chattest.User("c", "m")) // No index of the cache has it yet.
	server := fakeapi.New(t, chat, at("5", chattest.Config("default", chattest.Default)), m)
	g := newGatherer(optionsOf(server), &memory{})
	live := &view{version: "60"}
	g.fresh.cache, g.fresh.live, g.fresh.informers = &view{}, live, syncedTo{version: "20"}
	if _, err := g.gather(t.Context(), keyOf(chat), ""); outdated(err) != "50" {
		t.Fatalf("it does not rest on the queued message: %v", err)
	}
	s, err := g.gather(t.Context(), keyOf(chat), "50")
	if err != nil || s.judged != "60" || live.asked != 1 {
		t.Errorf("the API server was asked %d times: %+v: %v", live.asked, s, err)
	}
}

func TestAQueuedMessageThatIsOfAnotherChatByNowIsGone(t *testing.T) {
	chat := at("10", chattest.Chat("c"))
	chat.Status.Queue = []v1alpha1.QueuedMessage{{Name: "m"}, {Name: "n"}}
	server := fakeapi.New(t, chat, at("5", chattest.Config("default", chattest.Default)),
		at("50", chattest.User("other", "m")), at("11", chattest.User("c", "n")))
	g := newGatherer(optionsOf(server), &memory{})
	s, err := g.gather(t.Context(), keyOf(chat), "")
	if err != nil || len(s.facts.Queued) != 1 || s.facts.Queued[0].Name != "n" {
		t.Errorf("queued are %+v: %v", s, err)
	}
}

func TestAChatGoesOnThoughWhatItRestsOnIsFoundLate(t *testing.T) {
	w := newWorld(t)
	m := chattest.In("ns", chattest.User("p", "m"))
	chat := chattest.In("ns", chattest.Chat("p", chattest.UID("p-uid")))
	chat.Status.Queue = []v1alpha1.QueuedMessage{{Name: "m"}}
	chat.Status.Phase, chat.Status.History.Version = v1alpha1.ChatError, 1
	for _, o := range []client.Object{chat, m} {
		if err := w.Direct.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	m.Spec.WhenBusy = v1alpha1.WhenBusyQueue // The message is newer than the chat, and no index of the cache has it.
	if err := w.Direct.Update(t.Context(), m); err != nil {
		t.Fatal(err)
	}
	live := &view{version: "5000"}
	w.gatherer.fresh.cache, w.gatherer.fresh.live = &view{}, live
	w.gatherer.fresh.informers = syncedTo{version: chat.ResourceVersion}
	result, err := w.Reconcile(t.Context(), ctrl.Request{NamespacedName: keyOf(chat)})
	if err != nil || result.RequeueAfter == 10*time.Millisecond || live.asked == 0 {
		t.Errorf("the API server was asked %d times, and the chat is looked at again after %s: %v", live.asked,
			result.RequeueAfter, err)
	}
	if st := fakeapi.Read(t, w.Server, chattest.In("ns", chattest.Chat("p"))).Status; len(st.Conditions) == 0 {
		t.Errorf("nothing was written: %+v", st)
	}
}

func TestMessageOpenInTheCacheAloneIsNotTaken(t *testing.T) {
	chat := at("20", chattest.Chat("c"))
	cached := at("15", chattest.User("c", "m"))
	now := cached.DeepCopy()
	now.Status.State, now.Status.ChatUID = v1alpha1.MessageCommitted, "c"
	g := newGatherer(optionsOf(fakeapi.New(t, chat, now)), &memory{})
	if open, err := g.stillOpen(t.Context(), chat, cached); err != nil || open {
		t.Errorf("a message that was committed is open: %t, %v", open, err)
	}
}

func TestSuspendedChatHoldsItsSubChats(t *testing.T) {
	parent := at("10", chattest.Chat("p", func(c *v1alpha1.Chat) { c.Spec.Suspend = true }))
	sub := at("11", chattest.Chat("c", chattest.ChildOf("p")))
	g := newGatherer(optionsOf(fakeapi.New(t, parent, sub)), &memory{})
	if s, err := g.gather(t.Context(), keyOf(sub), ""); err != nil || !s.facts.Suspended {
		t.Errorf("it is not held: %+v, %v", s, err)
	}
}

// optionsOf are those of a gatherer that reads from the server.
func optionsOf(server *fakeapi.Server) *Options {
	return &Options{Calls: modellimits.NewGate(), Client: server.Client, Live: server.Live, Now: time.Now}
}
