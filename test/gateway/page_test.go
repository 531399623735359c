// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"strings"
	"testing"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/browser"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/tokens"
	"parley.dev/parley/test/kit/waiting"
)

// opens the gateway's own page at a chat as somebody who pastes a token. The gateway's address leads to it.
func (w *world) opens(t *testing.T, in *browser.Browser, token, chat string, scripts ...string) *browser.Page {
	t.Helper()
	p := browser.Open(t, in, w.gateway.URL+"/#/"+w.namespace+"/"+chat, scripts...)
	p.Sees("dialog h2", "Sign in")
	p.Type("#sign-in input[type=password]", token)
	p.Key("Enter")
	p.Gone("dialog", "Sign in")
	return p
}

// began says how long something took.
func began(t *testing.T, what string, do func()) {
	t.Helper()
	start := time.Now()
	do()
	t.Logf("%s after %s", what, time.Since(start).Round(time.Millisecond))
}

func TestThePageShowsAChatOf5000Messages(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	const all = 5000
	w.tell("long", all)
	token := w.person("anna", "parley-chat-viewer")
	p := w.opens(t, browser.Start(t), token, "none")
	p.Sees("#chats a", "long")
	began(t, "the newest messages are shown", func() {
		p.Click("#chats a", "long")
		p.Sees("article", "Question 4998?")
	})
	began(t, "the first message is shown", func() {
		p.Do("location.hash += '/long-q0'")
		p.Sees(".toast", "Earlier messages are being read")
		// The gateway reads 5,000 messages one after the other.
		p.Within(5*time.Minute, "the first message has the focus",
			"document.querySelector('article:focus')?.innerText.includes('Question 0?')")
	})
	nodes := browser.Eval[int](p, "document.querySelectorAll('*').length")
	t.Logf("the page has %d elements", nodes)
	if nodes > 3000 {
		t.Errorf("the page has %d elements", nodes)
	}
	p.Key("Escape")
	began(t, "the end is shown again", func() {
		p.Key("G")
		p.Sees("article", "Question 4998?")
		p.Until("the end is in view", `(() => { const at = document.getElementById("transcript");
			return at.scrollTop + at.clientHeight >= at.scrollHeight - 80; })()`)
	})
}

func TestTokenExpiryDuringUseLosesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.tell("c", 2)
	next := w.person("anna", "parley-chat-user")
	key, err := cluster.SigningKey()
	check.OK(t, err)
	short, err := tokens.Expiring(key, next, time.Now().Add(12*time.Second))
	check.OK(t, err)
	p := w.opens(t, browser.Start(t), short, "c")
	p.Sees("article", "Question 0?")
	p.Type("#compose", "What I was about to say")
	p.Sees("dialog h2", "Sign in")
	p.Sees("dialog", "expired")
	p.Key("Escape")
	p.Key("Escape")
	p.Sees("dialog h2", "Sign in")
	p.Type("#sign-in input[type=password]", "rubbish")
	p.Key("Enter")
	p.Sees("dialog", "no JSON web token")
	p.Type("#sign-in input[type=password]", next)
	p.Key("Enter")
	p.Gone("dialog", "Sign in")
	p.Type("#compose", ", and did")
	p.Key("Enter")
	var sent v1beta1.ChatMessageList
	waiting.Until(t, time.Minute, "the message is there", func() bool {
		err := cluster.Client.List(t.Context(), &sent, client.InNamespace(w.namespace))
		return err == nil && len(sent.Items) == 3
	})
	p.Sees("#queue li", "What I was about to say, and did")
	s.extend(2)
	p.Sees("article", "Answer 3")
	kept := browser.Eval[string](p, "JSON.stringify([{...sessionStorage}, {...localStorage}, location.href])")
	for _, token := range []string{short, next} {
		if strings.Contains(kept, token) || strings.Contains(w.gateway.Log(), token) {
			t.Errorf("a token is kept: %s\n%s", kept, w.gateway.Log())
		}
	}
}
