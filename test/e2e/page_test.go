// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"context"
	"os"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/browser"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

// axe is what "make axe" brings.
const axe = "../../bin/axe/node_modules/axe-core/axe.min.js"

// opensPage runs kubectl chat ui as the person of this world, and opens its link.
func (w *world) opensPage(in *browser.Browser, args ...string) *browser.Page {
	w.t.Helper()
	ui := w.plugin(append([]string{"ui", "--no-open"}, args...)...)
	out, err := ui.StdoutPipe()
	check.OK(w.t, err)
	ui.Stderr = os.Stderr
	check.OK(w.t, ui.Start())
	w.t.Cleanup(func() {
		_ = ui.Process.Kill()
		_ = ui.Wait() // It was killed.
	})
	link, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || !strings.Contains(link, "/ui/#code=") {
		w.t.Fatalf("there is no link: %q, %v", link, err)
	}
	return browser.Open(w.t, in, strings.TrimSpace(link))
}

func say(parts ...string) modelserver.Reply {
	return modelserver.Reply{Steps: []modelserver.Step{modelserver.Say(parts...)}}
}

// TestThePage shows the page in a browser, to several people at once. The gateway is killed meanwhile, which none of
// them
// may notice for long.
func TestThePage(t *testing.T) {
	localnode.Needed(t)
	t.Cleanup(func() { noTokenIsLogged(t) })
	in := browser.Start(t)
	for name, test := range map[string]func(*testing.T, *browser.Browser){
		"follows and steers a chat": follows, "lets two people decide": decides, "goes on through failures": goesOn,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, in)
		})
	}
}

// noTokenIsLogged looks through what the gateways have said: every token of the cluster begins with the same letters.
func noTokenIsLogged(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	var gateways corev1.PodList
	if err := c.List(ctx, &gateways, client.InNamespace("parley-system"),
		client.MatchingLabels{"app.kubernetes.io/component": "gateway"}); err != nil || len(gateways.Items) == 0 {
		t.Fatalf("there are %d gateways: %v", len(gateways.Items), err)
	}
	for i := range gateways.Items {
		log, err := core.CoreV1().Pods("parley-system").GetLogs(gateways.Items[i].Name, &corev1.PodLogOptions{}).DoRaw(ctx)
		if err != nil {
			t.Error(err)
		}
		check.Lacks(t, string(log), "eyJ")
	}
}

func follows(t *testing.T, in *browser.Browser) {
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "story"}, Times: 1, Reply: words(3000, 30*time.Millisecond)},
		{Match: modelserver.Match{LastUserText: "capital"}, Reply: say("It is **Paris**.")},
		{Match: modelserver.Match{LastUserText: "Italy"}, Reply: say("It is **Rome**.")},
		{Reply: say("Hello.")},
	}})
	p := w.opensPage(in)
	p.Sees("#list-empty", "There is no chat yet.")
	p.Click("#side button", "New chat")
	p.Type("dialog textarea", "Hi.")
	p.Type("dialog input[type=text]", "triage")
	p.Click("dialog button", "Begin")
	p.Sees("article.assistant", "Hello.")
	p.Sees("#chats a", "answered")

	p.Type("#compose", "Tell me a long story.")
	p.Key("Enter")
	p.Sees("article.live", "wordc")
	p.Type("#compose", "What is the capital of France?")
	p.Key("Enter")
	p.Sees("#queue li:not(.sending)", "capital of France")
	p.HasNoBarrier(axe)
	p.Reload()
	p.Sees("article.live", "wordd")
	p.Sees("#queue li:not(.sending)", "capital of France")
	p.Click("#interrupt", "Stop")
	p.Sees("article.assistant footer", "interrupted")
	p.Sees("article.assistant strong", "Paris")
	w.ready("triage", 6)

	p.Key("Escape")
	p.Key("e")
	p.Clear(".editor textarea")
	p.Type(".editor textarea", "And of Italy?")
	p.Click(".editor button", "Save")
	p.Sees("article.assistant strong", "Rome")
	p.Gone("article.assistant strong", "Paris")
	w.ready("triage", 6)
	p.Click("#menu-button", "⋯")
	p.Click("#menu button", "Delete")
	p.Click("dialog button", "Delete the chat")
	p.Sees("#list-empty", "There is no chat yet.")
}

func decides(t *testing.T, in *browser.Browser) {
	zero := 0
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "ask", ToolResults: &zero},
			Reply: modelserver.Reply{Steps: []modelserver.Step{
				modelserver.Call("ask_user_question",
					`{"questions":[{"question":"Which store?","options":[{"label":"Redis"},{"label":"Memcached"}]}]}`)}}},
		{Match: modelserver.Match{LastUserText: "ticket", ToolResults: &zero},
			Reply: modelserver.Reply{Steps: []modelserver.Step{
				modelserver.Say("I look at the clock and open one."), modelserver.Call("current_time",
					`{"timezone":"Europe/Berlin"}`),
				modelserver.Call("open_ticket", `{"title":"CNI down"}`)}}},
		{Match: modelserver.Match{LastUserText: "ticket"}, Reply: say("Ticket 4711 is open.")},
		{Reply: say("I take what you say.")},
	}})
	w.mayApprove()
	chat := &v1beta1.Chat{ObjectMeta: w.meta("c"), Spec: v1beta1.ChatSpec{Prompt: "Open a ticket, please.",
		Tools: &v1beta1.ChatTools{Allow: []v1beta1.ToolPattern{"current_time", "ask_user_question", "open_ticket"},
			Approval: []v1beta1.ToolPattern{"current_time"},
			Client:   []v1beta1.ClientTool{{Name: "open_ticket", Description: "Opens a ticket."}}}}}
	w.create(chat)
	anna, bert := w.opensPage(in, "c"), w.opensPage(in, "c")
	for _, p := range []*browser.Page{anna, bert} {
		p.Sees("#approvals", "2 calls wait for you")
		p.Sees("#approvals", "Europe/Berlin")
		p.Sees("#chats a", "waits for you")
	}
	bert.Look("dark", 1280, 860)
	anna.HasNoBarrier(axe)
	bert.HasNoBarrier(axe)
	anna.Click("#approvals button", "Approve")
	bert.Sees("#approvals .settled", "Approved")
	bert.Type("#approvals textarea", `{"number": 4711}`)
	bert.Click("#approvals button", "Send the result")
	for _, p := range []*browser.Page{anna, bert} {
		p.Sees("article.assistant", "Ticket 4711 is open.")
		p.Gone("#approvals", "wait")
	}
	w.ready("c", 5)

	bert.Type("#compose", "Please ask me which store.")
	bert.Key("Enter")
	anna.Sees("#approvals", "Which store?")
	anna.Type("#approvals .inputs input", "Redis")
	anna.Click("#approvals button", "Answer")
	bert.Sees("article.assistant", "I take what you say.")
	anna.Sees("article.user", "which store")

	bert.Key("Escape")
	bert.Key("e")
	bert.Clear(".editor textarea")
	bert.Type(".editor textarea", "Say something else.")
	bert.Click(".editor button", "Save")
	anna.Sees("article.user", "Say something else.")
	anna.Gone("article.user", "which store")
	anna.Sees("article.user header", "edited by")
	check.OK(t, c.Delete(t.Context(), chat, client.GracePeriodSeconds(0)))
	bert.Sees("#notices", "deleted")
}

// hostile is what a model says that wants more than to be read.
const hostile = "<img src=x onerror=\"window.hacked=1\"><script>window.hacked=2</script>\n\n" +
	"[run](javascript:window.hacked=3) [data](data:text/html,<script>window.hacked=4</script>) " +
	"![pixel](http://evil.example/pixel.png) [https://bank.example](https://evil.example/)\n\n" +
	"> \u202Edesrever\u202C <b onclick=alert(1)>bold</b>\n\n" +
	"<svg onload=\"window.hacked=5\"/>\n\n<style>body{display:none}</style>"

func goesOn(t *testing.T, in *browser.Browser) {
	seconds := 10 // The page is open before, and has to show the notice in this time.
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "busy"}, Times: 1, Reply: modelserver.Reply{Fault: &modelserver.Fault{
			Kind: modelserver.FaultStatus, Status: 429, RetryAfter: &modelserver.RetryAfter{Seconds: &seconds}}}},
		{Match: modelserver.Match{LastUserText: "busy"}, Reply: say("Second try.")},
		{Match: modelserver.Match{LastUserText: "fail"}, Times: 1, Reply: modelserver.Reply{Fault: &modelserver.Fault{
			Kind: modelserver.FaultStatus, Status: 401}}},
		{Match: modelserver.Match{LastUserText: "story"}, Reply: words(500, 30*time.Millisecond)},
		{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Think(hostile), modelserver.Say(hostile)}}},
	}})
	w.create(&v1beta1.Chat{ObjectMeta: w.meta("c")})
	p := w.opensPage(in, "c")
	p.Type("#compose", "<img src=x onerror=window.hacked=6> Are you busy?")
	p.Key("Enter")
	p.Sees("#notices", "RateLimited")
	p.Sees("#notices .until", "00:0")
	p.HasNoBarrier(axe)
	p.Sees("article.assistant", "Second try.")
	p.Gone("#notices", "RateLimited")

	p.Type("#compose", "You will fail.")
	p.Key("Enter")
	p.Sees("#notices [role=alert]", "AuthenticationFailed")
	p.Sees("#notices .advice", "Put a valid key")
	p.HasNoBarrier(axe)

	p.Type("#compose", "Say something hostile.")
	p.Key("Enter")
	p.Sees("article.assistant", "<script>window.hacked=2</script>")
	p.Do("for (const d of document.querySelectorAll('details')) d.open = true")
	p.Sees("article.assistant", "⟨U+202E⟩desrever")
	p.HasNoBarrier(axe)
	got := browser.Eval[string](p, `JSON.stringify([window.hacked ?? 0,
		document.querySelectorAll('#transcript :is(img, script, style, svg, iframe, b)').length,
		[...document.querySelectorAll('#transcript a')].filter((a) => !/^https?:/.test(a.href)).length,
		[...document.querySelectorAll('#transcript a')].some((a) => a.dataset.host === 'evil.example')])`)
	check.Equal(t, "the page", "[0,0,0,true]", got)

	p.Type("#compose", "Tell me a story.")
	p.Key("Enter")
	p.Sees("article.live", "wordc")
	p.Type("#compose", "What I was about to say")
	check.OK(t, c.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace("parley-system"),
		client.MatchingLabels{"app.kubernetes.io/component": "gateway"}, client.GracePeriodSeconds(0)))
	p.Sees("#connection", "Not connected")
	p.Gone("#connection", "Not connected")
	p.Reload()
	p.Sees("article.assistant:last-of-type footer", "out")
	w.ready("c", 7)
	if got := browser.Eval[int](p,
		`document.querySelector('article.assistant:last-of-type').innerText.match(/word/g).length`); got != 500 {
		t.Errorf("the story has %d words", got)
	}
	check.Equal(t, "typed", "What I was about to say", browser.Eval[string](p, "document.getElementById('compose').value"))
}
