// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// wire is a network on which something happens to every request.
type wire func(r *http.Request) (*http.Response, error)

// RoundTrip implements http.RoundTripper.
func (w wire) RoundTrip(r *http.Request) (*http.Response, error) { return w(r) }

var errBroken = errors.New("connection reset by peer")

func breaksOff(*http.Request) (*http.Response, error) { return nil, errBroken }

// saysNothing is a node that was lost: no answer comes, and no error.
func saysNothing(r *http.Request) (*http.Response, error) {
	<-r.Context().Done()
	return nil, r.Context().Err()
}

func answers(status int, body string) wire {
	return func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: status, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
	}
}

// at is a client on the wire, and when it asked whether the pod is gone.
func at(w wire, gone func(since time.Duration) bool) (*client.Client, *questions) {
	asked := &questions{began: time.Now()}
	return client.New(client.Options{Address: "workspace.invalid", Chat: "c", Transport: w,
		Token: func(context.Context) (string, error) { return "good", nil },
		Gone: func(context.Context) bool {
			return gone(asked.note())
		}}), asked
}

type questions struct {
	began time.Time

	mu sync.Mutex
	at []time.Duration
}

func (q *questions) note() time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.at = append(q.at, time.Since(q.began))
	return q.at[len(q.at)-1]
}

func always(time.Duration) bool { return true }
func never(time.Duration) bool  { return false }

func TestACallWhosePodIsGoneEndsSoon(t *testing.T) {
	for name, c := range map[string]struct {
		wire wire
		most time.Duration
	}{
		"the connection breaks off":                   {breaksOff, 2 * time.Second},
		"no answer comes":                             {saysNothing, 20 * time.Second},
		"its address is that of another workspace":    {answers(401, `{"code":"Unauthenticated","message":"no"}`), 0},
		"its address is that of another kind of pod":  {answers(404, "<html>"), 0},
		"its address is that of a pod that redirects": {answers(302, ""), 0},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asking, asked := at(c.wire, always)
				if _, err := asking.Wait(t.Context(), "p1", func() {}); !errors.Is(err, client.ErrGone) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(asked.began); took > c.most {
					t.Errorf("it took %s", took)
				}
				took := time.Now()
				if _, err := asking.Process(t.Context(), "p1"); !errors.Is(err, client.ErrGone) || time.Now() != took {
					t.Errorf("then got %v after %s", err, time.Since(took))
				}
				check.Equal(t, "it was asked at", 1, len(asked.at))
			})
		})
	}
}

func TestSilentAgentIsRetriedWhilePodExists(t *testing.T) {
	for name, c := range map[string]struct {
		wire        wire
		least, most time.Duration
	}{
		"the connection breaks off": {breaksOff, 20 * time.Second, 30 * time.Second},
		"no answer comes":           {saysNothing, 85 * time.Second, 90 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				asking, asked := at(c.wire, never)
				if _, err := asking.Wait(t.Context(), "p1", func() {}); !errors.Is(err, client.ErrUnreachable) {
					t.Errorf("got %v", err)
				}
				if took := time.Since(asked.began); took < c.least || took > c.most {
					t.Errorf("it gave up after %s", took)
				}
				if len(asked.at) == 0 {
					t.Error("nobody asked for the pod")
				}
				for i := 1; i < len(asked.at); i++ {
					if pause := asked.at[i] - asked.at[i-1]; pause < 2*time.Second {
						t.Errorf("it was asked again after %s", pause)
					}
				}
			})
		})
	}
}

func TestConcurrentCallsShareOnePodLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asking, asked := at(saysNothing, func(since time.Duration) bool { return since > 30*time.Second })
		var calls sync.WaitGroup
		for range 5 {
			calls.Go(func() {
				if _, err := asking.Wait(t.Context(), "p1", func() {}); !errors.Is(err, client.ErrGone) {
					t.Errorf("got %v", err)
				}
			})
		}
		calls.Wait()
		if took := time.Since(asked.began); took > 35*time.Second || len(asked.at) > int(took/(2*time.Second)) {
			t.Errorf("within %s it was asked at %s", took, asked.at)
		}
	})
}

func TestNoPodLookupWhileAgentResponds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		running := func(r *http.Request) (*http.Response, error) {
			select { // It holds the answer back as long as an agent may.
			case <-time.After(15 * time.Second):
			case <-r.Context().Done():
			}
			if time.Since(began) > time.Hour {
				return answers(200, `{"id":"p1","state":"Exited"}`)(r)
			}
			return answers(200, `{"id":"p1","state":"Running"}`)(r)
		}
		asking, asked := at(running, always)
		p, err := asking.Wait(t.Context(), "p1", func() {})
		if err != nil || p.State != protocol.Exited || len(asked.at) > 0 {
			t.Errorf("got %+v, %v, and it was asked at %s", p, err, asked.at)
		}
	})
}

func TestQuickAgentRecoverySkipsPodLookup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		asking, asked := at(func(r *http.Request) (*http.Response, error) {
			if time.Since(began) < 500*time.Millisecond {
				return nil, errBroken
			}
			return answers(200, `{"id":"p1","state":"Exited"}`)(r)
		}, always)
		if _, err := asking.Wait(t.Context(), "p1", func() {}); err != nil || len(asked.at) > 0 {
			t.Errorf("got %v, and it was asked at %s", err, asked.at)
		}
	})
}
