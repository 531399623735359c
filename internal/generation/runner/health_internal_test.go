// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/check"
)

func TestCanceledWorkThatDoesNotEndIsUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var r Runner
		ctx, cancel := context.WithCancel(t.Context())
		over := r.endings.expect(ctx)
		after := func(d time.Duration, what string, want error) {
			t.Helper()
			<-time.After(d)
			check.Equal(t, what, want, r.Healthy(t.Context()), cmpopts.EquateErrors())
		}
		after(24*time.Hour, "before it is canceled", nil)
		cancel()
		after(stuckAfter, "after the longest time", nil)
		after(time.Second, "after a longer time", errStuck)
		over()
		after(time.Hour, "after its end", nil)
	})
}

func TestListsEventsAndBookmarksShowALiveWatch(t *testing.T) {
	now, p, events := time.Unix(1000, 0), pulse{}, watch.NewFake()
	source := p.follow(&cache.ListWatch{
		ListWithContextFunc: func(context.Context, metav1.ListOptions) (runtime.Object, error) {
			return &v1alpha1.ChatList{},
				nil
		},
		WatchFuncWithContext: func(context.Context, metav1.ListOptions) (watch.Interface, error) {
			return events, nil
		},
	}, func() time.Time { return now })
	heard := func(what string) {
		t.Helper()
		check.Equal(t, what, 0, p.silence(now))
		now = now.Add(time.Hour)
	}
	s := cache.ToListerWatcherWithContext(source)
	if _, err := s.ListWithContext(t.Context(), metav1.ListOptions{}); err != nil {
		t.Fatal(err)
	}
	heard("a list")
	watching, err := s.WatchWithContext(t.Context(), metav1.ListOptions{})
	check.OK(t, err)
	defer watching.Stop()
	heard("a watch that begins")
	go events.Action(watch.Bookmark, &v1alpha1.Chat{})
	check.Equal(t, "what it hands on", watch.Bookmark, (<-watching.ResultChan()).Type)
	heard("a bookmark")
}

// watched is a runner whose watch was heard of so long ago, at an API server that answers with the status and one chat
// of the pod.
func watched(t *testing.T, silent time.Duration, status int) (*Runner, *v1alpha1.Chat) {
	t.Helper()
	chat := v1alpha1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
	chat.Status.Generation = &v1alpha1.GenerationStatus{Attempt: 1, Pod: "p"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v1alpha1.ChatList{ // A short body fails the test.
			TypeMeta: metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "ChatList"},
			Items:    []v1alpha1.Chat{chat},
		})
	}))
	t.Cleanup(server.Close)
	client, err := apiclient.New(&rest.Config{Host: server.URL}, "test")
	check.OK(t, err)
	r := &Runner{options: Options{Namespace: "ns", Pod: "p", Client: client, Now: time.Now}, begun: lru.New(1)}
	r.ready.Store(true)
	r.pulse.beat(time.Now().Add(-silent))
	return r, &chat
}

func TestSilentWatchThatMissesAnAttemptIsDead(t *testing.T) {
	for name, c := range map[string]struct {
		silent time.Duration
		status int
		begun  string
		dead   bool
	}{
		"it misses one":  {2 * watchSilence, http.StatusOK, "", true},
		"it misses none": {2 * watchSilence, http.StatusOK, "done", false},
		"it misses none, of which one takes very long": {2 * watchSilence, http.StatusOK, "under way", false},
		"it was heard of a moment ago":                 {time.Second, http.StatusOK, "", false},
		"the API server does not answer":               {2 * watchSilence, http.StatusServiceUnavailable, "", false},
		"the pod has lost its rights for now":          {2 * watchSilence, http.StatusForbidden, "", false},
	} {
		t.Run(name, func(t *testing.T) {
			r, chat := watched(t, c.silent, c.status)
			switch c.begun {
			case "done":
				r.begun.Add(attempts.Of(chat.UID, &chat.Status), nil)
			case "under way":
				r.attempts = map[string]*attempt{"u": {fence: attempts.Of(chat.UID, &chat.Status)}}
			}
			err := r.Healthy(t.Context())
			check.Equal(t, "dead for chat c", c.dead, strings.Contains(fmt.Sprint(err), "chat c"))
		})
	}
}
