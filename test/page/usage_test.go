// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"testing"
)

func TestUsageIsShownByDayChatAndModel(t *testing.T) {
	s := newStage(t)
	row := func(day, chat string, tokens, micros int) fields {
		return fields{"day": day, "chat": chat, "model": "claude", "calls": 2,
			"usage": fields{"inputTokens": tokens, "outputTokens": 10, "totalTokens": tokens + 10},
			"cost":  []fields{{"currency": "USD", "microUnits": micros}}}
	}
	pieces := []fields{
		{"rows": []fields{row("2026-11-01", "triage", 1000, 2_000_000)}, "messages": 500, "continue": "x"},
		{"rows": []fields{row("2026-11-02", "triage", 2000, 500_000), row("2026-11-01", "<b>", 500, 250_000)}, "messages": 20},
	}
	s.mu.Lock()
	s.answers["GET /v1beta1/namespaces/demo/usage"] = func() (int, any) {
		next := pieces[0]
		pieces = append(pieces[1:], pieces[0])
		return http.StatusOK, next
	}
	s.mu.Unlock()
	p := s.opened(t)
	p.Click("[data-act=usage]", "")
	p.Sees("#usage-body [role=status]", "All 520 messages are read.")
	if got := s.wasAsked("GET /v1beta1/namespaces/demo/usage")["continue"]; got != "x" {
		t.Errorf("the second piece was asked for with %v", got)
	}
	rows := func(want string) {
		t.Helper()
		p.Until("the rows are "+want, `[...document.querySelectorAll('#usage-body tbody tr')].map((r) =>
			[...r.children].map((c) => c.textContent).join('|')).join('\n') === `+encoded(want))
	}
	rows("2026-11-02|2|2.0k|10|0.50 USD\n2026-11-01|4|1.5k|20|2.25 USD")
	p.Sees("#usage-body tfoot", "2.75 USD")
	hasNoBarrier(p)
	pictured(p, "page-usage", "the usage")
	p.Do(`{ const by = document.querySelector('#usage-body select'); by.value = 'chat'; by.dispatchEvent(new Event('change')); }`)
	rows("triage|4|3.0k|20|2.50 USD\n<b>|2|500|10|0.25 USD")
	p.Click("#usage-body tbody a", "triage")
	p.Until("the chat is open", "location.hash.endsWith('/triage') && document.querySelector('#usage').hidden")

	s.answer("GET /v1beta1/namespaces/demo/usage", http.StatusForbidden, refusal("Forbidden", "you may not list"))
	p.Click("[data-act=usage]", "")
	p.Sees("#usage-body [role=status]", "The reading has stopped: you may not list")
}
