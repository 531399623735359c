// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
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

func TestFiveThousandMessagesCanBeScrolled(t *testing.T) {
	s := newStage(t)
	s.chat("triage", questions(5000)...)
	p := s.opened(t)
	p.Sees("article", "Question 4998?")
	made := func() int { return browser.Eval[int](p, "document.querySelectorAll('article.msg').length") }
	if n := made(); n > 120 {
		t.Errorf("%d messages were made", n)
	}
	p.Do("{ const at = document.getElementById('transcript'); at.scrollTop = 0 }")
	p.Until("older ones are made", "document.querySelectorAll('article.msg').length > 50")
	if !browser.Eval[bool](p, "document.getElementById('transcript').scrollTop > 500") {
		t.Error("what somebody was reading has moved away")
	}
	took := browser.Eval[float64](p, `(async () => { const at = document.getElementById('transcript');
		const began = performance.now();
		for (let i = 0; i < 300 && document.querySelectorAll('article.msg').length < 1000; i++) {
			at.scrollTop = 0; await new Promise((r) => requestAnimationFrame(r)); }
		return performance.now() - began; })()`)
	t.Logf("scrolled to %d messages in %.0f ms", made(), took)
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
		const made = document.querySelectorAll('article.msg').length;
		if (made < 10) return;
		observer.disconnect();
		window.first = made;
		document.getElementById('transcript').scrollTop = 0;
	}).observe(document.body, {childList: true, subtree: true})`)
	p.Click("#chats a", "triage")
	p.Until("older ones are made", "document.querySelectorAll('article.msg').length > window.first")
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
