// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"parley.dev/parley/test/kit/browser"
)

// within holds if what the first selector finds is whole inside of what the second one finds.
const within = `(() => { const outer = document.querySelector(%[2]q).getBoundingClientRect();
	const inner = [...document.querySelectorAll(%[1]q)].map((e) => e.getBoundingClientRect());
	return inner.length > 0 && inner.every((box) => box.height > 0 && box.top >= outer.top - 1 && box.bottom <= outer.bottom + 1); })()`

func TestHeaderOfCodeIsWhole(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Why?"), assistant(1, text("```sh\nsh greet.sh\n```")), status("Waiting", "Answered", 2, nil))
	p := s.opened(t)
	p.Sees(".code .bar", "sh")
	for _, scheme := range []string{"dark", "light"} {
		p.Look(scheme, 1280, 720)
		pictured(p, "", "header of code "+scheme)
		if !browser.Eval[bool](p, fmt.Sprintf(within, ".code .bar > *", ".code .bar")) {
			t.Errorf("%s: the header of the code is cut", scheme)
		}
	}
}

// passing lets a test move the clock of the page on, and says whether its clocks run.
const passing = `{ const now = Date.now, begin = window.setInterval, end = window.clearInterval;
	let ahead = 0;
	Date.now = () => now() + ahead;
	window.pass = (ms) => { ahead += ms; };
	window.setInterval = (does, after) => { const id = begin(does, after);
		if (after === 1000) window.runs = id;
		return id; };
	window.clearInterval = (id) => { if (id === window.runs) window.runs = 0; end(id); }; }`

func TestAgesInTheListMove(t *testing.T) {
	s := newStage(t)
	s.list(summary("news", "Waiting", "Answered", fields{"since": time.Now()}))
	p := browser.Open(t, browser.Start(t), s.url, passing, hides)
	p.Sees("#chats .age", "s")
	p.Do("pass(120000)")
	p.Sees("#chats .age", "2m")
	p.Do("hide(true)")
	p.Until("a hidden page has no clock", "runs === 0")
	p.Do("pass(120000)")
	p.Do("hide(false)")
	p.Sees("#chats .age", "4m")
}

func TestListUsesItsRoomAndRowsKeepHeight(t *testing.T) {
	s := newStage(t)
	var rows []map[string]any
	for i := range 30 {
		// Half of them have changed since the page was opened.
		rows = append(rows, summary(fmt.Sprintf("write-a-small-greeting-script-%d", i), "Waiting", "Answered",
			fields{"since": time.Now().Add(time.Duration(i%2*2-1) * time.Hour)}))
	}
	s.list(rows...)
	p := browser.Open(t, browser.Start(t), s.url)
	p.Until("half are unread", "document.querySelectorAll('#chats .unread').length === 15")
	for _, width := range []int64{1280, 320} {
		p.Look("light", width, 720)
		pictured(p, "", fmt.Sprintf("a full list %d", width))
		heights := browser.Eval[int](p, `new Set([...document.querySelectorAll('#chats a')].map((e) => e.offsetHeight)).size`)
		if heights != 1 {
			t.Errorf("%d wide: rows have %d heights", width, heights)
		}
		if room := browser.Eval[float64](p, `document.querySelector('#side footer').getBoundingClientRect().top -
			document.querySelector('#chats').getBoundingClientRect().bottom`); room > 16 {
			t.Errorf("%d wide: %v are left below the list", width, room)
		}
	}
}

func TestComposerStaysInViewDuringEdit(t *testing.T) {
	s := newStage(t)
	s.chat("triage", append(asks(waitsFor("p1", "execute", fields{"command": "sh greet.sh world"})),
		event{"queue_update", fields{"queue": []fields{{"name": "m-9", "preview": "And in French"}}}})...)
	s.answer("PUT "+chats+"/triage/messages/m-9/hold", http.StatusOK, fields{"metadata": fields{"annotations": fields{
		"parley.dev/hold-until": "12:05"}}})
	s.answer("GET "+chats+"/triage/messages/m-9", http.StatusOK, fields{"metadata": fields{"uid": "u1", "generation": 1,
		"resourceVersion": "5"}, "spec": fields{"content": "And in French"}})
	p := s.opened(t)
	p.Look("light", 1280, 720)
	p.Click("#queue button", "Edit")
	p.Sees("#queue .editor", "It keeps its place")
	if !browser.Eval[bool](p, fmt.Sprintf(within, ".editor", "#below")) {
		t.Error("the editor opens out of view")
	}
	for _, size := range [][2]int64{{1280, 720}, {320, 640}, {640, 430}} {
		p.Look("light", size[0], size[1])
		p.Do("document.querySelector('.editor').scrollIntoView({block: 'nearest'})")
		pictured(p, "", fmt.Sprintf("a queued message is edited %d", size[0]))
		for inner, outer := range map[string]string{"#composer select, #composer .primary, #compose": "main", ".editor": "#below"} {
			if !browser.Eval[bool](p, fmt.Sprintf(within, inner, outer)) {
				t.Errorf("%v: %s is out of %s", size, inner, outer)
			}
		}
		p.HasNoBarrier(axe)
	}
}

func TestOneCallIsAnnouncedAsOne(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Go."), status("Running", "Generating", 1, nil))
	p := s.opened(t)
	p.Sees("#chat-standing", "writes")
	s.chat("triage", asks(waitsFor("p1", "execute", fields{"command": "make"}))[1:]...)
	p.Sees("#approvals h3", "left, then it is cancelled")
	p.Until("it is said", "document.getElementById('announcer').textContent === 'A call waits for you.'")
}
