// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/modellimits"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/fakeapi"
)

// at is the object as the API server has it at that resourceVersion.
func at[O client.Object](version string, o O) O {
	o.SetResourceVersion(version)
	o.SetUID(types.UID(o.GetName()))
	o.SetNamespace("ns")
	return o
}

// withoutClasses is a cache that shows no class yet.
type withoutClasses struct{ client.Client }

func (c withoutClasses) List(ctx context.Context, into client.ObjectList, opts ...client.ListOption) error {
	if _, ok := into.(*v1beta1.ChatClassList); ok {
		return nil
	}
	return c.Client.List(ctx, into, opts...)
}

func TestPromptUsesUncachedDefaultClass(t *testing.T) {
	w := newWorld(t)
	if err := w.Direct.Create(t.Context(), chattest.In("ns", chattest.Class("everybody",
		func(s *v1beta1.ChatClassSpec) { s.Default = true }))); err != nil {
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

func TestQueuedMessageRecreatedForAnotherChatIsDropped(t *testing.T) {
	chat := at("10", chattest.Chat("c"))
	chat.Status.Queue = []v1beta1.QueuedMessage{{Name: "m"}, {Name: "n"}}
	server := fakeapi.New(t, chat, at("5", chattest.Config("default", chattest.Default)),
		at("50", chattest.User("other", "m")), at("11", chattest.User("c", "n")))
	g := newGatherer(optionsOf(server), &memory{})
	s, err := g.gather(t.Context(), keyOf(chat))
	if err != nil || len(s.facts.Queued) != 1 || s.facts.Queued[0].Name != "n" {
		t.Errorf("queued are %+v: %v", s, err)
	}
}

func TestCommittedMessageOpenInStaleCacheIsIgnored(t *testing.T) {
	chat := at("20", chattest.Chat("c"))
	cached := at("15", chattest.User("c", "m"))
	now := cached.DeepCopy()
	now.Status.State, now.Status.ChatUID = v1beta1.MessageCommitted, "c"
	g := newGatherer(optionsOf(fakeapi.New(t, chat, now)), &memory{})
	if open, err := g.stillOpen(t.Context(), chat, cached); err != nil || open {
		t.Errorf("a message that was committed is open: %t, %v", open, err)
	}
}

func TestSuspendedChatHoldsItsSubChats(t *testing.T) {
	parent := at("10", chattest.Chat("p", func(c *v1beta1.Chat) { c.Spec.Suspend = true }))
	sub := at("11", chattest.Chat("c", chattest.ChildOf("p")))
	g := newGatherer(optionsOf(fakeapi.New(t, parent, sub)), &memory{})
	if s, err := g.gather(t.Context(), keyOf(sub)); err != nil || !s.facts.Suspended {
		t.Errorf("it is not held: %+v, %v", s, err)
	}
}

// optionsOf are those of a gatherer that reads from the server.
func optionsOf(server *fakeapi.Server) *Options {
	return &Options{Calls: modellimits.NewGate(), Client: server.Client, Live: server.Live, Now: time.Now}
}
