// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"testing"
)

func TestSearchShowsHitsAndHowFarItLooked(t *testing.T) {
	s := newStage(t)
	s.chat("triage", user(0, "Why?"), assistant(1, text("Because.")), status("Waiting", "Answered", 2, nil))
	hit := func(message, excerpt string) fields {
		return fields{"chat": "triage", "message": message, "role": "Assistant", "createdAt": "2026-11-01T10:00:00Z",
			"excerpt": excerpt}
	}
	pieces := []fields{
		{"hits": []fields{hit("m-1", "<b>Because.</b> of the Node, in C++")}, "messages": 500, "continue": "x"},
		{"hits": []fields{}, "messages": 20},
	}
	s.mu.Lock()
	s.answers["GET /v1beta1/namespaces/demo/search"] = func() (int, any) {
		next := pieces[0]
		pieces = append(pieces[1:], pieces[0])
		return http.StatusOK, next
	}
	s.mu.Unlock()
	p := s.opened(t)
	p.Sees("article.assistant", "Because.")
	p.Key("/")
	p.Write(`because "the  node" c++`)
	p.Key("Enter")
	p.Sees("#found-state", "Found 1 in 520 messages.")
	p.Sees("#found-rows li", "<b>Because.</b> of the Node")
	for _, word := range []string{"Because", "the Node", "C++"} {
		p.Sees("#found-rows mark", word)
	}
	hasNoBarrier(p)
	pictured(p, "page-search", "a search")
	p.Click("#found-rows a", "")
	p.Until("the message is open", "location.hash.endsWith('/triage/m-1') && document.querySelector('#found').hidden")
	p.Sees("article.assistant", "Because.")

	s.answer("GET /v1beta1/namespaces/demo/search", http.StatusForbidden, refusal("Forbidden", "you may not list"))
	p.Click("#search", "")
	p.Sees("#found-state", "The search has stopped: you may not list")
	s.answer("GET /v1beta1/namespaces/demo/search", http.StatusOK, pieces[1])
	p.Click("#found-state button", "Try again")
	p.Sees("#found-state", "Found 0 in 20 messages.")

	s.answer("GET /v1beta1/namespaces/prod/search", http.StatusOK, fields{"hits": []fields{}, "messages": 7})
	p.Do("location.hash = location.hash.replace('/demo/', '/prod/')")
	p.Sees("#found-state", "Found 0 in 7 messages.")
}
