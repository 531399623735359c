// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/browser"
)

// asks is a chat in which calls wait for approval.
func asks(calls ...fields) []event {
	parts := []fields{text("I would do this.")}
	for _, c := range calls {
		parts = append(parts, fields{"type": "ToolCall",
			"toolCall": fields{"id": c["id"], "name": c["name"], "input": c["input"]}})
	}
	return []event{user(0, "Go."), assistant(1, parts...), status("RequiresAction", "RequiresAction", 2, nil),
		{"requires_action", fields{"historyVersion": 2, "deadline": noon, "message": "m-1", "toolCalls": calls}}}
}

func waitsFor(id, name string, input any) fields {
	return fields{"id": id, "name": name, "kind": "Approval", "digest": "sha256:" + id, "input": encoded(input)}
}

func TestApproversSeeAllThatWillRun(t *testing.T) {
	s := newStage(t)
	apply := waitsFor("p1", "k8s_apply", fields{})
	apply["approvalCause"] = "ReviewRequired"
	apply["proposal"] = "As service account ops of namespace demo:\napply Deployment web\n" +
		"@@ -1,3 +1,3 @@\n spec:\n-  replicas: 1\n+  replicas: 3\n"
	lines := strings.Repeat("a line of the file\n", 400)
	s.chat("triage", asks(apply,
		waitsFor("p2", "execute", fields{"command": "echo ls" + strings.Repeat(" ", 8000) + "; echo hidden > f" +
			strings.Repeat("w", 2000)}),
		waitsFor("p3", "edit_files", fields{"edits": []fields{{"path": "a.go", "old_text": "x := 1\n", "new_text": lines}}}),
		waitsFor("p4", "write_file", fields{"path": "b.go", "content": lines}))...)
	p := s.opened(t)
	p.Sees("[data-call=p1] .diff .add", "+  replicas: 3")
	p.Sees("[data-call=p1] .diff .del", "-  replicas: 1")
	p.Sees("[data-call=p2] pre.term", "; echo hidden > f")
	p.Sees("[data-call=p3] .diff .del", "-x := 1")
	if n := browser.Eval[int](p, "document.querySelectorAll('[data-call=p3] .diff .add').length"); n != 400 {
		t.Errorf("%d of 400 lines are shown", n)
	}
	for _, width := range []int64{1280, 320} {
		p.Look("light", width, 700)
		if cut := browser.Eval[string](p, `[...document.querySelectorAll('#approvals, #approvals *')]
			.filter((e) => e.checkVisibility() && !e.matches('.sr') && e.clientHeight > 0
			&& getComputedStyle(e).overflowY !== 'visible'
			&& (e.scrollHeight > e.clientHeight + 1 || e.scrollWidth > e.clientWidth + 1))
			.map((e) => e.closest('[data-call]')?.dataset.call + ' ' + e.className).join()`); cut != "" {
			t.Errorf("%d wide: cut off are %s", width, cut)
		}
	}
}

func TestOnlyPlainCommandsAreShownOnce(t *testing.T) {
	s := newStage(t)
	once := []string{`{"command":"make -C \"a b\""}`, ` { "command": "ls",` + "\n" + `"workdir": "/repo" } `}
	twice := []string{`{"command":"ls","command":"rm x"}`, `{"command":"l\u0073"}`, `{"command":"ls\n(in /repo)"}`,
		`{"command":"ls","timeout_ms":1}`, `{"command":"ls\ta"}`,
		`{"command":"ls a\\ "}`, `{"command":" ls"}`, `{"command":"ls  (in /repo)"}`, `{"command":"cat ſecret"}`, `{"command":["ls"]}`,
		`{"workdir":"/repo"}`, `["ls"]`, `{"command":"ls","workdir":null}`, `{"command":"ls"`}
	var calls []fields
	for i, input := range slices.Concat(once, twice) {
		calls = append(calls, fields{"id": fmt.Sprint("p", i), "name": "execute", "kind": "Approval", "input": input})
	}
	s.chat("triage", asks(calls...)...)
	p := s.opened(t)
	for i := range calls {
		want := 0
		if i >= len(once) {
			want = 1
		}
		at := fmt.Sprintf("[data-call=p%d]", i)
		p.Sees(at, "execute")
		if n := browser.Eval[int](p, fmt.Sprintf("document.querySelectorAll('%s .labelled').length", at)); n != want {
			t.Errorf("%s: all of the input is shown %d times", calls[i]["input"], n)
		}
	}
}

// Models write a list as a text, and what else no tool takes.
func TestMalformedCallsAreShownAndDecided(t *testing.T) {
	s := newStage(t)
	s.chat("triage", asks(waitsFor("p1", "edit_files", fields{"edits": `[{"path":"a.go"}]`}),
		waitsFor("p2", "edit_files", fields{"edits": []any{nil}}), waitsFor("p3", "constructor", fields{"size": 7}))...)
	p := s.opened(t)
	p.Sees("[data-call=p1] pre", `"[{\"path\":\"a.go\"}]"`)
	p.Sees("[data-call=p2] pre", "null")
	p.Sees("[data-call=p3] pre", `"size": 7`)
	p.Until("all is open", fmt.Sprintf(openAll, "article.assistant details"))
	p.Sees("article .call", `"size": 7`)
	p.Click("[data-call=p3] button", "Deny")
	if got := s.wasAsked("POST " + chats + "/triage/approvals"); got["toolCallID"] != "p3" || got["decision"] != "Deny" {
		t.Errorf("asked for was %v", got)
	}
}

func TestFirstDecisionAboutCallIsShown(t *testing.T) {
	s := newStage(t)
	calls := []fields{waitsFor("p1", "execute", fields{"command": "make"}),
		waitsFor("p2", "execute", fields{"command": "ls"})}
	s.chat("triage", asks(calls...)...)
	p := s.opened(t)
	p.Click("[data-call=p1] button", "Approve")
	p.Sees("[data-call=p1] .settled", "Approved.")
	calls[0]["decision"] = fields{"decision": "Deny", "by": "bob", "comment": "not on Fridays"}
	s.chat("triage", event{"requires_action", fields{"historyVersion": 2, "deadline": noon, "message": "m-1",
		"toolCalls": calls}})
	p.Sees("[data-call=p1] .settled", "Denied by bob: not on Fridays.")
	p.Sees("[data-call=p2] button", "Approve")
}

func TestToolCanBeApprovedForChat(t *testing.T) {
	s := newStage(t)
	s.chat("triage", asks(waitsFor("p1", "execute", fields{"command": "make"}))...)
	chat := fields{"metadata": fields{"resourceVersion": "7"},
		"spec": fields{"tools": fields{"approval": []string{"execute", "k8s_*"}}}}
	s.answer("GET "+chats+"/triage", http.StatusOK, chat)
	p := s.opened(t)
	// A caller may be able to change the chat and not to approve: then both stay as they are.
	s.answer("POST "+chats+"/triage/approvals", http.StatusForbidden, refusal("Forbidden", "you may not approve"))
	always := func(call, tool string) {
		p.Click("[data-call="+call+"] button", "later calls of "+tool+" run without asking, also in new sub-chats")
		p.Sees("dialog :focus", "Cancel")
		p.Click("dialog button", "Approve all")
	}
	always("p1", "execute")
	p.Sees(".toast", "Nothing was decided: you may not approve")
	if n := s.times("PATCH " + chats + "/triage"); n != 0 {
		t.Errorf("the chat was changed %d times without an approval", n)
	}
	s.answer("POST "+chats+"/triage/approvals", http.StatusOK, fields{})
	always("p1", "execute")
	got := s.wasAsked("POST " + chats + "/triage/approvals")
	if got["decision"] != "Approve" || got["digest"] != "sha256:p1" {
		t.Errorf("asked for was %v", got)
	}
	const want = `{"resourceVersion":"7","spec":{"tools":{"approval":["k8s_*"]}}}`
	if got := encoded(s.wasAsked("PATCH " + chats + "/triage")); got != want {
		t.Errorf("asked for was %s", got)
	}
	again := func(tool string) {
		s.restart("triage", asks(waitsFor("p2", tool, fields{})))
		reads := s.times("GET " + chats + "/triage")
		p.Reload()
		p.Sees("[data-call=p2] button", "Approve")
		waitFor(t, "the chat is read", func() bool { return s.times("GET "+chats+"/triage") > reads })
	}
	chat["spec"] = fields{"mcpServers": []fields{{"name": "tracker", "url": "https://tracker.test",
		"requireApproval": []string{"close", "open"}}}}
	again("tracker__close")
	always("p2", "tracker__close")
	waitFor(t, "the server's list changes", func() bool {
		return encoded(s.wasAsked("PATCH "+chats+"/triage")) == `{"resourceVersion":"7","spec":{"mcpServers":[`+
			`{"name":"tracker","requireApproval":["open"],"url":"https://tracker.test"}]}}`
	})
	s.answer("PATCH "+chats+"/triage", http.StatusConflict, refusal("Conflict", "it was changed"))
	again("tracker__close")
	always("p2", "tracker__close")
	p.Sees(".toast", "The call is approved, but later calls of tracker__close still ask: it was changed")
	// A pattern covers other tools, and what is the class's cannot be taken out of the chat.
	for _, other := range []fields{{"spec": fields{"tools": fields{"approval": []string{"execute", "exec*"}}}},
		{"spec": fields{"tools": fields{"approval": []string{"execute"}}},
			"status": fields{"settings": fields{"fromClass": []string{"tools"}}}}} {
		s.answer("GET "+chats+"/triage", http.StatusOK, other)
		again("execute")
		p.Gone("[data-call=p2] button", "without asking")
	}
}

func TestAllApprovalsOfNamespaceAreInOneList(t *testing.T) {
	s := newStage(t)
	waits := func(name string) fields { return summary(name, "RequiresAction", "RequiresAction", nil) }
	s.list(waits("alpha"), waits("beta"), summary("gamma", "Waiting", "Answered", nil))
	for _, name := range []string{"alpha", "beta"} {
		s.answer("GET "+chats+"/"+name, http.StatusOK, fields{"status": fields{"history": fields{"version": 2},
			"requiresAction": fields{"deadline": noon, "toolCalls": []fields{waitsFor("p-"+name, "execute",
				fields{"command": "make " + name}), {"id": "c", "name": "open_ticket", "kind": "Client", "input": "{}"}}}}})
	}
	p := browser.Open(t, browser.Start(t), s.url)
	p.Sees("#waiting", "2 chats wait for you")
	p.Key("i")
	p.Sees("#inbox pre.term", "make alpha")
	p.Sees("#inbox pre.term", "make beta")
	p.Sees("#inbox", "Other calls need results")
	hasNoBarrier(p)
	pictured(p, "page-inbox", "approvals of a namespace")
	p.Key("a")
	focusOn(p, "[data-call=p-alpha] button")
	p.Key("Enter")
	if got := s.wasAsked("POST " + chats + "/alpha/approvals"); got["digest"] != "sha256:p-alpha" {
		t.Errorf("asked for was %v", got)
	}
	focusOn(p, "#inbox")
	s.tell(chats, event{"modified", summary("alpha", "Running", "ExecutingTools", nil)})
	p.Gone("#inbox", "make alpha")
	p.Sees("#inbox pre.term", "make beta")
	s.tell(chats, event{"modified", summary("beta", "Running", "ExecutingTools", nil)})
	p.Sees("#inbox", "Nothing waits for you")
	p.Click("#chats a", "gamma")
	p.Gone("#inbox", "wait")
}

func TestSettledRowsStayUnderFocus(t *testing.T) {
	s := newStage(t)
	s.list(summary("alpha", "RequiresAction", "RequiresAction", nil),
		summary("beta", "RequiresAction", "RequiresAction", nil))
	for _, name := range []string{"alpha", "beta"} {
		s.answer("GET "+chats+"/"+name, http.StatusOK, fields{"status": fields{"history": fields{"version": 2},
			"requiresAction": fields{"deadline": noon, "toolCalls": []fields{waitsFor("p-"+name, "execute",
				fields{"command": "make " + name})}}}})
	}
	p := browser.Open(t, browser.Start(t), s.url)
	p.Sees("#waiting", "2 chats wait for you")
	p.Key("i")
	p.Sees("#inbox pre.term", "make alpha")
	p.Sees("#inbox pre.term", "make beta")
	p.Do("document.querySelector('[data-call=p-beta] button.primary').focus()")
	const place = "document.activeElement.getBoundingClientRect().top"
	before := browser.Eval[float64](p, place)
	// Somebody else decides about the row above.
	s.tell(chats, event{"modified", summary("alpha", "Running", "ExecutingTools", nil)})
	p.Sees("[data-call=p-alpha] .settled", "Decided elsewhere")
	focusOn(p, "[data-call=p-beta] button")
	if after := browser.Eval[float64](p, place); after != before {
		t.Errorf("the button has moved from %.0f to %.0f", before, after)
	}
	p.Do("document.activeElement.blur()")
	p.Gone("#inbox", "make alpha")
	p.Sees("#inbox pre.term", "make beta")
}

// hides lets a test hide the page, which then closes streams at once, and counts those. Silence ends none.
const hides = `{ const later = setTimeout, get = fetch;
	const instead = {30000: 0, 40000: 1e9};
	globalThis.setTimeout = (act, ms, ...more) => later(act, instead[ms] ?? ms, ...more);
	globalThis.ended = 0;
	globalThis.fetch = (at, how) => {
		how?.signal?.addEventListener('abort', () => { ended += 1; });
		return get(at, how); };
	let hidden = false;
	Object.defineProperty(document, 'hidden', {get: () => hidden});
	globalThis.hide = (away) => { hidden = away; document.dispatchEvent(new Event('visibilitychange')); }; }`

// notified keeps what the page asks the browser to show.
const notified = `window.notified = []; window.asked = 0;
window.Notification = class { constructor(title) { window.notified.push(title); } static permission = 'default';
	static async requestPermission() { window.asked += 1; return Notification.permission = 'granted'; } };`

func TestNotificationsComeOnceSomebodyAskedForThem(t *testing.T) {
	s := newStage(t)
	s.list(summary("alpha", "Waiting", "Answered", nil), summary("beta", "RequiresAction", "RequiresAction", nil))
	s.chat("alpha", user(0, "Hi."), status("Waiting", "Answered", 1, nil))
	p := browser.Open(t, browser.Start(t), s.url, notified, hides)
	waits := func(since int) event {
		return event{"modified", summary("alpha", "RequiresAction", "RequiresAction",
			fields{"since": noon.AddDate(0, 0, since)})}
	}
	p.Sees("#chats a", "alpha")
	s.tell(chats, waits(1))
	p.Sees("#waiting", "2 chats wait")
	p.Click("#notify", "Notifications: off")
	p.Sees("#notify", "Notifications: on")
	// A hidden page closes the stream of its chat, and keeps that of the list.
	p.Click("#chats a", "alpha")
	p.Sees("article", "Hi.")
	p.Do("hide(true)")
	p.Until("the stream of the chat is closed", "ended === 1")
	s.tell(chats, waits(2))
	p.Until("it is shown once", "window.notified.join() === 'alpha waits for you' && window.asked === 1")
	p.Do("hide(false)")
	p.Click("#notify", "Notifications: on")
	p.Sees("#notify", "Notifications: off")
}

// elsewhere is another tab that keeps the list open.
const elsewhere = `navigator.locks.request('parley /namespaces/demo/chats?watch',
	() => new Promise((resolve) => { window.leave = resolve; }));`

func TestOneHiddenTabKeepsTheList(t *testing.T) {
	s := newStage(t)
	s.list(summary("alpha", "Waiting", "Answered", nil))
	p := browser.Open(t, browser.Start(t), s.url, notified, hides, elsewhere)
	p.Sees("#chats a", "alpha")
	p.Click("#notify", "Notifications: off")
	p.Sees("#notify", "Notifications: on")
	p.Do("hide(true)")
	p.Until("the stream of the list is closed", "ended === 1")
	s.tell(chats, event{"modified", summary("alpha", "RequiresAction", "RequiresAction", nil)})
	p.Do("leave()")
	p.Until("the tab takes over", "window.notified.join() === 'alpha waits for you'")
}
