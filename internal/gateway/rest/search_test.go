// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package rest_test

import (
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/rest"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// search asks for all pieces, and returns the hits as "chat/message: excerpt", and how many messages were searched in
// how many pieces.
func (d *door) search(query string) (hits []string, messages, pieces int) {
	d.t.Helper()
	for next := ""; ; pieces++ {
		got := d.does(http.StatusOK, http.MethodGet,
			"/search?"+url.Values{"q": {query}, "continue": {next}}.Encode(), "")
		for _, hit := range got.field("hits").([]any) {
			h := hit.(map[string]any)
			hits = append(hits, fmt.Sprintf("%s/%s: %s", h["chat"], h["message"], h["excerpt"]))
		}
		messages += int(got.field("messages").(float64))
		if next, _ = got.field("continue").(string); next == "" {
			return hits, messages, pieces + 1
		}
	}
}

func TestSearchFindsWordsAndSaysHowMany(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	d.create(chattest.In(d.namespace, chattest.Chat("a")))
	d.create(chattest.In(d.namespace, chattest.User("a", "m1", chattest.Content("Why is\nnode-7 not Ready?"))))
	d.create(chattest.In(d.namespace, chattest.User("a", "m2", chattest.Content("Thanks"))))
	hits, messages, _ := d.search("READY node")
	check.Equal(t, "hits", "a/m1: Why is node-7 not Ready?", strings.Join(hits, "\n"))
	check.Equal(t, "messages", 2, messages)
	d.refuses(http.StatusBadRequest, "BadRequest", "no word", http.MethodGet, "/search?q=%22%22", "")
	d.refuses(http.StatusBadRequest, "BadRequest", "continue", http.MethodGet, "/search?q=a&continue=x", "")
}

func TestSearchContinuesWhereTimeEnded(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user", func(o *rest.Options) {
		now := time.Now()
		o.Now = func() time.Time { now = now.Add(time.Minute); return now }
	})
	d.create(chattest.In(d.namespace, chattest.Chat("a")))
	var all sync.WaitGroup
	for worker := range 8 {
		all.Go(func() {
			for i := worker; i < 120; i += 8 {
				d.create(chattest.In(d.namespace, chattest.User("a", fmt.Sprintf("m%03d", i), chattest.Content("needle"))))
			}
		})
	}
	all.Wait()
	hits, messages, pieces := d.search("needle")
	check.Equal(t, "hits", 120, len(hits))
	check.Equal(t, "messages", 120, messages)
	check.Equal(t, "pieces", 2, pieces)
}

func TestSearchNeedsTheRightToListMessages(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	d.account("stranger")
	d.token = d.tokenOf("stranger")
	d.refuses(http.StatusForbidden, "Forbidden", "chatmessages", http.MethodGet, "/search?q=a", "")
}

func TestUsageIsSummedByDayChatAndModel(t *testing.T) {
	t.Parallel()
	d := open(t, "parley-chat-user")
	chat := chattest.Generating()
	for i, micros := range []int64{500_000, 250_000} {
		reply := chattest.Answer(chat, chattest.Says("x"), chattest.Costs(micros))
		reply.Name = fmt.Sprint("reply-", i)
		d.create(&v1beta1.ChatMessage{ObjectMeta: d.meta(reply.Name), Spec: reply.Spec})
	}
	d.create(chattest.In(d.namespace, chattest.User(chat.Name, "question")))
	fork := chattest.In(d.namespace, chattest.Chat("fork"))
	fork.Spec.Fork = &v1beta1.ForkSource{Chat: chat.Name, Message: "reply-0"}
	d.create(fork)
	copied := chattest.Answer(chat, chattest.Says("x"), chattest.Costs(500_000))
	copied.Spec.ChatRef.Name = "fork"
	d.create(&v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Namespace: d.namespace, Name: "fork-0",
		Annotations: map[string]string{v1beta1.AnnotationRestoredFrom: "of-reply-0"}}, Spec: copied.Spec})
	got := d.does(http.StatusOK, http.MethodGet, "/usage", "")
	rows := got.field("rows").([]any)
	if len(rows) != 1 || got.field("messages") != float64(4) || got.field("continue") != nil {
		t.Fatalf("read %s", got.text)
	}
	row := answer{body: rows[0].(map[string]any)}
	if row.field("chat") != chat.Name || row.field("day") != chattest.Now.Format(time.DateOnly) ||
		row.field("calls") != float64(2) || row.field("model") == "" ||
		row.field("cost").([]any)[0].(map[string]any)["microUnits"] != float64(750_000) {
		t.Errorf("read %s", got.text)
	}
}
