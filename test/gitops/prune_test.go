// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gitops

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// uids are the identities of the objects that Git holds, by id.
func uids(t *testing.T, ns string, git repository) map[string]string {
	t.Helper()
	all, of := live(t, ns), map[string]string{}
	for _, name := range git.ids() {
		if all[name] != nil {
			of[name] = string(all[name].GetUID())
		}
	}
	return of
}

// same checks that the objects are the very ones that they were.
func same(t *testing.T, ns string, git repository, before map[string]string) {
	t.Helper()
	for name, uid := range uids(t, ns, git) {
		if before[name] != uid {
			t.Errorf("%s is another object than before", name)
		}
	}
	if got := uids(t, ns, git); len(got) != len(git) {
		t.Errorf("of %v there are only %v", git.ids(), got)
	}
}

// goneFrom waits until the namespace has none of the objects.
func goneFrom(t *testing.T, ns string, ids ...string) {
	t.Helper()
	eventually(t, strings.Join(ids, ", ")+" are gone", func() bool {
		all := live(t, ns)
		return !slices.ContainsFunc(ids, func(name string) bool { return all[name] != nil })
	})
}

func TestOnlyMessageRemovedFromGitIsPruned(t *testing.T) {
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		git := checkOut(t, ns, "chats.yaml")
		what.apply(t, git)
		wait(t, ns, "Queued", messages...)
		before := uids(t, ns, git)

		waiting := git.without("ChatMessage/triage-events")
		if changed := what.apply(t, waiting); !slices.Equal(changed, []string{"ChatMessage/triage-events"}) {
			t.Errorf("dropping a queued message changed %v", changed)
		}
		goneFrom(t, ns, "ChatMessage/triage-events")
		same(t, ns, waiting, before)

		playPods(t, ns)
		wait(t, ns, "Answered", "ChatMessage/triage-prompt", "ChatMessage/triage-cni", "ChatMessage/triage-summary",
			"Chat/triage")
		last := newest(t, ns, "triage-cni", "triage-summary")
		answered := waiting.without(last)
		if changed := what.apply(t, answered); !slices.Equal(changed, []string{last}) {
			t.Errorf("dropping an answered message changed %v", changed)
		}
		goneFrom(t, ns, last)
		same(t, ns, answered, before)
		unchanged(t, what, ns, answered)
	})
}

// newest is the one of the messages that comes last in the history.
func newest(t *testing.T, ns string, names ...string) string {
	t.Helper()
	best, place := "", int64(-1)
	for _, name := range names {
		o := liveIn(t, ns, "ChatMessage/"+name)
		index, _, err := unstructured.NestedInt64(o.Object, "status", "index")
		if err != nil {
			t.Fatal(err)
		}
		if index > place {
			best, place = id(o), index
		}
	}
	return best
}

func TestPruningSkipsObjectsOfOperatorAndUsers(t *testing.T) {
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		git := checkOut(t, ns, "chats.yaml")
		what.apply(t, git)
		playPods(t, ns)
		wait(t, ns, "Answered", append(messages, "Chat/triage")...)
		kubectl{ns: ns}.apply(t, checkOut(t, ns, "person.yaml"))
		wait(t, ns, "Answered", "ChatMessage/triage-person", "ChatMessage/own-prompt")
		before := map[string]string{}
		for _, o := range everything(t, ns) {
			if o.GetKind() != "Event" {
				before[id(o)] = string(o.GetUID())
			}
		}

		// Each of them prunes something, so that a sweep takes place.
		what.apply(t, git.without(modelConfig))
		for _, o := range everything(t, ns) {
			delete(before, id(o))
		}
		if _, pruned := before[modelConfig]; len(before) != 1 || !pruned {
			t.Errorf("pruning %s removed %v", modelConfig, before)
		}
	})
}

func TestPrunedChatGoesWithItsMessages(t *testing.T) {
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		git := checkOut(t, ns, "chats.yaml")
		what.apply(t, git)
		playPods(t, ns)
		wait(t, ns, "Answered", append(messages, "Chat/triage")...)
		wait(t, ns, "AuthenticationFailed", "Chat/broken", "ChatMessage/broken-prompt")
		left := git.without(append(messages, "Chat/triage")...)
		before := uids(t, ns, git)

		what.apply(t, left)
		eventually(t, "nothing of the chat is left", func() bool {
			for name := range live(t, ns) {
				if strings.Contains(name, "/triage") {
					return false
				}
			}
			return true
		})
		same(t, ns, left, before)
		expect(t, ns, stuck, "ChatMessage/broken-prompt")
		unchanged(t, what, ns, left)
	})
}

func TestMessagesOfPrunedChatAreRecreated(t *testing.T) {
	with(t, controllers, func(t *testing.T, ns string, what tool) {
		git := checkOut(t, ns, "chats.yaml")
		what.apply(t, git)
		playPods(t, ns)
		wait(t, ns, "Answered", append(messages, "Chat/triage")...)

		before := uids(t, ns, git)

		orphaned := git.without("Chat/triage")
		what.apply(t, orphaned)
		goneFrom(t, ns, "Chat/triage", "ChatMessage/triage-prompt")
		for _, name := range messages {
			eventually(t, name+" is another object, which waits for a chat", func() bool {
				what.apply(t, orphaned)
				o := live(t, ns)[name]
				if o == nil {
					return false
				}
				_, reason := ready(o)
				return string(o.GetUID()) != before[name] && reason == "ChatNotFound"
			})
		}
		unchanged(t, what, ns, orphaned)
		expect(t, ns, busy, messages...)

		// Git has the chat again: it begins afresh, and they are answered.
		what.apply(t, git)
		wait(t, ns, "Answered", append(messages, "Chat/triage", "ChatMessage/triage-prompt")...)
		unchanged(t, what, ns, git)
	})
}
