// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package server

import (
	"bufio"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"parley.dev/parley/internal/netguard/limit"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/waiting"
)

func TestInvalidRequestBodiesAreRejected(t *testing.T) {
	a := newAgent(t)
	for name, tt := range map[string]struct {
		body string
		code protocol.ErrorCode
		says string
	}{
		"nothing":        {"", protocol.BadRequest, "JSON"},
		"no JSON":        {"secret content", protocol.BadRequest, "JSON"},
		"half of it":     {`{"edits":[`, protocol.BadRequest, "JSON"},
		"two values":     {`{"edits":[]}{}`, protocol.BadRequest, "JSON"},
		"a member twice": {`{"edits":[],"edits":[]}`, protocol.BadRequest, "JSON"},
		"an unknown member": {`{"edits":[{"path":"a","secret":"secret content"}]}`, protocol.BadRequest,
			`"/edits/0/secret" is unknown`},
		"another case":     {`{"Edits":[]}`, protocol.BadRequest, `"/Edits" is unknown`},
		"another type":     {`{"edits":[{"path":7}]}`, protocol.BadRequest, `"/edits/0/path" cannot be number`},
		"no UTF-8":         {"{\"edits\":[{\"path\":\"a\",\"newText\":\"\xff\"}]}", protocol.BadRequest, "UTF-8"},
		"half a character": {`{"edits":[{"path":"a","newText":"\ud800"}]}`, protocol.BadRequest, "UTF-8"},
		"more than there may": {`{"edits":[{"path":"a","newText":"` + strings.Repeat("x", protocol.MaxRequestBytes) +
			`"}]}`, protocol.TooLarge, "4194304"},
		"deep nesting": {strings.Repeat("[", 100_000), protocol.BadRequest, ""},
	} {
		t.Run(name, func(t *testing.T) {
			status := cmp.Or(statuses[tt.code], http.StatusUnprocessableEntity)
			for _, body := range []io.Reader{strings.NewReader(tt.body), io.MultiReader(strings.NewReader(tt.body))} {
				got := a.do(http.MethodPost, "/v1/edits", body)
				if err := got.is(status, tt.code); err != nil || !strings.Contains(got.body, strings.ReplaceAll(tt.says, `"`,
					`\"`)) ||
					strings.Contains(got.body, "secret content") {
					t.Errorf("got %q: %v", got.body, err)
				}
			}
		})
	}
	for _, request := range []string{"PUT /v1/binding", "PUT /v1/processes/key", "POST /v1/processes/p1/signal",
		"POST /v1/read", "POST /v1/search"} {
		method, path, _ := strings.Cut(request, " ")
		if err := a.do(method, path, strings.NewReader(`{"unknown":1}`)).is(400, protocol.BadRequest); err != nil {
			t.Errorf("%s: %v", request, err)
		}
	}
}

func TestRequestsThatThereAreNotAreRefused(t *testing.T) {
	a := newAgent(t)
	for _, request := range []string{"GET /", "GET /v1", "GET /v1/files/a", "POST /v1/files?path=a", "DELETE /v1/files?path=a",
		"GET /v1/edits",
		"POST /v1/cancel", "DELETE /v1/processes/p1", "GET /v1//info", "GET /v1/./info", "GET /v1/x/../info",
		"GET /v1/info/",
		"PUT /v1/processes/a%2Fb", "PUT /v1/processes/..%2F..%2Fx", "PUT /v1/processes/%00", "CONNECT /v1/info",
		"OPTIONS /v1/info"} {
		method, path, _ := strings.Cut(request, " ")
		a.expect(a.do(method, path, nil), http.StatusBadRequest, protocol.BadRequest)
	}
	if len(a.started) > 0 {
		t.Errorf("started was %v", a.started)
	}
}

func TestFilesGoOverTheWireAsTheyAre(t *testing.T) {
	a := newAgent(t)
	content := "Grüße\r\n\x00\xff no newline, secret content"
	for name, path := range map[string]string{"plain": "dir/file", "escaped": "a%20b/%C3%A4%3F%23%25",
		"absolute": a.dir + "/abs", "with dots": "./y/.", "with slashes": "p//q"} {
		t.Run(name, func(t *testing.T) {
			url := "/v1/files?path=" + path
			var info protocol.FileInfo
			got := a.do(http.MethodPut, url, strings.NewReader(content))
			check.OK(t, got.is(http.StatusCreated, ""))
			check.OK(t, json.Unmarshal([]byte(got.body), &info))
			if there, err := os.ReadFile(filepath.Join(a.dir, info.Path)); err != nil || string(there) != content {
				t.Errorf("at %q there is %q: %v", info.Path, there, err)
			}
			a.expect(a.do(http.MethodPut, url, strings.NewReader(content)), http.StatusOK, "")
			got = a.get(url)
			want := http.Header{"Content-Type": {"application/octet-stream"}, "Content-Length": {strconv.Itoa(len(content))},
				"X-Content-Type-Options": {"nosniff"}, "Cache-Control": {"no-store"}}
			for key, value := range want {
				check.Equal(t, key, value, got.header[key])
			}
			if _, err := time.Parse(http.TimeFormat, got.header.Get("Last-Modified")); err != nil {
				t.Error(err)
			}
			if got.err != nil || got.body != content {
				t.Errorf("got %q: %v", got.body, got.err)
			}
			if head := a.do(http.MethodHead, url, nil); head.status != 200 || head.body != "" ||
				head.header.Get("Content-Length") != strconv.Itoa(len(content)) {
				t.Errorf("got %+v", head)
			}
		})
	}
}

func TestFilesOutsideWorkspaceAreRefused(t *testing.T) {
	a := newAgent(t)
	outside := filepath.Join(filepath.Dir(a.dir), "outside")
	check.OK(t, os.WriteFile(outside, []byte("secret content"), 0o600))
	check.OK(t, os.Symlink(outside, filepath.Join(a.dir, "link")))
	for path, want := range map[string]protocol.ErrorCode{"../outside": protocol.OutsideWorkspace,
		"..%2Foutside": protocol.OutsideWorkspace, "a/../../outside": protocol.OutsideWorkspace,
		"link": protocol.OutsideWorkspace, outside: protocol.OutsideWorkspace, "": protocol.BadRequest,
		"a%00b": protocol.BadRequest, "%ff": protocol.BadRequest, ".": protocol.NotRegular, a.dir: protocol.NotRegular} {
		for _, method := range []string{http.MethodGet, http.MethodPut} {
			got := a.do(method, "/v1/files?path="+path, strings.NewReader("overwritten"))
			if path == "a/../../outside" && method == http.MethodGet {
				want = protocol.NotFound // There is no "a" to go up from.
			}
			a.expect(got, cmp.Or(statuses[want], http.StatusUnprocessableEntity), want)
		}
	}
	if there, err := os.ReadFile(outside); err != nil || string(there) != "secret content" {
		t.Errorf("outside there is %q: %v", there, err)
	}
}

func TestOversizedContentIsRejectedDuringUpload(t *testing.T) {
	a := newAgent(t)
	endless := io.LimitReader(zeros{}, 1<<40)
	got := a.do(http.MethodPut, "/v1/files?path=file", io.MultiReader(endless))
	// The agent may hang up before all is sent.
	if err := got.is(http.StatusRequestEntityTooLarge, protocol.TooLarge); err != nil && got.err == nil {
		t.Error(err)
	}
	a.expect(a.do(http.MethodPut, "/v1/files?path=file", strings.NewReader(""), func(r *http.Request) {
		r.ContentLength, r.Body = 1<<40, io.NopCloser(io.MultiReader(zeros{}))
	}), http.StatusRequestEntityTooLarge, protocol.TooLarge)
	most := strings.Repeat("x", protocol.MaxFileBytes)
	a.expect(a.do(http.MethodPut, "/v1/files?path=file", strings.NewReader(most)), http.StatusCreated, "")
	check.Equal(t, "content", most, a.get("/v1/files?path=file").body)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

func TestAContentThatEndsEarlyIsNotWritten(t *testing.T) {
	a := newAgent(t)
	got := a.do(http.MethodPut, "/v1/files?path=file", io.MultiReader(strings.NewReader("half"), failing{}))
	if got.err == nil {
		t.Errorf("got %+v", got)
	}
	a.expect(a.do(http.MethodGet, "/v1/files?path=file", nil), http.StatusNotFound, protocol.NotFound)
}

type failing struct{}

func (failing) Read([]byte) (int, error) { return 0, errors.New("the client is gone") }

func TestChangesWithAKeyAreMadeOnce(t *testing.T) {
	a := newAgent(t)
	keyed := func(key string) func(*http.Request) {
		return func(r *http.Request) { r.Header.Set(protocol.HeaderCall, key) }
	}
	first := a.do(http.MethodPut, "/v1/files?path=file", strings.NewReader("a"), keyed("chat-1-write"))
	a.expect(first, http.StatusCreated, "")
	edit := func() reply {
		return a.do(http.MethodPost, "/v1/edits",
			strings.NewReader(`{"edits":[{"path":"file","oldText":"a","newText":"aa"}]}`),
			keyed("chat-1-edit"))
	}
	edited := edit()
	a.expect(edited, http.StatusOK, "")
	a.restart()
	if again := edit(); again.status != 200 || again.body != edited.body {
		t.Errorf("got %+v, want %+v", again, edited)
	}
	if again := a.do(http.MethodPut, "/v1/files?path=file", strings.NewReader("a"),
		keyed("chat-1-write")); again.status != 201 ||
		again.body != first.body {
		t.Errorf("got %+v, want %+v", again, first)
	}
	a.expect(a.do(http.MethodPut, "/v1/files?path=file", strings.NewReader("b"), keyed("chat-1-write")), 400,
		protocol.BadRequest)
	a.expect(a.do(http.MethodPut, "/v1/files?path=file", strings.NewReader("b"), keyed("../x")), 400, protocol.BadRequest)
	check.Equal(t, "content", "aa", a.get("/v1/files?path=file").body)
}

func TestTextsAreReadEditedAndSearched(t *testing.T) {
	a := newAgent(t)
	a.expect(a.do(http.MethodPut, "/v1/files?path=dir/file.txt", strings.NewReader("one\ntwo\nthree")), http.StatusCreated,
		"")
	edited := decodeReply[protocol.EditResponse](t, a.post("/v1/edits", protocol.EditRequest{Edits: []protocol.Edit{
		{Path: "dir/file.txt", OldText: "two", NewText: "2"}, {Path: "new", NewText: "n"}}}))
	if len(edited.Files) != 2 || edited.Files[0].Replaced != 1 || !strings.Contains(edited.Files[0].Diff, "-two\n+2\n") {
		t.Errorf("got %+v", edited)
	}
	read := decodeReply[protocol.ReadResponse](t, a.post("/v1/read", protocol.ReadRequest{Path: "dir/file.txt",
		Offset: 2}))
	if want := (protocol.ReadResponse{Content: "2\nthree", FirstLine: 2, Lines: 2, TotalLines: 3,
		Size: 11}); read != want {
		t.Errorf("got %+v", read)
	}
	found := decodeReply[protocol.SearchResponse](t, a.post("/v1/search", protocol.SearchRequest{Pattern: "t.r"}))
	if len(found.Matches) != 1 || found.Matches[0].Path != "dir/file.txt" || found.Matches[0].Line != 3 {
		t.Errorf("got %+v", found)
	}
	a.expect(a.post("/v1/read", protocol.ReadRequest{Path: "nothing"}), http.StatusNotFound, protocol.NotFound)
	a.expect(a.post("/v1/edits", protocol.EditRequest{}), http.StatusBadRequest, protocol.BadRequest)
	a.expect(a.post("/v1/search", protocol.SearchRequest{Pattern: "("}), http.StatusBadRequest, protocol.BadRequest)
}

func TestOnlySoManyRequestsAreAtWork(t *testing.T) {
	a := newAgent(t, func(s *Server) { s.atWork, s.waiting = limit.New(1), limit.New(1) })
	entered, leave := make(chan struct{}, 1), make(chan struct{})
	a.whenStarted(func(context.Context) { entered <- struct{}{}; <-leave })
	a.wait = func(context.Context) { entered <- struct{}{}; <-leave }
	var busy sync.WaitGroup
	busy.Go(func() { a.expect(a.put("/v1/processes/key", protocol.StartRequest{Command: "x"}), http.StatusOK, "") })
	<-entered
	got := a.get("/v1/info")
	a.expect(got, http.StatusServiceUnavailable, protocol.Unavailable)
	check.Equal(t, "Retry-After", "1", got.header.Get("Retry-After"))
	a.expect(a.get("/v1/health"), http.StatusOK, "")
	// Who waits for a command holds up nobody who works.
	busy.Go(func() { a.expect(a.get("/v1/processes/p1?wait=60"), http.StatusOK, "") })
	<-entered
	a.expect(a.get("/v1/processes/p1?wait=60"), http.StatusServiceUnavailable, protocol.Unavailable)
	close(leave)
	busy.Wait()
	waiting.Until(t, time.Minute, "there is room again",
		func() bool { return a.get("/v1/info").status == http.StatusOK })
}

func (c *commands) whenStarted(do func(context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.start = do
}

func TestARequestThatPanicsIsAnswered(t *testing.T) {
	a := newAgent(t)
	a.whenStarted(func(context.Context) { panic("secret content") })
	a.expect(a.put("/v1/processes/key", protocol.StartRequest{Command: "x"}), http.StatusInternalServerError,
		protocol.Internal)
	if !strings.Contains(a.log.String(), "A request panicked") {
		t.Errorf("the log says %q", a.log.String())
	}
	a.expect(a.get("/v1/info"), http.StatusOK, "")
}

func TestAgentStopEndsPendingWaits(t *testing.T) {
	a := newAgent(t)
	waits := make(chan struct{})
	a.wait = func(ctx context.Context) { close(waits); <-ctx.Done() }
	var asking sync.WaitGroup
	asking.Go(func() { a.get("/v1/processes/p1?wait=60") })
	<-waits
	a.stop()
	asking.Wait()
}

func TestAConnectionThatSaysTooMuchIsClosed(t *testing.T) {
	a := newAgent(t)
	conn, err := net.Dial("tcp", strings.TrimPrefix(a.address, "http://"))
	check.OK(t, err)
	defer conn.Close()
	check.OK(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	fmt.Fprintf(conn, "GET /v1/info HTTP/1.1\r\nHost: x\r\nX-Large: %s\r\n\r\n", strings.Repeat("a", 2*maxHeaderBytes))
	answer, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || answer.StatusCode != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("got %+v, %v", answer, err)
	}
}

func FuzzRequestsAreDecodedAsTheyAreOrRefused(f *testing.F) {
	for _, seed := range []string{`{"edits":[{"path":"a","oldText":"b","newText":"c","replaceAll":true}]}`, `{}`,
		`null`, `[]`, "",
		`{"edits":null}`, `{"edits":[{"path":"\ud800"}]}`, "{\"edits\":[{\"path\":\"\xff\"}]}",
		`{"edits":[{"path":"a"},{"Path":"b"}]}`,
		`{"path":"a","offset":1e3}`, `{"path":"a","limit":-1,"maxBytes":9223372036854775808}`, `{"signal":"kill"}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		decodes[protocol.EditRequest](t, raw)
		decodes[protocol.ReadRequest](t, raw)
		decodes[protocol.SearchRequest](t, raw)
		decodes[protocol.StartRequest](t, raw)
		decodes[protocol.Binding](t, raw)
		decodes[protocol.SignalRequest](t, raw)
	})
}

func decodes[T any](t *testing.T, raw []byte) {
	value, err := decodeJSON[T](raw)
	if err != nil {
		var refused *protocol.Error
		if !errors.As(err, &refused) || refused.Code != protocol.BadRequest {
			t.Errorf("got %v", err)
		}
		return
	}
	if !utf8.Valid(raw) {
		t.Errorf("%q was taken for %+v", raw, value)
	}
	encoded, err := json.Marshal(value)
	check.OK(t, err)
	again, err := decodeJSON[T](encoded)
	check.OK(t, err)
	if first, second := fmt.Sprintf("%+v", *value), fmt.Sprintf("%+v", *again); first != second {
		t.Errorf("%q became %s, and then %s", raw, first, second)
	}
}
