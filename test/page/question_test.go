// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/browser"
)

func TestAnswersStayWithTheirChat(t *testing.T) {
	s := newStage(t)
	s.list(summary("alpha", "RequiresAction", "RequiresAction", nil),
		summary("beta", "RequiresAction", "RequiresAction", nil))
	// Models use the ids of calls again.
	question := waitsFor("tool-call-0", "ask_user_question", fields{})
	question["approvalCause"] = "InputRequired"
	question["inputRequests"] = encoded(fields{"q": fields{"params": fields{"message": "Which?", "requestedSchema": fields{
		"properties": fields{"store": fields{"type": "string", "title": "Store"},
			"token": fields{"type": "string", "title": "Token", "format": "password"},
			"size":  fields{"type": "string", "title": "Size", "enum": []string{"small", "large"}}}}}}})
	for _, name := range []string{"alpha", "beta"} {
		s.answer("GET "+chats+"/"+name, http.StatusOK, fields{"status": fields{"history": fields{"version": 2},
			"requiresAction": fields{"deadline": noon, "toolCalls": []fields{question}}}})
	}
	p := browser.Open(t, browser.Start(t), s.url)
	p.Sees("#waiting", "2 chats wait for you")
	p.Key("i")
	const both = "document.querySelectorAll('#inbox input[type=password]').length === 2"
	p.Until("both ask", both)
	p.Do("for (const box of document.querySelectorAll('#inbox [type=radio]')) " +
		"if (box.parentNode.innerText.includes('small')) box.click()")
	if n := browser.Eval[int](p, "document.querySelectorAll('#inbox :checked').length"); n != 2 {
		t.Errorf("%d chats have a choice", n)
	}
	p.Type("#inbox .inputs input[type=text]", "Redis")
	p.Type("#inbox .inputs input[type=password]", "hunter2")
	p.Reload()
	p.Until("both ask again", both)
	if got := browser.Eval[string](p, "[...document.querySelectorAll('#inbox .inputs input:not([type=radio])')]"+
		".map((e) => e.value).join()"); got != "Redis,,," {
		t.Errorf("after a reload the fields have %q", got)
	}
	p.Click("#inbox button", "Answer")
	p.Sees("#inbox .settled", "Approved")
	if kept := browser.Eval[string](p, "JSON.stringify(sessionStorage)"); strings.Contains(kept, "Redis") {
		t.Errorf("kept is %s", kept)
	}
}

func TestAnswersToSeveralRequestsAreApart(t *testing.T) {
	s := newStage(t)
	request := func(title string) fields {
		return fields{"params": fields{"message": title, "requestedSchema": fields{"properties": fields{
			"name": fields{"type": "string", "title": title}}}}}
	}
	question := waitsFor("c1", "deploy", fields{})
	question["approvalCause"] = "InputRequired"
	question["inputRequests"] = encoded(fields{"from": request("From where?"), "to": request("To where?")})
	s.chat("triage", asks(question)...)
	p := s.opened(t)
	for label, words := range map[string]string{"From where?": "east", "To where?": "west"} {
		p.Sees("#approvals label", label)
		p.Do("[...document.querySelectorAll('#approvals label')].find((l) => l.innerText.includes(" + encoded(label) +
			")).querySelector('input').focus()")
		p.Write(words)
	}
	p.Click("#approvals button", "Answer")
	const want = `{"from":{"name":"east"},"to":{"name":"west"}}`
	if got := s.wasAsked("POST " + chats + "/triage/approvals")["content"]; got != want {
		t.Errorf("answered was %v", got)
	}
}

func TestQuestionIsAnsweredOnceItIsComplete(t *testing.T) {
	s := newStage(t)
	question := waitsFor("c1", "deploy", fields{})
	question["approvalCause"] = "InputRequired"
	question["inputRequests"] = encoded(fields{"q": fields{"params": fields{"message": "Where?", "requestedSchema": fields{
		"required": []string{"region", "size", "count"}, "properties": fields{
			"region": fields{"type": "string", "title": "Region"},
			"size":   fields{"type": "string", "title": "Size", "enum": []string{"small", "large"}, "default": "large"},
			"tags":   fields{"type": "array", "items": fields{"enum": []string{"a", "b"}}, "default": []string{"b"}},
			"count":  fields{"type": "integer", "title": "Count", "minimum": 0.5, "maximum": 5, "default": 2}}}}}})
	s.chat("triage", asks(question)...)
	p := s.opened(t)
	p.Sees("[data-call=c1] label", "Region")
	p.Click("[data-call=c1] button", "Answer")
	isShown := func(field string) {
		p.Until(field+" is shown as invalid", "document.activeElement.matches('[data-call=c1] "+field+":invalid')")
	}
	isShown("input[type=text]")
	p.Write("east")
	p.Type("[data-call=c1] input[type=number]", "9")
	p.Click("[data-call=c1] button", "Answer")
	isShown("input[type=number]")
	p.Clear("[data-call=c1] input[type=number]")
	p.Type("[data-call=c1] input[type=number]", "3")
	p.Click("[data-call=c1] button", "Answer")
	const want = `{"count":3,"region":"east","size":"large","tags":["b"]}`
	if got := s.wasAsked("POST " + chats + "/triage/approvals")["content"]; got != want {
		t.Errorf("answered was %v", got)
	}
}

// odd is what servers write in the place of lists and objects: Go has null for an empty list.
var odd = fields{"required": nil, "properties": fields{
	"id":   fields{"type": "integer", "title": "Number of the channel"},
	"none": nil, "list": fields{"enum": 7, "oneOf": []any{nil}, "items": nil, "title": fields{"toString": 1},
		"description": []any{1}},
	"size": fields{"type": "array", "items": fields{"anyOf": []fields{{"const": "large"}}}}}}

func TestQuestionsOfAnySchemaAreAnswered(t *testing.T) {
	s := newStage(t)
	question := waitsFor("c1", "post", fields{})
	question["approvalCause"] = "InputRequired"
	question["inputRequests"] = encoded(fields{"a": fields{"params": fields{"message": "Where?", "requestedSchema": odd}},
		"b": fields{"params": fields{"requestedSchema": fields{"properties": nil, "required": true}}}, "c": nil})
	s.chat("triage", asks(question, waitsFor("c2", "execute", fields{"command": "make"}))...)
	p := s.opened(t)
	p.Sees("[data-call=c1] label", "Number of the channel")
	p.Sees("[data-call=c2] pre", "make")
	p.Type("[data-call=c1] input[type=number]", "9007199254740993")
	p.Click("[data-call=c1] fieldset label", "large")
	p.Click("[data-call=c1] button", "Answer")
	const want = `{"a":{"id":9007199254740993,"size":["large"]},"b":{},"c":{}}`
	if got := s.wasAsked("POST " + chats + "/triage/approvals")["content"]; got != want {
		t.Errorf("answered was %v", got)
	}
}
