// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/test/kit/check"
)

func TestUnservedRequestIsRefusedInStandardForm(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	anna := in.user("anna")
	chats := "/v1beta1/namespaces/" + in.namespace + "/chats"
	for name, c := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
		reason, allow      string
	}{
		"a path":                        {"GET", "/nothing", "", nil, 404, refusal.NotFound, ""},
		"a path of no operation":        {"GET", chats + "/c/nothing", "", nil, 404, refusal.NotFound, ""},
		"a path of no protocol":         {"GET", "/namespaces/n/nothing", "", nil, 404, refusal.NotFound, ""},
		"a method of an operation":      {"PUT", chats, "{}", nil, 405, refusal.MethodNotAllowed, "GET, HEAD, POST"},
		"a method of a stream":          {"POST", chats + "/c/stream", "", nil, 405, refusal.MethodNotAllowed, "GET, HEAD"},
		"a method of the health":        {"POST", "/healthz", "", nil, 405, refusal.MethodNotAllowed, "GET, HEAD"},
		"what a page of others may not": {"POST", chats, "{}", []string{"Sec-Fetch-Site", "cross-site"}, 403, refusal.Forbidden, ""},
		"a body of another type":        {"POST", chats, "{}", []string{"Content-Type", "application/x-www-form-urlencoded"}, 415, refusal.UnsupportedMediaType, ""},
		"a stream of both ends":         {"GET", chats + "/c/stream?from=now&last=3", "", nil, 400, refusal.BadRequest, ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := anna.does(c.method, c.path, c.body, c.headers...)
			var body refusal.Body
			err := json.Unmarshal([]byte(got.body), &body)
			if err != nil || got.status != c.status || body.Status != c.status || body.Reason != c.reason ||
				body.Message == "" || got.header.Get("Allow") != c.allow {
				t.Errorf("%d, allowed %q: %s", got.status, got.header.Get("Allow"), got.body)
			}
			if got := got.header.Values("Cache-Control"); len(got) != 1 || got[0] != "no-store" {
				t.Errorf("it may be kept: %q", got)
			}
			if c.status == http.StatusUnsupportedMediaType && !strings.Contains(body.Message, "application/json") {
				t.Errorf("what to send is not said: %s", body.Message)
			}
		})
	}
}

func TestResumeOfDeletedChatReportsDeletion(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c := in.converse("chat")
	c.ask("q", 1)
	c.commit()
	in.listen("chat", "", 0).waitID("1.0.1")
	check.OK(t, cluster.Client.Delete(t.Context(), c.chat))
	anna, stranger := in.user("anna"), &compatible{in, in.tokenOf("stranger")}
	waitUntil(t, "the gateway knows that the chat is gone", func() bool {
		return in.gateway.chats.Get(in.namespace, "chat") == nil
	})
	path := in.path("chat")
	if got := anna.does("GET", path, "", "Last-Event-ID", c.idOf("1.0.1")); got.status != http.StatusOK ||
		!strings.HasSuffix(got.body, "event: "+stream.EventDeleted+"\ndata: {}\n\n") {
		t.Errorf("who resumes is told %d %s", got.status, got.body)
	}
	if got := anna.does("GET", path, ""); got.status != http.StatusNotFound {
		t.Errorf("who begins is told %d %s", got.status, got.body)
	}
	if got := stranger.does("GET", path, "", "Last-Event-ID", c.idOf("1.0.1")); got.status != http.StatusForbidden {
		t.Errorf("a stranger is told %d %s", got.status, got.body)
	}
}
