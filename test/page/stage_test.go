// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page shows the page of the gateway in a real browser, before a gateway that says what a test wants it to:
// each
// state of the page, looked at for barriers, in both colour schemes and as narrow as a phone. test/e2e has the same
// page
// on a real cluster.
package page

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"

	"parley.dev/parley/internal/cli/ui"
	"parley.dev/parley/test/kit/browser"
)

func TestMain(m *testing.M) { os.Exit(browser.Share(m)) }

// stage is a gateway that says what a test wants it to, behind the server of kubectl chat ui.
type stage struct {
	t   testing.TB
	url string

	mu      sync.Mutex
	changed chan struct{}
	// stories are the events of a stream, by its path, with its query if it has those alone.
	stories map[string][]string
	// cut ends the streams that are open.
	cut chan struct{}
	// asked are the operations that the page has asked for, and answers those that are no empty object.
	asked   []asked
	answers map[string]func() (int, any)
	down    bool
}

type asked struct {
	what string
	body map[string]any
}

const chats = "/v1beta1/namespaces/demo/chats"

func newStage(t testing.TB) *stage {
	t.Helper()
	s := &stage{t: t, changed: make(chan struct{}), cut: make(chan struct{}), stories: map[string][]string{},
		answers: map[string]func() (int, any){}}
	s.answers["GET /v1beta1/namespaces"] = always(map[string]any{"namespaces": []string{"demo", "prod"}})
	s.answers["GET /v1beta1/namespaces/demo/modelconfigs"] = always(map[string]any{"modelConfigs": []map[string]any{
		{"name": "large", "default": true}, {"name": "small"}}})
	s.answers["GET /v1beta1/namespaces/demo/chatclasses"] = always(map[string]any{"chatClasses": []any{}})
	listener, err := net.Listen("tcp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server, err := ui.New(ui.Config{Operations: http.HandlerFunc(s.operate), Files: http.HandlerFunc(s.operate),
		Streams: s.open, Namespace: "demo"}, listener)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		if err := server.Serve(ctx, listener); err != nil {
			t.Error(err)
		}
	}()
	t.Cleanup(func() { cancel(); <-ended })
	s.url = server.URL()
	return s
}

func always(answer any) func() (int, any) { return func() (int, any) { return http.StatusOK, answer } }

// operate answers an operation.
func (s *stage) operate(w http.ResponseWriter, r *http.Request) {
	a := asked{what: r.Method + " " + r.URL.Path, body: map[string]any{}}
	_ = json.NewDecoder(r.Body).Decode(&a.body) // or there is none
	for key := range r.URL.Query() {
		a.body[key] = r.URL.Query().Get(key)
	}
	s.mu.Lock()
	s.asked = append(s.asked, a)
	answer, down := s.answers[a.what], s.down
	s.mu.Unlock()
	w.Header().Set("Content-Type", "application/json")
	status, body := http.StatusOK, any(map[string]any{})
	if answer != nil {
		status, body = answer()
	}
	if down {
		status, body = http.StatusServiceUnavailable, refusal("APIServerUnavailable",
			"the API server does not answer, try again")
	}
	w.WriteHeader(status)
	if body == cutOff {
		_, _ = io.WriteString(w, `{"metadata":`)
		_ = http.NewResponseController(w).Flush() // It breaks off either way.
		panic(http.ErrAbortHandler)
	}
	if raw, ok := body.([]byte); ok {
		_, _ = w.Write(raw)
		return
	}
	_ = json.NewEncoder(w).Encode(body)
}

func refusal(reason, message string) map[string]any {
	return map[string]any{"reason": reason, "message": message}
}

// cutOff is an answer within which the connection breaks.
const cutOff = "cut off"

// answer lets an operation be answered otherwise from now on.
func (s *stage) answer(what string, status int, body any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[what] = func() (int, any) { return status, body }
}

// file lets an operation be answered by bytes, given in base64.
func (s *stage) file(what, content string) {
	raw, err := base64.StdEncoding.DecodeString(content)
	if err != nil {
		s.t.Fatal(err)
	}
	s.answer(what, http.StatusOK, raw)
}

// wasAsked waits until the page has asked for an operation, and returns the body of the last such.
func (s *stage) wasAsked(what string) map[string]any {
	s.t.Helper()
	var found map[string]any
	waitFor(s.t, "the page asks for "+what, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, a := range s.asked {
			if a.what == what {
				found = a.body
			}
		}
		return found != nil
	})
	return found
}

// times is how often the page has asked for an operation.
func (s *stage) times(what string) (n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, a := range s.asked {
		if a.what == what {
			n++
		}
	}
	return n
}

// open opens a stream. The ids of its events are their numbers.
func (s *stage) open(ctx context.Context, at, lastEventID string) (*http.Response, error) {
	path, _, _ := strings.Cut(at, "?")
	s.mu.Lock()
	cut, down := s.cut, s.down
	s.mu.Unlock()
	if down {
		return nil, fmt.Errorf("no gateway pod is ready")
	}
	next, _ := strconv.Atoi(lastEventID) // None is the start.
	out, in := io.Pipe()
	go func() {
		defer func() { _ = in.Close() }()
		for {
			s.mu.Lock()
			story, changed := s.stories[at], s.changed
			if story == nil {
				story = s.stories[path]
			}
			s.mu.Unlock()
			if next < len(story) {
				if _, err := in.Write([]byte(strings.Join(story[next:], ""))); err != nil {
					return
				}
				next = len(story)
			}
			select {
			case <-changed:
			case <-cut:
				return
			case <-ctx.Done():
				return
			}
		}
	}()
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"text/event-stream"}},
		Body: out}, nil
}

// event is one of a stream.
type event struct {
	name string
	data any
}

// tell lets a stream tell events, all at once.
func (s *stage) tell(path string, events ...event) {
	s.t.Helper()
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, e := range events {
		raw, err := json.Marshal(e.data)
		if err != nil {
			s.t.Fatal(err)
		}
		s.stories[path] = append(s.stories[path],
			fmt.Sprintf("id: %d\nevent: %s\ndata: %s\n\n", len(s.stories[path])+1, e.name, raw))
	}
	close(s.changed)
	s.changed = make(chan struct{})
}

// list tells how chats stand.
func (s *stage) list(summaries ...map[string]any) {
	var events []event
	for _, summary := range summaries {
		events = append(events, event{"added", summary})
	}
	s.tell(chats, append(events, event{"synced", map[string]any{}})...)
}

// chat tells events of a chat.
func (s *stage) chat(name string, events ...event) { s.tell(chats+"/"+name+"/stream", events...) }

// outage takes the gateway and the API server away, or brings them back.
func (s *stage) outage(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.down = down
	close(s.cut)
	s.cut = make(chan struct{})
}

// restart replaces the story of a chat for those who come from now on.
func (s *stage) restart(chat string, events []event) {
	s.mu.Lock()
	delete(s.stories, chats+"/"+chat+"/stream")
	s.mu.Unlock()
	s.chat(chat, events...)
}
