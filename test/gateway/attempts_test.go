// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
)

// door is one of those that the gateway has, for chat c of a namespace.
type door struct{ method, path, body string }

// doors are all of them, in a namespace.
func doors(namespace string) []door {
	ours, compatible := "/v1beta1/namespaces/"+namespace, "/namespaces/"+namespace+"/v1"
	return []door{
		{"GET", ours + "/chats", ""}, {"GET", ours + "/chats?watch", ""}, {"POST", ours + "/chats", `{"spec":{}}`},
		{"GET", ours + "/chats/c", ""}, {"PATCH", ours + "/chats/c", `{"spec":{"title":"x"}}`},
		{"DELETE", ours + "/chats/c", ""},
		{"GET", ours + "/chats/c/stream", ""}, {"GET", ours + "/chats/c/messages", ""},
		{"GET", ours + "/chats/c/messages?before=c-q0", ""},
		{"POST", ours + "/chats/c/messages", `{"content":"x"}`},
		{"GET", ours + "/chats/c/messages/c-q0", ""}, {"PATCH", ours + "/chats/c/messages/c-q0", `{"content":"x"}`},
		{"DELETE", ours + "/chats/c/messages/c-q0", ""}, {"POST", ours + "/chats/c/messages/c-q0/promote", ""},
		{"POST", ours + "/chats/c/requests?wait=0", `{"kind":"Clear"}`},
		{"POST", ours + "/chats/c/approvals", `{"toolCallID":"a","decision":"Deny"}`},
		{"POST", ours + "/chats/c/results", `{"results":[{"id":"a","output":"1"}]}`},
		{"GET", ours + "/modelconfigs", ""}, {"GET", ours + "/chatclasses", ""},
		{"GET", compatible + "/models", ""}, {"GET", compatible + "/models/m", ""},
		{"POST", compatible + "/responses", `{"input":"x","conversation":"c"}`},
		{"GET", compatible + "/responses/resp_c-q0", ""}, {"POST", compatible + "/responses/resp_c-q0/cancel", ""},
		{"DELETE", compatible + "/responses/resp_c-q0", ""},
		{"POST", compatible + "/chat/completions", `{"messages":[{"role":"user","content":"x"}]}`},
		{"POST", compatible + "/messages", `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]}`},
	}
}

// knocks makes a request, which change may have changed, and returns what it is answered with.
func (w *world) knocks(t testing.TB, d door, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), d.method, w.gateway.URL+d.path, strings.NewReader(d.body))
	check.OK(t, err)
	if d.body == "" {
		r.Body, r.ContentLength = nil, 0
	} else {
		r.Header.Set("Content-Type", "application/json")
	}
	change(r)
	answer, err := http.DefaultTransport.RoundTrip(r)
	check.OK(t, err)
	defer func() { _ = answer.Body.Close() }()
	said, err := io.ReadAll(answer.Body)
	check.OK(t, err)
	return answer, string(said)
}

// secret is said in the chat that nobody of these may read.
const secret = "Question 0?"

// TestNobodyComesInByTheGateway makes every request of the gateway as somebody who may not.
//
// Security (a client of the gateway): cannot do or read anything in another namespace, by whatever request.
func TestNobodyComesInByTheGateway(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.tell("c", 2).chat
	owner := w.person("owner", "parley-chat-admin")
	elsewhere := &world{t: t, namespace: cluster.Namespace(t, "elsewhere")}
	stranger := elsewhere.person("stranger", "parley-chat-admin")
	bearer := func(token string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+token) }
	}
	query := func(name, token string) func(*http.Request) {
		return func(r *http.Request) {
			values := r.URL.Query()
			values.Set(name, token)
			r.URL.RawQuery = values.Encode()
		}
	}
	for name, change := range map[string]func(*http.Request){
		"without a token":            func(*http.Request) {},
		"of another namespace":       bearer(stranger),
		"a token in the URL":         query("access_token", owner),
		"a token in the URL's query": query("authorization", "Bearer "+owner),
		"a token as a cookie":        func(r *http.Request) { r.AddCookie(&http.Cookie{Name: "token", Value: owner}) },
		"a token as a password":      func(r *http.Request) { r.SetBasicAuth("owner", owner) },
		"a user by a header":         func(r *http.Request) { r.Header.Set("X-Remote-User", "system:admin") },
		"an impersonator": func(r *http.Request) {
			bearer(stranger)(r)
			r.Header.Set("Impersonate-User", "system:admin")
			r.Header.Set("Impersonate-Group", "system:masters")
		},
		"a name that leads here": func(r *http.Request) {
			r.Host = "evil.example"
			r.Header.Set("Origin", "http://evil.example")
			r.Header.Set("Sec-Fetch-Site", "same-origin")
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, d := range doors(w.namespace) {
				answer, said := w.knocks(t, d, change)
				if s := answer.StatusCode; s != http.StatusUnauthorized && s != http.StatusForbidden {
					t.Errorf("%s %s: %d %s", d.method, d.path, s, said)
				}
				if strings.Contains(said, secret) || strings.Contains(said, owner) {
					t.Errorf("%s %s tells %s", d.method, d.path, said)
				}
				heads(t, d, answer)
			}
		})
	}
	w.unchanged(t, before)
	for _, token := range []string{owner, stranger, url.QueryEscape(owner)} {
		check.Lacks(t, w.gateway.Log(), token)
	}
}

// heads checks that an answer lets no page of another origin read it, and keeps nothing in the browser.
func heads(t *testing.T, d door, answer *http.Response) {
	t.Helper()
	for _, name := range []string{"Access-Control-Allow-Origin", "Access-Control-Allow-Headers", "Set-Cookie"} {
		if got := answer.Header.Get(name); got != "" {
			t.Errorf("%s %s has %s: %s", d.method, d.path, name, got)
		}
	}
}

// unchanged checks that nothing was done to the chat, nor said in it, nor another one made.
func (w *world) unchanged(t *testing.T, before *v1beta1.Chat) {
	t.Helper()
	var chats v1beta1.ChatList
	var messages v1beta1.ChatMessageList
	var approvals v1beta1.ToolApprovalList
	for _, list := range []client.ObjectList{&chats, &messages, &approvals} {
		check.OK(t, cluster.Client.List(t.Context(), list, client.InNamespace(w.namespace)))
	}
	if len(chats.Items) != 1 || chats.Items[0].ResourceVersion != before.ResourceVersion || len(messages.Items) != 2 ||
		len(approvals.Items) != 0 {
		t.Errorf("there are %d chats, %d messages and %d decisions", len(chats.Items), len(messages.Items),
			len(approvals.Items))
	}
	for i := range messages.Items {
		if messages.Items[i].Generation != 1 {
			t.Errorf("message %s was changed", messages.Items[i].Name)
		}
	}
}

// TestPagesOfOtherOriginsChangeNothing lets browsers of people who may ask for what other pages want.
//
// Security (the page): cannot, by another page in the same browser or a name that leads to this machine, make the
// gateway do or disclose anything without a token, which it takes from no URL and no cookie and writes into no log.
// Also TestNobodyComesInByTheGateway of test/gateway.
func TestPagesOfOtherOriginsChangeNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	before := w.tell("c", 2).chat
	owner := w.person("owner", "parley-chat-admin")
	for name, change := range map[string]func(*http.Request){
		"another origin":           func(r *http.Request) { r.Header.Set("Origin", "https://evil.example") },
		"an origin that is none":   func(r *http.Request) { r.Header.Set("Origin", "null") },
		"another port":             func(r *http.Request) { r.Header.Set("Origin", "http://127.0.0.1:1") },
		"another site":             func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") },
		"another host of the site": func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "same-site") },
	} {
		t.Run(name, func(t *testing.T) {
			for _, d := range doors(w.namespace) {
				if d.method == http.MethodGet {
					continue
				}
				answer, said := w.knocks(t, d, func(r *http.Request) {
					r.Header.Set("Authorization", "Bearer "+owner)
					change(r)
				})
				if answer.StatusCode != http.StatusForbidden {
					t.Errorf("%s %s: %s %s", d.method, d.path, answer.Status, said)
				}
				heads(t, d, answer)
			}
		})
	}
	// A browser asks first whether a page may show a token; it is never told that it may.
	for _, d := range doors(w.namespace) {
		answer, _ := w.knocks(t, door{"OPTIONS", d.path, ""}, func(r *http.Request) {
			r.Header.Set("Origin", "https://evil.example")
			r.Header.Set("Access-Control-Request-Method", d.method)
			r.Header.Set("Access-Control-Request-Headers", "authorization")
		})
		heads(t, d, answer)
	}
	w.unchanged(t, before)
}

// TestSlowRequestBodyTimesOutWithoutBlockingOthers takes the 20 seconds that a body may.
func TestSlowRequestBodyTimesOutWithoutBlockingOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.tell("c", 2)
	slow, other := w.person("slow", "parley-chat-admin"), w.person("other", "parley-chat-admin")
	ours, compatible := "/v1beta1/namespaces/"+w.namespace, "/namespaces/"+w.namespace+"/v1"
	paths := []string{ours + "/chats", ours + "/chats/c/messages", compatible + "/responses",
		compatible + "/chat/completions", compatible + "/messages"}
	ended := make(chan string, len(paths))
	for _, path := range paths {
		body, send := io.Pipe()
		t.Cleanup(func() { _ = send.Close() })
		go func() { _, _ = send.Write([]byte(`{"spec":` + strings.Repeat(" ", 8<<10))) }()
		go func() {
			answer, _ := w.knocks(t, door{"POST", path, ""}, func(r *http.Request) {
				r.Header.Set("Authorization", "Bearer "+slow)
				r.Header.Set("Content-Type", "application/json")
				r.Body, r.ContentLength = body, 1<<20
			})
			ended <- path + ": " + answer.Status
		}()
	}
	for _, d := range []door{{"GET", ours + "/chats", ""}, {"POST", ours + "/chats/c/messages", `{"content":"x"}`},
		{"GET", compatible + "/models", ""}} {
		answer, said := w.knocks(t, d, func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+other) })
		if answer.StatusCode >= http.StatusBadRequest {
			t.Errorf("%s %s: %s %s", d.method, d.path, answer.Status, said)
		}
	}
	for range paths {
		if got := <-ended; !strings.HasSuffix(got, "408 Request Timeout") {
			t.Error(got)
		}
	}
}
