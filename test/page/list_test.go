// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"fmt"
	"testing"
	"time"

	"parley.dev/parley/test/kit/browser"
)

func TestListIsByDayAndMarksUnread(t *testing.T) {
	s := newStage(t)
	at := func(ago time.Duration) string { return time.Now().Add(-ago).UTC().Format(time.RFC3339) }
	s.list(summary("news", "Waiting", "Answered", fields{"since": at(-time.Hour)}),
		summary("asks", "RequiresAction", "RequiresAction", fields{"since": at(0)}),
		summary("old", "Waiting", "Answered", fields{"since": "2020-02-03T12:00:00Z"}),
		summary("gone", "Waiting", "Archived", fields{"since": at(0), "archived": true}))
	s.chat("news", user(0, "Hi."), status("Waiting", "Answered", 1, nil))
	p := browser.Open(t, browser.Start(t), s.url, "")
	// An hour ahead of the clock: later than the moment in which the page opens, on this day or the next.
	p.Until("chats stand below their day", `[...document.querySelectorAll('#chats > li')].map((li) => li.className === 'group'
		? li.textContent : li.querySelector('a').dataset.chat).join() === 'Waits for you,asks,Today,news,February 2020,old,Archived,gone'`)
	p.Until("one is unread", `document.querySelectorAll('#chats .unread').length === 1
		&& document.querySelector('#chats .unread a').dataset.chat === 'news'`)
	p.Until("a later visit knows since when", "JSON.parse(localStorage.getItem('parley.seen')).since")
	p.Click("#chats a", "news")
	p.Sees("article", "Hi.")
	p.Until("it is read", "!document.querySelector('#chats .unread')")
	p.Reload()
	p.Sees("#chats .group", "Archived")
	p.Do("location.hash = '#/demo'")
	p.Until("it stays read",
		"document.querySelectorAll('#chats a').length === 4 && !document.querySelector('#chats .unread')")
}

func TestTabsShareWhatIsPinnedAndSeen(t *testing.T) {
	s := newStage(t)
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	s.list(summary("alpha", "Waiting", "Answered", nil), summary("beta", "Waiting", "Answered", nil),
		summary("gamma", "Waiting", "Answered", fields{"since": later}))
	p := browser.Open(t, browser.Start(t), s.url, "")
	p.Until("one is unread", "document.querySelector('#chats .unread a')?.dataset.chat === 'gamma'")
	// Another document of the same origin, as another tab is.
	p.Do("window.other = document.body.appendChild(document.createElement('iframe')).contentWindow; 0")
	p.Do(`other.localStorage.setItem('parley.pins', JSON.stringify(['demo/gamma']))`)
	p.Sees("#chats a", "★ gamma")
	p.Do(`other.localStorage.setItem('parley.seen', JSON.stringify({ since: '2020-01-01T00:00:00Z',
		chats: { 'demo/alpha': '9', 'demo/beta': '9', 'demo/gamma': '9' } }))`)
	p.Until("it is read", "!document.querySelector('#chats .unread')")
	p.Do("document.querySelector('#chats button[aria-label=\"Actions of beta\"]').click()")
	p.Click("#menu button", "Pin")
	p.Until("both are pinned", "JSON.parse(localStorage.getItem('parley.pins')).join() === 'demo/gamma,demo/beta'")
}

func TestListIsFilteredByFields(t *testing.T) {
	s := newStage(t)
	cost := func(microUnits int) []fields { return []fields{{"currency": "USD", "microUnits": microUnits}} }
	s.list(summary("triage", "Waiting", "Answered", fields{"createdBy": "jane doe", "class": "coder", "cost": cost(700000)}),
		summary("fix", "RequiresAction", "RequiresAction", fields{"createdBy": "joe", "class": "coder", "cost": cost(90000)}),
		summary("report", "Error", "ProviderRefused", fields{"createdBy": "joe", "title": "Weekly costs"}))
	p := browser.Open(t, browser.Start(t), s.url, "")
	p.Sees("#chats", "triage")
	for _, c := range []struct{ filter, chats string }{
		{"owner:joe", "fix,report"}, {`owner:"jane doe"`, "triage"}, {"class:coder owner:joe", "fix"}, {"cost:0.5", "triage"},
		{"state:failed", "report"}, {"state:action", "fix"}, {"COSTS weekly", "report"}, {`owner:"jane`, "triage"}, {"cost:", "fix,triage"},
		{"", "fix,report,triage"},
	} {
		p.Do("filter.value = " + encoded(c.filter) + "; filter.dispatchEvent(new Event('input'))")
		p.Until("the chats of "+c.filter,
			"[...document.querySelectorAll('#chats a')].map((a) => a.dataset.chat).sort().join() === "+encoded(c.chats))
	}
	p.Do("document.querySelector('#filter').focus()")
	p.Until("fields and values are offered", `[...document.querySelectorAll('#filters option')].map((o) => o.value).join()
		.startsWith('class:coder,cost:1,model:large,owner:"jane doe",owner:joe,state:')`)
}

func TestChangeInLongListLooksAtFewChats(t *testing.T) {
	s := newStage(t)
	const n = 2000
	var all []fields
	for i := range n {
		all = append(all, summary(fmt.Sprintf("chat-%d", i), "Waiting", "Answered", nil))
	}
	s.list(all...)
	p := browser.Open(t, browser.Start(t), s.url, `window.looked = 0; { const real = Array.prototype.filter;
		Array.prototype.filter = function filter(...of) { window.looked += this.length; return real.apply(this, of); }; }`)
	p.Until("all are listed", fmt.Sprintf("document.querySelectorAll('#chats a').length === %d", n))
	p.Do("window.looked = 0")
	s.tell(chats, event{"modified", summary("chat-7", "Waiting", "Answered", fields{"lastReply": "It runs."})})
	p.Sees("#chats .last", "It runs.")
	// Each draw goes through all chats a few times.
	if looked := browser.Eval[int](p, "window.looked"); looked > 20*n {
		t.Errorf("for one change, %d chats are looked at", looked)
	}
}
