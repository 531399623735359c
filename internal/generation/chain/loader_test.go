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

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/kube/apiclient"
)

const resultBytes = 50 << 10

// store is an API server that holds one chat's messages m0, m1, ..., each the parent of the next.
type store struct {
	t        *testing.T
	messages []v1alpha1.ChatMessage
	// cached is what the API server's cache has; nil: what there is.
	cached  []v1alpha1.ChatMessage
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

func (s *store) grow() *v1alpha1.ChatMessage {
	i := int64(len(s.messages))
	m := v1alpha1.ChatMessage{ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("m", i), Namespace: "ns"}}
	m.Spec = v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleTool, Index: &i,
		Generation: &v1alpha1.MessageGeneration{ChatUID: "uid", HistoryVersion: i}}
	m.Spec.Content = strings.Repeat("x", resultBytes)
	if i > 0 {
		m.Spec.Parent = fmt.Sprint("m", i-1)
	}
	s.messages = append(s.messages, m)
	return &s.messages[i]
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	var answer any
	status := http.StatusOK
	if _, name, one := strings.Cut(r.URL.Path, "/chatmessages/"); one {
		s.gets = append(s.gets, name)
		i, _ := strconv.Atoi(strings.TrimPrefix(name, "m"))
		messages := s.messages
		if s.cached != nil && r.FormValue("resourceVersion") == "0" {
			messages = s.cached
		}
		if i >= len(messages) {
			status = http.StatusNotFound
			answer = apierrors.NewNotFound(v1alpha1.GroupVersion.WithResource("chatmessages").GroupResource(), name).Status()
		} else {
			answer = messages[i]
		}
	} else {
		answer = s.page(r)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(answer); err != nil {
		s.t.Error(err)
	}
}

func (s *store) page(r *http.Request) v1alpha1.ChatMessageList {
	s.lists++
	first, _ := strconv.Atoi(r.FormValue("continue"))
	limit, err := strconv.Atoi(r.FormValue("limit"))
	if err != nil {
		limit = len(s.messages)
	}
	var list v1alpha1.ChatMessageList
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
	if err != nil {
		s.t.Fatal(err)
	}
	return NewLoader(client)
}

// chat is the chat whose context starts at the index.
func (s *store) chat(start int64) *v1alpha1.Chat {
	chat := &v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "long", Namespace: "ns", UID: types.UID("uid")}}
	n := int64(len(s.messages))
	chat.Status.History = v1alpha1.HistoryStatus{Head: fmt.Sprint("m", n-1), Length: n, ContextStart: start}
	return chat
}

// load loads the context that starts at the index, and checks it.
func (s *store) load(l *Loader, start int64) {
	s.t.Helper()
	messages, err := l.Load(s.t.Context(), s.chat(start))
	if err != nil {
		s.t.Fatal(err)
	}
	if want := int64(len(s.messages)) - start; int64(len(messages)) != want {
		s.t.Fatalf("%d messages were loaded, want %d", len(messages), want)
	}
	for i := range messages {
		if want := fmt.Sprint("m", start+int64(i)); messages[i].Name != want {
			s.t.Fatalf("message %s stands where %s should", messages[i].Name, want)
		}
	}
	if want := len(messages) * (resultBytes + messageOverhead); l.kept.bytes != want {
		s.t.Errorf("%d bytes are kept, want %d", l.kept.bytes, want)
	}
}

func TestLongChatLoadsAndCachesOnlyItsContext(t *testing.T) {
	s := newStore(t, 400)
	s.load(s.loader(), 397)
	if len(s.gets) != 3 || s.lists != 0 {
		t.Errorf("for a context of 3 messages %v were read one by one, and there were %d lists", s.gets, s.lists)
	}
	s.load(s.loader(), 300)
	if s.largest > listPage || s.lists != 400/listPage {
		t.Errorf("%d pages of up to %d messages were listed", s.lists, s.largest)
	}
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
	if len(s.gets) != 3 || s.lists != 0 {
		t.Errorf("%v were read again, with %d lists", s.gets, s.lists)
	}
	if messages := l.kept.get("uid"); cap(messages) > 2 {
		t.Errorf("what was cut off is held behind a slice of %d", cap(messages))
	}
	s.messages = s.messages[:60] // An edit has brought the first context back.
	s.load(l, 0)
}

func TestContextGapIsDetectedWithCachedPrefix(t *testing.T) {
	s := newStore(t, 10)
	l := s.loader()
	s.load(l, 8)
	s.grow()
	s.grow().Spec.Parent = "m99"
	if _, err := l.Load(t.Context(), s.chat(8)); !Broken(err) {
		t.Errorf("got %v", err)
	}
}
