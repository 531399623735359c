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

// steps is a turn that has run commands, each in a step of its own, from message index on.
func steps(index, count int) []event {
	var events []event
	for i := range count {
		at, id := index+2*i, fmt.Sprintf("s%d", i)
		events = append(events, assistant(at, text(fmt.Sprintf("Step %d.", i)),
			call(id, "execute", fields{"command": fmt.Sprintf("make step-%d", i)})),
			tool(at+1, result(id, "execute", fields{"success": true, "exit_code": 0, "output": "ok\n"})))
	}
	return events
}

const replies = "document.querySelectorAll('article.assistant').length"

func TestStepsOfTurnFoldIntoOneReply(t *testing.T) {
	s := newStage(t)
	s.chat("triage", append([]event{user(0, "Build it.")}, append(steps(1, 3),
		status("Running", "Generating", 7, fields{"attempt": 1}),
		part(7, 1, fields{"type": "ToolStart", "id": "c9", "name": "execute", "at": noon}))...)...)
	p := s.opened(t)
	// What happens now is in view: the newest step, and the attempt under way.
	p.Sees("details.call", "make step-2")
	p.Sees("article.live .now", "writes")
	p.Gone("article", "make step-1")
	p.Sees(".work > summary", "Ran 2 commands")
	if n := browser.Eval[int](p, replies); n != 1 {
		t.Errorf("the turn is %d replies", n)
	}
	p.Do("document.querySelector('.work > summary').click()")
	p.Sees(".steps details.call", "make step-0")
	s.chat("triage", assistant(7, reasoning("They all passed."), text("All is built.")),
		status("Waiting", "Answered", 8, nil))
	p.Sees("article.assistant .body", "All is built.")
	p.Sees(".steps details.call", "make step-2")
	p.Sees(".steps .reasoning", "Reasoning, 4.2 s")
	p.Sees(".work > summary", "Ran 3 commands · 7 min 0 s · 0.0444 USD")
	p.Gone(".now", "writes")
	p.Do("document.querySelector('.work > summary').click()")
	p.Gone("article", "Step 1.")
	p.Until("folded steps have no elements", "!document.querySelector('.steps').hasChildNodes()")
}

func TestOnlyResultsCountAsDone(t *testing.T) {
	s := newStage(t)
	failed := result("c2", "execute", "no such file")
	failed["toolResult"].(fields)["isError"] = true
	denied, refused := call("c3", "k8s_delete", fields{}), call("c4", "write_file", fields{"path": "a"})
	refused["toolCall"].(fields)["refusal"] = "NotAllowed"
	s.chat("triage", user(0, "Clean up."), assistant(1, call("c1", "execute", fields{"command": "make"}),
		call("c2", "execute", fields{"command": "rm a"}), denied, refused, call("c5", "execute", fields{"command": "sleep 9"})),
		message(2, "Tool", fields{"decisions": []fields{{"id": "c3", "decision": "Deny", "by": "anna", "comment": "Keep it."}}, "parts": []fields{
			result("c1", "execute", fields{"success": true}), failed, result("c3", "k8s_delete", "denied"),
			result("c4", "write_file", "not allowed")}}),
		assistant(3, text("Some of it is done.")), status("Waiting", "Answered", 4, nil))
	p := s.opened(t)
	p.Sees(".work > summary", "Ran 1 command, 1 failed, 1 denied, 1 not run, 1 without a result · ")
	p.Click(".work > summary", "1 denied")
	p.Sees("details.call[data-state=denied] .state", "Denied by anna: Keep it.")
}

func TestNotesAndSummariesKeepTurnWhole(t *testing.T) {
	s := newStage(t)
	events := append([]event{user(0, "Build it.")}, steps(1, 2)...)
	events = append(events, message(5, "System", fields{"parts": []fields{text("They build it.")},
		"compaction": fields{"messages": 5}}), assistant(6, text("All is built.")),
		event{"note", fields{"index": 3, "generation": 1, "message": fields{"name": "n", "uid": "n", "role": "User",
			"visibility": "Users", "content": "They wait.", "createdBy": "bert", "createdAt": noon}}},
		status("Waiting", "Answered", 7, fields{"contextStart": 5}))
	s.chat("triage", events...)
	p := s.opened(t)
	p.Sees(".work > summary", "Ran 2 commands, wrote a summary of the context")
	p.Sees("article.note", "They wait.")
	if n := browser.Eval[int](p, replies); n != 1 {
		t.Errorf("the turn is %d replies", n)
	}
}

func TestLinkShowsMessageOfFoldedStep(t *testing.T) {
	s := newStage(t)
	events := append(questions(400)[:400:400], user(400, "Build it."))
	events = append(append(events, steps(401, 3)...), assistant(407, text("All is built.")),
		status("Waiting", "Answered", 408, nil))
	s.chat("triage", events...)
	p := s.opened(t)
	p.Sees("article", "All is built.")
	for _, linked := range []struct{ name, words string }{{"m-403", "make step-1"}, {"m-10", "Question 10?"}} {
		p.Do("location.hash = '#/demo/triage/" + linked.name + "'")
		p.Sees(":focus", linked.words)
		p.Until("it is in view", `(() => { const box = document.activeElement.getBoundingClientRect();
			return box.top >= 0 && box.top < innerHeight - 200; })()`)
	}
	p.Do("location.hash = '#/demo/triage/m-9999'")
	p.Sees(".toast", "not part of the conversation")
	p.Reload()
	p.Sees("article", "All is built.")
}

func TestLinkShowsOldestMessage(t *testing.T) {
	s := newStage(t)
	all := questions(250)
	s.chat("triage", all[50:]...)
	var older []any
	for _, e := range all[:50] {
		older = append(older, e.data)
	}
	s.answer("GET "+chats+"/triage/messages", http.StatusOK, fields{"messages": older})
	p := s.opened(t)
	p.Sees("article", "Question 248?")
	p.Do("location.hash = '#/demo/triage/m-10'")
	p.Sees(":focus", "Question 10?")
	p.Gone(".toast", "not part of the conversation")
}

// copied is what the page has put on the clipboard, of which a browser without a window has none.
const copied = `Object.defineProperty(navigator, 'clipboard', {value: {
	writeText: async (text) => { window.copied = text; }}});`

func TestRepliesAndLinksCanBeCopied(t *testing.T) {
	s := newStage(t)
	s.chat("triage", append(investigation, assistant(7, text("Done.")), status("Waiting", "Answered", 8, nil))...)
	p := s.opened(t, copied)
	p.Sees("article", "Done.")
	for button, want := range map[string]string{"Copy the reply": "Done.", "Copy the code": "limits:\n  memory: 128Mi\n",
		"Copy a link to the reply": "/ui/#/demo/triage/m-7"} {
		p.Do("[...document.querySelectorAll(" + encoded(fmt.Sprintf("button[aria-label=%q]", button)) + ")].at(-1).click()")
		p.Until(button, "window.copied?.endsWith("+encoded(want)+")")
	}
}

// typing measures how long the page takes to show a character, while it shows a reply.
const typing = `(async () => { const field = document.getElementById('compose'), all = [];
	field.focus();
	for (let i = 0; i < 40; i++) {
		const began = performance.now();
		document.execCommand('insertText', false, 'x');
		await new Promise((r) => requestAnimationFrame(() => setTimeout(r)));
		all.push(performance.now() - began);
	}
	return all.sort((a, b) => a - b); })()`

func TestTypingDuringReplyLosesNothing(t *testing.T) {
	s := newStage(t)
	s.chat("triage", append(questions(200)[:200:200], status("Running", "Generating", 200, fields{"attempt": 1}))...)
	p := s.opened(t)
	p.Sees("article", "Question 198?")
	told := make(chan struct{})
	go func() {
		defer close(told)
		for i := range 300 {
			s.chat("triage", part(200, i+1, fields{"type": "Text", "id": "t", "text": fmt.Sprintf("%s\n\n", cni)}))
			<-time.After(5 * time.Millisecond) // The pace of the reply, and nothing that is waited for.
		}
	}()
	all := browser.Eval[[]float64](p, typing)
	t.Logf("a character is shown after %.0f ms (median), %.0f ms at most", all[len(all)/2], all[len(all)-1])
	<-told
	if got := len(value(p, "#compose")); got != 40 {
		t.Errorf("%d of 40 characters were kept", got)
	}
}
