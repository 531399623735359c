// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chat

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/plan"
	"parley.dev/parley/test/kit/chattest"
)

func TestDefaultClassSpeaksToChatsOfOtherClasses(t *testing.T) {
	coder := *chattest.Class("coder")
	everybody := *chattest.Class("everybody", func(s *v1beta1.ChatClassSpec) {
		s.Default, s.NamespacePreamble = true, "…"
	})
	chat := chattest.In("ns", chattest.Chat("c"))
	chat.Spec.ChatClassName = "coder"
	s := &scope{facts: plan.Facts{Chat: chat}, unsettled: []v1beta1.ChatMessage{{}}}
	// The cache does not show the default yet, which came with the chat.
	err := listerOf(&view{classes: []v1beta1.ChatClass{coder}},
		&view{version: "20", classes: []v1beta1.ChatClass{coder, everybody}}).readClass(t.Context(), s)
	if err != nil || s.facts.Class == nil || s.facts.Class.Name != "coder" || s.facts.Namespace == nil ||
		s.facts.Namespace.Name != "everybody" {
		t.Errorf("it has class %+v, and %+v speaks for the namespace: %v", s.facts.Class, s.facts.Namespace, err)
	}
}

func TestFirstTurnUsesUncachedClass(t *testing.T) {
	coder := *chattest.Class("coder")
	everybody := *chattest.Class("everybody", func(s *v1beta1.ChatClassSpec) { s.Default = true })
	said := []v1beta1.ChatMessage{{}}
	for name, c := range map[string]struct {
		names         string
		cached, there []v1beta1.ChatClass
		said          []v1beta1.ChatMessage
		version       int64
		want          string
		asked         int
	}{
		"one that it names":                   {"coder", nil, []v1beta1.ChatClass{coder}, said, 0, "coder", 1},
		"one that it names later":             {"coder", nil, []v1beta1.ChatClass{coder}, said, 3, "", 0},
		"one that it names, before a message": {"coder", nil, []v1beta1.ChatClass{coder}, nil, 0, "", 0},
		"the default":                         {"", nil, []v1beta1.ChatClass{everybody}, said, 0, "everybody", 1},
		"the default, before a message":       {"", nil, []v1beta1.ChatClass{everybody}, nil, 0, "", 0},
		"the default, while it waits":         {"", nil, []v1beta1.ChatClass{everybody}, nil, 1, "everybody", 1},
		"there is none":                       {"", nil, nil, said, 0, "", 1},
		"the cache shows it, and no default": {
			"coder", []v1beta1.ChatClass{coder}, []v1beta1.ChatClass{coder}, said, 0, "coder", 1},
		"the cache shows it, later": {"coder", []v1beta1.ChatClass{coder}, nil, said, 3, "coder", 0},
		"the cache shows it, and the default": {
			"coder", []v1beta1.ChatClass{coder, everybody}, nil, said, 0, "coder", 0},
		"the cache shows the default":          {"", []v1beta1.ChatClass{everybody}, nil, said, 0, "everybody", 0},
		"a default that is new, when it began": {"", nil, []v1beta1.ChatClass{everybody}, said, 3, "", 0},
	} {
		t.Run(name, func(t *testing.T) {
			chat := at("10", chattest.Chat("c"))
			chat.Spec.ChatClassName, chat.Status.History.Version = c.names, c.version
			live := &view{version: "20", classes: c.there}
			s := &scope{facts: plan.Facts{Chat: chat}, unsettled: c.said}
			err := listerOf(&view{classes: c.cached}, live).readClass(t.Context(), s)
			got := ""
			if s.facts.Class != nil {
				got = s.facts.Class.Name
			}
			if err != nil || got != c.want || live.asked != c.asked || (s.facts.Blocked != nil) != (c.names != "" && got == "") {
				t.Errorf("it has class %q, asked %d times, %v, %v", got, live.asked, s.facts.Blocked, err)
			}
		})
	}
}

func TestPromptWaitsForTheDefaultClass(t *testing.T) {
	everybody := *chattest.Class("everybody", func(s *v1beta1.ChatClassSpec) { s.Default = true })
	chat := chattest.In("ns", chattest.Chat("c"))
	chat.Spec.Prompt = "Write a poem." // It becomes a message in the pass that reads the class.
	s := &scope{facts: plan.Facts{Chat: chat}}
	err := listerOf(&view{}, &view{version: "20", classes: []v1beta1.ChatClass{everybody}}).readClass(t.Context(), s)
	if err != nil || s.facts.Class == nil {
		t.Errorf("it has class %+v: %v", s.facts.Class, err)
	}
}
