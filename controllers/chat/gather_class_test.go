// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/internal/testing/chattest"
)

// classReaderOf reads from that cache, and from that API server.
func classReaderOf(cache, live client.Reader) *classReader {
	return &classReader{cache: cache, live: live, fresh: freshReaderOf(cache, live)}
}

func TestTheDefaultClassSpeaksToChatsOfOtherClasses(t *testing.T) {
	coder := *chattest.Class("coder")
	everybody := *chattest.Class("everybody", func(s *v1alpha1.ChatClassSpec) {
		s.Default, s.NamespacePreamble = true, "…"
	})
	chat := chattest.In("ns", chattest.Chat("c"))
	chat.Spec.ChatClassName = "coder"
	s := &scope{facts: plan.Facts{Chat: chat}}
	// The cache does not show the default yet, which came with the chat.
	err := classReaderOf(&view{classes: []v1alpha1.ChatClass{coder}, said: []v1alpha1.ChatMessage{{}}},
		&view{classes: []v1alpha1.ChatClass{coder, everybody}}).readClass(t.Context(), s)
	if err != nil || s.facts.Class == nil || s.facts.Class.Name != "coder" || s.facts.Namespace == nil ||
		s.facts.Namespace.Name != "everybody" {
		t.Errorf("it has class %+v, and %+v speaks for the namespace: %v", s.facts.Class, s.facts.Namespace, err)
	}
}

func TestAChatDoesNotBeginWithoutAClassThatTheCacheDoesNotShowYet(t *testing.T) {
	coder := *chattest.Class("coder")
	everybody := *chattest.Class("everybody", func(s *v1alpha1.ChatClassSpec) { s.Default = true })
	said := []v1alpha1.ChatMessage{{}}
	for name, c := range map[string]struct {
		names         string
		cached, there []v1alpha1.ChatClass
		said          []v1alpha1.ChatMessage
		version       int64
		want          string
		asked         int
	}{
		"one that it names":                   {"coder", nil, []v1alpha1.ChatClass{coder}, said, 0, "coder", 1},
		"one that it names later":             {"coder", nil, []v1alpha1.ChatClass{coder}, said, 3, "coder", 1},
		"one that it names, before a message": {"coder", nil, []v1alpha1.ChatClass{coder}, nil, 0, "coder", 1},
		"the default":                         {"", nil, []v1alpha1.ChatClass{everybody}, said, 0, "everybody", 1},
		"the default, before a message":       {"", nil, []v1alpha1.ChatClass{everybody}, nil, 0, "", 0},
		"the default, while it waits":         {"", nil, []v1alpha1.ChatClass{everybody}, nil, 1, "everybody", 1},
		"there is none":                       {"", nil, nil, said, 0, "", 1},
		"the cache shows it, and no default": {
			"coder", []v1alpha1.ChatClass{coder}, []v1alpha1.ChatClass{coder}, said, 0, "coder", 1},
		"the cache shows it, later": {"coder", []v1alpha1.ChatClass{coder}, nil, said, 3, "coder", 0},
		"the cache shows it, and the default": {
			"coder", []v1alpha1.ChatClass{coder, everybody}, nil, said, 0, "coder", 0},
		"the cache shows the default":          {"", []v1alpha1.ChatClass{everybody}, nil, said, 0, "everybody", 0},
		"a default that is new, when it began": {"", nil, []v1alpha1.ChatClass{everybody}, said, 3, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			chat := chattest.In("ns", chattest.Chat("c"))
			chat.Spec.ChatClassName, chat.Status.History.Version = c.names, c.version
			live := &view{classes: c.there}
			s := &scope{facts: plan.Facts{Chat: chat}}
			err := classReaderOf(&view{classes: c.cached, said: c.said}, live).readClass(t.Context(), s)
			got := ""
			if s.facts.Class != nil {
				got = s.facts.Class.Name
			}
			if err != nil || got != c.want || live.asked != c.asked || s.facts.Blocked != nil {
				t.Errorf("it has class %q, asked %d times, %v, %v", got, live.asked, s.facts.Blocked, err)
			}
		})
	}
}

func TestAChatWithAPromptDoesNotBeginWithoutTheDefaultClass(t *testing.T) {
	everybody := *chattest.Class("everybody", func(s *v1alpha1.ChatClassSpec) { s.Default = true })
	chat := chattest.In("ns", chattest.Chat("c"))
	chat.Spec.Prompt = "Write a poem." // It becomes a message in the pass that reads the class.
	s := &scope{facts: plan.Facts{Chat: chat}}
	err := classReaderOf(&view{}, &view{classes: []v1alpha1.ChatClass{everybody}}).readClass(t.Context(), s)
	if err != nil || s.facts.Class == nil {
		t.Errorf("it has class %+v: %v", s.facts.Class, err)
	}
}

func TestAMissingClassEndsNoTurnUnlessItIsMissingNow(t *testing.T) {
	coder := *chattest.Class("coder")
	const again, edited, queue, request = "taken up again", "edited", "with a queue", "asked to compact"
	for phase, asked := range map[v1alpha1.ChatPhase]int{
		v1alpha1.ChatWaiting: 0, v1alpha1.ChatError: 0, "": 0,
		v1alpha1.ChatRunning: 1, v1alpha1.ChatInterrupting: 1, v1alpha1.ChatRequiresAction: 1,
		again: 1, edited: 1, queue: 1, request: 1,
	} {
		chat := chattest.In("ns", chattest.Chat("c"))
		chat.Spec.ChatClassName, chat.Status.Phase = "coder", phase
		live, cached := &view{version: "20", classes: []v1alpha1.ChatClass{coder}}, &view{}
		cached.said = []v1alpha1.ChatMessage{*chattest.User("c", "m")} // It waits.
		r := classReaderOf(cached, live)
		r.fresh.informers = syncedTo{version: "20"} // The class was deleted, and is back.
		s := &scope{facts: plan.Facts{Chat: chat}, basis: "10"}
		switch phase {
		case again:
			chat.Status.Phase, s.facts.Truncated = v1alpha1.ChatWaiting, plan.Rest(nil)
		case edited:
			chat.Status.Phase, cached.said[0].Status.State = v1alpha1.ChatWaiting, v1alpha1.MessageCommitted
		case queue:
			chat.Status.Phase, chat.Status.Queue = v1alpha1.ChatError, []v1alpha1.QueuedMessage{{Name: "n"}}
		case request:
			chat.Status.Phase = v1alpha1.ChatWaiting
			s.facts.Requests = plan.RequestsOf(chattest.Chat("c", func(c *v1alpha1.Chat) {
				c.Annotations = map[string]string{v1alpha1.AnnotationCompact: "now"}
			}))
		}
		if err := r.readClass(t.Context(), s); err != nil || live.asked != asked || (s.facts.Blocked == nil) != (asked > 0) {
			t.Errorf("%s: the API server was asked %d times, and the chat is blocked by %v: %v", phase, live.asked,
				s.facts.Blocked, err)
		}
	}
}

func TestWhatAClassSaysRestsOnTheClass(t *testing.T) {
	chat := chattest.In("ns", chattest.Chat("c"))
	s := &scope{facts: plan.Facts{Chat: chat}, basis: "10"}
	r := classReaderOf(&view{classes: []v1alpha1.ChatClass{classAt("a", "15"), classAt("b", "12")}}, &view{})
	if err := r.readClass(t.Context(), s); err != nil || s.basis != "15" {
		t.Errorf("the decision rests on %s: %v", s.basis, err)
	}
}
