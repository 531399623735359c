// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/test/kit/browser"
)

func TestForkSaysWhatItContinuesAndWhen(t *testing.T) {
	s := newStage(t)
	s.list(summary("triage-2", "Waiting", "Answered", fields{"title": "A node", "forkOf": "triage"}),
		summary("triage", "Waiting", "Answered", fields{"title": "A node"}))
	copied := noon.Add(26 * time.Hour)
	s.chat("triage-2", message(0, "User", fields{"content": "Why?", "createdAt": copied}),
		message(1, "Assistant", fields{"parts": []fields{text("Because.")}, "createdAt": copied}),
		status("Waiting", "Answered", 2, nil))
	p := browser.Open(t, browser.Start(t), s.url, browser.At(noon.Add(27*time.Hour)))
	p.Click("#chats a .meta", "fork")
	p.Sees("#family a", "Fork of triage")
	p.Until("the reply has its own time",
		"document.querySelector('article.assistant time').dateTime.startsWith('2026-11-23T12:01')")
	p.Click("#family a", "Fork of triage")
	p.Until("what it continues is open", "location.hash.endsWith('/triage')")
}

func TestForkContinuesFromAReply(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Why?"), assistant(1, text("Because.")), user(2, "And now?"), assistant(3, text("Wait.")),
		status("Waiting", "Answered", 4, nil))
	s.answer("GET "+chats+"/triage", http.StatusOK, fields{"spec": fields{"prompt": "Why?", "title": "A node",
		"systemPrompt": "Be brief.", "workspace": fields{"podTemplateRef": fields{"name": "go"}},
		"mcpServers": []fields{{"name": "docs", "url": "https://docs.example.com"},
			{"name": "jira", "url": "https://jira.example.com", "headersFrom": []fields{{"name": "Authorization"}}}}},
		"status": fields{"history": fields{"head": "m-3"}}})
	p := s.opened(t)
	p.Sees("article.assistant", "Because.")
	p.Do("document.querySelector('article.assistant [title^=Continue]').click()")
	p.Sees("dialog label", "The files are not in a volume")
	p.Click("dialog button", "Continue")
	got := s.wasAsked("POST " + chats)
	name, _ := got["name"].(string)
	want := `{"fork":{"chat":"triage","message":"m-1"},"mcpServers":[{"name":"docs","url":"https://docs.example.com"}],` +
		`"systemPrompt":"Be brief."}`
	if spec := encoded(got["spec"]); spec != want || !strings.HasPrefix(name, "triage-") {
		t.Errorf("%s was created with %s", name, spec)
	}
	p.Sees(".toast", "but not: workspace, MCP server jira.")
	p.Until("the fork is open", "location.hash.endsWith('/"+name+"')")

	p.Click("#chats a", "triage")
	p.Sees("article.assistant", "Because.")
	p.Key("c")
	p.Write("/fork")
	p.Key("Enter")
	p.Sees("dialog label", "The files are not in a volume")
	p.Do(copyFiles)
	p.Click("dialog button", "Continue")
	waitFor(t, "a fork of the newest message", func() bool {
		spec := encoded(s.wasAsked("POST " + chats)["spec"])
		return strings.Contains(spec, `"message":"m-3"}`) && strings.Contains(spec, `"workspace":{"podTemplateRef":{"name":"go"}}`)
	})
}

func TestForkMayCopyTheFilesOfAWorkspace(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Why?"), assistant(1, text("Because.")), status("Waiting", "Answered", 2, nil))
	s.answer("GET "+chats+"/triage", http.StatusOK, fields{"spec": fields{"prompt": "Why?", "workspace": fields{
		"idleSeconds": 60, "podTemplateSelector": fields{"storage": fields{}}}}, "status": fields{
		"history": fields{"head": "m-1"}, "workspace": fields{"podTemplateRef": fields{"name": "go"}}}})
	p := s.opened(t)
	s.forks(p, "", `{"fork":{"chat":"triage","message":"m-1"}}`)
	s.forks(p, copyFiles, `{"fork":{"chat":"triage","message":"m-1","workspace":"Copy"},`+
		`"workspace":{"idleSeconds":60,"podTemplateRef":{"name":"go","storage":{}}}}`)
}

func TestForkMayCopyTheWorkspaceOfItsClass(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Why?"), assistant(1, text("Because.")), status("Waiting", "Answered", 2, nil))
	s.answer("GET "+chats+"/triage", http.StatusOK, fields{"spec": fields{"prompt": "Why?"}, "status": fields{
		"history": fields{"head": "m-1"}, "chatClass": fields{"name": "coder"}}})
	s.answer("GET "+strings.TrimSuffix(chats, "/chats")+"/configurations/chatclasses/coder", http.StatusOK, fields{"object": fields{
		"spec": fields{"defaults": fields{"workspace": fields{"podTemplateRef": fields{"name": "go", "storage": fields{}}}}}}})
	s.forks(s.opened(t), copyFiles, `{"fork":{"chat":"triage","message":"m-1","workspace":"Copy"}}`)
}

// copyFiles ticks the box in the dialog of a fork.
const copyFiles = "document.querySelector('dialog input').click()"

// forks continues the chat in another one, and compares its spec.
func (s *stage) forks(p *browser.Page, choose, want string) {
	s.t.Helper()
	p.Until("the reply is shown", "location.hash.endsWith('/triage') && "+
		"document.querySelector('article.assistant [title^=Continue]')")
	p.Do("document.querySelector('article.assistant [title^=Continue]').click()")
	p.Sees("dialog label", "Copy the files of the workspace")
	if choose != "" {
		p.Do(choose)
	}
	p.Click("dialog button", "Continue")
	waitFor(s.t, "a fork with the spec "+want, func() bool { return encoded(s.wasAsked("POST " + chats)["spec"]) == want })
	p.Until("the fork is open", "!location.hash.endsWith('/triage')")
	p.Click("#chats a", "triage")
}
