// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"testing"
)

func TestChangesAreShownAndRefreshed(t *testing.T) {
	s := newStage(t)
	root := fields{"root": fields{"name": "triage", "uid": "u", "workspace": "triage"}}
	s.chat("triage", append(investigation, status("Running", "Generating", 7, root))...)
	file := fields{"path": "cni.yaml", "status": "modified", "added": 1, "removed": 1, "diff": unified}
	hostile := fields{"path": "<img src=x onerror=alert(1)>\u202e.go", "status": "added", "diff": "+<b>\u202e\n"}
	repository := fields{"path": "app", "branch": "main", "upstream": "origin/main", "base": "01", "files": []fields{file,
		hostile, {"path": "logo.png", "status": "renamed", "oldPath": "old.png", "binary": true}}, "omitted": 2,
		"commits": []fields{{"id": "0a1b", "subject": "Raise the limit"}}}
	s.answer("GET "+chats+"/triage/changes", http.StatusOK, fields{"repositories": []fields{repository},
		"files": []fields{{"path": "notes.md", "status": "added", "note": "the file is larger than 256 KiB"}}})
	p := s.opened(t)
	p.Click("#changes", "Changes")
	p.Sees(".changes section", "main → origin/main · 1 commit, 5 changed files")
	p.Sees(".changes li", "0a1b Raise the limit")
	p.Click(".changes summary", "cni.yaml modified +1 −1")
	p.Sees(".changes .diff .add", "+    memory: 128Mi")
	p.Click(".changes summary", "<img src=x onerror=alert(1)>⟨U+202E⟩.go added")
	p.Sees(".changes .diff .add", "+<b>⟨U+202E⟩")
	p.Sees(".changes summary", "old.png → logo.png renamed binary")
	p.Click(".changes summary", "notes.md added")
	p.Sees(".changes details p", "larger than 256 KiB")
	hasNoBarrier(p)
	pictured(p, "page-changes", "changes")
	p.Click(".changes button", "Save as patch")
	s.wasAsked("GET " + chats + "/triage/changes.patch")

	// The turn ends.
	s.answer("GET "+chats+"/triage/changes", http.StatusOK, fields{"repositories": []fields{{"path": "app",
		"files": []fields{{"path": "later.go", "status": "deleted", "removed": 3}}}}})
	s.chat("triage", status("Waiting", "Answered", 8, root))
	p.Sees(".changes summary", "later.go deleted +0 −3")
	s.answer("GET "+chats+"/triage/changes", http.StatusConflict, refusal("Conflict", "workspace triage is not running"))
	p.Click("dialog button", "Refresh")
	p.Sees(".changes .warning", "workspace triage is not running")
	s.answer("GET "+chats+"/triage/changes", http.StatusOK, fields{"files": []fields{{"path": "a", "status": "added"}}})
	p.Click("dialog button", "Refresh")
	p.Click(".changes button", "Save as patch")
	waitFor(t, "the patch of files outside of repositories", func() bool {
		return s.times("GET "+chats+"/triage/changes.patch") == 2
	})
	p.Click("dialog button", "Close")
	if n := s.times("GET " + chats + "/triage/changes"); n != 4 {
		t.Errorf("the changes were read %d times", n)
	}
	s.chat("triage", status("Waiting", "Answered", 9, fields{"root": fields{"name": "triage", "uid": "u"}}))
	p.Until("there is no button without a workspace", "document.querySelector('#changes').hidden")
}
