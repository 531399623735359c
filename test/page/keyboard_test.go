// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/browser"
)

// focusOn waits until an element has the focus.
func focusOn(p *browser.Page, selector string) {
	p.Until("the focus is on "+selector, "document.activeElement.matches("+encoded(selector)+")")
}

// TestEverythingCanBeDoneByKeys uses no pointer.
func TestEverythingCanBeDoneByKeys(t *testing.T) {
	in := browser.Start(t)
	for name, test := range map[string]func(*testing.T, *browser.Browser){
		"chats": keysInTheList, "messages": keysInTheTranscript, "the queue": keysInTheQueue,
		"what waits for people": keysInApprovals, "the menu": keysInTheMenu,
	} {
		t.Run(name, func(t *testing.T) { t.Parallel(); test(t, in) })
	}
}

func keysInTheList(t *testing.T, in *browser.Browser) {
	s := newStage(t)
	s.list(summary("alpha", "Waiting", "Answered", nil), summary("beta", "Waiting", "Answered", nil),
		summary("beta-sub", "Waiting", "Answered", fields{"parent": "beta"}))
	s.chat("beta", user(0, "Hi."), status("Waiting", "Answered", 1, nil))
	s.chat("beta-sub", user(0, "Look."), status("Waiting", "Answered", 1, nil))
	p := browser.Open(t, in, s.url)
	p.Sees("#chats a", "beta-sub")
	p.TabTo("Tab", "#chats a", "beta")
	p.TabTo("Tab", "#chats button", "Actions of beta")
	s.tell(chats, event{"modified", summary("beta", "Waiting", "Answered", fields{"lastReply": "It runs."})})
	p.Sees("#chats .last", "It runs.")
	focusOn(p, "#chats button[aria-label='Actions of beta']")
	p.TabTo("Shift+Tab", "#chats a", "beta")
	// The chat that is in focus moves up, and keeps it.
	s.tell(chats, event{"modified", summary("beta", "RequiresAction", "RequiresAction", nil)})
	p.Until("the chat has moved up", "document.querySelector('#chats a').dataset.chat === 'beta'")
	focusOn(p, "#chats a[data-chat=beta]")
	p.Key("Enter")
	p.Sees("#chat-title", "beta")
	p.Sees("article", "Hi.")
	p.TabTo("Tab", "#family a", "beta-sub")
	p.Key("Enter")
	p.Sees("article", "Look.")
	p.TabTo("Tab", "#family a", "beta")
	p.Key("Enter")
	p.Sees("article", "Hi.")
	p.Key("]")
	p.Sees("#chat-title", "beta-sub")
	p.Key("/")
	p.Write("alp")
	p.Gone("#chats a", "beta")

	p.Key("Escape")
	p.Key("Shift+Tab")
	p.TabTo("Shift+Tab", "#side button", "New chat")
	p.Key("Enter")
	focusOn(p, "dialog textarea")
	p.Write("Why?")
	p.TabTo("Tab", "dialog button", "Begin")
	p.Key("Enter")
	if made := s.wasAsked("POST " + chats); made["spec"].(map[string]any)["prompt"] != "Why?" {
		t.Errorf("asked for was %v", made)
	}
	p.Gone("dialog", "A new chat")
	p.TabTo("Tab", "#theme", "Theme")
	p.Key("Space")
	p.Sees("#theme", "Theme: light")
	p.Key("?")
	p.Sees("dialog h2", "Keys")
	hasNoBarrier(p)
	pictured(p, "page-keys", "keys")
	p.Key("Escape")
	p.Gone("dialog", "Keys")
	focusOn(p, "#theme")
}

func keysInTheTranscript(t *testing.T, in *browser.Browser) {
	s := newStage(t)
	s.list(summary("triage", "Waiting", "Answered", nil))
	s.chat("triage", append(investigation, status("Waiting", "Answered", 7, nil))...)
	s.answer("GET "+chats+"/triage/messages/m-4", http.StatusOK, fields{"metadata": fields{"uid": "uid-m-4",
		"generation": 1, "resourceVersion": "5"}, "spec": fields{"content": "Then give it more memory."}})
	p := browser.Open(t, in, s.url)
	p.Sees("#chats a", "triage")
	p.Key("]")
	p.Sees("article", "Then give it more memory")
	p.Key("k")
	p.Key("k")
	focusOn(p, "[data-name=m-4]")
	p.TabTo("Tab", "article button", "Edit")
	p.Key("Enter")
	focusOn(p, ".editor textarea")
	p.Write(" And CPU.")
	p.Key("Control+Enter")
	got := s.wasAsked("PATCH " + chats + "/triage/messages/m-4")
	if got["content"] != "Then give it more memory. And CPU." {
		t.Errorf("asked for was %v", got)
	}
	focusOn(p, "[data-name=m-4]")
	p.TabTo("Tab", "article button", "Delete")
	p.Key("Enter")
	p.Sees("dialog", "leave the conversation")
	p.TabTo("Tab", "dialog button", "Delete")
	p.Key("Enter")
	s.wasAsked("DELETE " + chats + "/triage/messages/m-4")
	p.Gone("dialog", "leave the conversation")
	p.TabTo("Tab", "details.call > summary", "edit_files")
	p.Key("Enter")
	p.Sees("pre.diff .add", "128Mi")
	p.Key("Space")
	p.Gone("pre.diff .add", "128Mi")
	// The message in focus is deleted by somebody else.
	p.Key("k")
	s.chat("triage", append([]event{{"history_reset", fields{}}}, append(investigation[:4:4],
		status("Waiting", "Answered", 8, nil))...)...)
	p.Gone("article", "I change the limit.")
	p.Until("the focus is not lost", "document.activeElement !== document.body")

	p.Do("document.querySelector('.skip').click()")
	focusOn(p, "#compose")
	if hash := browser.Eval[string](p, "location.hash"); hash != "#/demo/triage" {
		t.Errorf("after the link to the field the address has %s", hash)
	}
	p.Write("Thank you.")
	p.Key("Shift+Enter")
	p.Write("Bye.")
	p.Key("Enter")
	if got := s.wasAsked(sends); got["content"] != "Thank you.\nBye." {
		t.Errorf("asked for was %v", got)
	}
	focusOn(p, "#compose")
	p.TabTo("Tab", "#how", "")
	p.Key("ArrowDown")
	p.TabTo("Shift+Tab", "#compose", "")
	p.Write("No, wait.")
	p.Key("Enter")
	waitFor(t, "it cuts in", func() bool { return s.wasAsked(sends)["whenBusy"] == "Interrupt" })
}

func keysInTheQueue(t *testing.T, in *browser.Browser) {
	s := newStage(t)
	s.list(summary("triage", "Running", "Generating", nil))
	queue := func(names ...string) event {
		queued := []fields{}
		for _, name := range names {
			queued = append(queued, fields{"name": name, "preview": "About " + name})
		}
		return event{"queue_update", fields{"queue": queued}}
	}
	s.chat("triage", user(0, "Hi."), status("Running", "Generating", 1, fields{"attempt": 1}), queue("q1", "q2", "q3"))
	s.answer("GET "+chats+"/triage/messages/q2", http.StatusOK, fields{"metadata": fields{"uid": "u2", "generation": 1,
		"resourceVersion": "5"}, "spec": fields{"content": "About q2"}})
	p := browser.Open(t, in, s.url)
	p.Sees("#chats a", "triage")
	p.Key("]")
	p.Sees("#queue li", "About q3")
	p.TabTo("Tab", "#queue button", "Edit")
	p.TabTo("Tab", "#queue button", "Edit")
	p.Key("Enter")
	focusOn(p, ".editor textarea")
	p.Write(", please")
	// The queue moves on under whoever edits in it.
	s.chat("triage", queue("q2", "q3"))
	p.Gone("#queue", "About q1")
	focusOn(p, ".editor textarea")
	p.Write("!")
	p.Key("Control+Enter")
	if got := s.wasAsked("PATCH " + chats + "/triage/messages/q2"); got["content"] != "About q2, please!" {
		t.Errorf("asked for was %v", got)
	}
	p.Gone(".editor", "Save")
	p.TabTo("Tab", "#queue button", "Now")
	p.Key("Enter")
	s.wasAsked("POST " + chats + "/triage/messages/q2/promote")
	p.TabTo("Tab", "#queue button", "Delete")
	p.TabTo("Tab", "#queue button", "Delete")
	p.Key("Enter")
	s.wasAsked("DELETE " + chats + "/triage/messages/q3")
	s.chat("triage", queue())
	p.Gone("#queue", "About")
	p.Until("the focus is not lost", "document.activeElement !== document.body")
	p.Key(".")
	if got := s.wasAsked("POST " + chats + "/triage/requests"); got["kind"] != "Interrupt" {
		t.Errorf("asked for was %v", got)
	}
}

func keysInApprovals(t *testing.T, in *browser.Browser) {
	s := newStage(t)
	s.list(summary("triage", "RequiresAction", "RequiresAction", nil))
	calls := []fields{{"id": "p1", "name": "execute", "kind": "Approval", "digest": "sha256:1",
		"input": `{"command":"a` + strings.Repeat(`\u0020`, 40) + `\nrm \u202e x","timeout":9}`},
		{"id": "p2", "name": "execute", "kind": "Approval", "input": `{"command":"b"}`},
		{"id": "p3", "name": "ask_user_question", "kind": "Approval", "approvalCause": "InputRequired", "input": "{}",
			"inputRequests": encoded(fields{"q": fields{"params": fields{"message": "Which?", "requestedSchema": fields{
				"properties": fields{"store": fields{"type": "string", "title": "Store"}}}}}})}}
	waits := func() event {
		return event{"requires_action", fields{"historyVersion": 2, "deadline": noon, "message": "m-1", "toolCalls": calls}}
	}
	s.chat("triage", user(0, "Go."), assistant(1, call("p1", "execute", fields{"command": "a"}),
		call("p2", "execute", fields{"command": "b"}), call("p3", "ask_user_question", fields{})),
		status("RequiresAction", "RequiresAction", 2, nil), waits())
	p := browser.Open(t, in, s.url)
	p.Sees("#chats a", "triage")
	p.Key("]")
	p.Sees("#approvals h3", "3 calls wait for you")
	p.Sees("[data-call=p1]", `a`+strings.Repeat(`\u0020`, 40)+`\n`+"\n      "+`rm \u202e x",`+"\n  "+`"timeout": 9`)
	p.Key("a")
	focusOn(p, "[data-call=p1] button")
	p.Key("Enter")
	// A second Enter, by somebody who was too fast, must decide nothing.
	p.Key("Enter")
	p.Sees("[data-call=p1] .settled", "Approved")
	got := s.wasAsked("POST " + chats + "/triage/approvals")
	if got["toolCallID"] != "p1" || got["decision"] != "Approve" || got["digest"] != "sha256:1" {
		t.Errorf("asked for was %v", got)
	}
	focusOn(p, "#approvals")
	// Somebody else decides about the next one.
	calls[1]["decision"] = fields{"id": "p2", "decision": "Deny", "approval": "x", "by": "anna", "comment": "not b"}
	s.chat("triage", waits())
	p.Sees("[data-call=p2] .settled", "Denied by anna: not b")
	p.Key("a")
	focusOn(p, "[data-call=p3] input")
	p.Write("Redis")
	p.Gone("#approvals pre", "requestedSchema")
	p.TabTo("Tab", "#approvals button", "Answer")
	p.Key("Space")
	waitFor(t, "the question is answered", func() bool {
		return s.wasAsked("POST " + chats + "/triage/approvals")["toolCallID"] == "p3"
	})
	if n := s.times("POST " + chats + "/triage/approvals"); n != 2 {
		t.Errorf("%d decisions were made", n)
	}
	s.chat("triage", status("Running", "ExecutingTools", 3, nil))
	p.Gone("#approvals", "wait")
	focusOn(p, "#transcript")
}

func keysInTheMenu(t *testing.T, in *browser.Browser) {
	s := newStage(t)
	s.list(summary("triage", "Waiting", "Answered", nil))
	s.chat("triage", user(0, "Hi."), status("Waiting", "Answered", 1, nil))
	p := browser.Open(t, in, s.url)
	p.Sees("#chats a", "triage")
	p.Key("]")
	p.Sees("article", "Hi.")
	p.TabTo("Tab", "#menu-button", "")
	p.Key("Enter")
	p.TabTo("Tab", "#menu button", "Suspend")
	p.Key("Enter")
	if got := s.wasAsked("PATCH " + chats + "/triage")["spec"].(map[string]any); got["suspend"] != true {
		t.Errorf("asked for was %v", got)
	}
	p.Until("the focus is not lost", "document.activeElement !== document.body")
	p.TabTo("Shift+Tab", "#menu-button", "")
	p.Key("Enter")
	p.TabTo("Tab", "#menu button", "Delete")
	p.Key("Enter")
	p.Sees("dialog", "deleted with its messages")
	p.TabTo("Tab", "dialog button", "Cancel")
	p.Key("Enter")
	p.Gone("dialog", "deleted")
	p.Until("the focus is not lost", "document.activeElement !== document.body")
}
