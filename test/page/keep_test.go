// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/http"
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
	s.answer("GET "+path, http.StatusOK, fields{"metadata": fields{"uid": "uid-m-0", "generation": 2,
		"resourceVersion": "6"}, "spec": fields{"content": "Where?"}})
	s.chat("triage", event{"history_reset", fields{}}, event{"message", fields{"historyVersion": 2, "index": 0,
		"message": fields{
			"name": "m-0", "uid": "uid-m-0", "role": "User", "content": "Where?", "createdAt": noon}}}, status("Waiting",
		"Answered", 2, nil))
	p.Until("the edit is kept beside what the other one wrote",
		"document.querySelector('.editor textarea')?.value === 'Why? And how?'"+
			" && document.querySelector('.editor pre')?.textContent === 'Where?'")
	p.Sees(".editor .warning", "Somebody else has changed it")
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

func TestPageThatCannotStartSaysSo(t *testing.T) {
	p := newStage(t).opened(t)
	p.Answer("*/mode.json", "<html>Bad Gateway</html>")
	p.Reload()
	p.Sees(".toast.bad", "The page cannot be opened: ")
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
