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

// opened is the page with chat triage, whose story a test has told.
func (s *stage) opened(t *testing.T, scripts ...string) *browser.Page {
	t.Helper()
	s.list(summary("triage", "Waiting", "Answered", nil))
	p := browser.Open(t, browser.Start(t), s.url, scripts...)
	p.Click("#chats a", "triage")
	p.Sees("#chat-title", "triage")
	return p
}

func value(p *browser.Page, selector string) string {
	return browser.Eval[string](p, "document.querySelector("+encoded(selector)+").value")
}

const sends = "POST " + chats + "/triage/messages"

func TestNothingThatWasTypedIsLost(t *testing.T) {
	s := newStage(t)
	s.chat("triage", append(investigation, status("Waiting", "Answered", 7, nil))...)
	p := s.opened(t)
	p.Sees("article", "Then give it more memory")

	p.Type("#compose", "A thought")
	p.Reload()
	p.Sees("article", "Then give it more memory")
	if got := value(p, "#compose"); got != "A thought" {
		t.Errorf("after a reload the field has %q", got)
	}

	s.outage(true)
	p.Sees("#connection", "no gateway pod is ready")
	p.Key("c")
	p.Key("Enter")
	p.Sees("#queue li", "A thought")
	p.Sees("#queue li", "It is sent again")
	p.Reload()
	p.Sees("#queue li", "A thought")
	s.outage(false)
	p.Gone("#connection", "Not connected")
	p.Sees("#queue li", "is sent")
	sent := s.wasAsked(sends)
	if sent["content"] != "A thought" || sent["name"] == "" {
		t.Errorf("sent was %v", sent)
	}
	s.chat("triage", event{"message", fields{"historyVersion": 8, "index": 7, "message": fields{"name": sent["name"],
		"uid": "u7", "role": "User", "content": "A thought", "createdAt": noon}}})
	p.Sees("article.user", "A thought")
	p.Gone("#queue", "A thought")

	s.answer(sends, http.StatusForbidden, refusal("Forbidden", "you may not write here"))
	p.Type("#compose", "Another one")
	p.Key("Enter")
	p.Sees(".toast", "It was not sent: you may not write here")
	if got := value(p, "#compose"); got != "Another one" {
		t.Errorf("after a refusal the field has %q", got)
	}
}

func TestTextIsKeptWhenStorageIsFull(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Hi."), status("Waiting", "Answered", 1, nil))
	s.chat("other", user(0, "Ho."), status("Waiting", "Answered", 1, nil))
	p := s.opened(t, `{ const real = Storage.prototype.setItem;
		Storage.prototype.setItem = function (key, text) {
			if (text.length > 7) throw new DOMException('full', 'QuotaExceededError');
			real.call(this, key, text);
		}; }`)
	s.list(summary("triage", "Waiting", "Answered", nil), summary("other", "Waiting", "Answered", nil))
	p.Sees("article", "Hi.")
	p.Type("#compose", "A ")
	p.Type("#compose", "long thought")
	p.Click("#chats a", "other")
	p.Sees("article", "Ho.")
	p.Click("#chats a", "triage")
	p.Sees("article", "Hi.")
	if got := value(p, "#compose"); got != "A long thought" {
		t.Errorf("the field has %q", got)
	}
}

func TestRetryOfDeliveredMessageIsNoError(t *testing.T) {
	s := newStage(t)
	s.chat("triage", status("Waiting", "AwaitingFirstMessage", 0, nil))
	p := s.opened(t)
	tries := 0
	s.mu.Lock()
	s.answers[sends] = func() (int, any) {
		if tries++; tries == 1 {
			return http.StatusServiceUnavailable, refusal("APIServerUnavailable", "nobody knows")
		}
		return http.StatusConflict, refusal("AlreadyExists", "it exists")
	}
	s.mu.Unlock()
	p.Type("#compose", "Once")
	p.Key("Enter")
	p.Sees("#queue li", "is sent")
	p.Gone(".toast", "not sent")
	p.Reload()
	p.Sees("#queue li", "is sent")
	p.Gone(".toast", "not sent")
}

func TestCutAnswerSendsMessageOnce(t *testing.T) {
	s := newStage(t)
	s.chat("triage", status("Waiting", "AwaitingFirstMessage", 0, nil))
	p := s.opened(t)
	s.answer(sends, http.StatusCreated, cutOff)
	p.Type("#compose", "Once")
	p.Key("Enter")
	p.Sees("#queue li", "It is sent again")
	name := s.wasAsked(sends)["name"]
	s.answer(sends, http.StatusConflict, refusal("AlreadyExists", "it exists"))
	p.Sees("#queue li", "is sent")
	reads := fmt.Sprintf("GET %s/triage/messages/%s", chats, name)
	s.answer(reads, http.StatusOK, cutOff)
	waitFor(t, "the page asks twice whether it was refused", func() bool { return s.times(reads) > 1 })
	p.Gone(".toast", "not sent")
	if got := value(p, "#compose"); got != "" || s.wasAsked(sends)["name"] != name {
		t.Errorf("the field has %q", got)
	}
}

func TestMessagesArriveInTheirOrder(t *testing.T) {
	s := newStage(t)
	s.chat("triage", status("Waiting", "AwaitingFirstMessage", 0, nil))
	p := s.opened(t)
	arrived := make(chan struct{})
	s.mu.Lock()
	s.answers[sends] = func() (int, any) { <-arrived; return http.StatusCreated, fields{} }
	s.mu.Unlock()
	for _, words := range []string{"A large picture", "What is on it?"} {
		p.Type("#compose", words)
		p.Key("Enter")
		p.Sees("#queue li", words)
		s.wasAsked(sends)
	}
	p.Do("fetch('mode.json')")
	if n := s.times(sends); n != 1 {
		t.Errorf("%d messages are under way at once", n)
	}
	close(arrived)
	waitFor(t, "the second one is sent", func() bool { return s.times(sends) == 2 })
	if got := s.wasAsked(sends)["content"]; got != "What is on it?" {
		t.Errorf("the second one is %v", got)
	}
}

func TestAMessageThatTheChatRefusesComesBack(t *testing.T) {
	s := newStage(t)
	s.chat("triage", status("Waiting", "AwaitingFirstMessage", 0, nil))
	p := s.opened(t)
	p.Type("#compose", "One too many")
	p.Key("Enter")
	name := fmt.Sprint(s.wasAsked(sends)["name"])
	s.answer("GET "+chats+"/triage/messages/"+name, http.StatusOK, fields{"status": fields{"state": "Rejected",
		"conditions": []fields{{"type": "Ready", "status": "False", "reason": "QueueFull", "message": "the queue is full"}}}})
	p.Sees(".toast", "QueueFull: the queue is full")
	if got := value(p, "#compose"); got != "One too many" {
		t.Errorf("the field has %q", got)
	}
}

func TestEditDraftSurvivesReloadAndConcurrentEdit(t *testing.T) {
	s := newStage(t)
	const path = chats + "/triage/messages/m-0"
	s.chat("triage", user(0, "Why?"), status("Waiting", "Answered", 1, nil))
	s.answer("GET "+path, http.StatusOK, fields{"metadata": fields{"uid": "uid-m-0", "generation": 1,
		"resourceVersion": "5"},
		"spec": fields{"content": "Why?"}})
	s.answer("PATCH "+path, http.StatusConflict, refusal("Conflict", "it was changed"))
	p := s.opened(t)
	p.Sees("article.user", "Why?")
	p.Key("e")
	p.Type(".editor textarea", " And how?")
	p.Reload()
	p.Until("the editor is there", "document.querySelector('.editor textarea')?.value === 'Why? And how?'")
	p.Click(".editor button", "Save")
	p.Sees(".toast", "Somebody else has changed it")
	if got := s.wasAsked("PATCH " + path); got["content"] != "Why? And how?" || got["resourceVersion"] != "5" {
		t.Errorf("asked for was %v", got)
	}
	s.chat("triage", event{"history_reset", fields{}}, event{"message", fields{"historyVersion": 2, "index": 0,
		"message": fields{
			"name": "m-0", "uid": "uid-m-0", "role": "User", "content": "Where?", "createdAt": noon}}}, status("Waiting",
		"Answered", 2, nil))
	p.Until("the edit is kept beside what the other one wrote",
		"document.querySelector('.editor textarea')?.value === 'Why? And how?'"+
			" && document.body.textContent.includes('Where?')")
}

// composing are keys of an input method, of which Safari sends the last one after it.
const composing = `for (const as of [{isComposing: true}, {keyCode: 229}]) document.activeElement.dispatchEvent(
	new KeyboardEvent('keydown', {key: '%s', bubbles: true, cancelable: true, ...as}))`

func TestInputMethodSendsAndDiscardsNothing(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Why?"), status("Waiting", "Answered", 1, nil))
	s.answer("GET "+chats+"/triage/messages/m-0", http.StatusOK, fields{"metadata": fields{"uid": "uid-m-0"},
		"spec": fields{"content": "Why?"}})
	p := s.opened(t)
	p.Sees("article.user", "Why?")
	p.Type("#compose", "にほん")
	p.Do(fmt.Sprintf(composing, "Enter"))
	if got := value(p, "#compose"); got != "にほん" || s.times(sends) > 0 {
		t.Errorf("the field has %q", got)
	}
	p.Do("document.activeElement.blur()")
	p.Key("e")
	p.Type(".editor textarea", " どうして")
	for _, key := range []string{"Escape", "Enter"} {
		p.Do(fmt.Sprintf(composing, key))
	}
	if got := value(p, ".editor textarea"); got != "Why? どうして" {
		t.Errorf("the editor has %q", got)
	}
	p.Key("Escape")
	p.Gone(".editor", "Save")
}

func TestHistoryResetKeepsElementsOfUnchangedMessages(t *testing.T) {
	s := newStage(t)
	s.chat("triage", append(investigation, assistant(7, text("The old end.")), status("Waiting", "Answered", 8, nil))...)
	p := s.opened(t)
	p.Sees("article", "The old end.")
	p.Until("all is open", fmt.Sprintf(openAll, "details"))
	p.Do("window.kept = document.querySelector('details.call')")
	other := append([]event{{"history_reset", fields{}}}, investigation...)
	s.chat("triage", append(other, message(7, "Assistant", fields{"uid": "other",
		"parts": []fields{text("The new end.")}}),
		status("Waiting", "Answered", 9, nil))...)
	p.Sees("article", "The new end.")
	p.Gone("article", "The old end.")
	if !browser.Eval[bool](p, "window.kept === document.querySelector('details.call') && kept.open") {
		t.Error("a message that did not change was made again")
	}
}

func TestAKeyThatIsRefusedLosesNothing(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Why?"), status("Waiting", "Answered", 1, nil))
	p := s.opened(t)
	p.Sees("article.user", "Why?")
	p.Type("#compose", "Still here")
	s.answer(sends, http.StatusUnauthorized, refusal("Unauthorized",
		"this page is closed: run kubectl chat ui again"))
	p.Key("Enter")
	p.Sees("#connection", "run kubectl chat ui again")
	p.Sees("#queue li", "Still here")
}

func TestWhoIsSignedOutIsToldSo(t *testing.T) {
	s := newStage(t)
	p := s.opened(t)
	p.Answer("*/mode.json", `{"login": "token"}`)
	p.Do("sessionStorage.removeItem('parley.key')")
	p.Reload()
	p.Sees("#sign-in", "Use a token")
	p.Sees("#connection", "You are signed out.")
	p.Sees("#list-empty", "You are signed out.")
	p.Gone("#connection", "Trying again")
}

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
