// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// crowd lets so many clients follow a chat, and waits until all do.
func (in *installation) crowd(chat string, n int) (all []*listener) {
	in.t.Helper()
	for range n {
		all = append(all, in.listen(chat, "", 0))
	}
	for _, l := range all {
		l.waitName(stream.EventStatus)
	}
	return all
}

// allHear waits until all have heard an event, and checks what they heard of the story.
func allHear(t *testing.T, all []*listener, last, want string) {
	t.Helper()
	for _, l := range all {
		check.Equal(t, "events", strings.Fields(want), ids(l.waitID(last)))
	}
}

func TestFollowersShareOneRelaySubscription(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c := in.converse("chat")
	q1 := c.ask("q1", 1)
	c.attempt(1)
	c.say("a ")
	c.commit()
	c.settle(q1)
	all := in.crowd("chat", 30)
	c.say("b ")
	allHear(t, all, "1.1.2.1", "1.0.1 1.1.1.1 1.1.2.1")
	check.Equal(t, "readers of the relay", 1, in.relay.Subscribers.Streams())
	in.relay.Stop()
	c.say("c ")
	in.relay.Start()
	all = append(all, in.crowd("chat", 5)...)
	allHear(t, all, "1.1.3.1", "1.0.1 1.1.1.1 1.1.2.1 1.1.3.1")
	check.Equal(t, "readers of the relay after its restart", 1, in.relay.Subscribers.Streams())
	c.finish(v1beta1.RoleAssistant, "a b c")
	c.commit()
	allHear(t, all, "2.0.2", "1.0.1 1.1.1.1 1.1.2.1 1.1.3.1 2.0.2")
	waitUntil(t, "nobody reads", func() bool { return in.relay.Subscribers.Streams() == 0 })
}

func TestFollowersReadAttemptMovedToAnotherPod(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c := in.converse("chat")
	q1 := c.ask("q1", 1)
	c.attempt(1)
	c.say("a ")
	c.chat.Status.Generation.Pod = "pod-2" // It has no address yet.
	c.commit()
	c.settle(q1)
	all := in.crowd("chat", 10)
	c.chat.Status.Generation.Pod = "pod-1"
	c.commit()
	allHear(t, all, "1.1.1.1", "1.0.1 1.1.1.1")
	in.pod("pod-2", "127.0.0.1")
	c.attempt(2)
	c.chat.Status.Generation.Pod = "pod-2"
	c.say("once ", "more ")
	c.commit()
	allHear(t, all, "1.2.2.1", "1.0.1 1.1.1.1 1.2.1.1 1.2.2.1")
	for _, l := range all {
		l.waitName(stream.EventPreviewReset)
	}
	check.Equal(t, "readers of the relays", 1, in.relay.Subscribers.Streams())
}

func TestSharedPartsReachOnlyAuthorizedFollowers(t *testing.T) {
	t.Parallel()
	in := install(t, func(g *Gateway) { g.lease.every = 20 * time.Millisecond })
	cluster.Bind(t, in.namespace, "second", "Role", "viewer")
	c := in.converse("chat")
	c.ask("q1", 1)
	c.attempt(1)
	c.say("a ")
	c.commit()
	viewer := in.listen("chat", "", 0)
	viewer.waitID("1.1.1.1")
	in.token = in.tokenOf("second")
	second := in.listen("chat", "", 0)
	allHear(t, []*listener{viewer, second}, "1.1.1.1", "1.0.1 1.1.1.1")
	refused := in.get(t.Context(), in.path("chat"), in.tokenOf("stranger"), nil)
	refused.Body.Close()
	if refused.StatusCode != http.StatusForbidden {
		t.Errorf("a stranger is told %s", refused.Status)
	}
	check.OK(t, cluster.Client.Delete(t.Context(), in.binding))
	<-viewer.done // Its right was withdrawn.
	c.say("b ")
	allHear(t, []*listener{second}, "1.1.2.1", "1.0.1 1.1.1.1 1.1.2.1")
	allHear(t, []*listener{viewer}, "1.1.1.1", "1.0.1 1.1.1.1")
}

// TestExpiredTokenIsRenewedForNextSubscription lets tokens expire as soon as they were shown.
func TestExpiredTokenIsRenewedForNextSubscription(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.shortLived.Store(true)
	c := in.converse("chat")
	c.ask("q1", 1)
	c.attempt(1)
	c.say("a ")
	c.commit()
	all := in.crowd("chat", 20)
	allHear(t, all, "1.1.1.1", "1.0.1 1.1.1.1")
	check.Equal(t, "tokens were asked for one subscription", 1, in.minted.Load())
	in.relay.Stop()
	in.relay.Start()
	c.say("b ")
	allHear(t, all, "1.1.2.1", "1.0.1 1.1.1.1 1.1.2.1")
	if n := in.minted.Load(); n < 2 {
		t.Error("the token that had expired was shown again")
	}
}

// TestRetriesOfRefusingRelayAreSharedByFollowers lets a relay take no token of the gateway for a while.
func TestRetriesOfRefusingRelayAreSharedByFollowers(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.podMu.Lock()
	let := in.podUIDs
	in.podUIDs = nil // It is the relay of no pod.
	in.podMu.Unlock()
	c := in.converse("chat")
	c.ask("q1", 1)
	c.attempt(1)
	c.say("a ")
	c.commit()
	all := in.crowd("chat", 50)
	waitUntil(t, "it has refused again and again", func() bool { return in.relay.Subscribers.Refused() >= 3 })
	if n := in.relay.Subscribers.Refused(); n > 40 {
		t.Errorf("it was asked %d times for 50 followers", n)
	}
	in.podMu.Lock()
	in.podUIDs = let
	in.podMu.Unlock()
	allHear(t, all, "1.1.1.1", "1.0.1 1.1.1.1")
}
