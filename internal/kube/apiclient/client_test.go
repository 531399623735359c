// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package apiclient_test

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/metrics"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/check"
)

// serve starts a server that writes the answer with the status, and returns a client of it and what was asked last.
func serve(t *testing.T, status int, answer any) (*apiclient.Client, *http.Request, *[]byte) {
	t.Helper()
	asked, body := &http.Request{}, new([]byte)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		*asked = *r
		*body, _ = io.ReadAll(r.Body) // A short body fails the test.
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(answer) // The same.
	}))
	t.Cleanup(server.Close)
	client, err := apiclient.New(&rest.Config{Host: server.URL}, "parley-test/1")
	check.OK(t, err)
	return client, asked, body
}

var (
	chat = v1beta1.Chat{
		TypeMeta:   metav1.TypeMeta{APIVersion: "parley.dev/v1beta1", Kind: "Chat"},
		ObjectMeta: metav1.ObjectMeta{Name: "triage", Namespace: "demo", UID: "uid-1"},
	}
	chats = v1beta1.ChatList{
		TypeMeta: metav1.TypeMeta{APIVersion: "parley.dev/v1beta1", Kind: "ChatList"}, Items: []v1beta1.Chat{chat},
	}
)

const base = "/apis/parley.dev/v1beta1/"

func TestRequestsNameWhatTheyAreAbout(t *testing.T) {
	cases := map[string]struct {
		call         func(context.Context, *apiclient.Client) error
		answer       any
		method, path string
		query        string
	}{
		"get a chat": {func(ctx context.Context, c *apiclient.Client) error {
			got, err := c.Chats("demo").Get(ctx, "triage")
			if err == nil && got.UID != "uid-1" {
				t.Errorf("got %+v", got)
			}
			return err
		}, chat, "GET", "namespaces/demo/chats/triage", ""},
		"list the chats of a pod": {func(ctx context.Context, c *apiclient.Client) error {
			got, err := c.Chats("demo").List(ctx, metav1.ListOptions{FieldSelector: "status.generation.pod=p"})
			if err == nil && (len(got.Items) != 1 || got.Items[0].UID != "uid-1") {
				t.Errorf("got %+v", got)
			}
			return err
		}, chats, "GET", "namespaces/demo/chats", "fieldSelector=status.generation.pod%3Dp"},
		"list the chats of all namespaces": {func(ctx context.Context, c *apiclient.Client) error {
			_, err := c.Chats("").List(ctx, metav1.ListOptions{})
			return err
		}, chats, "GET", "chats", ""},
		"an informer's list": {func(ctx context.Context, c *apiclient.Client) error {
			_, err := cache.ToListerWatcherWithContext(c.Chats("demo").ListerWatcher("status.generation.pod=p")).
				ListWithContext(ctx, metav1.ListOptions{ResourceVersion: "0"})
			return err
		}, chats, "GET", "namespaces/demo/chats", "fieldSelector=status.generation.pod%3Dp&resourceVersion=0"},
		"change a message": {func(ctx context.Context, c *apiclient.Client) error {
			_, err := c.Messages("demo").MergePatch(ctx, "m", map[string]any{"spec": map[string]any{"whenBusy": "Queue"}})
			return err
		}, v1beta1.ChatMessage{}, "PATCH", "namespaces/demo/chatmessages/m", ""},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			client, asked, _ := serve(t, http.StatusOK, c.answer)
			check.OK(t, c.call(t.Context(), client))
			check.Equal(t, "request", []any{c.method, base + c.path, c.query, "parley-test/1"},
				[]any{asked.Method, asked.URL.Path, asked.URL.RawQuery, asked.UserAgent()})
		})
	}
}

func TestAnObjectIsSentWithItsKind(t *testing.T) {
	client, asked, body := serve(t, http.StatusCreated, chat)
	got, err := client.Chats("demo").Create(t.Context(), &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "triage"}})
	if err != nil || got.UID != "uid-1" {
		t.Fatalf("got %+v, %v", got, err)
	}
	var sent metav1.TypeMeta
	if err := json.Unmarshal(*body, &sent); err != nil || sent != chat.TypeMeta {
		t.Errorf("sent %s", *body)
	}
	if asked.Method != http.MethodPost || !strings.HasSuffix(asked.URL.Path, "/namespaces/demo/chats") {
		t.Errorf("%s %s", asked.Method, asked.URL.Path)
	}
}

func TestAWatchYieldsTypedEvents(t *testing.T) {
	client, asked, _ := serve(t, http.StatusOK, map[string]any{"type": "ADDED", "object": chat})
	w, err := client.Chats("demo").Watch(t.Context(), metav1.ListOptions{})
	check.OK(t, err)
	defer w.Stop()
	event := <-w.ResultChan()
	if got, ok := event.Object.(*v1beta1.Chat); !ok || event.Type != watch.Added || got.UID != "uid-1" {
		t.Errorf("got %s %+v", event.Type, event.Object)
	}
	check.Equal(t, "asked", "true", asked.URL.Query().Get("watch"))
}

func TestAPIServerNotFoundErrorIsRecognized(t *testing.T) {
	client, _, _ := serve(t, http.StatusNotFound, metav1.Status{
		TypeMeta: metav1.TypeMeta{APIVersion: "v1", Kind: "Status"}, Status: metav1.StatusFailure,
		Reason: metav1.StatusReasonNotFound, Code: 404,
	})
	if _, err := client.Messages("demo").Get(t.Context(), "gone"); !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}

// limited counts the requests that passed a limiter of client-go.
type limited struct{ requests atomic.Int32 }

func (l *limited) Observe(context.Context, string, url.URL, time.Duration) { l.requests.Add(1) }

func TestClientHasNoRateLimiter(t *testing.T) {
	var passed limited
	metrics.RateLimiterLatency = &passed
	client, _, _ := serve(t, http.StatusOK, chat)
	_, err := client.Chats("demo").Get(t.Context(), "triage")
	check.OK(t, err)
	check.Equal(t, "requests that passed a limiter", 0, passed.requests.Load())
}
