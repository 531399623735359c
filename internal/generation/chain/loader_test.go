// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chain

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/check"
)

const resultBytes = 50 << 10

// store is an API server that holds one chat's messages m0, m1, ..., each the parent of the next.
type store struct {
	t        *testing.T
	messages []v1beta1.ChatMessage
	// cached is what the API server's cache has; nil: what there is.
	cached  []v1beta1.ChatMessage
	gets    []string
	lists   int
	largest int
}

func newStore(t *testing.T, n int) *store {
	s := &store{t: t}
	for range n {
		s.grow()
	}
	return s
}

func (s *store) grow() *v1beta1.ChatMessage {
	i := int64(len(s.messages))
	m := v1beta1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i), Namespace: "ns"}}
	m.Spec = v1beta1.ChatMessageSpec{Role: v1beta1.RoleTool, Index: &i,
		Generation: &v1beta1.MessageGeneration{ChatUID: "uid", HistoryVersion: i}}
	m.Spec.Content = strings.Repeat("x", resultBytes)
	if i > 0 {
		m.Spec.Parent = fmt.Sprint("m", i-1)
	}
	s.messages = append(s.messages, m)
	return &s.messages[i]
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	_, name, one := strings.Cut(r.URL.Path, "/chatmessages/")
	if !one {
		_ = json.NewEncoder(w).Encode(s.page(r)) // A short body fails the test.
		return
	}
	s.gets = append(s.gets, name)
	i, _ := strconv.Atoi(strings.TrimPrefix(name, "m"))
	messages := s.messages
	if s.cached != nil && r.FormValue("resourceVersion") == "0" {
		messages = s.cached
	}
	if i >= len(messages) {
		w.WriteHeader(http.StatusNotFound)
		_ = json.NewEncoder(w).Encode(
			apierrors.NewNotFound(v1beta1.GroupVersion.WithResource("chatmessages").GroupResource(), name).Status())
		return
	}
	_ = json.NewEncoder(w).Encode(messages[i])
}

func (s *store) page(r *http.Request) v1beta1.ChatMessageList {
	s.lists++
	first, _ := strconv.Atoi(r.FormValue("continue"))
	limit, err := strconv.Atoi(r.FormValue("limit"))
	if err != nil {
		limit = len(s.messages)
	}
	var list v1beta1.ChatMessageList
	list.Items = s.messages[first:min(first+limit, len(s.messages))]
	if first+limit < len(s.messages) {
		list.Continue = strconv.Itoa(first + limit)
	}
	s.largest = max(s.largest, len(list.Items))
	return list
}

func (s *store) loader() *Loader {
	server := httptest.NewServer(s)
	s.t.Cleanup(server.Close)
	client, err := apiclient.New(&rest.Config{Host: server.URL}, "test")
	check.OK(s.t, err)
	return NewLoader(client)
}

// chat is the chat whose context starts at the index.
func (s *store) chat(start int64) *v1beta1.Chat {
	chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "long", Namespace: "ns", UID: types.UID("uid")}}
	n := int64(len(s.messages))
	chat.Status.History = v1beta1.HistoryStatus{Head: fmt.Sprint("m", n-1), Length: n, ContextStart: start}
	return chat
}

// load loads the context that starts at the index, and checks it.
func (s *store) load(l *Loader, start int64) {
	s.t.Helper()
	messages, err := l.Load(s.t.Context(), s.chat(start))
	check.OK(s.t, err)
	var want, got []string
	for i := range messages {
		got = append(got, messages[i].Name)
	}
	for _, m := range s.messages[start:] {
		want = append(want, m.Name)
	}
	check.Equal(s.t, "messages", want, got)
	check.Equal(s.t, "bytes kept", len(messages)*(resultBytes+messageOverhead), l.kept.bytes)
}

func TestLongChatLoadsAndCachesOnlyItsContext(t *testing.T) {
	s := newStore(t, 400)
	s.load(s.loader(), 397)
	check.Equal(t, "reads, lists", []int{3, 0}, []int{len(s.gets), s.lists})
	s.load(s.loader(), 300)
	check.Equal(t, "largest page, lists", []int{listPage, 400 / listPage}, []int{s.largest, s.lists})
}

func TestWhatASummaryReplacedIsKeptNoLonger(t *testing.T) {
	s := newStore(t, 3)
	l := s.loader()
	s.load(l, 0)
	for len(s.messages) < 100 {
		chat := s.chat(0)
		l.Add(chat, s.grow())
		s.load(l, 0)
	}
	s.load(l, 99) // The last one is the summary.
	check.Equal(t, "reads, lists, other messages in memory", []any{3, 0, false},
		[]any{len(s.gets), s.lists, cap(l.kept.get("uid")) > 2})
	s.messages = s.messages[:60] // An edit has brought the first context back.
	s.load(l, 0)
}

func TestContextGapIsDetectedWithCachedPrefix(t *testing.T) {
	s := newStore(t, 10)
	l := s.loader()
	s.load(l, 8)
	s.grow()
	s.grow().Spec.Parent = "m99"
	_, err := l.Load(t.Context(), s.chat(8))
	check.Equal(t, "broken", true, Broken(err))
}
