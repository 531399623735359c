// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package publish_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/internal/chat/fence"
	"parley.dev/parley/internal/kube/satoken"
	"parley.dev/parley/internal/stream/publish"
	"parley.dev/parley/internal/stream/relay"
	"parley.dev/parley/internal/stream/subscribe"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realrelay"
	"parley.dev/parley/test/kit/waiting"
)

var episode1 = fence.Fence{ChatUID: "0d1c-uid", HistoryVersion: 7, Attempt: 1}

type allow string

func (a allow) Authorize(_ context.Context, token string) error {
	switch token {
	case string(a):
		return nil
	case "stranger":
		return satoken.ErrForbidden
	default:
		return satoken.ErrUnauthenticated
	}
}

// startSidecar starts a relay whose readers have the token "good".
func startSidecar(t testing.TB, change ...func(*relay.Subscribers)) *realrelay.Relay {
	return realrelay.Start(t, "127.0.0.1:0", func(s *relay.Subscribers, _ *relay.IssuerKeys) {
		s.Authorizer = allow("good")
		for _, f := range change {
			f(s)
		}
	})
}

func newReader(token string) *subscribe.Client {
	return &subscribe.Client{HTTP: http.DefaultClient, Token: func(context.Context) (string, error) { return token, nil }}
}

func text(i int) parts.Part {
	return parts.Part{Type: parts.Text, ID: "0", Text: fmt.Sprintf("token %d ", i)}
}

// follow reads an episode in the background, resuming after every lost connection, until it is closed.
func follow(ctx context.Context, s *realrelay.Relay) <-chan []parts.Frame {
	got, url := make(chan []parts.Frame, 1), "http://"+s.Address // It stays the same after a restart.
	go func() {
		var frames []parts.Frame
		for ctx.Err() == nil {
			whole := true
			for f, err := range newReader("good").Subscribe(ctx, url, episode1, int64(len(frames))) {
				if err != nil {
					whole = false
					break
				}
				frames = append(frames, f)
			}
			if whole {
				break
			}
		}
		got <- frames
	}()
	return got
}

func checkFrames(t *testing.T, frames []parts.Frame, want int) {
	t.Helper()
	for i, f := range frames {
		if f.Seq != int64(i+1) || f.Part != text(i+1) || f.Role != "Assistant" {
			t.Fatalf("frame %d is %+v", i, f)
		}
	}
	check.Equal(t, "frames", want, len(frames))
}

func send(e *publish.Episode, from, to int) {
	for i := from; i <= to; i++ {
		e.Publish("Assistant", text(i))
	}
}

func open(t testing.TB, c *publish.Client) *publish.Episode {
	t.Helper()
	e, err := c.Open(t.Context(), episode1)
	check.OK(t, err)
	return e
}

func closeEpisode(t testing.TB, e *publish.Episode) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	check.OK(t, e.Close(ctx))
}

func TestPartsTravelFromGeneratorToReader(t *testing.T) {
	s := startSidecar(t)
	early := follow(t.Context(), s)
	e := open(t, publish.New(s.Socket, "one", time.Now))
	send(e, 1, 500)
	closeEpisode(t, e)
	checkFrames(t, <-early, 500)
	checkFrames(t, <-follow(t.Context(), s), 500)
}

func TestGeneratorResendsAllPartsAfterRelayRestart(t *testing.T) {
	s := startSidecar(t)
	e := open(t, publish.New(s.Socket, "one", time.Now))
	send(e, 1, 100)
	waitFor(t, s, 100)
	s.Stop()
	send(e, 101, 150) // nobody listens
	s.Start()
	send(e, 151, 200)
	waitFor(t, s, 200) // without being closed
	closeEpisode(t, e)
	checkFrames(t, <-follow(t.Context(), s), 200)
}

func TestAReaderResumesAfterTheRelayWasRestarted(t *testing.T) {
	s := startSidecar(t)
	got := follow(t.Context(), s)
	e := open(t, publish.New(s.Socket, "one", time.Now))
	send(e, 1, 50)
	waitFor(t, s, 50)
	s.Stop()
	s.Start()
	send(e, 51, 60)
	waitFor(t, s, 60)
	closeEpisode(t, e)
	checkFrames(t, <-got, 60)
}

// waitFor waits until a reader of its own has seen frame n.
func waitFor(t *testing.T, s *realrelay.Relay, n int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	for ctx.Err() == nil {
		for f, err := range newReader("good").Subscribe(ctx, "http://"+s.Address, episode1, n-1) {
			if err == nil && f.Seq == n {
				return
			}
		}
	}
	t.Fatalf("frame %d did not come", n)
}

func TestAnotherIncarnationIsRefusedAlsoAfterARestart(t *testing.T) {
	s := startSidecar(t)
	e := open(t, publish.New(s.Socket, "one", time.Now))
	other := publish.New(s.Socket, "two", time.Now)
	if _, err := other.Open(t.Context(), episode1); !errors.Is(err, publish.ErrExists) {
		t.Errorf("got %v, want ErrExists", err)
	}
	s.Stop()
	s.Start()
	if _, err := other.Open(t.Context(), episode1); !errors.Is(err, publish.ErrExists) {
		t.Errorf("after a restart: %v, want ErrExists", err)
	}
	if err := other.Close(t.Context(), episode1); err != nil {
		t.Errorf("close what another incarnation left behind: %v", err)
	}
	send(e, 1, 1) // lost, and nobody fails
	closeEpisode(t, e)
}

// A relay that ends closes the connections that the generator keeps.
func TestOpeningSurvivesClosedIdleConnection(t *testing.T) {
	socket := filepath.Join(t.TempDir(), "r.sock")
	local, err := relay.ListenLocal(socket)
	check.OK(t, err)
	var ended atomic.Bool
	answer := func(w http.ResponseWriter, _ *http.Request) {
		if ended.CompareAndSwap(true, false) {
			panic(http.ErrAbortHandler)
		}
		_, _ = w.Write([]byte("{}"))
	}
	server := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(answer)}
	go func() { _ = server.Serve(local) }()
	t.Cleanup(func() { _ = server.Close() })
	client := publish.New(socket, "one", time.Now)
	check.OK(t, client.Close(t.Context(), episode1))
	ended.Store(true)
	closeEpisode(t, open(t, client))
}

func TestClosingGivesUpWhenTheRelayStaysAway(t *testing.T) {
	s := startSidecar(t)
	e := open(t, publish.New(s.Socket, "one", time.Now))
	s.Stop()
	send(e, 1, 10)
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := e.Close(ctx); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("got %v, want DeadlineExceeded", err)
	}
}

func TestWhatDoesNotFitIsDropped(t *testing.T) {
	s := startSidecar(t)
	e := open(t, publish.New(s.Socket, "one", time.Now))
	send(e, 1, 1)
	e.Publish("Tool", parts.Part{Type: parts.ToolResult, Text: strings.Repeat("x", relay.DefaultEpisodeBytes)})
	send(e, 2, 2)
	check.Equal(t, "dropped", 2, e.Dropped())
	closeEpisode(t, e)
	checkFrames(t, <-follow(t.Context(), s), 1)
}

func TestARelayThatIsStartedLaterIsAwaited(t *testing.T) {
	s := startSidecar(t)
	s.Stop()
	client := publish.New(s.Socket, "life", time.Now)
	over, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if err := client.Await(over); err == nil {
		t.Error("a relay that does not listen was found")
	}
	found := make(chan error, 1)
	go func() { found <- client.Await(t.Context()) }()
	s.Start()
	if err := <-found; err != nil {
		t.Error(err)
	}
}

func TestReadersMustProveThemselves(t *testing.T) {
	s := startSidecar(t)
	for token, want := range map[string]string{"bad": "401", "stranger": "403"} {
		for _, err := range newReader(token).Subscribe(t.Context(), "http://"+s.Address, episode1, 0) {
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("token %s: %v, want %s", token, err, want)
			}
		}
	}
}

func TestReaderDetectsSilentRelayUnlessHeartbeatArrives(t *testing.T) {
	quiet := startSidecar(t)
	reader := newReader("good")
	reader.Silence = 50 * time.Millisecond
	for _, err := range reader.Subscribe(t.Context(), "http://"+quiet.Address, episode1, 0) {
		if !errors.Is(err, subscribe.ErrSilent) {
			t.Errorf("got %v, want ErrSilent", err)
		}
	}
	beating := startSidecar(t, func(r *relay.Subscribers) { r.Heartbeat = 5 * time.Millisecond })
	reader.Silence = time.Second
	ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
	defer cancel()
	for _, err := range reader.Subscribe(ctx, "http://"+beating.Address, episode1, 0) {
		if !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want the test's own deadline", err)
		}
	}
}

func TestAReaderGoesNowhereElseWithItsToken(t *testing.T) {
	var shown atomic.Int32
	elsewhere := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { shown.Add(1) }))
	t.Cleanup(elsewhere.Close)
	relay := httptest.NewServer(http.RedirectHandler(elsewhere.URL, http.StatusFound))
	t.Cleanup(relay.Close)
	for _, err := range newReader("good").Subscribe(t.Context(), relay.URL, episode1, 0) {
		if err == nil || !strings.Contains(err.Error(), "302") {
			t.Errorf("got %v", err)
		}
	}
	check.Equal(t, "requests elsewhere", 0, shown.Load())
}

func TestReaderRejectsMoreBytesThanEpisodeLimit(t *testing.T) {
	relay := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		line := []byte(`{"seq":1,"text":"` + strings.Repeat("x", 1<<20) + `"}` + "\n")
		for r.Context().Err() == nil {
			if _, err := w.Write(line); err != nil {
				return
			}
		}
	}))
	t.Cleanup(relay.Close)
	frames := 0
	for _, err := range newReader("good").Subscribe(t.Context(), relay.URL, episode1, 0) {
		if err != nil {
			if !errors.Is(err, subscribe.ErrTooLong) {
				t.Errorf("got %v", err)
			}
			break
		}
		frames++
	}
	if frames > 4 {
		t.Errorf("%d frames of 1 MiB were taken", frames)
	}
}

func TestGeneratorDeliversIssuerKeysToRelay(t *testing.T) {
	keys := &relay.IssuerKeys{Now: time.Now}
	dir := t.TempDir()
	listener, err := relay.ListenLocal(filepath.Join(dir, "r.sock"))
	check.OK(t, err)
	server := &http.Server{Handler: relay.LocalHandler(nil, keys)}
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(func() { _ = server.Close() })

	set := []byte(
		`{"keys":[{"kty":"EC","kid":"first","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}]}`)
	var fetches atomic.Int32
	fetch := func(context.Context) ([]byte, error) {
		if fetches.Add(1) == 1 {
			return nil, errors.New("the API server is away")
		}
		return set, nil
	}
	ctx, stop := context.WithCancel(t.Context())
	var bringing sync.WaitGroup
	bringing.Go(func() {
		publish.New(filepath.Join(dir, "r.sock"), "one", time.Now).KeepKeys(ctx, fetch, slog.New(slog.DiscardHandler))
	})
	defer bringing.Wait()
	defer stop()
	waiting.Until(t, 30*time.Second, "the relay has the key", func() bool {
		found, err := keys.Key(t.Context(), "first")
		return err == nil && len(found) == 1
	})
	check.Equal(t, "fetches of keys", 2, fetches.Load())
}
