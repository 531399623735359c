// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	restclient "k8s.io/client-go/rest"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/auth"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/test/kit/check"
)

func TestForbiddenRequestReturnsAPIServerMessage(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-viewer")
	d.create(&v1beta1.Chat{ObjectMeta: d.meta("c")})
	d.does(http.StatusOK, "GET", "/chats/c", "")
	for path, body := range map[string]string{
		"/chats": `{"spec":{}}`, "/chats/c/messages": `{"content":"x"}`, "/chats/c/results": `{"results":[{"id":"a","output":"1"}]}`,
		"/chats/c/approvals": `{"toolCallID":"a","decision":"Deny"}`, "/chats/c/requests": `{"kind":"Interrupt"}`,
	} {
		d.refuses(http.StatusForbidden, "Forbidden", `User "system:serviceaccount:`+d.namespace+`:anna" cannot`, "POST", path,
			body)
	}
	got := d.refuses(http.StatusForbidden, "Forbidden", "cannot delete", "DELETE", "/chats/c", "")
	if kept := got.header.Values("Cache-Control"); len(kept) != 1 || kept[0] != "no-store" {
		t.Errorf("the header is %q", kept)
	}
	stranger := *d
	d.account("stranger")
	stranger.token = d.tokenOf("stranger")
	for _, c := range []struct{ role, method, path, body string }{
		{"parley-chat-viewer", "GET", "/chats/c", ""}, {"parley-chat-user", "DELETE", "/chats/c", ""},
		{"parley-tool-approver", "POST", "/chats/c/approvals", `{"toolCallID":"a","decision":"Deny"}`},
	} {
		stranger.refuses(http.StatusForbidden, "Forbidden", "ask for the ClusterRole "+c.role, c.method, c.path, c.body)
	}
	elsewhere := *d
	elsewhere.url = strings.Replace(d.url, d.namespace, "kube-system", 1)
	elsewhere.refuses(http.StatusForbidden, "Forbidden", `in the namespace "kube-system"`, "GET", "/chats", "")
}

// Security (a client of the gateway): cannot act with a token that is for listening, for others, changed, or the
// gateway's own. Also TestATokenIsSentNowhereElse of internal/gateway/rest.
func TestOnlyTokensOfTheAPIServerAreTaken(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	good, unknown := d.token, "does not know this token"
	for name, c := range map[string]struct {
		token  string
		status int
		reason string
		words  string
	}{
		"none":    {"", http.StatusUnauthorized, "Unauthorized", "no bearer token"},
		"rubbish": {"rubbish", http.StatusUnauthorized, "Unauthorized", "no JSON web token"},
		"one for listening": {d.tokenOf("anna", "parley-gateway"), http.StatusForbidden, "Forbidden",
			"good for listening alone"},
		"one for others":       {d.tokenOf("anna", "vault"), http.StatusUnauthorized, "Unauthorized", unknown},
		"one that is too long": {strings.Repeat("a", 17<<10), http.StatusUnauthorized, "Unauthorized", "longer than"},
		"one that was changed": {good[:len(good)-8] + "AAAAAAAA", http.StatusUnauthorized, "Unauthorized", unknown},
	} {
		t.Run(name, func(t *testing.T) {
			as := *d
			as.t, as.token = t, c.token
			got := as.refuses(c.status, c.reason, c.words, "GET", "/chats", "")
			if (got.header.Get("WWW-Authenticate") == "Bearer") != (c.status == http.StatusUnauthorized) {
				t.Errorf("the header is %v", got.header)
			}
		})
	}
	closed := open(t, "parley-chat-user", func(o *rest.Options) {
		o.Permit = checker(auth.Options{}).Permit
	})
	closed.refuses(http.StatusForbidden, "Forbidden", "streams alone", "GET", "/chats", "")
}

// Security (a client of the gateway): cannot have a path, or the name of another chat's message, taken for a name. Also
// TestMessagesAreSentEditedPromotedAndDeleted, TestInvalidHistoryPositionIsRejected of internal/gateway/rest.
func TestBadRequestReportsItsError(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	d.create(&v1beta1.Chat{ObjectMeta: d.meta("c")})
	for name, c := range map[string]struct{ method, path, body, words string }{
		"no JSON":               {"POST", "/chats", `{"spec":`, "unexpected end"},
		"no body":               {"POST", "/chats", ``, "body is required"},
		"no spec":               {"POST", "/chats", `{"name":"x"}`, "spec"},
		"an unknown field":      {"POST", "/chats", `{"spec":{},"foo":1}`, "foo"},
		"an unknown setting":    {"POST", "/chats", `{"spec":{"promt":"hi"}}`, `unknown field "promt"`},
		"a change of no field":  {"PATCH", "/chats/c", `{"spec":{"titel":"x"}}`, `unknown field "titel"`},
		"an unknown parameter":  {"GET", "/chats?foo=1", ``, "foo"},
		"an unknown kind":       {"POST", "/chats/c/requests", `{"kind":"Explode"}`, "Interrupt"},
		"an unknown part":       {"POST", "/chats/c/messages", `{"parts":[{"type":"Text","txt":"x"}]}`, `unknown field "txt"`},
		"results of nothing":    {"POST", "/chats/c/results", `{"results":[]}`, "results"},
		"a name that is a path": {"GET", "/chats/..%2f..%2fsecrets", ``, "chat"},
	} {
		t.Run(name, func(t *testing.T) {
			as := *d
			as.t = t
			as.refuses(http.StatusBadRequest, "BadRequest", c.words, c.method, c.path, c.body)
		})
	}
	d.refuses(http.StatusUnprocessableEntity, "Invalid", "blank", "POST", "/chats/c/messages", `{"content":" "}`)
	d.refuses(http.StatusRequestEntityTooLarge, "RequestEntityTooLarge", "", "POST", "/chats/c/messages",
		`{"content":"`+strings.Repeat("a", 4<<20)+`"}`)
}

// TestConcurrentRequestsAreLimitedPerCaller holds a quarter for each: here there is one of four.
func TestConcurrentRequestsAreLimitedPerCaller(t *testing.T) {
	t.Parallel()
	const callers = 4
	arrived, leave := make(chan struct{}, callers), make(chan struct{})
	slow := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		arrived <- struct{}{}
		<-leave
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"ChatList","apiVersion":"parley.dev/v1beta1","items":[]}`)
	}))
	defer slow.Close()
	api, err := rest.NewClient(&restclient.Config{Host: slow.URL})
	check.OK(t, err)
	d := open(t, "parley-chat-user", func(o *rest.Options) { o.Requests, o.Client = callers, api })
	answers := make(chan answer, callers)
	as := func(name string) *door {
		d.account(name)
		other := *d
		other.token = d.tokenOf(name)
		return &other
	}
	for i := range callers {
		caller := d
		if i > 0 {
			caller = as(fmt.Sprintf("ben-%d", i))
		}
		go func() { answers <- caller.ask("GET", "/chats", "") }()
		<-arrived
		if i == 0 {
			got := d.refuses(http.StatusTooManyRequests, "TooManyRequests", ":anna has as many", "GET", "/chats", "")
			if got.header.Get("Retry-After") != "1" {
				t.Errorf("the header is %v", got.header)
			}
		}
	}
	as("late").refuses(http.StatusServiceUnavailable, "GatewayFull", "try again", "GET", "/chats", "")
	close(leave)
	for range callers {
		if ended := <-answers; ended.status != http.StatusOK {
			t.Errorf("a request ends with %s", ended.text)
		}
	}
	d.does(http.StatusOK, "GET", "/chats", "")
}

// TestAStrangerKeepsNobodyWaiting lets somebody whose token is nobody's send a body that never ends.
//
// Security (a client of the gateway): cannot delay others by an endless body with an invalid token, nor take more than
// a quarter of the common capacity with a valid one. Also TestConcurrentRequestsAreLimitedPerCaller of
// internal/gateway/rest.
func TestAStrangerKeepsNobodyWaiting(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user", func(o *rest.Options) { o.Requests = 1 })
	body, end := io.Pipe()
	defer end.Close()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, d.url+"/chats", body)
	check.OK(t, err)
	request.Header.Set("Authorization", "Bearer "+d.token[:len(d.token)-8]+"AAAAAAAA")
	response, err := http.DefaultClient.Do(request)
	check.OK(t, err)
	defer response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		t.Errorf("a stranger gets %s", response.Status)
	}
	d.does(http.StatusOK, "GET", "/chats", "")
}

func TestATokenIsSentNowhereElse(t *testing.T) {
	t.Parallel()
	var stolen atomic.Int32
	thief := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { stolen.Add(1) }))
	defer thief.Close()
	server := httptest.NewServer(http.RedirectHandler(thief.URL, http.StatusTemporaryRedirect))
	defer server.Close()
	api, err := rest.NewClient(&restclient.Config{Host: server.URL, BearerToken: "the gateway's own"})
	check.OK(t, err)
	d := open(t, "parley-chat-user", func(o *rest.Options) { o.Client = api })
	d.refuses(http.StatusServiceUnavailable, "APIServerUnavailable", "does not answer", "GET", "/chats", "")
	if stolen.Load() > 0 {
		t.Error("the request was sent elsewhere")
	}
	if _, err := api.Chats("ns").Get(t.Context(), "c"); err == nil || !strings.Contains(err.Error(), "without a caller") {
		t.Errorf("without a caller: %v", err)
	}
}
