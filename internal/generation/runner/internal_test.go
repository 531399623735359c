// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"charm.land/fantasy"
	"github.com/google/go-cmp/cmp/cmpopts"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/cache"
	"k8s.io/utils/lru"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/generation/captions"
	"parley.dev/parley/internal/generation/models"
	"parley.dev/parley/internal/generation/observe"
	"parley.dev/parley/internal/generation/step"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/modelserver"
)

// silentModel never answers.
type silentModel struct {
	fantasy.LanguageModel
	asked atomic.Bool
}

func (m *silentModel) Stream(ctx context.Context, _ fantasy.Call) (fantasy.StreamResponse, error) {
	m.asked.Store(true)
	<-ctx.Done()
	return nil, ctx.Err()
}

func TestSummaryIsNotAskedForAfterNextAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		next *attempt
		want bool
	}{
		"nothing has begun":           {nil, true},
		"the next attempt is at work": {&attempt{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := &Runner{options: Options{Log: slog.New(slog.DiscardHandler), Now: time.Now}, attempts: map[string]*attempt{}}
			observer := observe.New(observe.Options{Tracer: tracing.Off(), Now: time.Now})
			r.captions = captions.New(captions.Options{Observer: observer, Now: time.Now})
			chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
			chat.Status.Turn = &v1beta1.TurnStatus{SummarySource: v1beta1.TurnSummaryFromState}
			config := &v1beta1.ChatModelConfig{Spec: v1beta1.ChatModelConfigSpec{
				Provider: v1beta1.ProviderOpenAICompatible, TurnSummaries: &v1beta1.CaptionSettings{},
			}}
			if c.next != nil {
				r.attempts["u"] = c.next
			}
			model := &silentModel{}
			a := r.newAttempt(chat, fence.Fence{ChatUID: "u", HistoryVersion: 1, Attempt: 1}, nil)
			a.summarize(t.Context(), &models.Target{Config: config, Model: model}, &v1beta1.ChatMessageSpec{
				Parts: []v1beta1.MessagePart{{Type: v1beta1.PartText, Text: new("Done.")}},
				Generation: &v1beta1.MessageGeneration{Outcome: v1beta1.OutcomeCompleted,
					Action: v1beta1.ActionGenerateAssistant},
			})
			r.captions.Stop()
			check.Equal(t, "a summary is asked for", c.want, model.asked.Load())
		})
	}
}

func TestAbandonedAttemptWritesNothingOnceItsStepEnds(t *testing.T) {
	own, cancel := context.WithCancelCause(t.Context())
	working, interrupt := context.WithCancelCause(t.Context())
	a := &attempt{cancel: cancel, interrupt: func(cause error) {
		if own.Err() == nil {
			t.Error("its step ends while a result can still be written")
		}
		interrupt(cause)
	}}
	a.abandon(step.ErrInterrupted)
	if !step.Interrupted(working) {
		t.Errorf("the step ends because of %v", context.Cause(working))
	}
}

// version is a ChatClass of the name with a preamble that says which one it is.
func version(uid types.UID, generation int64, says string) *v1beta1.ChatClass {
	class := chattest.In("ns", chattest.Class("coder", func(s *v1beta1.ChatClassSpec) { s.Preamble = says }))
	class.UID, class.Generation = uid, generation
	return class
}

func TestStepUsesItsClassOrANewerOne(t *testing.T) {
	everybody := func(generation int64, says string) *v1beta1.ChatClass {
		class := version("n", generation, "not of this chat's class")
		class.Name, class.Spec.NamespacePreamble = "everybody", says
		return class
	}
	for name, c := range map[string]struct {
		// watched and read are the chat's class and that of the namespace, as the watch has brought it and as it is.
		watched, watchedAll, read, readAll *v1beta1.ChatClass
		want                               string
	}{
		"the watch has that version": {watched: version("a", 2, "watched"), want: "watched"},
		"it has a newer one":         {watched: version("a", 3, "watched"), want: "watched"},
		"it has only an older one": {watched: version("a", 1, "watched"), read: version("a", 2, "read"),
			want: "read"},
		"it has only a former class": {watched: version("b", 9, "watched"), read: version("a", 2, "read"), want: "read"},
		"it has none":                {read: version("a", 2, "read"), want: "read"},
		"it has an older one of the namespace": {watched: version("a", 2, "watched"), watchedAll: everybody(1, "old"),
			readAll: everybody(2, "read"), want: "read\n\nwatched"},
		"the namespace has no preamble any longer": {watched: version("a", 2, "watched"), watchedAll: everybody(1, "old"),
			readAll: everybody(3, ""), want: "watched"},
		"the namespace's class was deleted": {watched: version("a", 2, "watched"), watchedAll: everybody(1, "old"),
			want: "watched"},
		"it has changed since": {watched: version("a", 2, "watched"), watchedAll: everybody(1, "old"),
			readAll: everybody(9, "newer"), want: "newer\n\nwatched"},
	} {
		t.Run(name, func(t *testing.T) {
			api := modeltest.New(t, modelserver.Script{})
			api.Classes = map[string]*v1beta1.ChatClass{"coder": c.read, "everybody": c.readAll}
			all := newClasses(api.API, "ns", nil)
			for _, class := range []*v1beta1.ChatClass{c.watched, c.watchedAll} {
				if class == nil {
					continue
				}
				check.OK(t, all.informer.GetStore().Add(class))
			}
			chat := chattest.In("ns", chattest.Chat("c"))
			chat.Status.ChatClass = &v1beta1.AppliedChatClass{Name: "coder", UID: "a", Generation: 2}
			if c.watchedAll != nil {
				chat.Status.NamespaceClass = &v1beta1.AppliedChatClass{Name: "everybody", UID: "n", Generation: 2}
			}
			if _, err := all.apply(t.Context(), chat); err != nil {
				t.Fatal(err)
			}
			check.Equal(t, "the preamble", c.want, chat.Spec.SystemPrompt)
		})
	}
}

func TestClusterBoundsTheUsesOfAdvisors(t *testing.T) {
	for uses, want := range map[int32]*v1beta1.ChatAdvisor{
		0: {Enabled: new(false)}, 1: {Enabled: new(true), MaxUses: new(int32(1))},
	} {
		chat := chattest.In("ns", chattest.Chat("c"))
		chat.Spec.Advisor = &v1beta1.ChatAdvisor{Enabled: new(true)}
		all := newClasses(modeltest.New(t, modelserver.Script{}).API, "ns", &uses)
		if _, err := all.apply(t.Context(), chat); err != nil {
			t.Fatal(err)
		}
		check.Equal(t, "the advisor", want, chat.Spec.Advisor)
	}
}

func TestCanceledWorkThatDoesNotEndIsUnhealthy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := Runner{endings: endings{now: time.Now}}
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
			return &v1beta1.ChatList{},
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
	go events.Action(watch.Bookmark, &v1beta1.Chat{})
	check.Equal(t, "what it hands on", watch.Bookmark, (<-watching.ResultChan()).Type)
	heard("a bookmark")
}

// watched is a runner whose watch was heard of so long ago, at an API server that answers with the status and one chat
// of the pod.
func watched(t *testing.T, silent time.Duration, status int) (*Runner, *v1beta1.Chat) {
	t.Helper()
	chat := v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Name: "c", UID: "u"}}
	chat.Status.Generation = &v1beta1.GenerationStatus{Attempt: 1, Pod: "p"}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v1beta1.ChatList{ // A short body fails the test.
			TypeMeta: metav1.TypeMeta{APIVersion: v1beta1.GroupVersion.String(), Kind: "ChatList"},
			Items:    []v1beta1.Chat{chat},
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

func TestRunningAttemptSurvivesEvictionOfItsFence(t *testing.T) {
	r, chat := watched(t, 0, http.StatusOK)
	chat.Status.Phase = v1beta1.ChatInterrupting
	var ended []error
	end := func(err error) { ended = append(ended, err) }
	r.attempts = map[string]*attempt{"u": {fence: attempts.Of(chat.UID, &chat.Status), cancel: end, interrupt: end}}
	r.draining = true // An abandoned attempt begins no other.
	r.assigned(t.Context(), chat)
	if len(ended) != 1 || !errors.Is(ended[0], step.ErrInterrupted) {
		t.Errorf("it ended with %v", ended)
	}
}
