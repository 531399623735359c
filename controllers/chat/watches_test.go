// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"context"
	"slices"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
)

// namespaced is a client that lists the chats and ChatModelConfigs of a namespace and does nothing else.
type namespaced struct {
	client.Client
	chats   []v1beta1.Chat
	classes []v1beta1.ChatClass
}

func (n namespaced) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	if chats, ok := into.(*v1beta1.ChatList); ok {
		chats.Items = n.chats
		return nil
	}
	into.(*v1beta1.ChatClassList).Items = n.classes
	return nil
}

func TestConfigurationWakesChatsWhoseConditionsDependOnIt(t *testing.T) {
	chat := func(name string, change func(*v1beta1.Chat)) v1beta1.Chat {
		c := v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name}}
		change(&c)
		return c
	}
	says := func(condition string) func(*v1beta1.Chat) {
		return func(c *v1beta1.Chat) {
			c.Status.Conditions = []metav1.Condition{{Type: condition, Status: metav1.ConditionTrue}}
		}
	}
	e := &enqueuer{cache: namespaced{
		chats: []v1beta1.Chat{
			chat("plain", func(*v1beta1.Chat) {}),
			chat("fell-back", says(v1beta1.ConditionModelConfigFallback)),
			chat("without-advice", says(v1beta1.ConditionAdvisorUnavailable)),
			chat("with-a-turn", func(c *v1beta1.Chat) { c.Status.Phase = v1beta1.ChatRunning }),
			chat("idle", func(c *v1beta1.Chat) { c.Status.Phase = v1beta1.ChatWaiting }),
			chat("archived",
				func(c *v1beta1.Chat) { says(v1beta1.ConditionModelConfigFallback)(c); c.Status.Archived = true }),
			chat("advised", func(c *v1beta1.Chat) { c.Spec.Advisor = &v1beta1.ChatAdvisor{Enabled: new(true)} }),
			chat("advised-by-its-class", func(c *v1beta1.Chat) { c.Spec.ChatClassName = "coder" }),
		},
		classes: []v1beta1.ChatClass{*chattest.Class("coder", func(s *v1beta1.ChatClassSpec) {
			s.Defaults.Advisor = &v1beta1.ChatAdvisor{
				Enabled: new(true), ModelConfigRef: &v1beta1.ModelConfigReference{Name: "strong"}}
		})},
	}}
	marked := []string{"fell-back", "without-advice", "with-a-turn"}
	for name, want := range map[string][]string{
		"other": marked, "strong": append(marked[:3:3], "advised-by-its-class"),
	} {
		config := modelConfig(name, nil)
		config.Namespace = "ns"
		var got []string
		for _, request := range e.chatsMarkedBy(t.Context(), &config) {
			got = append(got, request.Name)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s wakes %v", name, got)
		}
	}
}

func TestClassEventWakesCurrentAndCandidateChats(t *testing.T) {
	chat := func(name, names, has string) v1beta1.Chat {
		c := chattest.In("ns", chattest.Chat(name))
		c.Spec.ChatClassName = names
		if has != "" {
			c.Status.ChatClass = &v1beta1.AppliedChatClass{Name: has}
		}
		return *c
	}
	archived := chat("archived", "coder", "coder")
	archived.Status.Archived = true
	goes := *archived.DeepCopy()
	goes.Name, goes.Status.ExpiresAt = "archived-and-goes", new(metav1.Now())
	e := &enqueuer{cache: namespaced{chats: []v1beta1.Chat{
		chat("names-it", "coder", ""), chat("names-none", "", ""), chat("had-it-as-default", "", "coder"),
		chat("names-another", "reviewer", "reviewer"), archived, goes,
	}}}
	for name, c := range map[string]struct {
		isDefault bool
		retention *v1beta1.ChatRetention
		want      []string
	}{
		"one among others": {false, nil, []string{"names-it", "had-it-as-default", "archived-and-goes"}},
		"a default":        {true, nil, []string{"names-it", "names-none", "had-it-as-default", "archived-and-goes"}},
		"one that says for how long chats are kept": {false, &v1beta1.ChatRetention{DeleteAfterSeconds: new(int32(60))},
			[]string{"names-it", "had-it-as-default", "archived", "archived-and-goes"}},
	} {
		t.Run(name, func(t *testing.T) {
			class := chattest.In("ns", chattest.Class("coder", func(s *v1beta1.ChatClassSpec) {
				s.Default, s.Defaults.Retention = c.isDefault, c.retention
			}))
			var got []string
			for _, request := range e.chatsOfClass(t.Context(), class) {
				got = append(got, request.Name)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("it wakes %v", got)
			}
		})
	}
}

func TestSubChatRestOrRestartWakesItsAncestors(t *testing.T) {
	sub := func(change func(*v1beta1.ChatStatus)) *v1beta1.Chat {
		c := chattest.Chat("sub", chattest.ChildOf("c"))
		change(&c.Status)
		return c
	}
	works := sub(func(s *v1beta1.ChatStatus) { s.Phase = v1beta1.ChatRunning })
	rests := sub(func(s *v1beta1.ChatStatus) {
		s.Phase, s.IdleSince = v1beta1.ChatWaiting, new(metav1.NewTime(now))
	})
	settled := rests.DeepCopy() // It has said so, and says something else now.
	settled.Status.Conditions = []metav1.Condition{{Type: v1beta1.ConditionReady, Reason: "Answered"}}
	top := rests.DeepCopy()
	top.Spec.ParentRef = nil
	for name, c := range map[string]struct {
		before, after *v1beta1.Chat
		want          bool
	}{
		"it comes to rest":     {works, rests, true},
		"it has work":          {rests, works, true},
		"it says another word": {rests, settled, true},
		"nothing of that":      {works, works, false},
		"the chat at the top":  {works, top, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := concernsAbove().Update(event.UpdateEvent{ObjectOld: c.before, ObjectNew: c.after}); got != c.want {
				t.Errorf("woken: %v", got)
			}
		})
	}
}

func TestRememberedWriteIsDroppedOnceCached(t *testing.T) {
	at := func(version string) *v1beta1.Chat {
		c := chattest.In("ns", chattest.Chat("c", chattest.UID("uid")))
		c.ResourceVersion = version
		return c
	}
	e := &enqueuer{memory: &memory{}}
	e.memory.written.put(at("5"))
	for _, step := range []struct {
		shown string
		kept  int
	}{{"4", 1}, {"5", 0}} {
		e.shownHandler().Update(t.Context(), event.UpdateEvent{ObjectOld: at("3"), ObjectNew: at(step.shown)}, nil)
		if kept := len(e.memory.written.chats); kept != step.kept {
			t.Errorf("%d writes are kept after the cache shows %s, want %d", kept, step.shown, step.kept)
		}
	}
}

func TestWriteAlreadyInCacheIsNotRemembered(t *testing.T) {
	w := newWorld(t)
	if _, err := w.reconcile(); err != nil {
		t.Fatal(err)
	}
	if kept := len(w.memory.written.chats); kept != 0 || len(w.Writes()) == 0 {
		t.Errorf("%d writes are kept after %v", kept, w.Writes())
	}
}
