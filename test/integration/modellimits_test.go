// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realpod"
	"parley.dev/parley/test/kit/waiting"
	"parley.dev/parley/test/modelserver"
)

// limitedNamespace has a default ChatModelConfig with limits.
func limitedNamespace(t *testing.T, limits v1beta1.ModelLimits, change ...func(*v1beta1.ChatModelConfigSpec)) string {
	t.Helper()
	ns := bareNamespace(t)
	limited := func(s *v1beta1.ChatModelConfigSpec) { s.Default, s.Limits = true, &limits }
	create(t, modelConfig(ns, "default", append(change, limited)...))
	return ns
}

func waitsForModel(t *testing.T, ns, chat, words string) {
	t.Helper()
	waitForReady(t, ns, chat, metav1.ConditionUnknown, v1beta1.ReasonWaitingForModel)
	st := chatIn(t, ns, chat).Status
	if st.Wait == nil || st.Wait.For != v1beta1.WaitForModel || !strings.Contains(st.Wait.Message, words) ||
		st.Generation != nil || st.WaitingSince != nil {
		t.Errorf("wait %+v, attempt %+v", st.Wait, st.Generation)
	}
}

func TestConcurrentCallsOfAModelAreLimited(t *testing.T) {
	t.Parallel()
	ns := limitedNamespace(t, v1beta1.ModelLimits{ConcurrentCalls: new(int32(1))})
	first := started(t, ns, "first", "hello")
	create(t, newChat(ns, "second", "hello"))
	waitsForModel(t, ns, "second", "ChatModelConfig default allows 1 concurrent call (spec.limits.concurrentCalls)")
	create(t, newChat(ns, "third", "hello"))
	waitsForModel(t, ns, "third", "1 concurrent call")

	answers(t, first, chattest.Calls("a")) // Its tools need no call.
	assigned(t, ns, "first", 2, 1)
	answers(t, assigned(t, ns, "second", 1, 1), chattest.Says("Fine."))
	assigned(t, ns, "third", 1, 1)
	answers(t, chatIn(t, ns, "first"), chattest.Results("a"))
	waitsForModel(t, ns, "first", "1 concurrent call")
	patch(t, configIn(t, ns, "default"), `{"spec":{"limits":{"concurrentCalls":2}}}`)
	assigned(t, ns, "first", 3, 1)
}

func TestRequestsAndTokensOfAModelAreLimited(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		limits v1beta1.ModelLimits
		words  string
		raise  string
	}{
		"requests": {v1beta1.ModelLimits{RequestsPerMinute: new(int32(1))}, "1 request per minute",
			`{"spec":{"limits":{"requestsPerMinute":2}}}`},
		"tokens": {v1beta1.ModelLimits{TokensPerMinute: new(int64(10))}, "10 tokens per minute",
			`{"spec":{"limits":{"tokensPerMinute":1000}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ns := limitedNamespace(t, c.limits)
			answers(t, started(t, ns, "first", "hello"), chattest.Says("Fine."))
			waitForPhase(t, ns, "first", v1beta1.ChatWaiting)
			create(t, newChat(ns, "second", "hello"))
			waitsForModel(t, ns, "second", c.words)
			patch(t, configIn(t, ns, "default"), "%s", c.raise)
			assigned(t, ns, "second", 1, 1)
		})
	}
}

func TestRetryAfterOfOneChatHoldsAllOthers(t *testing.T) {
	t.Parallel()
	ns := limitedNamespace(t, v1beta1.ModelLimits{})
	answers(t, started(t, ns, "first", "hello"), chattest.Fails(v1beta1.ErrorRateLimited, chattest.ForNow,
		chattest.After(3600)))
	waitForReady(t, ns, "first", metav1.ConditionUnknown, v1beta1.ReasonRetrying)
	create(t, newChat(ns, "second", "hello"))
	waitsForModel(t, ns, "second", "The provider of ChatModelConfig default asked to wait until ")
	until := chatIn(t, ns, "second").Status.Wait.Until
	if got := configIn(t, ns, "default").Status.RetryAfter; got == nil || !got.Equal(until) {
		t.Errorf("the ChatModelConfig says %v, the chat %v", got, until)
	}

	patch(t, configIn(t, ns, "default"), `{"spec":{"headers":[{"name":"X-Team","value":"other"}]}}`)
	assigned(t, ns, "second", 1, 1) // The changed ChatModelConfig may lead to another account.
}

func TestFallbackIsUsedWhilePrimaryModelIsLimited(t *testing.T) {
	t.Parallel()
	ns := limitedNamespace(t, v1beta1.ModelLimits{}, func(s *v1beta1.ChatModelConfigSpec) {
		s.Fallbacks = []v1beta1.ModelConfigReference{{Name: "spare"}}
	})
	create(t, modelConfig(ns, "spare"))
	answers(t, started(t, ns, "first", "hello"), chattest.Fails(v1beta1.ErrorRateLimited, chattest.ForNow,
		chattest.After(3600)))
	assigned(t, ns, "first", 1, 2)
	create(t, newChat(ns, "second", "hello"))
	check.Equal(t, "model", "spare", assigned(t, ns, "second", 1, 1).Status.Generation.ModelConfig)
}

func TestChatKeepsModelReservationWhileWaitingForSlot(t *testing.T) {
	t.Parallel()
	ns := limitedNamespace(t, v1beta1.ModelLimits{ConcurrentCalls: new(int32(1))})
	allow(t, ns, "one", 1)
	first := started(t, ns, "first", "hello")
	for _, name := range []string{"second", "third"} {
		create(t, newChat(ns, name, "hello"))
		waitsForModel(t, ns, name, "1 concurrent call")
	}
	answers(t, first, chattest.Calls("a")) // It keeps its slot, and calls no model.
	waitForReady(t, ns, "second", metav1.ConditionUnknown, v1beta1.ReasonWaitingForCapacity)
	waitForReady(t, ns, "third", metav1.ConditionUnknown, v1beta1.ReasonWaitingForModel)
	answers(t, assigned(t, ns, "first", 2, 1), chattest.Results("a"))
	answers(t, assigned(t, ns, "second", 1, 1), chattest.Says("Fine."))
	answers(t, assigned(t, ns, "third", 1, 1), chattest.Says("Fine."))
	assigned(t, ns, "first", 3, 1)
}

// limitedProvider answers with 429 and Retry-After for as long as it says, and notes when it was called.
type limitedProvider struct {
	models http.Handler
	wait   time.Duration
	// refuse is how many waits it asks for, each of which begins with the first call after the one before.
	refuse int

	mu    sync.Mutex
	until time.Time
	waits int
	// early are the times of the calls of each wait: those under way when it began, and those that came before its end.
	early [][]time.Time
	calls int
}

func (p *limitedProvider) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if p.mustWait() {
		w.Header().Set("Retry-After", fmt.Sprint(int(p.wait.Seconds())))
		w.WriteHeader(http.StatusTooManyRequests)
		return
	}
	p.models.ServeHTTP(w, r)
}

func (p *limitedProvider) mustWait() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	now := time.Now()
	if now.Before(p.until) {
		p.early[p.waits-1] = append(p.early[p.waits-1], now)
		return true
	}
	if p.waits == p.refuse {
		return false
	}
	p.waits, p.until, p.early = p.waits+1, now.Add(p.wait), append(p.early, []time.Time{now})
	return true
}

func TestLimitedProviderIsNotStormedBy300Chats(t *testing.T) {
	t.Parallel()
	const chats, concurrent = 300, 10
	models, err := modelserver.New(modelserver.Script{
		Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Fine.")}}}}})
	check.OK(t, err)
	provider := &limitedProvider{models: models, wait: 2 * time.Second, refuse: 2}
	server := httptest.NewServer(provider)
	t.Cleanup(server.Close)
	ns := limitedNamespace(t, v1beta1.ModelLimits{ConcurrentCalls: new(int32(concurrent))},
		func(s *v1beta1.ChatModelConfigSpec) { s.BaseURL = server.URL + "/v1" })
	allow(t, ns, "all", chats)
	for i := range chats {
		create(t, newChat(ns, fmt.Sprint("c", i), "hello"))
	}
	runPods(t, ns)
	waiting.Until(t, 4*patience, "every chat is answered", func() bool {
		var list v1beta1.ChatList
		check.OK(t, cluster.Client.List(t.Context(), &list, client.InNamespace(ns)))
		answered := 0
		for i := range list.Items {
			if turn := list.Items[i].Status.Turn; turn != nil && turn.Result == v1beta1.TurnAnswered {
				answered++
			}
		}
		return answered == chats
	})
	provider.mu.Lock()
	defer provider.mu.Unlock()
	if len(provider.early) != provider.refuse {
		t.Fatalf("%d calls; in each wait %v", provider.calls, provider.early)
	}
	if n := len(provider.early[0]); n > concurrent { // Those under way when the first one was refused.
		t.Errorf("the first wait had %d calls, want at most %d", n, concurrent)
	}
	ended := provider.early[0][0].Add(provider.wait)
	for i, at := range provider.early[1] { // Calls start slowly after a wait, next to one that has waited in the pod.
		if most := 1 + 1<<int(at.Sub(ended)/time.Second); i >= most {
			t.Errorf("%s after the first wait, call %d came, want at most %d", at.Sub(ended), i+1, most)
		}
	}
}

// runPods does the work of every generation pod that the namespace gets.
func runPods(t *testing.T, ns string) {
	t.Helper()
	running := map[string]bool{}
	eventually(t, "there is a generation pod", func() bool {
		var pods corev1.PodList
		if err := cluster.Client.List(t.Context(), &pods, client.InNamespace(ns),
			client.MatchingLabels{podspec.LabelComponent: podspec.ComponentGeneration}); err != nil {
			t.Fatal(err)
		}
		for i := range pods.Items {
			if name := pods.Items[i].Name; !running[name] {
				running[name] = true
				realpod.Run(t, cluster.Config, ns, name)
			}
		}
		return len(running) > 0
	})
}
