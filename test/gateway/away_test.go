// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/browser"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// drowsy lets a tab sleep 50 ms after nobody looks at it, and not 30 seconds; hides and shows it; and counts the
// streams that it has closed.
const drowsy = `{ const real = setTimeout, get = fetch;
	globalThis.setTimeout = (act, ms, ...more) => real(act, ms === 30000 ? 50 : ms, ...more);
	globalThis.ended = 0;
	globalThis.fetch = (at, how) => {
		how?.signal?.addEventListener('abort', () => { ended += 1; });
		return get(at, how); };
	let hidden = false;
	Object.defineProperty(document, 'hidden', { get: () => hidden });
	globalThis.look = (away) => { hidden = away; document.dispatchEvent(new Event('visibilitychange')); }; }`

// remembered is how many changes of its chats a gateway remembers for those who come back.
const remembered = 1024

func TestTabShowsAllMissedEventsAfterSleep(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.tell("c", 4)
	gone := w.tell("gone", 2)
	p := w.opens(t, browser.Start(t), w.person("anna", "parley-chat-user"), "c", drowsy)
	p.Sees("article", "Answer 3")
	p.Sees("#chats a", "gone")
	p.Type("#compose", "Half a thought")
	p.Do("look(true)")
	p.Until("both streams are closed", "ended >= 2")

	check.OK(t, cluster.Client.Delete(t.Context(), gone.chat))
	for i := range 2*remembered + 1 { // It drops half of them at a time.
		s.chat.Status.LastReply = fmt.Sprintf("Change %d.", i)
		s.commit()
	}
	s.extend(300)
	write(t, []*v1beta1.ChatMessage{s.question("And now?")})
	episode := s.attempt()
	episode.Publish("Assistant", parts.Part{Type: parts.Text, ID: "0", Text: "I am about to say it."})

	p.Do("look(false)")
	p.Sees("article.live", "about to say it")
	p.Sees("article.user", "And now?")
	p.Gone("#chats a", "gone")
	p.Gone("#connection", "Not connected")
	check.Equal(t, "the text that was typed", "Half a thought", browser.Eval[string](p,
		"document.getElementById('compose').value"))
}

func TestAKilledGatewayLosesAPageNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	s := w.tell("c", 4)
	p := w.opens(t, browser.Start(t), w.person("anna", "parley-chat-user"), "c")
	p.Sees("article", "Answer 3")
	w.gateway.Kill()
	p.Sees("#connection", "Not connected")
	s.extend(2)
	p.Type("#compose", "Are you there?")
	p.Key("Enter")
	p.Sees("#queue li", "It is sent again")
	w.gateway.Again()
	p.Sees("article", "Answer 5")
	p.Gone("#connection", "Not connected")
	p.Gone("#queue li", "It is sent again")
	p.Sees("#queue li", "Are you there?")
}

// pixel is a picture of one pixel.
const pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

// Security (the page): cannot be made to load a file or an image elsewhere, and so disclose that it was read.
func TestNothingElsewhereIsLoadedForAPage(t *testing.T) {
	t.Parallel()
	var loaded atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { loaded.Add(1) }))
	defer elsewhere.Close()
	w := newWorld(t)
	s := w.tell("c", 0)
	question := s.question("")
	question.Spec.Content = ""
	question.Spec.Parts = []v1beta1.MessagePart{
		{Type: v1beta1.PartText, Text: new("What is it? ![a](" + elsewhere.URL + "/a.png)")},
		{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{Name: "far.png", MediaType: "image/png",
			URL: "https://files.example/far.png"}},
		{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{Name: "near.png", MediaType: "image/png", Data: pixel}},
		{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{Name: "evil.svg", MediaType: "image/svg+xml",
			Data: base64.StdEncoding.EncodeToString([]byte(`<svg xmlns="http://www.w3.org/2000/svg"><image href="` +
				elsewhere.URL + `"/></svg>`))}}}
	write(t, []*v1beta1.ChatMessage{question, s.answer(chattest.Says("[![b](" + elsewhere.URL + "/b.png)](" +
		elsewhere.URL + ")\n\n<img src=" + elsewhere.URL + ">\n\n[c]: " + elsewhere.URL + "/c.png\n\n![d][c]"))})
	s.chat.Status.Phase = v1beta1.ChatWaiting
	s.commit()
	p := w.opens(t, browser.Start(t), w.person("anna", "parley-chat-user"), "c")
	p.Sees("article.user a", "image: a")
	p.Sees("article.user a", "far.png")
	p.Sees("article.user .file", "evil.svg")
	p.Sees("article.assistant a", "image: d")
	p.Until("the one picture that the message holds is shown", `(() => { const all = [...document.images];
		return all.length === 1 && all[0].alt === 'near.png' && all[0].complete && all[0].naturalWidth === 1; })()`)
	if n := loaded.Load(); n > 0 {
		t.Errorf("%d files were loaded from elsewhere", n)
	}
	if got := browser.Eval[string](p, `[...new Set(performance.getEntriesByType('resource').map((r) => new URL(r.name))
		.filter((u) => u.protocol !== 'data:').map((u) => u.origin))].join()`); got != w.gateway.URL {
		t.Errorf("the page has loaded from %s", got)
	}
}
