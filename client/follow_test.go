// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/test/kit/check"
)

// answer is what a gateway answers once.
type answer func() (*http.Response, error)

// tries are what a gateway answers, one after the other, and when and how it was asked.
type tries struct {
	answers []answer
	asked   []string
	at      []time.Time
}

func (s *tries) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked = append(s.asked, r.URL.RawQuery+"|"+r.Header.Get("Last-Event-ID"))
	s.at = append(s.at, time.Now())
	if len(s.answers) < len(s.asked) {
		return nil, errors.New("nobody is there")
	}
	return s.answers[len(s.asked)-1]()
}

func says(text string) answer {
	return func() (*http.Response, error) { return answered(http.StatusOK, text), nil }
}

func refuses(status int, header ...string) answer {
	return func() (*http.Response, error) {
		return answered(status, `{"reason":"No","message":"no"}`, header...), nil
	}
}

// heard follows a chat as somebody, until the stream ends.
func (s *tries) heard(t *testing.T, o FollowOptions, change ...func(*Client)) (names []string, failed error) {
	t.Helper()
	c := &Client{URL: "http://gateway", HTTP: &http.Client{Transport: s}}
	for _, do := range change {
		do(c)
	}
	for e, err := range c.Namespace("ns").Follow(t.Context(), "c", o) {
		if err != nil {
			failed = err
			continue
		}
		names = append(names, e.Name+e.ID)
	}
	return names, failed
}

const (
	part    = "id: 3.1.1\nevent: message_part\ndata: {}\n\n"
	deleted = "event: deleted\ndata: {}\n\n"
)

func TestLostStreamResumesBehindItsLastEvent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tries{answers: []answer{
			says("retry: 1000\n\n: keep-alive\n\n" + part + "event: status\ndata: {}\n\nid: 3.1.2\nevent: message_part\ndata: {\"cut\":"),
			says("id: 3.1.2\nevent: message_part\ndata: {}\n\n" + deleted + part),
		}}
		got, err := s.heard(t, FollowOptions{FromNow: true})
		if want := []string{"message_part3.1.1", "status", "message_part3.1.2", "deleted"}; err != nil ||
			!slices.Equal(got, want) {
			t.Errorf("heard %v, want %v: %v", got, want, err)
		}
		if want := []string{"from=now|", "|3.1.1"}; !slices.Equal(s.asked, want) {
			t.Errorf("asked %v, want %v", s.asked, want)
		}
	})
}

func TestLostStreamFromNowResumesBehindItsStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tries{answers: []answer{says("id: 3.2.1.0.4\nevent: status\ndata: {}\n\n"), says(deleted)}}
		if _, err := s.heard(t, FollowOptions{FromNow: true}); err != nil {
			t.Error(err)
		}
		check.Equal(t, "requests", []string{"from=now|", "|3.2.1.0.4"}, s.asked)
	})
}

func TestAStreamCanBeResumedLater(t *testing.T) {
	s := &tries{answers: []answer{says(deleted)}}
	if _, err := s.heard(t, FollowOptions{FromNow: true, LastEventID: "3.1.1"}); err != nil || s.asked[0] != "|3.1.1" {
		t.Errorf("asked %v: %v", s.asked, err)
	}
}

func TestLostStreamBacksOff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		away := func() (*http.Response, error) { return nil, errors.New("connection refused") }
		s := &tries{answers: []answer{
			away, refuses(http.StatusServiceUnavailable), away, away, away, away, says(part), says(deleted)}}
		if _, err := s.heard(t, FollowOptions{}); err != nil {
			t.Fatal(err)
		}
		var waits []float64
		for i := 1; i < len(s.at); i++ {
			waits = append(waits, s.at[i].Sub(s.at[i-1]).Seconds())
		}
		if want := []float64{1, 2, 4, 8, 16, 16, 1}; !slices.Equal(waits, want) {
			t.Errorf("waited %v, want %v", waits, want)
		}
	})
}

func TestBusyGatewayIsRetriedAfterItsDelay(t *testing.T) {
	for name, c := range map[string]struct {
		answers []answer
		want    time.Duration
		fails   bool
	}{
		"a stream that had begun": {[]answer{says(part),
			refuses(http.StatusTooManyRequests, "Retry-After", "7"), says(deleted)}, 8 * time.Second, false},
		"one stream too many":   {[]answer{refuses(http.StatusTooManyRequests, "Retry-After", "7")}, 0, true},
		"a gateway that starts": {[]answer{refuses(http.StatusServiceUnavailable), says(deleted)}, time.Second, false},
		"one that names a day": {[]answer{refuses(http.StatusServiceUnavailable, "Retry-After", "86400"),
			says(deleted)}, time.Minute, false},
		"a right that is missing": {[]answer{refuses(http.StatusForbidden)}, 0, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, begun := &tries{answers: c.answers}, time.Now()
				_, err := s.heard(t, FollowOptions{})
				if took := time.Since(begun); (err != nil) != c.fails || took != c.want || len(s.asked) != len(c.answers) {
					t.Errorf("asked %d times within %s: %v", len(s.asked), took, err)
				}
			})
		})
	}
}

func TestATokenThatHasExpiredIsReplaced(t *testing.T) {
	expired := refuses(http.StatusUnauthorized)
	for name, c := range map[string]struct {
		answers []answer
		change  func(*Client)
		fails   bool
		asked   int
	}{
		"by the source of tokens": {[]answer{says(part), expired, says(deleted)}, func(c *Client) {
			c.Token = func(context.Context) (string, error) { return "new", nil }
		}, false, 3},
		"by another way": {[]answer{says(part), expired, says(deleted)}, func(c *Client) {
			c.Reopen = func(context.Context, *Client, error) error { return nil }
		}, false, 3},
		"not where there is none": {[]answer{says(part), expired}, func(*Client) {}, true, 2},
		"not where the other way fails": {[]answer{says(part), expired}, func(c *Client) {
			c.Reopen = func(_ context.Context, _ *Client, lost error) error {
				if refused, ok := errors.AsType[*Error](lost); ok && refused.Status == http.StatusUnauthorized {
					return errors.New("there is no other")
				}
				return nil
			}
		}, true, 2},
		"not twice":    {[]answer{says(part), expired, expired}, tokenful, true, 3},
		"not at first": {[]answer{expired}, tokenful, true, 1},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := &tries{answers: c.answers}
				if _, err := s.heard(t, FollowOptions{}, c.change); (err != nil) != c.fails || len(s.asked) != c.asked {
					t.Errorf("asked %d times: %v", len(s.asked), err)
				}
			})
		})
	}
}

func tokenful(c *Client) { c.Token = func(context.Context) (string, error) { return "the same", nil } }

func TestALostGatewayIsLookedForAnew(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, looked := &tries{answers: []answer{says(part)}}, 0
		second := &tries{answers: []answer{says(deleted)}}
		_, err := s.heard(t, FollowOptions{}, func(c *Client) {
			c.Reopen = func(_ context.Context, way *Client, _ error) error {
				if looked++; looked == 1 {
					return errors.New("no gateway pod is ready")
				}
				way.HTTP = &http.Client{Transport: second}
				return nil
			}
		})
		if err != nil || looked != 2 || len(s.asked) != 2 || second.asked[0] != "|3.1.1" {
			t.Errorf("looked %d times, asked %v and %v: %v", looked, s.asked, second.asked, err)
		}
	})
}

// hanging says something and then nothing, for as long as somebody listens.
type hanging struct {
	text string
	ctx  context.Context
}

func (h *hanging) Read(p []byte) (int, error) {
	if h.text == "" {
		<-h.ctx.Done()
		return 0, context.Cause(h.ctx)
	}
	n := copy(p, h.text)
	h.text = h.text[n:]
	return n, nil
}

func TestASilentStreamIsOpenedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked, begun := 0, time.Now()
		n := asking(func(r *http.Request) (*http.Response, error) {
			if asked++; asked == 1 {
				return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(&hanging{part, r.Context()})}, nil
			}
			return answered(http.StatusOK, deleted), nil
		})
		for e, err := range n.Follow(t.Context(), "c", FollowOptions{}) {
			check.OK(t, err)
			if e.Name == stream.EventMessagePart {
				<-time.After(10 * time.Minute) // Whoever reads it may take their time.
			}
		}
		if took := time.Since(begun); asked != 2 || took != 10*time.Minute+maxSilence+firstPause {
			t.Errorf("asked %d times within %s", asked, took)
		}
	})
}

func TestWhoFollowsIsToldOfLosses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &tries{answers: []answer{refuses(http.StatusServiceUnavailable), says(part), says(deleted)}}
		var lost []string
		_, err := s.heard(t, FollowOptions{Lost: func(err error) { lost = append(lost, err.Error()) }}, func(*Client) {})
		if err != nil || len(lost) != 2 || !strings.Contains(lost[0], "503") || !strings.Contains(lost[1], "EOF") {
			t.Errorf("told %q, %v", lost, err)
		}
	})
}

func TestWhoHasEnoughEndsTheStream(t *testing.T) {
	n := asking(func(r *http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(&hanging{part, r.Context()})}, nil
	})
	for e, err := range n.Follow(t.Context(), "c", FollowOptions{}) {
		if e.ID != "3.1.1" || err != nil {
			t.Fatalf("got %+v, %v", e, err)
		}
		break
	}
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	why := errors.New("that will do")
	for _, err := range n.Follow(ctx, "c", FollowOptions{}) {
		if err != nil && !errors.Is(err, why) {
			t.Errorf("error %v", err)
		}
		cancel(why)
	}
}

func TestALineIsNotReadForEver(t *testing.T) {
	body := &endless{}
	line := io.MultiReader(strings.NewReader("data: "), body)
	n := asking(func(*http.Request) (*http.Response, error) {
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(line)}, nil
	})
	ctx, cancel := context.WithTimeout(t.Context(), firstPause)
	defer cancel()
	for _, err := range n.Follow(ctx, "c", FollowOptions{}) {
		if err == nil {
			t.Error("it is an event")
		}
	}
	if body.read > 8*MaxEvent {
		t.Errorf("read %d bytes", body.read)
	}
}

func TestStreamOfStoppingGatewayIsReopenedAtOnce(t *testing.T) {
	closing := func(reason string) answer {
		return says(part + fmt.Sprintf("event: closing\ndata: {\"reason\":%q}\n\n", reason))
	}
	for name, c := range map[string]struct {
		answers     []answer
		least, most time.Duration
	}{
		"at once": {[]answer{closing(stream.ClosingShutdown), says(deleted)}, 0, handoverPause},
		"later, where none answers": {[]answer{closing(stream.ClosingShutdown), refuses(http.StatusServiceUnavailable),
			says(deleted)}, firstPause, firstPause + handoverPause},
		"not for other reasons": {[]answer{closing(stream.ClosingUnverified), says(deleted)}, firstPause, firstPause},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, began := &tries{answers: c.answers}, time.Now()
				_, err := s.heard(t, FollowOptions{}, func(*Client) {})
				if waited := time.Since(began); err != nil || waited < c.least || waited > c.most {
					t.Errorf("waited %s, %v", waited, err)
				}
			})
		})
	}
}

func TestWatchContinuesAfterDeletions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gone := "id: 1.2\nevent: deleted\ndata: {\"name\":\"c\",\"uid\":\"u\"}\n\n"
		s := &tries{answers: []answer{
			says("event: added\ndata: {\"name\":\"c\"}\n\n" + "id: 1.1\nevent: synced\ndata: {}\n\n" + gone),
			says("event: closing\ndata: {\"reason\":\"ShuttingDown\"}\n\n"), refuses(http.StatusForbidden),
		}}
		c := &Client{URL: "http://gateway", HTTP: &http.Client{Transport: s}}
		var names []string
		for e, err := range c.Namespace("ns").Watch(t.Context(), "") {
			if err != nil {
				break
			}
			names = append(names, e.Name)
			if e.Name == stream.EventDeleted {
				if d, err := stream.Decode[stream.Deleted](e); err != nil || d.Name != "c" || d.UID != "u" {
					t.Errorf("got %+v, %v", d, err)
				}
			}
		}
		if want := []string{"added", "synced", "deleted", "closing"}; !slices.Equal(names, want) {
			t.Errorf("heard %v", names)
		}
		if want := []string{"watch=true|", "watch=true|1.2", "watch=true|1.2"}; !slices.Equal(s.asked, want) {
			t.Errorf("asked %v", s.asked)
		}
	})
}
