// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"math"
	"net/http"
	"slices"
	"testing"

	"parley.dev/parley/test/kit/browser"
)

// paint opens chat NAME from the list, and reports in milliseconds when a frame has shown its newest question.
const paint = `(async () => { const began = performance.now();
	document.querySelector('#chats a[data-chat=%s]').click();
	while (![...document.querySelectorAll('article.user')].some((e) => e.textContent.includes('%s')))
		await new Promise((r) => requestAnimationFrame(r));
	await new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
	return performance.now() - began; })()`

func questions(n int) []event {
	events := make([]event, 0, n+1)
	for i := 0; i < n; i += 2 {
		events = append(events, user(i, fmt.Sprintf("Question %d?", i)), assistant(i+1, text(cni)))
	}
	return append(events, status("Waiting", "Answered", n, nil))
}

func TestChatOfFiveThousandMessagesPaintsFewElements(t *testing.T) {
	s := newStage(t)
	s.list(summary("short", "Waiting", "Answered", nil), summary("long", "Waiting", "Answered", nil))
	s.chat("short", questions(10)...)
	// A stream begins with the newest 200 messages.
	s.chat("long", questions(5000)[4800:]...)
	p := browser.Open(t, browser.Start(t), s.url)
	p.Sees("#chats a", "long")
	times := map[string][]float64{}
	for range 7 {
		for chat, newest := range map[string]string{"short": "Question 8?", "long": "Question 4998?"} {
			times[chat] = append(times[chat], browser.Eval[float64](p, fmt.Sprintf(paint, chat, newest)))
			if n := browser.Eval[int](p, "document.querySelectorAll('*').length"); n > 3000 {
				t.Errorf("%s has %d elements", chat, n)
			} else if len(times[chat]) == 1 {
				t.Logf("%s has %d elements", chat, n)
			}
			p.Do("location.hash = '#/demo'")
			p.Sees("#nothing", "Choose")
		}
	}
	for chat, all := range times {
		slices.Sort(all)
		t.Logf("%s is painted after %.0f ms (median), %.0f to %.0f", chat, all[len(all)/2], all[0], all[len(all)-1])
	}
}

// scrollUp scrolls from the newest message to the first of a chat, as far at a time as a wheel that is turned fast. It
// reports how many nodes the page had at most, which questions it has shown, and the most that a message moved which
// somebody saw.
const scrollUp = `(async () => { const at = document.getElementById('transcript');
	let most = 0, moved = 0, idle = 0;
	const seen = new Set();
	const frame = () => new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
	while (idle < 20 && !seen.has(0)) {
		const reading = [...document.querySelectorAll('article.user')].find((e) => e.getBoundingClientRect().top > 0);
		const before = reading?.getBoundingClientRect().top, from = at.scrollTop;
		at.scrollTop -= 700;
		const by = from - at.scrollTop;
		await frame();
		if (reading?.isConnected) moved = Math.max(moved, Math.abs(reading.getBoundingClientRect().top - before - by));
		const walker = document.createTreeWalker(document, NodeFilter.SHOW_ELEMENT | NodeFilter.SHOW_TEXT);
		let count = 1;
		while (walker.nextNode()) count++;
		most = Math.max(most, count);
		const size = seen.size;
		for (const e of document.querySelectorAll('article.user')) seen.add(Number(e.dataset.name.slice(2)));
		idle = seen.size > size ? 0 : idle + 1;
	}
	return {most, moved, seen: seen.size, first: seen.has(0)}; })()`

type scrolling struct {
	Most, Moved float64
	Seen        int
	First       bool
}

func TestScrollThroughLongChatKeepsPageSmall(t *testing.T) {
	s := newStage(t)
	s.chat("triage", append(questions(400)[:399:399], assistant(399, reasoning("It is the CNI."), text(cni)),
		status("Waiting", "Answered", 400, nil))...)
	p := s.opened(t)
	p.Sees("article", "Question 398?")
	p.Do("document.querySelector('.reasoning').open = true")
	got := browser.Eval[scrolling](p, scrollUp)
	t.Logf("%+v", got)
	if got.Most > 3000 || got.Moved > 2 || got.Seen != 200 || !got.First {
		t.Errorf("of 200 questions, with at most 3000 nodes, the page has shown %+v", got)
	}
	p.Gone("article", "Question 398?")
	p.Until("all that is later can be scrolled to", `(() => { const at = document.getElementById('transcript');
		at.scrollTop += 2000;
		return [...document.querySelectorAll('article.user')].some((e) => e.textContent.includes('Question 200?')); })()`)
	p.Click("button.newest", "Newest")
	p.Sees("article", "Question 398?")
	p.Sees("article .reasoning p", "It is the CNI.")
	s.chat("triage", user(400, "The last one."))
	p.Sees("article", "The last one.")
}

func TestReplyBelowReaderMovesNothing(t *testing.T) {
	s := newStage(t)
	s.chat("triage", append(questions(400)[:400:400], user(400, "Go."),
		status("Running", "Generating", 401, fields{"attempt": 1}))...)
	p := s.opened(t)
	p.Sees("article", "Go.")
	p.Do("location.hash = '#/demo/triage/m-100'")
	p.Sees(":focus", "Question 100?")
	const top = `document.activeElement.getBoundingClientRect().top -
		document.getElementById('transcript').getBoundingClientRect().top`
	before := browser.Eval[float64](p, top)
	s.chat("triage", part(401, 1, fields{"type": "Text", "id": "t", "text": cni}), assistant(401, text("Done.")),
		status("Waiting", "Answered", 402, nil))
	p.Sees("#chat-standing", "answered")
	if after := browser.Eval[float64](p, top); math.Abs(after-before) > 1 { // Browsers round.
		t.Errorf("what somebody reads has moved from %v to %v", before, after)
	}
	p.Key("G")
	p.Sees("article", "Done.")
	p.Gone("article.live", "CNI")
}

func TestSelectionAndEditorSurviveScrolling(t *testing.T) {
	s := newStage(t)
	s.chat("triage", questions(400)...)
	s.answer("GET "+chats+"/triage/messages/m-398", http.StatusOK, fields{"metadata": fields{"uid": "uid-m-398"},
		"spec": fields{"content": "Question 398?"}})
	p := s.opened(t)
	p.Sees("article", "Question 398?")
	const up = "document.getElementById('transcript').scrollTop -= 2600"
	p.Do("getSelection().selectAllChildren(document.querySelector('[data-name=m-398] .body'))")
	p.Do(up)
	p.Until("it is out of view", "document.querySelector('[data-name=m-398]').getBoundingClientRect().top > innerHeight")
	if got := browser.Eval[string](p, "getSelection().toString().trim()"); got != "Question 398?" {
		t.Errorf("selected is %q", got)
	}
	p.Key("e")
	p.Sees(".editor", "")
	p.Write(" And why?")
	p.Until("it is released", "("+up+", !document.querySelector('[data-name=m-398]'))")
	focusOn(p, "#transcript")
	p.Key("G")
	p.Until("the editor is there again", "document.querySelector('.editor textarea')?.value === 'Question 398? And why?'")
}

func TestManyStepsOfTurnAreShownInPages(t *testing.T) {
	s := newStage(t)
	s.chat("triage", append(append([]event{user(0, "Build it.")}, steps(1, 300)...), assistant(601, text("All is built.")),
		status("Waiting", "Answered", 602, nil))...)
	p := s.opened(t)
	p.Click(".work > summary", "Ran 300 commands")
	p.Sees(".steps .call", "make step-299")
	p.Click(".steps button", "Show earlier steps: 280")
	p.Sees(".steps .call", "make step-279")
	p.Gone(".steps .call", "make step-280")
	p.Do("location.hash = '#/demo/triage/m-21'")
	p.Sees(":focus", "make step-10")
	p.Click(".steps button", "Show later steps: 280")
	p.Sees(".steps .call", "make step-39")
	if n := browser.Eval[int](p, "document.querySelectorAll('.step').length"); n != 21 {
		t.Errorf("%d steps have elements", n)
	}
}

func TestScrollUpDuringOpeningShowsOlderMessages(t *testing.T) {
	s := newStage(t)
	s.chat("triage", questions(400)...)
	p := s.opened(t)
	p.Sees("article", "Question 398?")
	p.Do("location.hash = '#/demo'")
	p.Sees("#nothing", "Choose")
	p.Until("nothing of the chat is left", "!document.querySelector('article')")
	// It scrolls when the messages are there, before the browser has reported that the page has scrolled to their end.
	p.Do(`new MutationObserver((_, observer) => {
		if (!document.querySelector('[data-name=m-398]')) return;
		observer.disconnect();
		document.getElementById('transcript').scrollTop = 0;
		window.first = document.querySelector('article').dataset.name;
	}).observe(document.body, {childList: true, subtree: true})`)
	p.Click("#chats a", "triage")
	p.Until("older ones are made", "window.first && document.querySelector('article').dataset.name !== window.first")
}

func TestOlderMessagesComeWhenSomebodyLooksForThem(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(200, "The newest question."), status("Waiting", "Answered", 201, nil))
	s.answer("GET "+chats+"/triage/messages", http.StatusOK, fields{"messages": []any{
		user(198, "An older question.").data, assistant(199, text("An older answer.")).data}})
	p := s.opened(t)
	p.Sees("article", "An older question.")
	p.Sees("article", "An older answer.")
}

func TestReadersGetOlderMessagesFromTheStream(t *testing.T) {
	s := newStage(t)
	newest := []event{user(200, "The newest question."), status("Waiting", "Answered", 201, nil)}
	s.tell(chats+"/triage/stream?last=200", newest...)
	older := []event{user(198, "An older question."), assistant(199, text("An older answer."))}
	s.chat("triage", append(older, newest...)...)
	s.answer("GET "+chats+"/triage/messages", http.StatusForbidden, refusal("Forbidden", "you may not read messages"))
	p := s.opened(t)
	p.Sees("article", "An older question.")
	p.Sees("article", "The newest question.")
	p.Gone(".toast", "cannot be read")
}
