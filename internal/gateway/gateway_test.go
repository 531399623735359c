// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/refusal"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/test/kit/check"
)

func TestChatArrivingLateInWatchIsFollowed(t *testing.T) {
	t.Parallel()
	in := install(t, func(g *Gateway) { g.arrival = time.Minute })
	l := in.listen("chat", "", 0)
	waitUntil(t, "somebody asks for it", func() bool {
		return in.gateway.chats.listeners.count(in.namespace+"/chat") > 0
	})
	in.converse("chat")
	l.waitName(stream.EventStatus)
}

func TestClientThatHangsUpHearsTheSameStory(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c := in.converse("chat")
	whole := in.listen("chat", "", 0)
	all := []*listener{whole, in.listen("chat", "", 1), in.listen("chat", "", 2), in.listen("chat", "", 3)}
	until := func(id string) {
		t.Helper()
		c.commit()
		for _, l := range all {
			l.waitID(id)
		}
	}
	q1 := c.ask("q1", 1)
	c.attempt(1)
	c.say("a ", "b ", "c ")
	until("1.1.3.1")
	c.settle(q1)
	c.attempt(2) // the first was lost
	c.say("A ", "B ")
	until("1.2.2.1")
	c.finish(v1beta1.RoleAssistant, "A B C")
	c.attempt(1)
	c.say("tool ")
	until("2.1.1.2")
	c.finish(v1beta1.RoleTool, "tool")
	c.attempt(1)
	c.say("x ")
	until("3.1.1.3")
	c.finish(v1beta1.RoleAssistant, "x y")
	c.ask("q2", 4) // promoted by the same write
	c.attempt(1)
	c.say("last ")
	until("4.1.1.5")
	c.finish(v1beta1.RoleAssistant, "last words")
	until("5.0.6")

	want := strings.Fields("1.0.1 1.1.1.1 1.1.2.1 1.1.3.1 1.2.1.1 1.2.2.1 2.0.2 2.1.1.2 3.0.3 3.1.1.3 4.0.4 4.0.5 " +
		"4.1.1.5 5.0.6")
	check.Equal(t, "the whole story", want, ids(whole.waitID("5.0.6")))
	for _, l := range all[1:] {
		check.Equal(t, fmt.Sprintf("hanging up after every %d events", l.cutAfter), numbered(whole.events),
			numbered(l.waitID("5.0.6")))
	}
}

func TestHundredFollowersShareOneMessageFetch(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c := in.converse("chat")
	c.ask("q1", 1)
	c.commit()
	var all []*listener
	for range 100 {
		all = append(all, in.listen("chat", "?from=now", 0))
	}
	for _, l := range all {
		l.waitName(stream.EventStatus)
	}
	in.gets.Store(0)
	c.attempt(1)
	c.finish(v1beta1.RoleAssistant, "reply")
	c.commit()
	for _, l := range all {
		check.Equal(t, "events", []string{"1.1.0.1", "2.0.2"}, ids(l.waitID("2.0.2")))
	}
	check.Equal(t, "fetches", 1, in.gets.Load())
}

func TestStreamFromNowResumesBehindItsStatus(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c := in.converse("chat")
	c.ask("q1", 1)
	c.commit()
	in.listen("chat", "", 0).waitID("1.0.1")
	l := in.listen("chat", "?from=now", 0)
	l.waitName(stream.EventStatus)
	l.stop()
	c.attempt(1)
	c.finish(v1beta1.RoleAssistant, "reply")
	c.commit()
	again := in.listenAt(l.path, l.lastID)
	check.Equal(t, "events", []string{"2.0.2"}, ids(again.waitID("2.0.2")))
}

func TestForbiddenRequestIsRefusedWithRemedy(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.converse("chat")
	tests := map[string]struct {
		token, path string
		status      int
		message     string
	}{
		"no token":          {"", in.path("chat"), 401, "Authorization: Bearer"},
		"a token of nobody": {"nonsense", in.path("chat"), 401, "no JSON web token"},
		"another audience":  {in.tokenOf("viewer", "elsewhere"), in.path("chat"), 401, "does not know this token"},
		"no right": {in.tokenOf("stranger"), in.path("chat"), 403, "may not get chats/stream in namespace " +
			in.namespace + ": ask for the ClusterRole parley-chat-viewer"},
		"no right elsewhere":   {in.token, "/v1beta1/namespaces/default/chats/chat/stream", 403, "in namespace default"},
		"no such chat":         {in.token, in.path("other"), 404, "there is no chat other in namespace " + in.namespace},
		"a bad id":             {in.token, in.path("chat") + "?lastEventId=7", 400, "CHAT.VERSION.ATTEMPT.SEQ.N"},
		"a bad place to start": {in.token, in.path("chat") + "?from=then", 400, "from must be now"},
		"no such list":         {in.token, in.list(), 403, "may not list and watch chats in namespace " + in.namespace},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			resp := in.get(t.Context(), tt.path, tt.token, nil)
			defer resp.Body.Close()
			var refused refusal.Body
			check.OK(t, json.NewDecoder(resp.Body).Decode(&refused))
			if resp.StatusCode != tt.status || refused.Status != tt.status || !strings.Contains(refused.Message, tt.message) {
				t.Errorf("got %d %+v, want %d %q", resp.StatusCode, refused, tt.status, tt.message)
			}
		})
	}
}

func TestGatewayRefusesNamespaceThatItDoesNotServe(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	other := cluster.Namespace(t, "unserved")
	cluster.Create(t, &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: other, Name: "viewer"},
		Rules: []rbacv1.PolicyRule{{APIGroups: []string{"parley.dev"}, Resources: []string{"chats/stream"},
			Verbs: []string{"get"}}}})
	cluster.Account(t, other, "viewer")
	cluster.Bind(t, other, "viewer", "Role", "viewer")
	token := cluster.Token(t, other, "viewer", "parley-gateway")
	path := "/v1beta1/namespaces/" + other + "/chats/chat/stream"
	waitUntil(t, "the gateway says that it does not serve the namespace", func() bool {
		resp := in.get(t.Context(), path, token, nil) // 403 until the API server has read the binding.
		defer resp.Body.Close()
		var refused refusal.Body
		check.OK(t, json.NewDecoder(resp.Body).Decode(&refused))
		return resp.StatusCode == http.StatusNotFound && strings.Contains(refused.Message, "does not serve namespace "+other)
	})
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, in.url+"/namespaces/"+other+
		"/v1/chat/completions", strings.NewReader(`{"model":"m","messages":[{"role":"user","content":"hi"}]}`))
	check.OK(t, err)
	request.Header.Set("Authorization", "Bearer "+cluster.Token(t, other, "viewer"))
	resp, err := in.client.Do(request)
	check.OK(t, err)
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	check.OK(t, err)
	if resp.StatusCode != http.StatusNotFound || !strings.Contains(string(body), "does not serve namespace "+other) {
		t.Errorf("a completion is answered with %d %s", resp.StatusCode, body)
	}
}

func TestNamespacesServedAreOfferedToTheirReaders(t *testing.T) {
	in := install(t, nil)
	cluster.Create(t, &rbacv1.Role{ObjectMeta: in.meta("lists"), Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{"parley.dev"}, Resources: []string{"chats"}, Verbs: []string{"list"}}}})
	cluster.Account(t, in.namespace, "lists")
	cluster.Bind(t, in.namespace, "lists", "Role", "lists")
	token := cluster.Token(t, in.namespace, "lists")
	waitUntil(t, "the namespace is offered", func() bool {
		resp := in.get(t.Context(), "/v1beta1/namespaces", token, nil)
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		check.OK(t, err)
		return strings.Contains(string(body), `"namespaces":["`+in.namespace+`"]`)
	})
}

// listOnly begins with a list, and not with a watch that brings what there is.
type listOnly struct{ *cache.ListWatch }

func (listOnly) IsWatchListSemanticsUnSupported() bool { return true }

func TestUnreadableNamespaceDoesNotHoldOthersBack(t *testing.T) {
	t.Parallel()
	from := func(namespace string) cache.ListerWatcher {
		list := func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			if namespace == "closed" {
				return nil, apierrors.NewForbidden(schema.GroupResource{Resource: "chats"}, "", errors.New("no binding"))
			}
			return &v1beta1.ChatList{ListMeta: metav1.ListMeta{ResourceVersion: "1"}}, nil
		}
		return listOnly{&cache.ListWatch{ListWithContextFunc: list,
			WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
				return watch.NewFake(), nil
			}}}
	}
	c, err := newChats(from, []string{"closed", "open"})
	check.OK(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { c.run(ctx); close(done) }()
	t.Cleanup(func() { cancel(); <-done })
	waitUntil(t, "the open namespace is known", func() bool { return c.hasSynced("open") && c.hasSynced("") })
	if c.hasSynced("closed") {
		t.Error("a namespace counts as known that cannot be read")
	}
}

func TestTheStreamIsServerSentEvents(t *testing.T) {
	t.Parallel()
	in := install(t, func(g *Gateway) { g.keepAlive = 5 * time.Millisecond })
	c := in.converse("chat")
	c.ask("q1", 1)
	c.commit()
	waitUntil(t, "the gateway knows it", func() bool {
		chat := in.gateway.chats.watch(in.namespace, "chat").Latest()
		return chat != nil && chat.Status.History.Version == 1
	})
	resp := in.get(t.Context(), in.path("chat"), in.token, map[string]string{"Last-Event-ID": c.idOf("1.0.1")})
	defer resp.Body.Close()
	check.Equal(t, "type", "text/event-stream", resp.Header.Get("Content-Type"))
	want := "retry: 1000\n\n" +
		"event: queue_update\ndata: {\"queue\":[]}\n\n" +
		"event: status\ndata: {\"historyVersion\":1,\"length\":1,\"turn\":\"q1\"}\n\n" +
		": keep-alive\n\n"
	got := make([]byte, len(want))
	if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestGatewayIsReadyAfterCacheSync(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	for _, path := range []string{"/healthz", "/readyz"} {
		resp := in.get(t.Context(), path, "", nil)
		resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", path, resp.Status)
		}
	}
}

func TestADeletedChatEndsTheStream(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c := in.converse("chat")
	l := in.listen("chat", "", 0)
	l.waitName(stream.EventStatus)
	check.OK(t, cluster.Client.Delete(t.Context(), c.chat))
	l.waitName(stream.EventDeleted)
	<-l.done
}

func TestAnAbsentRelayCostsThePreviewAlone(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c := in.converse("chat")
	l := in.listen("chat", "", 0)
	q1 := c.ask("q1", 1)
	c.attempt(1)
	c.say("a ")
	c.commit()
	l.waitID("1.1.1.1")
	c.settle(q1)
	in.relay.Stop()
	c.say("b ")
	in.relay.Start()
	c.say("c ")
	l.waitID("1.1.3.1") // the relay has everything again, and the listener missed nothing
	in.relay.Stop()
	c.finish(v1beta1.RoleAssistant, "a b c d")
	c.commit()
	got := ids(l.waitID("2.0.2"))
	check.Equal(t, "events", strings.Fields("1.0.1 1.1.1.1 1.1.2.1 1.1.3.1 2.0.2"), got)
}

func TestPartsComeOnceThePodHasAnAddress(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	c := in.converse("chat")
	c.ask("q1", 1)
	c.attempt(1)
	c.say("a ")
	c.chat.Status.Generation.Pod = "pod-2"
	c.commit()
	l := in.listen("chat", "", 0)
	l.waitName(stream.EventStatus)
	in.pod("pod-2", "127.0.0.1")
	l.waitID("1.1.1.1")
}

func TestASlowClientIsCut(t *testing.T) {
	t.Parallel()
	registry := prometheus.NewRegistry()
	in := install(t, func(g *Gateway) {
		g.writeTimeout, g.config.Metrics = 50*time.Millisecond, telemetry.NewGateway(registry)
	})
	c := in.converse("chat")
	c.ask("q1", 1)
	c.commit()
	first := in.listen("chat", "", 0)
	first.waitID("1.0.1")
	watching := func() int {
		return in.gateway.chats.listeners.count(in.namespace + "/chat")
	}
	first.stop() // On a busy machine it would be cut, too.
	waitUntil(t, "no one follows", func() bool { return watching() == 0 })
	conn, err := net.Dial("tcp", strings.TrimPrefix(in.url, "http://"))
	check.OK(t, err)
	defer conn.Close()
	check.OK(t, conn.(*net.TCPConn).SetReadBuffer(4<<10))
	if _, err := io.WriteString(conn, "GET "+in.path("chat")+" HTTP/1.1\r\nHost: gateway\r\nAuthorization: Bearer "+
		in.token+"\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	waitUntil(t, "it follows", func() bool { return watching() == 1 })
	text := strings.Repeat("y", 1000<<10)
	for range 8 { // more than the network between the two can hold
		c.attempt(1)
		c.finish(v1beta1.RoleAssistant, text)
	}
	c.commit()
	waitUntil(t, "it is cut", func() bool { return watching() == 0 })
	waitUntil(t, "it is counted", func() bool {
		return testutil.GatherAndCompare(registry, strings.NewReader("# HELP parley_gateway_streams_ended_total Streams "+
			"that ended: Over with their chat, ClientLeft, ClientTooSlow, or a reason of closing.\n# TYPE "+
			"parley_gateway_streams_ended_total counter\n"+
			"parley_gateway_streams_ended_total{reason=\"ClientLeft\"} 1\n"+
			"parley_gateway_streams_ended_total{reason=\"ClientTooSlow\"} 1\n"), telemetry.MetricStreamsEnded) == nil
	})
}

func TestWhatIsRememberedOfChatsHoldsNoTexts(t *testing.T) {
	t.Parallel()
	in := install(t, nil)
	in.create(&v1beta1.Chat{ObjectMeta: in.meta("secret"),
		Spec: v1beta1.ChatSpec{Prompt: "private", SystemPrompt: "private"}})
	w := in.gateway.chats.watch(in.namespace, "secret")
	defer w.stop()
	waitUntil(t, "the chat is known", func() bool { return w.Latest() != nil })
	if data, _ := json.Marshal(w.Latest()); strings.Contains(string(data), "private") {
		t.Errorf("it holds %s", data)
	}
}
