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
	"sync"
	"testing"
	"time"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// full is a file that leaves no room for another.
var full = base64.StdEncoding.EncodeToString(make([]byte, prompt.MaxFilesBytes))

// host is a server of files; asked counts requests for a path.
func host(t *testing.T) (server *httptest.Server, asked func(path string) int) {
	var mu sync.Mutex
	counts := map[string]int{}
	hangs, done := make(chan struct{}), t.Context().Done()
	t.Cleanup(func() { close(hangs) })
	server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		counts[r.URL.Path]++
		mu.Unlock()
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
	return server, func(path string) int {
		mu.Lock()
		defer mu.Unlock()
		return counts[path]
	}
}

func reader(hosts ...string) *Reader {
	return New(Options{HTTP: &http.Client{}, Hosts: hosts, Now: time.Now})
}

func TestWhoFetchesAURLFollowsFromItsHost(t *testing.T) {
	const elsewhere, notHanded = "host %s is none that files may be fetched from",
		", and providers are handed only https URLs of public hosts"
	server, asked := host(t)
	r := reader(strings.TrimPrefix(server.URL, "http://"), "*.allowed.example", "files.allowed.example")
	content := prompt.File{Data: []byte("content")}
	for raw, want := range map[string]prompt.File{
		server.URL + "/a": content, server.URL + "/here": content,
		server.URL + "/there": {Problem: "it redirects to another host"},
		server.URL + "/round": {Problem: "it redirects too often"},
		server.URL + "/gone":  {Problem: "its host answered 404"},
		server.URL + "/large": {Problem: "it is larger than 3.5 MiB"},
		"https://files.example.com/a": {URL: "https://files.example.com/a",
			Problem: fmt.Sprintf(elsewhere, "files.example.com")},
		"https://allowed.example/a": {URL: "https://allowed.example/a",
			Problem: fmt.Sprintf(elsewhere, "allowed.example")},
		"https://files/a":                   {Problem: fmt.Sprintf(elsewhere, "files") + notHanded},
		"http://files.example.com/a":        {Problem: fmt.Sprintf(elsewhere, "files.example.com") + notHanded},
		"https://a@files.allowed.example/":  {Problem: "its URL is not valid"},
		"https:///a":                        {Problem: "its URL is not valid"},
		"https://files.allowed.example/%zz": {Problem: "its URL is not valid"},
	} {
		check.Equal(t, raw, want, r.fetch(t.Context(), raw))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	check.Equal(t, "a host that hangs", "it could not be fetched in time", r.fetch(ctx, server.URL+"/hangs").Problem)
	check.Contains(t, reader().fetch(t.Context(), server.URL+"/not-asked").Problem, notHanded)
	check.Equal(t, "requests to a host that is not allowed", 0, asked("/not-asked"))
	// A public host that is allowed is asked from here.
	r.options.HTTP = &http.Client{Transport: answering("from here")}
	check.Equal(t, "an allowed host", prompt.File{Data: []byte("from here")},
		r.fetch(t.Context(), "https://a.allowed.example/a"))
	r.options.HTTP = &http.Client{}
	server.Close()
	check.Equal(t, "a host that is down", "it could not be fetched", r.fetch(t.Context(), server.URL+"/b").Problem)
}

func TestWhatWasFetchedIsKeptForAWhile(t *testing.T) {
	server, asked := host(t)
	now := time.Unix(0, 0)
	r := reader(strings.TrimPrefix(server.URL, "http://"))
	r.options.Now = func() time.Time { return now }
	for _, want := range []int{1, 1, 2} {
		if want == 2 {
			now = now.Add(keptFor)
		}
		f := r.fetch(t.Context(), server.URL+"/a")
		check.Equal(t, "data, requests", []any{"content", want}, []any{string(f.Data), asked("/a")})
	}
}

func TestWhatIsKeptIsBounded(t *testing.T) {
	var k kept
	for i := range 20 {
		k.put(fmt.Sprint(i), make([]byte, 3<<20), time.Unix(0, 0))
		check.Equal(t, "too much, entries", []any{false, len(k.order)}, []any{k.bytes > keptBytes, len(k.entries)})
	}
	_, ok := k.get("19", time.Unix(0, 0))
	check.Equal(t, "found, order", []any{true, 10}, []any{ok, len(k.order)})
}

// message is a message with a file.
func message(name string, f v1alpha1.MessageFile) v1alpha1.ChatMessage {
	return *chattest.User("c", name, func(m *v1alpha1.ChatMessage) {
		m.Spec.Role, m.Spec.Parts = v1alpha1.RoleUser, []v1alpha1.MessagePart{{Type: v1alpha1.PartFile, File: &f}}
	})
}

func TestNewestFilesAreReadWhileRoomLasts(t *testing.T) {
	server, asked := host(t)
	r := reader(strings.TrimPrefix(server.URL, "http://"))

	files := r.Files(t.Context(), "ns", []v1alpha1.ChatMessage{
		message("old", v1alpha1.MessageFile{URL: server.URL + "/here"}), message("full", v1alpha1.MessageFile{Data: full}),
		message("new", v1alpha1.MessageFile{URL: server.URL + "/a"}),
	})
	check.Equal(t, "the new file", "content", string(files[prompt.FileKey{Message: "new"}].Data))
	check.Equal(t, "the old file", "newer files took the room", files[prompt.FileKey{Message: "old"}].Problem)
	check.Equal(t, "requests for it", 0, asked("/here"))
}

// answering answers each request with a text.
type answering string

func (a answering) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(string(a))), Request: r}, nil
}

func TestURLThatIsHandedOnNeedsNoRoom(t *testing.T) {
	files := reader().Files(t.Context(), "ns", []v1alpha1.ChatMessage{
		message("0", v1alpha1.MessageFile{URL: "https://files.example.com/a"}),
		message("1", v1alpha1.MessageFile{Data: full})})
	check.Equal(t, "the URL", "https://files.example.com/a", files[prompt.FileKey{Message: "0"}].URL)
}
