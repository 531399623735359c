// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"testing"
	"time"

	"parley.dev/parley/test/kit/browser"
)

// shared is the answer to a read of a chat with readers.
func shared(generation int, message string, readers ...fields) fields {
	return fields{"metadata": fields{"resourceVersion": "7", "generation": generation}, "spec": fields{"sharing": readers},
		"status": fields{"observedGeneration": 3, "conditions": []fields{{"type": "Shared", "reason": "Shared",
			"message": message}}}}
}

var (
	jane = fields{"kind": "User", "name": "jane\u202e", "until": "2026-11-23T11:00:00Z"}
	bot  = fields{"kind": "ServiceAccount", "name": "bot", "namespace": "prod"}
	ops  = fields{"kind": "Group", "name": "ops", "until": noon.Add(24*time.Hour + 10*time.Minute)}
)

func TestShareDialogWritesTheReadersThatItShows(t *testing.T) {
	s := newStage(t)
	s.list(summary("triage", "Waiting", "Answered", nil))
	s.chat("triage", user(0, "Why?"), status("Waiting", "Answered", 1, nil))
	read, write := "GET "+chats+"/triage", "PATCH "+chats+"/triage"
	s.answer(read, http.StatusOK, shared(3, "Readable by ServiceAccount bot", jane, bot))
	p := browser.Open(t, browser.Start(t), s.url, browser.At(noon.Add(10*time.Minute)))
	p.Click("#chats a", "triage")
	p.Click("#menu-button", "⋯")
	p.Click("#menu button", "Share")
	p.Sees(".readers li", "User jane⟨U+202E⟩, ended 23 November 2026")
	p.Sees(".readers li", "ServiceAccount bot of namespace prod, no end")
	p.Sees("dialog [role=status]", "This chat can be read by ServiceAccount bot")
	p.Sees("dialog", "Whoever may read the chats of the namespace can read this one as well.")
	p.Gone("dialog button", "Copy link")
	p.Until("the name has the focus", "document.activeElement.matches('dialog input')")

	p.Click(".readers li:first-child button", "Remove")
	p.Do("document.querySelector('dialog select').value = 'Group'")
	p.Do("document.querySelectorAll('dialog select')[1].value = 24 * 3600e3")
	p.Type("dialog input", " ")
	p.Click("dialog button", "Add")
	p.Until("a name of spaces is refused", "document.querySelector('dialog input:invalid')")
	p.Type("dialog input", "ops ")
	p.Click("dialog button", "Save")
	p.Sees("dialog [role=alert]", "Add the name")
	p.Click("dialog button", "Add")
	p.Sees(".readers li", "Group ops, until 24 November 2026 at 12:10")
	p.Sees("dialog [role=status]", "Not saved yet.")
	p.Click("dialog button", "Close")
	p.Sees("dialog [role=alert]", "The change is not saved.")
	p.Click(".readers li:last-child button", "Remove")
	p.Key("Escape")
	p.Sees("dialog [role=alert]", "The change is not saved.")
	p.Do("document.querySelector('dialog select').value = 'Group'")
	p.Do("document.querySelectorAll('dialog select')[1].value = 24 * 3600e3")
	p.Type("dialog input", "ops")
	p.Click("dialog button", "Add")
	p.Sees(".readers li", "Group ops, until 24 November 2026 at 12:10")
	hasNoBarrier(p)
	pictured(p, "page-share", "readers")
	s.answer(write, http.StatusForbidden, refusal("Forbidden", "you may not share chats"))
	p.Click("dialog button", "Save")
	p.Sees("dialog [role=alert]", "you may not share chats")
	want := encoded(fields{"resourceVersion": "7", "spec": fields{"sharing": []fields{bot, ops}}})
	if got := encoded(s.wasAsked(write)); got != want {
		t.Errorf("written was %s, not %s", got, want)
	}

	s.answer(write, http.StatusOK, shared(4, "before", bot, ops))
	s.answer(read, http.StatusOK, shared(3, "before", jane, bot))
	p.Click("dialog button", "Save")
	p.Sees("dialog [role=status]", "has not applied it yet")
	s.answer(read, http.StatusOK, shared(3, "Readable by ServiceAccount bot, Group ops", bot, ops))
	p.Sees("dialog [role=status]", "This chat can be read by ServiceAccount bot, Group ops.")
}

func TestShareDialogKeepsChangesOfOthers(t *testing.T) {
	s := newStage(t)
	s.list(summary("triage", "Waiting", "Answered", nil))
	s.chat("triage", user(0, "Why?"), status("Waiting", "Answered", 1, nil))
	s.answer("GET "+chats+"/triage", http.StatusOK, shared(3, "", jane, bot))
	p := s.opened(t)
	p.Sees("article.user", "Why?")
	p.Answer("*/mode.json", `{"login": "token"}`)
	p.Reload()
	p.Do(copied)
	p.Click("#menu-button", "⋯")
	p.Click("#menu button", "Share")
	p.Click("dialog button", "Copy link")
	p.Until("the link is copied", "window.copied === location.origin + '/ui/#/demo/triage'")
	p.Do("document.querySelector('dialog select').value = 'ServiceAccount'")
	p.Type("dialog input", "bot")
	p.Click("dialog button", "Add")
	p.Sees("dialog [role=alert]", "ServiceAccount bot of namespace prod, no end is a reader: remove it first, "+
		"or add yours as User system:serviceaccount:demo:bot.")
	p.Clear("dialog input")
	p.Click(".readers li:last-child button", "Remove")
	s.answer("GET "+chats+"/triage", http.StatusOK, shared(3, "", jane, bot, ops))
	p.Click("dialog button", "Save")
	p.Sees("dialog [role=alert]", "changed in the meantime")
	p.Sees(".readers li", "Group ops")
	p.Sees(".readers li", "ServiceAccount bot")
	if n := s.times("PATCH " + chats + "/triage"); n != 0 {
		t.Errorf("the chat was changed %d times", n)
	}
}

func TestReadersOfAChatAreNoWarning(t *testing.T) {
	s := newStage(t)
	readers := []fields{{"type": "Shared", "reason": "Shared",
		"message": "Readable by User oidc:mia until 2026-11-28T16:41:04Z, Group ops"}}
	s.chat("triage", user(0, "Why?"), status("Waiting", "Answered", 1, fields{"warnings": readers}))
	s.answer("GET "+chats+"/triage", http.StatusOK, shared(3, ""))
	p := s.opened(t)
	p.Sees("#notices .notice:not(.warn, .bad)",
		"This chat can be read by User oidc:mia until 28 November 2026 at 16:41, Group ops.")
	p.Gone("#notices", "Shared")
	s.chat("triage", status("Waiting", "Archived", 1, fields{"wait": fields{"for": "Unarchive", "reason": "Archived"}}))
	p.Sees("#notices", "The chat is archived.")
	s.chat("triage", status("Waiting", "Answered", 1, fields{"warnings": readers}))
	p.Gone("#notices", "archived")
	hasNoBarrier(p)
	pictured(p, "", "readers below the transcript")
	p.Click("#menu-button", "⋯")
	p.Click("#menu button", "Share")
	p.Sees(".readers li", "No one")
	if !browser.Eval[bool](p, "getComputedStyle(document.querySelector('.readers li')).listStyleType === 'none'") {
		t.Error("an empty list has a mark outside of the margin")
	}
}
