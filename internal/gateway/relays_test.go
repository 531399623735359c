// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/cache"

	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/kube/tokencache"
	"parley.dev/parley/internal/stream/subscribe"
	"parley.dev/parley/test/kit/check"
)

// shownTokens is a relay that keeps what it is shown.
type shownTokens struct {
	mu     sync.Mutex
	tokens map[string]string // by the host that was asked
}

func (s *shownTokens) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	host, _, _ := strings.Cut(r.Host, ":")
	s.tokens[host] = r.Header.Get("Authorization")
	w.WriteHeader(http.StatusForbidden)
}

func (s *shownTokens) all() map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return maps.Clone(s.tokens)
}

func podAt(name, ip string, change ...func(*corev1.Pod)) *corev1.Pod {
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID("uid-of-" + name)},
		Spec:       corev1.PodSpec{ServiceAccountName: "parley-generation"},
		Status:     corev1.PodStatus{PodIP: ip},
	}
	for _, f := range change {
		f(pod)
	}
	return pod
}

// podCache has the pods that relays know.
type podCache struct{ cache.Store }

func (c podCache) get(namespace, name string) *corev1.Pod {
	obj, _, _ := c.GetByKey(namespace + "/" + name) // It never fails.
	return objectOf[*corev1.Pod](obj)
}

// serveRelays serves a relay at all addresses of the machine, and returns the pods' relays and how many tokens they
// got.
func serveRelays(t *testing.T, handler http.Handler, pods ...*corev1.Pod) (r *relays, known podCache, minted *int) {
	t.Helper()
	listener, err := net.Listen("tcp", "0.0.0.0:0")
	check.OK(t, err)
	server := &httptest.Server{Listener: listener, Config: &http.Server{Handler: handler}}
	server.Start()
	t.Cleanup(server.Close)
	minted = new(int)
	mint := func(_ context.Context, audience string) (string, time.Time, error) {
		*minted++
		return "for:" + audience, time.Now().Add(time.Hour), nil
	}
	r = newRelays(listener.Addr().(*net.TCPAddr).Port, tokencache.New(mint, time.Now), slog.New(slog.DiscardHandler),
		func() {})
	known = podCache{cache.NewStore(cache.MetaNamespaceKeyFunc)}
	for _, pod := range pods {
		check.OK(t, known.Add(pod))
	}
	r.pod = known.get
	return r, known, minted
}

// endOf returns the error that ends the subscription.
func endOf(t *testing.T, r *relays, pod string) error {
	t.Helper()
	for _, err := range r.Subscribe(t.Context(), "shop", pod, fence.Fence{ChatUID: "c", HistoryVersion: 1, Attempt: 1},
		0) {
		if err != nil {
			return err
		}
	}
	return nil
}

func TestRelayTokenIsGoodForItsPodAlone(t *testing.T) {
	shown := &shownTokens{tokens: map[string]string{}}
	r, _, minted := serveRelays(t, shown, podAt("one", "127.0.0.1"), podAt("two", "127.0.0.2"),
		podAt("stranger", "127.0.0.3", func(p *corev1.Pod) { p.Spec.ServiceAccountName = "default" }),
		podAt("node", "127.0.0.4", func(p *corev1.Pod) { p.Spec.HostNetwork = true }))
	failures := 0
	r.failed = func() { failures++ }
	for _, pod := range []string{"one", "two", "stranger", "node"} {
		if err := endOf(t, r, pod); !errors.Is(err, subscribe.ErrRefused) {
			t.Errorf("pod %s: %v", pod, err)
		}
	}
	check.Equal(t, "the tokens", map[string]string{"127.0.0.1": "Bearer for:parley-relay/shop/uid-of-one",
		"127.0.0.2": "Bearer for:parley-relay/shop/uid-of-two"}, shown.all())
	check.Equal(t, "failures of relays", 2, failures)
	r.podChanged(podAt("one", "127.0.0.1"), nil)
	*minted = 0
	for _, pod := range []string{"one", "two"} {
		_ = endOf(t, r, pod)
	}
	check.Equal(t, "tokens after one pod was deleted", 1, *minted)
}

func TestStreamStartsOncePodHasAddress(t *testing.T) {
	shown := &shownTokens{tokens: map[string]string{}}
	r, known, _ := serveRelays(t, shown)
	ended := make(chan error, 1)
	go func() { ended <- endOf(t, r, "one") }()
	waitUntil(t, "it waits for the pod", func() bool { return r.waiting.count("shop/one") == 1 })
	for _, ip := range []string{"", "127.0.0.1"} { // A pod that is not running yet has none.
		select {
		case err := <-ended:
			t.Fatalf("without an address it ends with %v", err)
		default:
		}
		check.OK(t, known.Add(podAt("one", ip)))
		r.podChanged(nil, podAt("one", ip))
	}
	if err := <-ended; !errors.Is(err, subscribe.ErrRefused) || len(shown.all()) != 1 {
		t.Errorf("the relay was asked %d times: %v", len(shown.all()), err)
	}
	check.Equal(t, "listeners that are left", 0, r.waiting.count("shop/one"))
}

func TestCanceledStreamStopsWaitingForPod(t *testing.T) {
	r, _, _ := serveRelays(t, nil)
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() {
		for _, err := range r.Subscribe(ctx, "shop", "one", fence.Fence{ChatUID: "c"}, 0) {
			ended <- err
		}
	}()
	waitUntil(t, "it waits for the pod", func() bool { return r.waiting.count("shop/one") == 1 })
	leave()
	if err := <-ended; !errors.Is(err, context.Canceled) || r.waiting.count("shop/one") != 0 {
		t.Errorf("it ends with %v", err)
	}
}
