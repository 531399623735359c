// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/test/kit/browser"
)

// evil wants more than to be read: it is HTML and Markdown, reorders what stands beside it, speaks to terminals, and
// is too long for any line. n tells which one has run.
func evil(n int) string {
	return fmt.Sprintf("<img src=x onerror=window.hacked=%d><script>window.hacked=%d</script> "+
		"\u202Edesrever\u202C \u2066x "+
		"\x1b[31mred\x1b]0;title\x07 [a](javascript:window.hacked=%d) [b](data:text/html,x) ![c](http://evil.example/p.png) "+
		"\"><svg onload=window.hacked=%d> %s", n, n, n, n, strings.Repeat("W", 3000))
}

// innocent is what the page must be however hostile the texts on it are: nothing has run, nothing is an element that
// texts have made, no link leads to a script, nothing is reordered, and all fits.
const innocent = `JSON.stringify({ran: window.hacked ?? 0,
	made: document.querySelectorAll(':is(#transcript, #chats, #below, #composer, #chat-head, #family, #toasts, dialog) '
		+ ':is(img, script, svg, iframe, style)').length,
	led: [...document.querySelectorAll('a')].map((a) => a.href).filter((to) => !/^https?:/.test(to)),
	reordered: [document.title, ...[...document.body.querySelectorAll('*')].filter((e) => e.checkVisibility())
		.map((e) => [...e.childNodes].filter((n) => n.nodeType === 3).map((n) => n.data).join())]
		.filter((said) => /[\u202A-\u202E\u2066-\u2069\u001b]/.test(said)).map((said) => said.slice(0, 40)),
	wider: document.documentElement.scrollWidth <= innerWidth ? []
		: [...document.body.querySelectorAll('*')].filter((e) => e.getBoundingClientRect().right > innerWidth + 1)
			.map((e) => e.localName + '.' + e.className).slice(0, 8)})`

const harmless = `{"ran":0,"made":0,"led":[],"reordered":[],"wider":[]}`

func (s *stage) staysInnocent(t *testing.T, p *browser.Page, what string) {
	t.Helper()
	for _, width := range []int64{1280, 320} {
		p.Look("light", width, 800)
		if got := browser.Eval[string](p, innocent); got != harmless {
			t.Errorf("%s, %d wide: the page is %s", what, width, got)
		}
	}
	p.Look("light", 1280, 860)
}

func hostileStage(t *testing.T) *stage {
	s := newStage(t)
	s.answer("GET /v1beta1/namespaces", http.StatusOK, fields{"namespaces": []string{evil(1)}})
	s.answer("GET /v1beta1/namespaces/demo/modelconfigs", http.StatusOK, fields{"modelConfigs": []fields{
		{"name": evil(2)}}})
	s.answer("GET /v1beta1/namespaces/demo/chatclasses", http.StatusOK, fields{"chatClasses": []fields{
		{"name": evil(3), "default": true, "description": evil(101), "firstPrompts": []string{evil(102)}}}})
	s.answer("GET /v1beta1/namespaces/demo/templates", http.StatusOK, fields{"templates": []fields{
		{"name": evil(103), "description": evil(104)}}})
	s.list(
		summary("triage", "Running", "Generating", fields{"title": evil(4), "lastReply": evil(5), "model": evil(6),
			"cost": []fields{{"currency": evil(7), "microUnits": 1}}}),
		summary("triage-sub", "Waiting", evil(8), fields{"parent": "triage", "title": evil(9), "message": evil(10)}),
		summary("failed", "Error", evil(11), fields{"ready": "False", "turn": fields{"summary": evil(12)}}))
	return s
}

// Security (the page): cannot be made by the texts that it shows to make a link or an order of characters misleading,
// push other things out of sight, or stop the page by the form of a text: including names, titles, reasons, errors,
// files, sources and calls. Also TestTextsOfAnyShapeAreShown of test/page; TestThePage of test/e2e.
func TestNoTextDoesMoreThanToBeRead(t *testing.T) {
	s := hostileStage(t)
	p := browser.Open(t, browser.Start(t), s.url)
	p.Sees("#chats a", "<img src=x")
	p.Do("location.hash = '#/demo/triage'")
	s.chat("triage", hostileHistory()...)
	p.Sees("article.note", "<img src=x")
	p.Until("all is open", fmt.Sprintf(openAll, "details"))
	s.staysInnocent(t, p, "a history")
	for name, events := range hostilePresents() {
		s.chat("triage", events...)
		p.Sees("#below", fmt.Sprintf("hacked=%s", name))
		s.staysInnocent(t, p, "present "+name)
	}
	s.answer("DELETE "+chats+"/triage", http.StatusForbidden, refusal(evil(70), evil(71)))
	p.Click("#menu-button", "⋯")
	p.Click("#menu button", "Delete")
	p.Click("dialog button", "Delete the chat")
	p.Sees(".toast", "hacked=71")
	s.staysInnocent(t, p, "a refusal")
	p.Click(".toast button", "Close")
	p.Key("n")
	p.Until("the classes are there", "document.querySelectorAll('dialog option').length >= 4")
	s.staysInnocent(t, p, "a new chat")
}

// Security (the page): cannot be made by the texts of a configuration, or by names of models and chats in the usage, to
// mislead who reads or copies them.
func TestConfigurationAndUsageStayInnocent(t *testing.T) {
	s := hostileStage(t)
	s.answer("GET "+configurations, http.StatusOK, fields{"kinds": []fields{{"kind": "ChatClass", "resource": "chatclasses",
		"refused": evil(110), "objects": []fields{
			{"name": "ops", "summary": evil(111), "ready": "False", "reason": evil(112), "message": evil(113)}}}}})
	s.answer("GET /v1beta1/configurations/chatclasses/schema", http.StatusOK, published(t, "chatclasses"))
	s.answer("GET "+configurations+"/chatclasses/ops", http.StatusOK, fields{"update": true, "object": fields{
		"metadata": fields{"name": "ops"}, "spec": fields{"description": evil(114), "firstPrompts": []string{evil(115)}}}})
	s.answer("GET /v1beta1/namespaces/demo/usage", http.StatusOK, fields{"messages": 1, "rows": []fields{{"day": evil(116),
		"chat": evil(117), "model": evil(118), "calls": 1, "usage": fields{}, "cost": []fields{
			{"currency": evil(119), "microUnits": 1}}}}})
	p := browser.Open(t, browser.Start(t), s.url)
	p.Sees("#chats a", "<img src=x")
	for _, at := range [][2]string{{"~configuration/chatclasses%2Fops", "hacked=114"}, {"~usage", "hacked=116"},
		{"~configuration", "hacked=111"}} {
		place, words := at[0], at[1]
		p.Do("location.hash = '#/demo/" + place + "'")
		p.Sees("main", words)
		s.staysInnocent(t, p, place)
	}
}

func hostileHistory() []event {
	return []event{
		message(0, "User", fields{"content": evil(20), "createdBy": evil(21), "editedBy": evil(22)}),
		message(1, "Assistant", fields{"model": fields{"name": evil(23), "config": evil(24)}, "finishReason": evil(25),
			"warnings": []string{evil(26)}, "cost": fields{"currency": evil(27), "microUnits": 1}, "parts": []fields{
				text(evil(28)), reasoning(evil(29)),
				{"type": "ToolCall", "toolCall": fields{"id": "c1", "name": evil(30), "input": evil(31)}},
				call("c2", "execute", fields{"command": evil(32), "workdir": evil(33)}),
				call("c3", "edit_files", fields{"edits": []fields{{"path": evil(34), "old_text": evil(35), "new_text": evil(36)}}}),
				call("c4", "write_file", fields{"path": evil(37), "content": evil(38)}),
				call("c5", "spawn_agent", fields{"prompt": evil(39)}), call("c6", "advisor", fields{"question": evil(40)}),
				{"type": "Source", "source": fields{"url": "javascript:window.hacked=41", "title": evil(41)}},
				{"type": "Source", "source": fields{"url": "https://evil.example/" + strings.Repeat("w", 3000), "title": ""}},
				{"type": "File", "file": fields{"name": evil(42), "mediaType": evil(43), "url": "javascript:window.hacked=42"}},
				{"type": "File", "file": fields{"name": evil(44), "mediaType": evil(45), "data": "PHN2Zz4="}},
				{"type": "File", "file": fields{"name": "a", "mediaType": "image/svg+xml", "data": "PHN2Zz4="}},
				{"type": "File", "file": fields{"name": "b", "mediaType": "x", "configMapKeyRef": fields{"name": evil(46),
					"key": evil(47)}}},
				{"type": evil(48)}}}),
		tool(2, result("c1", evil(30), evil(49)), result("c2", "execute", fields{"output": evil(50), "exit_code": 1}),
			result("c3", "edit_files", fields{"files": []fields{{"path": evil(51), "diff": evil(52)}}}),
			result("c4", "write_file", evil(53)), result("c5", "spawn_agent", fields{"chat": evil(54)}),
			result("c6", "advisor", fields{"advice": evil(55)}), result("none", evil(56), evil(57))),
		message(3, "System", fields{"parts": []fields{text(evil(58))}, "compaction": fields{"messages": evil(59)}}),
		{"note", fields{"index": 4, "generation": 1, "message": fields{"name": "n", "uid": "n", "role": "User",
			"visibility": "Users", "content": evil(60), "createdBy": evil(61), "createdAt": noon}}},
		status("Waiting", evil(62), 4, fields{"model": evil(63), "message": evil(64)})}
}

// hostilePresents are states of the chat, by the number of the text that must be seen.
func hostilePresents() map[string][]event {
	return map[string][]event{
		"81": {status("Error", "X", 4, fields{"ready": "False"}), {"error", fields{"historyVersion": 4, "reason": evil(80),
			"message": evil(81), "advice": evil(82), "provider": evil(83), "statusCode": 500}}},
		"85": {status("Running", "Retrying", 4, fields{"attempt": 1}), {"retry", fields{"historyVersion": 4, "attempt": 1,
			"at": noon, "delayMs": 1, "reason": evil(84), "message": evil(85), "provider": evil(86), "modelConfig": evil(87)}}},
		"88": {{"queue_update", fields{"queue": []fields{{"name": "q", "preview": evil(88), "model": evil(89)}}}}},
		"90": {status("RequiresAction", "X", 4, nil), {"requires_action", fields{"historyVersion": 4, "deadline": noon,
			"toolCalls": []fields{
				{"id": "c1", "name": evil(90), "kind": "Approval", "input": evil(91), "approvalCause": "ReviewRequired",
					"proposal": evil(92)},
				{"id": "c8", "name": evil(93), "kind": "Client", "input": evil(94)},
				{"id": "c9", "name": "ask_user_question", "kind": "Approval", "approvalCause": "InputRequired", "input": "{}",
					"inputRequests": encoded(fields{"q": fields{"params": fields{"message": evil(95), "requestedSchema": fields{
						"properties": fields{evil(96): fields{"type": "string", "title": evil(97), "description": evil(98),
							"enum": []string{evil(99)}}}}}},
						"u": fields{"params": fields{"message": evil(100), "url": "javascript:window.hacked=100"}}})}}}}},
	}
}

// TestTextsOfAnyShapeAreShown holds that no text stops the page: it is drawn, and the page answers.
func TestTextsOfAnyShapeAreShown(t *testing.T) {
	s := newStage(t)
	s.list(summary("triage", "Waiting", "Answered", nil))
	p := browser.Open(t, browser.Start(t), s.url)
	p.Sees("#chats a", "triage")
	for name, shape := range map[string]string{
		"quotes": strings.Repeat("> ", 10_000) + "x", "lists": strings.Repeat("- ", 10_000) + "x",
		"deep lists": deepList(2_000), "brackets": strings.Repeat("[", 20_000) + "x" + strings.Repeat("](", 20_000),
		"stars":     strings.Repeat("*a **b ", 10_000),
		"backticks": strings.Repeat("`", 20_000) + " " + strings.Repeat("` `` ", 5_000),
		"a table": "|" + strings.Repeat("a|", 2_000) + "\n|" + strings.Repeat("-|", 2_000) + "\n|" +
			strings.Repeat("b|", 2_000),
		"entities": strings.Repeat("&#x202e;&lt;", 10_000), "a word": strings.Repeat("w", 500_000),
		"links": strings.Repeat("<http://a.example/>", 5_000), "images": strings.Repeat("![", 10_000),
		"formulas": strings.Repeat(`\[ $a `, 20_000), "a formula": "$" + strings.Repeat(`\frac{`, 300) + "$",
		"marks": strings.Repeat("e\u0301\u0302\u0303\u0304", 20_000),
	} {
		t.Run(name, func(t *testing.T) {
			p.Of(t)
			s.restart("triage", []event{user(0, "Say it."), assistant(1, text(shape)), user(2, "The end of "+name+"."),
				status("Waiting", "Answered", 3, nil)})
			p.Do("location.hash = '#/demo'")
			p.Sees("#nothing", "Choose")
			began := time.Now()
			p.Do("location.hash = '#/demo/triage'")
			p.Sees("article.user", "The end of "+name)
			t.Logf("shown after %s", time.Since(began).Round(time.Millisecond))
			s.staysInnocent(t, p, name)
		})
	}
}

func deepList(depth int) string {
	var b strings.Builder
	for i := range depth {
		fmt.Fprintf(&b, "%s- x\n", strings.Repeat("  ", i))
	}
	return b.String()
}
