// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	operations "parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// beforeSends has the gateway call before with the namespace when it is about to create a message for a caller.
func beforeSends(t *testing.T, before func(namespace string)) func(*Gateway) {
	t.Helper()
	target, err := url.Parse(cluster.Config.Host)
	check.OK(t, err)
	proxy := httputil.NewSingleHostReverseProxy(target)
	proxy.Transport, err = rest.TransportFor(rest.AnonymousClientConfig(cluster.Config))
	check.OK(t, err)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if path := strings.Split(r.URL.Path, "/"); r.Method == http.MethodPost && path[len(path)-1] == "chatmessages" {
			before(path[len(path)-2])
		}
		proxy.ServeHTTP(w, r)
	}))
	t.Cleanup(server.Close)
	callers, err := operations.NewClient(&rest.Config{Host: server.URL})
	check.OK(t, err)
	return func(g *Gateway) { g.config.Callers = callers }
}

func TestRefusedRequestLeavesNoEmptyChat(t *testing.T) {
	t.Parallel()
	chatIn := func(namespace string) *v1beta1.Chat { return chattest.In(namespace, chattest.Chat("new")) }
	for name, c := range map[string]struct {
		before func(*testing.T, string)
		stays  bool
	}{
		"a new chat": {func(*testing.T, string) {}, false},
		"a new chat that has a status": {func(t *testing.T, namespace string) {
			chat := chatIn(namespace)
			check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(chat), chat))
			chat.Status.Phase = v1beta1.ChatWaiting
			check.OK(t, cluster.Client.Status().Update(t.Context(), chat))
		}, false},
		"a chat to which someone else has sent a message": {func(t *testing.T, namespace string) {
			cluster.Create(t, chattest.In(namespace, chattest.User("new", "theirs", chattest.Content("Hi."))))
		}, true},
		"a chat that someone else has changed": {func(t *testing.T, namespace string) {
			chat := chatIn(namespace)
			check.OK(t, cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(chat), chat))
			chat.Spec.Title = "Theirs"
			check.OK(t, cluster.Client.Update(t.Context(), chat))
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := install(t, beforeSends(t, func(namespace string) { c.before(t, namespace) }))
			anna := in.user("anna")
			got := anna.does("POST", anna.base()+"/responses",
				`{"conversation": "new", "input": "`+strings.Repeat("a", 1<<20+1)+`"}`)
			if got.code(t); got.status != http.StatusBadRequest {
				t.Errorf("%d %.300s", got.status, got.body)
			}
			chat := chatIn(in.namespace)
			err := cluster.Client.Get(t.Context(), client.ObjectKeyFromObject(chat), chat)
			if client.IgnoreNotFound(err) != nil || apierrors.IsNotFound(err) == c.stays {
				t.Errorf("the chat is read with %v", err)
			}
		})
	}
}
