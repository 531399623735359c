// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/test/kit/browser"
)

// axe is what "make axe" brings.
const axe = "../../bin/axe/node_modules/axe-core/axe.min.js"

// state is one of the page, as the events of a chat bring it about.
type state struct {
	name   string
	events []event
	// sees are what the page shows, by where.
	sees map[string]string
	// does is what a person does before the page is looked at.
	does func(p *browser.Page)
	// picture is the name of a picture for docs/, of the first look; phone of the narrow one.
	picture, dark, phone string
}

const cni = "The node has no network: its **CNI plugin** does not start.\n\n" +
	"1. `kubelet` says `NetworkPluginNotReady`.\n" +
	"2. The DaemonSet's pod on node-7 restarts every minute.\n\n| node | kubelet | CNI |\n| --- | --- | --- |\n" +
	"| node-6 | 1.36.1 | ready |\n| node-7 | 1.36.1 | **not ready** |\n\n```yaml\nlimits:\n  memory: 128Mi\n```\n\n" +
	"See the [release notes](https://cilium.example/notes)."

const formatted = "# The plan\n\n## First\n\n- [x] read the code\n- [ ] change it\n\n" +
	"```go\nfunc main() { println(\"hi\") } // <b>\n```\n\n```yaml\nreplicas: 3\n```\n\n```none\nplain <i>\n```"

const unified = "--- a/cni.yaml\n+++ b/cni.yaml\n@@ -3,4 +3,4 @@\n" +
	"   limits:\n-    memory: 64Mi\n+    memory: 128Mi\n     cpu: 100m\n"

var investigation = []event{
	user(0, "Why does node-7 not get ready?"),
	assistant(1, reasoning("The kubelet says why. I look at its conditions first."), text("I look at the node."),
		call("c1", "execute", fields{"command": "kubectl describe node node-7 | tail -3"}),
		call("c2", "k8s_get", fields{"kind": "Node", "name": "node-7"})),
	tool(2, result("c1", "execute", fields{"success": true, "exit_code": 0, "wall_duration_ms": 812,
		"output": "Ready  False  KubeletNotReady\n  container runtime network not ready:\n  NetworkPluginNotReady\n"}),
		result("c2", "k8s_get", fields{"kind": "Node", "metadata": fields{"name": "node-7"}, "status": fields{
			"conditions": []fields{{"type": "Ready", "status": "False"}, {"type": "DiskPressure", "status": "False"}}}})),
	assistant(3, text(cni)),
	user(4, "Then give it more memory."),
	assistant(5, text("I change the limit."), call("c3", "edit_files", fields{"edits": []fields{{"path": "cni.yaml",
		"old_text": "memory: 64Mi", "new_text": "memory: 128Mi"}}})),
	tool(6, result("c3", "edit_files", fields{"files": []fields{{"path": "cni.yaml", "replaced": 1, "diff": unified}}})),
}

func after(more ...event) []event { return append(append([]event{}, investigation...), more...) }

// unfold opens the steps of the last turn, and what is folded in them.
func unfold(p *browser.Page) {
	p.Until("all of the last turn is open", fmt.Sprintf(openAll, "article.assistant:last-of-type details"))
	p.Sees("pre.diff .add", "128Mi")
}

// openAll opens what is folded; the expression holds once nothing is.
const openAll = `(() => { const closed = [...document.querySelectorAll('%s')].filter((d) => !d.open && d.checkVisibility());
	for (const d of closed) d.open = true;
	return closed.length === 0; })()`

var pending = event{"requires_action", fields{"historyVersion": 9, "deadline": noon.Add(20*time.Minute + 5*time.Second),
	"message": "m-8", "toolCalls": []fields{
		{"id": "p1", "name": "execute", "kind": "Approval", "input": encoded(fields{"command": "kubectl apply -f cni.yaml",
			"workdir": "/repo"})},
		{"id": "p2", "name": "open_ticket", "kind": "Client", "input": encoded(fields{"title": "CNI down"})},
		{"id": "p3", "name": "ask_user_question", "kind": "Approval", "approvalCause": "InputRequired", "input": "{}",
			"inputRequests": encoded(fields{"q": fields{"params": fields{"message": "The model asks:", "requestedSchema": fields{
				"properties": fields{"window": fields{"type": "string", "title": "When may it restart?", "enum": []string{"now",
					"tonight"}},
					"notify": fields{"type": "boolean", "title": "Tell the team"}}, "required": []string{"window"}}}}})},
	}}}

var states = []state{
	{name: "an answer with calls", events: after(assistant(7, text("Done. The pod starts now.")), status("Waiting",
		"Answered", 8, nil)),
		sees: map[string]string{"article.assistant": "NetworkPluginNotReady", "th": "kubelet", "details.call": "done, 1.3 s",
			".work > summary": "Ran 1 command, read 1 object · 3 min 0 s · 0.0222 USD", "footer": "4.3k in, 624 out",
			".steps .facts": "2.1k in, 312 out", "a.out": "release notes"},
		does: unfold, picture: "page-light", dark: "page-dark", phone: "page-phone"},
	{name: "a reply under way", picture: "page-live", events: after(status("Running", "Generating", 7, fields{"attempt": 1}),
		part(7, 1, fields{"type": "Reasoning", "text": "Is it enough?", "at": noon}),
		part(7, 2, fields{"type": "Text", "id": "t", "text": "It **starts** now.\n\n- the pod\n"}),
		part(7, 3, fields{"type": "ToolInput", "id": "c9", "name": "execute", "text": `{"command": "kubectl get p`})),
		sees: map[string]string{"article.live strong": "starts", "article.live details.call": "is being written",
			"article.live .now": "writes",
			"#interrupt":        "Stop"}},
	{name: "a command that runs", picture: "page-command", events: after(
		message(7, "Assistant", fields{"parts": []fields{call("c9", "execute", fields{"command": "make test"})}}),
		status("Running", "ExecutingTools", 8, fields{"attempt": 1}),
		part(8, 1, fields{"type": "ToolStart", "id": "c9", "name": "execute", "at": noon.Add(8 * time.Minute)}),
		part(8, 2, fields{"type": "ToolOutput", "id": "c9", "name": "execute", "text": "ok  parley/a\n10%\r20%\r30%"})),
		sees: map[string]string{"details.call[data-state=running] pre.term": "ok  parley/a\n30%"}},
	{name: "calls that wait for people", events: after(user(7, "Apply it."), assistant(8, text("I would apply it."),
		call("p1", "execute", fields{"command": "kubectl apply -f cni.yaml", "workdir": "/repo"}),
		call("p2", "open_ticket", fields{"title": "CNI down"}), call("p3", "ask_user_question", fields{})),
		status("RequiresAction", "RequiresAction", 9, nil), pending),
		sees: map[string]string{"#approvals h3": "3 calls wait for you 10:05 left, then they are cancelled",
			"#approvals pre.term .dim": "(in /repo)", "#approvals pre.term": "kubectl apply -f cni.yaml",
			"#approvals fieldset": "tonight", "#approvals h4": "open_ticket needs a result",
			"details.call[data-state=waits]": "waits for people"},
		picture: "page-approval"},
	{name: "a queue", picture: "page-queue", events: after(status("Running", "Generating", 7, fields{"attempt": 1}), event{"queue_update",
		fields{"queue": []fields{
			{"name": "q1", "preview": "And how do I tell it is the CNI?"}, {"name": "q2", "preview": "Stop.", "interrupts": true,
				"model": "small"}}}}),
		sees: map[string]string{"#queue li": "how do I tell", "#queue": "Now", "#queue .badge": "cuts in"}},
	{name: "a retry", picture: "page-retry", events: after(status("Running", "Retrying", 7, fields{"attempt": 2}), event{"retry",
		fields{"historyVersion": 7,
			"attempt": 2, "at": noon.Add(10*time.Minute + 42*time.Second), "delayMs": 60000, "reason": "RateLimited",
			"message": "anthropic limits the rate of requests (429)", "provider": "anthropic", "statusCode": 429,
			"modelConfig": "small"}}),
		sees: map[string]string{"#notices": "Attempt 2 failed: RateLimited (anthropic, 429)", "#notices .until": "00:42"}},
	{name: "an error", picture: "page-error", events: after(status("Error", "AuthenticationFailed", 7, fields{"ready": "False"}), event{"error",
		fields{
			"historyVersion": 7, "reason": "AuthenticationFailed",
			"message": "anthropic refused the API key of ChatModelConfig default (401).",
			"advice":  "Put a valid key into key \"api-key\" of Secret anthropic.", "provider": "anthropic", "statusCode": 401,
			"retryable": false}}),
		sees: map[string]string{"#notices [role=alert]": "Put a valid key", "#chat-standing": "AuthenticationFailed"}},
	{name: "a wait for sub-chats", picture: "page-sub-chats", events: after(status("Running", "WaitingForSubChats", 7,
		fields{"wait": fields{"for": "SubChats", "reason": "WaitingForSubChats", "message": "It waits for triage-cni"},
			"warnings": []fields{{"type": "MCPServersUnavailable", "reason": "TimedOut", "message": "tracker"}}})),
		sees: map[string]string{"#notices": "waits for sub-chats. It waits for triage-cni",
			"#notices .warn": "MCPServersUnavailable: TimedOut"}},
	{name: "a compaction, a note and interrupted calls", picture: "page-note", events: []event{
		user(0, "Hello."), assistant(1, text("I begin."), call("x1", "current_time", fields{})),
		message(2, "User", fields{"content": "Stop that.", "callsCanceledReasonBefore": "Interrupted",
			"editedBy": "system:serviceaccount:ns:bert"}),
		message(3, "Assistant", fields{"parts": []fields{text("Networks are")}, "outcome": "Interrupted",
			"warnings": []string{"the file a.pdf was left out"}}),
		message(4, "System", fields{"parts": []fields{text("They talked about networks.")},
			"compaction": fields{"messages": 4}}),
		{"note", fields{"index": 5, "generation": 1, "message": fields{"name": "n-1", "uid": "uid-n-1", "role": "User",
			"visibility": "Users",
			"content":    "The customer is on the phone.", "createdBy": "anna", "createdAt": noon}}},
		message(5, "User", fields{"parts": []fields{text("A picture:"), {"type": "File", "file": fields{"name": "dot.png",
			"mediaType": "image/png", "data": dot}}, {"type": "File", "file": fields{"name": "log.txt",
			"mediaType": "text/plain", "data": "aGk="}}}}),
		status("Waiting", "Answered", 6, fields{"contextStart": 4})},
		sees: map[string]string{"details.call": "no result: interrupted", "article.note": "on the phone",
			"details.summary": "in place of 4 messages",
			".start":          "The model sees what follows", "footer .badge": "interrupted", ".warning": "a.pdf",
			"figcaption": "dot.png", "h3": "Note of anna"}},
	{name: "tools of all kinds", events: []event{user(0, "Go."), assistant(1, call("t1", "write_file",
		fields{"path": "a.txt", "content": "hi"}),
		call("t2", "propose_plan", fields{"plan": "## Plan\n- one"}), call("t3", "spawn_agent", fields{"prompt": "Look"}),
		call("t4", "advisor", fields{"question": "May it?"}), call("t5", "execute", fields{"command": "false"}), call("t6",
			"nothing", fields{})),
		message(2, "Tool", fields{"decisions": []fields{{"id": "t1", "decision": "Approve", "approval": "a", "by": "anna",
			"comment": "fine"}}, "parts": []fields{result("t1", "write_file", fields{"ok": true}), result("t2", "propose_plan", fields{"approved": true}),
			result("t3", "spawn_agent", fields{"chat": "triage-cni"}), result("t4", "advisor", fields{"advice": "**Yes.**"}),
			result("t5", "execute", fields{"success": false, "output": "", "exit_code": 1}), result("t6", "nothing",
				strings.Repeat("x", 40_000))}}),
		status("Running", "Generating", 3, nil)},
		does: func(p *browser.Page) { p.Until("all is open", fmt.Sprintf(openAll, "details.call")) },
		sees: map[string]string{".callbody h4": "Plan", ".callbody a": "triage-cni", ".callbody strong": "Yes.",
			".callbody .settled": "Approved by anna: fine",
			".term .ended":       "exit code 1",
			".callbody button":   "Show all", "details.call[data-state=failed]": "false"}},
	{name: "a reply that was cut", picture: "page-cut", events: []event{user(0, "Tell me everything."),
		message(1, "Assistant", fields{"parts": []fields{text("It began with")}, "replyOutcome": "MaxTokensReached",
			"finishReason": "max_tokens"}), status("Waiting", "MaxTokensReached", 2, fields{"message": "Raise maxOutputTokens"})},
		sees: map[string]string{"footer .badge": "cut: it reached its limit of output tokens",
			"#notices": "has a reply that was cut. Raise maxOutputTokens"}},
	{name: "a text with tasks, headings and code", picture: "page-text",
		events: []event{user(0, "Plan it."), assistant(1, text(formatted)), status("Waiting", "Answered", 2, nil)},
		sees: map[string]string{".task": "read the code", ".task input[aria-label=done]:checked": "", "h4": "The plan",
			"h5": "First", "code .hl-keyword": "func", "code .hl-string": `"hi"`, "code .hl-attr": "replicas"}},
	{name: "a chat without messages", events: []event{status("Waiting", "AwaitingFirstMessage", 0, nil)},
		sees: map[string]string{"#chat-standing": "waits for a first message"}},
}

// dot is a picture of one pixel.
const dot = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="

func TestEveryStateIsVisibleAndAccessible(t *testing.T) {
	s := newStage(t)
	s.list(
		summary("triage", "Running", "Generating", fields{"title": "Node-7 does not get ready", "lastReply": "It is the CNI.",
			"cost": []fields{{"currency": "USD", "microUnits": 42_300}}, "queued": 1}),
		summary("triage-cni", "Running", "WaitingForCapacity", fields{"parent": "triage", "model": "small"}),
		summary("migration", "RequiresAction", "RequiresAction", fields{"title": "Move the sessions to Redis"}),
		summary("nightly", "Error", "AuthenticationFailed", fields{"ready": "False"}),
		summary("notes-old", "Waiting", "Archived", fields{"archived": true}))
	p := browser.Open(t, browser.Start(t), s.url, browser.At(noon.Add(10*time.Minute)))
	p.Sees("#chats li.depth1", "triage-cni")
	for _, st := range states {
		t.Run(st.name, func(t *testing.T) {
			p.Of(t)
			s.restart("triage", st.events)
			p.Do("location.hash = '#/demo'")
			p.Sees("#nothing", "Choose a chat")
			p.Do("location.hash = '#/demo/triage'")
			if st.does != nil {
				p.Sees("article", "")
				p.Until("the transcript is there", "document.querySelector('details.call, details.work:not([hidden])')")
				st.does(p)
			}
			for at, words := range st.sees {
				p.Sees(at, words)
			}
			st.looks(t, p)
		})
	}
}

func TestTextFromRightToLeftIsShownSo(t *testing.T) {
	s := newStage(t)
	const words = "لماذا لا تعمل العقدة؟"
	s.chat("triage", user(0, words), assistant(1, text("الشبكة لا تعمل:\n\n- `node-7`\n\n```sh\nkubectl get nodes\n```")),
		status("Waiting", "Answered", 2, nil))
	p := s.opened(t)
	s.tell(chats, event{"modified", summary("triage", "Waiting", "Answered", fields{"title": words})})
	p.Sees("#chat-title", words)
	p.Type("#compose", words)
	for selector, want := range map[string]string{"article.user .prose": "rtl", "article.assistant .prose": "rtl",
		"article pre": "ltr", "#chat-title": "rtl", "#chats .title": "rtl", "#compose": "rtl"} {
		got := browser.Eval[string](p, "getComputedStyle(document.querySelector("+encoded(selector)+")).direction")
		if got != want {
			t.Errorf("%s is %s", selector, got)
		}
	}
	hasNoBarrier(p)
	// The whole page, in case somebody translates it.
	p.Do("document.documentElement.dir = 'rtl'")
	hasNoBarrier(p)
	pictured(p, "page-right-to-left", "right to left")
}

// emptyBoxes are the parts below the transcript that can be seen and show nothing.
const emptyBoxes = `[...document.querySelectorAll('#below > section')]
	.filter((e) => e.checkVisibility() && !e.innerText.trim()).map((e) => e.id).join()`

// hasNoBarrier looks at the page in all its looks, for barriers and for what is wider than the window.
func hasNoBarrier(p *browser.Page) {
	for _, look := range []struct {
		scheme string
		width  int64
	}{{"dark", 1280}, {"light", 320}, {"light", 1280}} {
		p.Look(look.scheme, look.width, 860)
		p.HasNoBarrier(axe)
		p.Until("it fits", "document.documentElement.scrollWidth <= innerWidth")
	}
}

// looks at the state: light, dark, as narrow as a phone, and enlarged twice.
func (st state) looks(t *testing.T, p *browser.Page) {
	for _, look := range []struct {
		scheme        string
		width, height int64
		picture       string
	}{{"light", 1280, 860, st.picture}, {"dark", 1280, 860, st.dark}, {"light", 320, 640, st.phone}, {"light", 640, 430, ""}} {
		p.Look(look.scheme, look.width, look.height)
		for _, barrier := range p.Barriers(axe) {
			t.Errorf("%s, %d wide: %+v", look.scheme, look.width, barrier)
		}
		if got := browser.Eval[string](p, emptyBoxes); got != "" {
			t.Errorf("%s, %d wide: nothing is shown in %s", look.scheme, look.width, got)
		}
		if over := browser.Eval[int](p, "document.documentElement.scrollWidth - innerWidth"); over > 0 {
			t.Errorf("the page is %d wider than %d", over, look.width)
		}
		pictured(p, look.picture, st.name+"-"+look.scheme+"-"+strconv.FormatInt(look.width, 10))
	}
	p.Look("light", 1280, 860)
}

// pictured writes a picture for docs/ where PAGE_SCREENSHOTS says so, and all of them to PAGE_LOOKS.
func pictured(p *browser.Page, name, state string) {
	if dir := os.Getenv("PAGE_SCREENSHOTS"); dir != "" && name != "" {
		p.Picture(filepath.Join(dir, name+".png"))
	}
	if dir := os.Getenv("PAGE_LOOKS"); dir != "" {
		p.Picture(filepath.Join(dir, strings.ReplaceAll(state, " ", "-")+".png"))
	}
}
