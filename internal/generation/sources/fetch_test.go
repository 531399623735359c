// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"context"
	"encoding/base64"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/test/kit/check"
)

// full is a file that leaves no room for another.
var full = base64.StdEncoding.EncodeToString(make([]byte, prompt.MaxFilesBytes))

// host is a server of files; asked counts requests for paths.
func host(t *testing.T) (server *httptest.Server, asked map[string]int) {
	asked = map[string]int{}
	hangs, done := make(chan struct{}), t.Context().Done()
	t.Cleanup(func() { close(hangs) })
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		switch r.URL.Path {
		case "/a":
			_, _ = w.Write([]byte("content"))
		case "/here":
			http.Redirect(w, r, "/a", http.StatusFound)
		case "/there":
			http.Redirect(w, r, "http://localhost:"+strings.Split(r.Host, ":")[1]+"/a", http.StatusFound)
		case "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case "/large":
			_, _ = w.Write(make([]byte, prompt.MaxFileBytes+1))
		case "/hangs":
			select {
			case <-hangs:
			case <-done:
			case <-r.Context().Done():
			}
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server, asked
}

func reader(hosts ...string) *Reader {
	return New(Options{HTTP: &http.Client{}, Hosts: hosts, Now: time.Now})
}

func TestOnlyAllowedHostsAreAsked(t *testing.T) {
	server, asked := host(t)
	r := reader(strings.TrimPrefix(server.URL, "http://"))
	for path, want := range map[string]string{
		"/a": "", "/here": "", "/there": "it redirects to another host", "/round": "it redirects too often",
		"/gone": "its host answered 404", "/large": "it is larger than 3.5 MiB",
	} {
		f := r.fetch(t.Context(), server.URL+path)
		if f.Problem != want || (want == "") != (string(f.Data) == "content") {
			t.Errorf("%s: got %q and problem %q", path, f.Data, f.Problem)
		}
	}
	if f := reader().fetch(t.Context(), server.URL+"/not-asked"); !strings.HasSuffix(f.Problem,
		"is none that files may be fetched from, and providers are handed only https URLs of public hosts") || f.URL != "" {
		t.Errorf("got %q", f.Problem)
	}
	if asked["/not-asked"] != 0 {
		t.Error("a host that is not allowed was asked")
	}
	server.Close()
	if f := r.fetch(t.Context(), server.URL+"/b"); f.Problem != "it could not be fetched" {
		t.Errorf("got %q", f.Problem)
	}
}

func TestAFetchEndsWithItsContext(t *testing.T) {
	server, _ := host(t)
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if f := reader(strings.TrimPrefix(server.URL, "http://")).
		fetch(ctx, server.URL+"/hangs"); f.Problem != "it could not be fetched in time" {
		t.Errorf("got %q", f.Problem)
	}
}

func TestAURLThatIsNotValidIsNotFetched(t *testing.T) {
	r := reader("files.example.com")
	for _, raw := range []string{"https://a@files.example.com/", "https:///a", "https://files.example.com/%zz"} {
		if f := r.fetch(t.Context(), raw); f.Problem != "its URL is not valid" {
			t.Errorf("%s: %q", raw, f.Problem)
		}
	}
}

func TestWhatWasFetchedIsKeptForAWhile(t *testing.T) {
	server, asked := host(t)
	now := time.Unix(0, 0)
	r := reader(strings.TrimPrefix(server.URL, "http://"))
	r.options.Now = func() time.Time { return now }
	for step, want := range map[int]int{0: 1, 1: 1} {
		if f := r.fetch(t.Context(), server.URL+"/a"); string(f.Data) != "content" || asked["/a"] != want {
			t.Errorf("step %d: %q, asked %d times", step, f.Data, asked["/a"])
		}
	}
	now = now.Add(keptFor)
	if f := r.fetch(t.Context(), server.URL+"/a"); string(f.Data) != "content" || asked["/a"] != 2 {
		t.Errorf("%q, asked %d times", f.Data, asked["/a"])
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	var k kept
	for i := range 20 {
		k.put(fmt.Sprint(i), make([]byte, 3<<20), time.Unix(0, 0))
		if k.bytes > keptBytes || len(k.order) != len(k.entries) {
			t.Fatalf("%d bytes in %d entries", k.bytes, len(k.entries))
		}
	}
	_, ok := k.get("19", time.Unix(0, 0))
	check.Equal(t, "found, order", []any{true, 10}, []any{ok, len(k.order)})
}

func TestFilesAreReadNewestFirstUntilThereIsNoRoom(t *testing.T) {
	message := func(name string, f v1alpha1.MessageFile) v1alpha1.ChatMessage {
		m := v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleUser,
			Parts: []v1alpha1.MessagePart{{Type: v1alpha1.PartFile, File: &f}}}}
		m.Name = name
		return m
	}
	server, asked := host(t)
	r := reader(strings.TrimPrefix(server.URL, "http://"))

	files := r.Files(t.Context(), "ns", []v1alpha1.ChatMessage{
		message("old", v1alpha1.MessageFile{URL: server.URL + "/here"}), message("full", v1alpha1.MessageFile{Data: full}),
		message("new", v1alpha1.MessageFile{URL: server.URL + "/a"}),
	})
	if string(files[prompt.FileKey{Message: "new"}].Data) != "content" ||
		files[prompt.FileKey{Message: "old"}].Problem != "newer files took the room" || asked["/here"] != 0 {
		t.Errorf("asked %v", asked)
	}
}

func TestWhoFetchesAURLFollowsFromItsHost(t *testing.T) {
	server, asked := host(t)
	r := reader(strings.TrimPrefix(server.URL, "http://"), "*.allowed.example")
	for raw, want := range map[string]prompt.File{
		server.URL + "/a": {Data: []byte("content")},
		"https://files.example.com/a": {URL: "https://files.example.com/a",
			Problem: "host files.example.com is none that files may be fetched from"},
		"https://allowed.example/a": {URL: "https://allowed.example/a",
			Problem: "host allowed.example is none that files may be fetched from"},
		"https://files/a": {Problem: "host files is none that files may be fetched from, and providers are " +
			"handed only https URLs of public hosts"},
		"http://files.example.com/a": {Problem: "host files.example.com is none that files may be fetched from, and " +
			"providers are handed only https URLs of public hosts"},
		"https://a@files.example.com/": {Problem: "its URL is not valid"},
	} {
		if f := r.fetch(t.Context(), raw); string(f.Data) != string(want.Data) || f.URL != want.URL ||
			f.Problem != want.Problem {
			t.Errorf("%s: got %q, %q, %q", raw, f.Data, f.URL, f.Problem)
		}
	}
	// A public host that is allowed is asked from here.
	r.options.HTTP = &http.Client{Transport: answering("from here")}
	if f := r.fetch(t.Context(), "https://a.allowed.example/a"); string(f.Data) != "from here" || f.URL != "" {
		t.Errorf("got %q, %q", f.Data, f.URL)
	}
	check.Equal(t, "calls", 1, len(asked))
}

// answering answers each request with a text.
type answering string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(a))), Request: r}, nil
}

func TestAURLThatIsHandedOnNeedsNoRoom(t *testing.T) {
	r := reader()
	messages := make([]v1alpha1.ChatMessage, 2)
	for i, f := range []v1alpha1.MessageFile{{URL: "https://files.example.com/a"}, {Data: full}} {
		messages[i] = v1alpha1.ChatMessage{Spec: v1alpha1.ChatMessageSpec{Role: v1alpha1.RoleUser,
			Parts: []v1alpha1.MessagePart{{Type: v1alpha1.PartFile, File: &f}}}}
		messages[i].Name = fmt.Sprint(i)
	}
	if f := r.Files(t.Context(), "ns", messages)[prompt.FileKey{Message: "0"}]; f.URL != "https://files.example.com/a" {
		t.Errorf("got %+v", f)
	}
}
