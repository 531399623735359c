// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/http"
	"testing"

	"parley.dev/parley/test/kit/browser"
)

// idle is chat triage at rest.
func idle(t *testing.T, scripts ...string) (*stage, *browser.Page) {
	s := newStage(t)
	s.chat("triage", user(0, "Hi."), assistant(1, text("Hello.")), status("Waiting", "Answered", 2, nil))
	p := s.opened(t, scripts...)
	p.Sees("article", "Hello.")
	return s, p
}

func TestCommandsAreCompletedAndRun(t *testing.T) {
	s, p := idle(t)
	p.Key("c")
	p.Write("/m")
	p.Sees("#completions", "choose the model")
	hasNoBarrier(p)
	pictured(p, "page-commands", "commands")
	p.Key("ArrowDown")
	p.Key("Tab")
	p.Sees("#completions [aria-selected=true]", "/mode Plan")
	p.Key("Enter")
	p.Gone("#completions", "/mode Explore")
	p.Key("Enter")
	if got := encoded(s.wasAsked("PATCH " + chats + "/triage")); got != `{"spec":{"mode":"Plan"}}` {
		t.Errorf("asked for was %s", got)
	}
	p.Sees(".toast", "The mode of the chat is now Plan")
	s.chat("triage", status("Waiting", "Answered", 2, fields{"mode": "Plan"}))
	p.Sees("#chat-facts", "large · mode Plan")
	p.Write("/model sm")
	p.Key("Enter")
	p.Key("Enter")
	waitFor(t, "the model changes", func() bool {
		return encoded(s.wasAsked("PATCH "+chats+"/triage")) == `{"spec":{"modelConfigRef":{"name":"small"}}}`
	})
	for typed, kind := range map[string]string{"/compact": "Compact", "/cl": "Clear"} {
		p.Write(typed)
		p.Sees("#completions", "/")
		p.Key("Enter")
		if typed != "/compact" {
			p.Key("Enter")
		}
		waitFor(t, kind, func() bool { return s.wasAsked("POST " + chats + "/triage/requests")["kind"] == kind })
	}
	for typed, says := range map[string]string{"/Mode fast": "/mode takes one of: Plan, Explore, default",
		"/model small medium": "/model takes one of: ", "/nodel small": "There is no command /nodel"} {
		p.Clear("#compose")
		p.Write(typed)
		p.Key("Enter")
		p.Sees(".toast", says)
	}
	if n := s.times(sends); n != 0 {
		t.Errorf("%d messages were sent", n)
	}
	p.Clear("#compose")
	p.Write("/etc/hosts is empty")
	p.Do("document.getElementById('model').value = 'small'; document.getElementById('effort').value = 'High'")
	p.Key("Enter")
	got := s.wasAsked(sends)
	if got["content"] != "/etc/hosts is empty" || got["modelConfig"] != "small" || got["reasoningEffort"] != "High" {
		t.Errorf("asked for was %v", got)
	}
}

func TestNewChatHasItsSettings(t *testing.T) {
	s, p := idle(t)
	s.answer("GET /v1beta1/namespaces/demo/chatclasses", http.StatusOK, fields{"chatClasses": []fields{
		{"name": "ops", "description": "For work on clusters.", "default": true, "firstPrompts": []string{"What is broken?"}},
		{"name": "docs", "description": "For texts.", "firstPrompts": []string{"Why?", "What is new?"}}}})
	s.answer("GET /v1beta1/namespaces/demo/modelconfigs", http.StatusOK, fields{"modelConfigs": []fields{
		{"name": "large", "model": "claude", "provider": "anthropic", "default": true, "ready": true}}})
	s.answer("GET /v1beta1/namespaces/demo/templates", http.StatusOK, fields{"templates": []fields{
		{"name": "go", "description": "A Go toolchain."}}})
	p.Key("n")
	p.Sees("dialog", "ops: For work on clusters.")
	p.Sees("dialog .prompts button", "What is broken?")
	p.Until("models and templates are described", `(() => { const words = [...document.querySelectorAll('dialog option')]
		.map((o) => o.value + ' is ' + o.textContent); return words.includes('large is large: claude, anthropic (default)')
		&& words.includes('go is go: A Go toolchain.'); })()`)
	p.Do("{ const s = [...document.querySelectorAll('dialog option')].find((o) => o.value === 'docs').parentNode;" +
		" s.value = 'docs'; s.dispatchEvent(new Event('change')); }")
	p.Sees("dialog", "For texts.")
	p.Click("dialog summary", "More settings")
	hasNoBarrier(p)
	pictured(p, "page-new", "a new chat")
	p.Do("{ const s = [...document.querySelectorAll('dialog option')].find((o) => o.value === 'go').parentNode;" +
		" s.value = 'go'; s.dispatchEvent(new Event('change')); }")
	p.Do("[...document.querySelectorAll('dialog label.check')].find((l) => l.textContent.includes('volume')).click()")
	for label, words := range map[string]string{"System prompt": "Be brief.",
		"Tools": "execute, read_file", "Tools whose calls wait for approval": "execute"} {
		p.Do("[...document.querySelectorAll('dialog label')].find((l) => l.firstChild.data === " + encoded(label) +
			").querySelector('input, textarea').focus()")
		p.Write(words)
	}
	p.Click("dialog summary", "Choose tools by name")
	p.Click("dialog [aria-label='Ask first: write_file']", "")
	p.Click("dialog [aria-label='Allow: read_file']", "") // It was typed.
	p.Click("dialog [aria-label='Allow: write_file']", "")
	hasNoBarrier(p)
	p.Type("dialog textarea", "What I typed")
	p.Click("dialog .prompts button", "Why?")
	focusOn(p, "dialog textarea")
	p.Do("document.execCommand('undo')")
	p.Until("undo brings back what was typed", "document.activeElement.value === 'What I typed'")
	p.Click("dialog .prompts button", "Why?")
	p.Key("Shift+Enter")
	p.Write("Say it.")
	p.Key("Enter")
	const want = `{"chatClassName":"docs","prompt":"Why?\nSay it.","systemPrompt":"Be brief.",` +
		`"tools":{"allow":["execute","write_file"],"approval":["execute","write_file"]},` +
		`"workspace":{"podTemplateRef":{"name":"go","storage":{}}}}`
	if got := encoded(s.wasAsked("POST " + chats)["spec"]); got != want {
		t.Errorf("asked for was %s", got)
	}
}

func TestEditOfAnOldMessageAsksFirst(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Why?"), assistant(1, text("So.")), user(2, "And how?"), assistant(3, text("Thus.")),
		status("Waiting", "Answered", 4, nil))
	s.answer("GET "+chats+"/triage/messages/m-0", http.StatusOK, fields{"metadata": fields{"name": "m-0", "uid": "u-0",
		"generation": 1, "resourceVersion": "5"}, "spec": fields{"role": "User", "content": "Why?"}})
	s.answer("PATCH "+chats+"/triage/messages/m-0", http.StatusOK, fields{})
	p := s.opened(t)
	p.Sees("article.assistant", "Thus.")
	p.Click("article.user:first-of-type button", "Edit")
	p.Type(".editor textarea", "?")
	p.Key("Enter")
	p.Sees("dialog", "1 later message leaves the conversation, with the replies.")
	p.Key("Escape")
	p.Gone("dialog", "leaves")
	if n := s.times("PATCH " + chats + "/triage/messages/m-0"); n != 0 {
		t.Errorf("%d edits were saved", n)
	}
	p.Key("Enter")
	p.Sees("dialog button", "Cancel")
	p.Do(`(async () => { // No frame is drawn meanwhile, as on a busy machine.
		[...document.querySelectorAll('dialog button')].find((b) => b.textContent === 'Cancel').click();
		for (let i = 0; i < 9; i += 1) await null;
		document.querySelector('.editor textarea').value += '?';
		document.querySelector('.editor button').click();
	})()`)
	p.Click("dialog:last-of-type button", "Save")
	if got := s.wasAsked("PATCH " + chats + "/triage/messages/m-0")["content"]; got != "Why???" {
		t.Errorf("saved was %v", got)
	}
}

func TestNewChatSaysThatNoModelIsDefault(t *testing.T) {
	s, p := idle(t)
	s.answer("GET /v1beta1/namespaces/demo/modelconfigs", http.StatusOK, fields{"modelConfigs": []fields{
		{"name": "large", "default": true, "disabled": true}, {"name": "small"}}})
	p.Key("n")
	p.Until("the choice says so", "[...document.querySelectorAll('dialog option')].some((o) =>"+
		" o.textContent === 'none: choose one, or a class that has one')")
}

func TestHeldEnterCreatesOneChat(t *testing.T) {
	s, p := idle(t)
	p.Key("n")
	p.Type("dialog textarea", "Why?")
	p.Do(`for (let i = 0; i < 3; i += 1) document.activeElement.dispatchEvent(
		new KeyboardEvent('keydown', {key: 'Enter', repeat: true, cancelable: true}))`)
	p.Sees("dialog", "A new chat")
	s.answer("POST "+chats, http.StatusForbidden, refusal("Forbidden", "you may not create chats"))
	const twice = "for (let i = 0; i < 2; i += 1) document.querySelector('dialog form').requestSubmit()"
	p.Do(twice)
	p.Sees("dialog .warning", "you may not create chats")
	name := s.wasAsked("POST " + chats)["name"]
	s.answer("POST "+chats, http.StatusCreated, fields{})
	p.Do(twice)
	p.Sees("#chat-title", fmt.Sprint(name))
	if n := s.times("POST " + chats); n != 2 {
		t.Errorf("%d chats were asked for in two attempts", n)
	}
}

func TestCancelledNewChatIsNotRetried(t *testing.T) {
	s, p := idle(t)
	s.answer("POST "+chats, http.StatusServiceUnavailable, refusal("ServiceUnavailable", "etcd has no leader"))
	p.Do(`{ const send = window.fetch; window.tries = 0; window.fetch = (...of) => {
		if (of[1]?.method === 'POST') window.tries += 1;
		return send(...of); }; }`)
	p.Key("n")
	p.Type("dialog textarea", "Why?")
	p.Key("Enter")
	p.Sees("dialog .warning", "etcd has no leader It is tried again.")
	p.Do(`{ [...document.querySelectorAll('dialog button')].find((b) => b.textContent === 'Cancel').click();
		window.before = window.tries;
		setTimeout(() => { window.wasDue = true; }, 3000); }`)
	p.Until("a retry was due", "window.wasDue")
	p.Until("it is not sent again", "window.before > 0 && window.tries === window.before")
}

func TestListAndHeadHaveTheActionsOfChat(t *testing.T) {
	s := newStage(t)
	s.list(summary("alpha", "Waiting", "Answered", fields{"suspended": true}),
		summary("beta", "Waiting", "Answered", fields{"lastReply": "## Done\n**It** `runs`."}))
	s.chat("alpha", user(0, "Hi."), status("Waiting", "Suspended", 1, nil))
	s.answer("GET "+chats+"/beta/messages", http.StatusOK, fields{"messages": []any{user(0, "Build it.").data,
		assistant(1, text("I do."), call("c1", "execute", fields{"command": "make"})).data,
		tool(2, result("c1", "execute", "a ``` b")).data}})
	p := browser.Open(t, browser.Start(t), s.url, copied)
	p.Sees("#chats .last", "Done It runs.")
	of := func(chat, act string) {
		p.Do("document.querySelector('#chats button[aria-label=\"Actions of " + chat + "\"]').click()")
		p.Click("#menu button", act)
	}
	first := func(chat string) {
		p.Until(chat+" is first", "document.querySelector('#chats a').dataset.chat === '"+chat+"'")
	}
	first("alpha")
	of("beta", "Pin")
	first("beta")
	p.Reload()
	p.Sees("#chats a", "★ beta")
	first("beta")
	of("beta", "Unpin")
	first("alpha")
	of("beta", "Copy as Markdown")
	p.Sees(".toast", "on the clipboard")
	const want = "# beta\n\n## anna, 2026-11-23T12:00:00Z\n\nBuild it.\n\n## large, 2026-11-23T12:01:00Z\n\nI do.\n\n" +
		"Call of execute:\n\n```\n{\"command\":\"make\"}\n```\n\nResult of execute:\n\n````\n\"a ``` b\"\n````\n"
	if got := browser.Eval[string](p, "window.copied"); got != want {
		t.Errorf("copied was %q", got)
	}
	of("beta", "Rename")
	p.Sees("dialog", "Rename the chat")
	p.Write("The build")
	p.Key("Enter")
	if got := encoded(s.wasAsked("PATCH " + chats + "/beta")); got != `{"spec":{"title":"The build"}}` {
		t.Errorf("asked for was %s", got)
	}
	p.Click("#chats a", "alpha")
	p.Sees("article", "Hi.")
	p.Click("#menu-button", "⋯")
	p.Sees("#menu button", "Resume")
	hasNoBarrier(p)
	pictured(p, "page-menu", "the menu of a chat")
	s.tell(chats, event{"modified", summary("alpha", "Waiting", "Answered", fields{"title": "It continues"})})
	p.Sees("#chats", "It continues")
	p.Click("#menu button", "Resume")
	if got := encoded(s.wasAsked("PATCH " + chats + "/alpha")); got != `{"spec":{"suspend":false}}` {
		t.Errorf("asked for was %s", got)
	}
}

func TestEditSurvivesItsMessageLeavingTheQueue(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Hi."), status("Running", "Generating", 1, fields{"attempt": 1}),
		event{"queue_update", fields{"queue": []fields{{"name": "m-1", "preview": "And why"}}}})
	s.answer("GET "+chats+"/triage/messages/m-1", http.StatusOK, fields{"metadata": fields{"uid": "u1", "generation": 1,
		"resourceVersion": "5"}, "spec": fields{"content": "And why"}})
	p := s.opened(t)
	p.Click("#queue button", "Edit")
	p.Type("#queue .editor textarea", " not?")
	s.chat("triage", event{"queue_update", fields{"queue": []fields{}}}, user(1, "And why"),
		status("Running", "Generating", 2, fields{"attempt": 1}))
	p.Until("the edit goes on in the transcript",
		"document.querySelector('article .editor textarea')?.value === 'And why not?'")
	p.Sees("article", "all messages behind it leave it")
}

// renewals lets a test renew holds.
const renewals = `{ const real = window.setInterval;
	window.setInterval = (does, after) => { if (after !== 120000) return real(does, after); window.renew = does; return 0; }; }`

func TestHoldEndsWhereTheEditorCannotOpen(t *testing.T) {
	s := newStage(t)
	const message = chats + "/triage/messages/m-1"
	s.chat("triage", user(0, "Hi."), status("Running", "Generating", 1, fields{"attempt": 1}),
		event{"queue_update", fields{"queue": []fields{{"name": "m-1", "preview": "And why"}}}})
	s.answer("PUT "+message+"/hold", http.StatusOK, fields{"metadata": fields{"annotations": fields{
		"parley.dev/hold-until": "12:05"}}})
	s.answer("GET "+message, http.StatusForbidden, refusal("Forbidden", "you may not read it"))
	p := s.opened(t)
	p.Click("#queue button", "Edit")
	p.Sees(".toast", "you may not read it")
	if got := s.wasAsked("DELETE " + message + "/hold"); got["heldUntil"] != "12:05" {
		t.Errorf("it is released with %v", got)
	}
}

func TestQueuedMessageIsHeldWhileItIsEdited(t *testing.T) {
	s := newStage(t)
	const message = chats + "/triage/messages/m-1"
	queue := func(heldUntil any) event {
		return event{"queue_update", fields{"queue": []fields{{"name": "m-1", "preview": "And why", "heldUntil": heldUntil}}}}
	}
	s.chat("triage", user(0, "Hi."), status("Running", "Generating", 1, fields{"attempt": 1}), queue(nil))
	s.answer("GET "+message, http.StatusOK, fields{"metadata": fields{"uid": "u1", "generation": 1,
		"resourceVersion": "5"}, "spec": fields{"content": "And why"}})
	held := func(until string) fields {
		return fields{"metadata": fields{"annotations": fields{"parley.dev/hold-until": until}}}
	}
	s.answer("PUT "+message+"/hold", http.StatusOK, held("12:05"))
	p := s.opened(t, renewals)
	p.Click("#queue button", "Edit")
	p.Until("the editor is open", "document.querySelector('#queue .editor')")
	if n := s.times("PUT " + message + "/hold"); n != 1 {
		t.Errorf("it is held %d times", n)
	}
	s.chat("triage", queue(noon))
	s.answer("PUT "+message+"/hold", http.StatusOK, held("12:07"))
	p.Do("renew()")
	waitFor(t, "it is held again", func() bool { return s.times("PUT "+message+"/hold") == 2 })
	p.Key("Escape")
	p.Sees("#queue .badge", "is being edited")
	if got := s.wasAsked("DELETE " + message + "/hold"); got["heldUntil"] != "12:07" {
		t.Errorf("it is released with %v", got)
	}
	s.chat("triage", queue(nil))
	p.Gone("#queue .badge", "is being edited")

	p.Click("#queue button", "Edit")
	p.Until("the editor is open", "document.querySelector('#queue .editor')")
	answers := make(chan struct{})
	s.mu.Lock()
	s.answers["PUT "+message+"/hold"] = func() (int, any) { <-answers; return http.StatusOK, held("12:09") }
	s.mu.Unlock()
	p.Do("renew()")
	waitFor(t, "it is held again", func() bool { return s.times("PUT "+message+"/hold") == 4 })
	p.Type("#queue .editor textarea", "!")
	p.Key("Enter")
	p.Until("it is saved", "document.querySelector('#queue .editor button.primary').disabled")
	close(answers)
	if got := s.wasAsked("PATCH " + message); got["heldUntil"] != "12:09" {
		t.Errorf("saved is %v", got)
	}
	p.Gone("#queue .editor", "Save")

	s.answer("PUT "+message+"/hold", http.StatusForbidden, refusal("Forbidden", "you may not"))
	p.Click("#queue button", "Edit")
	p.Sees(".toast", "It may be started while you edit it: you may not")
	p.Type("#queue .editor textarea", "?")
	p.Key("Enter")
	s.wasAsked("PATCH " + message)
	p.Gone("#queue .editor", "Save")
	if n := s.times("DELETE " + message + "/hold"); n != 1 {
		t.Errorf("it is released %d times", n)
	}
}

func TestRefusedNoteStaysNote(t *testing.T) {
	s, p := idle(t)
	choose := func(field, value string) {
		p.Do("{ const at = document.querySelector('" + field + "'); at.value = '" + value +
			"'; at.dispatchEvent(new Event('change')); }")
	}
	s.answer(sends, http.StatusForbidden, refusal("Forbidden", "you may not write here"))
	choose("#how", "Users")
	p.Type("#compose", "Between us.")
	p.Key("Control+Enter")
	p.Sees(".toast", "you may not write here")
	if got := s.wasAsked(sends); got["visibility"] != "Users" || got["whenBusy"] != nil {
		t.Errorf("asked for was %v", got)
	}
	p.Reload()
	p.Sees("article", "Hello.")
	if words, how := value(p, "#compose"), value(p, "#how"); words != "Between us." || how != "Users" {
		t.Errorf("the field has %q for %s", words, how)
	}
	p.Clear("#compose")
	choose("#how", "Interrupt")
	p.Until("the models are there", "document.querySelectorAll('#model option').length === 3")
	choose("#model", "small")
	choose("#effort", "High")
	p.Type("#compose", "Stop.")
	// What is chosen for the next message counts until this one comes back.
	p.Do("{ const at = document.getElementById('model'); document.getElementById('composer').requestSubmit(); " +
		"at.value = ''; document.getElementById('effort').value = ''; }")
	p.Until("all of it is back", "['compose', 'how', 'model', 'effort'].map((id) => document.getElementById(id).value)"+
		".join() === 'Stop.,Interrupt,small,High'")
}
