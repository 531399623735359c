// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package faultclient_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/runtime/serializer"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/faultclient"
)

// server takes every request and notes which came.
type server struct {
	*httptest.Server
	mu   sync.Mutex
	came []string
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		s.mu.Lock()
		s.came = append(s.came, req.Method+" "+req.URL.Path)
		s.mu.Unlock()
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Success"}`)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.came)
}

// clientOf is a client as any Kubernetes program has it.
func clientOf(t *testing.T, p *faultclient.Process, url string) *rest.RESTClient {
	t.Helper()
	cfg := p.Config(&rest.Config{Host: url})
	cfg.APIPath = "/apis"
	cfg.GroupVersion = &schema.GroupVersion{Group: "parley.dev", Version: "v1beta1"}
	cfg.NegotiatedSerializer = serializer.NewCodecFactory(scheme.Scheme).WithoutConversion()
	c, err := rest.RESTClientFor(cfg)
	check.OK(t, err)
	return c
}

func update(t *testing.T, c *rest.RESTClient, chat string) error {
	t.Helper()
	return c.Put().Namespace("ns").Resource("chats").Name(chat).SubResource("status").Body(&metav1.Status{}).
		Do(t.Context()).Error()
}

func TestWritesAreCountedAndNamed(t *testing.T) {
	s, p := newServer(t), faultclient.New(faultclient.Options{})
	c := clientOf(t, p, s.URL)
	for _, err := range []error{
		c.Post().Namespace("ns").Resource("chatmessages").Body(&metav1.Status{}).Do(t.Context()).Error(),
		c.Get().Namespace("ns").Resource("chats").Name("c").Do(t.Context()).Error(),
		update(t, c, "c"),
		c.Delete().Namespace("ns").Resource("chatmessages").Name("m").Do(t.Context()).Error(),
		c.Put().AbsPath("/api/v1/namespaces/ns/status").Body(&metav1.Status{}).Do(t.Context()).Error(),
		c.Patch("application/merge-patch+json").AbsPath("/api/v1/namespaces/ns").Body([]byte("{}")).Do(t.Context()).Error(),
		update(t, c, "c"),
	} {
		check.OK(t, err)
	}
	var got []string
	for _, w := range p.Writes() {
		got = append(got, w.String())
	}
	want := []string{
		"create chatmessages 1", "update chats/status c 1", "delete chatmessages m 1", "update namespaces/status ns 1",
		"patch namespaces ns 1", "update chats/status c 2",
	}
	check.Equal(t, "got", want, got)
}

func TestFaultAffectsOnlyOneWrite(t *testing.T) {
	timedOut := func(err error) bool {
		timeout, ok := errors.AsType[net.Error](err)
		return ok && timeout.Timeout()
	}
	for name, c := range map[string]struct {
		fault faultclient.Fault
		fits  func(error) bool
		came  int
		dead  bool
	}{
		"it fails": {faultclient.Fault{Effect: faultclient.Fails},
			func(err error) bool { return strings.Contains(err.Error(), "refused") }, 2, false},
		"it times out": {faultclient.Fault{Effect: faultclient.TimesOut}, timedOut, 3, false},
		"it conflicts": {faultclient.Fault{Effect: faultclient.Conflicts}, apierrors.IsConflict, 2, false},
		"it passes": {faultclient.Fault{Effect: faultclient.Passes}, func(err error) bool { return err == nil },
			3, false},
		"the process dies before": {faultclient.Fault{Effect: faultclient.Fails, Dies: true},
			func(err error) bool { return err != nil }, 1, true},
		"the process dies after": {faultclient.Fault{Effect: faultclient.TimesOut, Dies: true}, timedOut, 2, true},
	} {
		t.Run(name, func(t *testing.T) {
			s, fault, before := newServer(t), c.fault, 0
			fault.At = func(n int, _ faultclient.Write) bool { return n == 2 }
			fault.Before = func(context.Context) { before++ }
			p := faultclient.New(faultclient.Options{Fault: &fault})
			client := clientOf(t, p, s.URL)
			if err := update(t, client, "c"); err != nil || p.Struck() {
				t.Fatalf("the first write: %v, struck %v", err, p.Struck())
			}
			if err := update(t, client, "c"); !c.fits(err) || !p.Struck() || before != 1 {
				t.Errorf("the second write: %v, struck %v, called before %d times", err, p.Struck(), before)
			}
			err := update(t, client, "c")
			if errors.Is(err, faultclient.ErrDead) != c.dead || err == nil == c.dead {
				t.Errorf("the third write: %v", err)
			}
			if got := s.requests(); len(got) != c.came {
				t.Errorf("%d requests came: %v", len(got), got)
			}
		})
	}
}

// stream is a server whose watches send what the test tells it to.
func stream(t *testing.T) (url string, lines chan<- string) {
	t.Helper()
	feed := make(chan string)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.WriteHeader(http.StatusOK)
		w.(http.Flusher).Flush()
		for {
			select {
			case line := <-feed:
				fmt.Fprint(w, line)
				w.(http.Flusher).Flush()
			case <-req.Context().Done():
				return
			}
		}
	}))
	t.Cleanup(s.Close)
	return s.URL, feed
}

func watch(t *testing.T, p *faultclient.Process, url string) io.ReadCloser {
	t.Helper()
	body, err := clientOf(t, p, url).Get().Namespace("ns").Resource("chats").Param("watch", "true").Stream(t.Context())
	check.OK(t, err)
	t.Cleanup(func() { _ = body.Close() })
	return body
}

func TestDelayedWatchKeepsEventOrder(t *testing.T) {
	const delay = 50 * time.Millisecond
	url, lines := stream(t)
	p := faultclient.New(faultclient.Options{WatchDelay: func(resource string) time.Duration {
		if resource == "chats" {
			return delay
		}
		return 0
	}})
	body := watch(t, p, url)
	sent := time.Now()
	lines <- "one,"
	lines <- "two,"
	got := make([]byte, 8)
	if _, err := io.ReadFull(body, got); err != nil || string(got) != "one,two," {
		t.Fatalf("got %q, %v", got, err)
	}
	if lagged := time.Since(sent); lagged < delay {
		t.Errorf("it came after %v", lagged)
	}
}

func TestADeadProcessHearsNothingMore(t *testing.T) {
	url, _ := stream(t)
	for name, delay := range map[string]time.Duration{"at once": 0, "with a lag": time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			p := faultclient.New(faultclient.Options{WatchDelay: func(string) time.Duration { return delay }})
			body := watch(t, p, url)
			p.Kill()
			if n, err := body.Read(make([]byte, 1)); err == nil {
				t.Errorf("it read %d bytes", n)
			}
			select {
			case <-p.Dead():
			default:
				t.Error("it does not say that it is dead")
			}
		})
	}
}

func TestAProcessThatAsksNothingIsIdle(t *testing.T) {
	s, p := newServer(t), faultclient.New(faultclient.Options{})
	c := clientOf(t, p, s.URL)
	before := p.Idle()
	if before < 0 || before > time.Minute {
		t.Errorf("a new process was idle for %v", before)
	}
	began := time.Now()
	check.OK(t, c.Get().Namespace("ns").Resource("chats").Do(t.Context()).Error())
	if idle := p.Idle(); idle > time.Since(began) {
		t.Errorf("it asked, and was idle for %v", idle)
	}
}
