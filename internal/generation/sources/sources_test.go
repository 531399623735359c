// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"cmp"
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/internal/text/skill"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/modelserver"
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
func message(name string, f v1beta1.MessageFile) v1beta1.ChatMessage {
	return *chattest.User("c", name, func(m *v1beta1.ChatMessage) {
		m.Spec.Role, m.Spec.Parts = v1beta1.RoleUser, []v1beta1.MessagePart{{Type: v1beta1.PartFile, File: &f}}
	})
}

func TestNewestFilesAreReadWhileRoomLasts(t *testing.T) {
	server, asked := host(t)
	r := reader(strings.TrimPrefix(server.URL, "http://"))

	files, err := r.Files(t.Context(), "ns", []v1beta1.ChatMessage{
		message("old", v1beta1.MessageFile{URL: server.URL + "/here"}), message("full", v1beta1.MessageFile{Data: full}),
		message("new", v1beta1.MessageFile{URL: server.URL + "/a"}),
	})
	check.OK(t, err)
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
	files, err := reader().Files(t.Context(), "ns", []v1beta1.ChatMessage{
		message("0", v1beta1.MessageFile{URL: "https://files.example.com/a"}),
		message("1", v1beta1.MessageFile{Data: full})})
	check.OK(t, err)
	check.Equal(t, "the URL", "https://files.example.com/a", files[prompt.FileKey{Message: "0"}].URL)
}

// newReader reads from an API server with these ConfigMaps.
func newReader(t *testing.T, all map[string]*apiclient.ConfigMap) *Reader {
	t.Helper()
	api := modeltest.New(t, modelserver.Script{})
	api.ConfigMaps = all
	return New(Options{Client: api.API, Now: time.Now})
}

func skillIn(name string, items ...v1beta1.SkillItem) v1beta1.SkillSource {
	return v1beta1.SkillSource{ConfigMapRef: v1beta1.ConfigMapReference{Name: name}, Items: items}
}

func optional(s v1beta1.SkillSource) v1beta1.SkillSource {
	s.Optional = true
	return s
}

func item(key, path string) v1beta1.SkillItem { return v1beta1.SkillItem{Key: key, Path: path} }

func TestAConfigMapIsASkill(t *testing.T) {
	r := newReader(t, map[string]*apiclient.ConfigMap{
		"forms": {Data: map[string]string{"SKILL.md": "---\nname: pdf\ndescription: Fills in forms.\n---\n", "fill.py": "x",
			"mail.md": "---\nname: mail\n---\n", ".hidden": "x", "..x": "x"}, BinaryData: map[string][]byte{"logo.png": {0}}},
		"bare":  {Data: map[string]string{"SKILL.md": "Do it."}},
		"empty": {Data: map[string]string{"a": "x"}},
	})
	for name, c := range map[string]struct {
		from []v1beta1.SkillSource
		want []string
		err  string
	}{
		"each key is a file of its name": {[]v1beta1.SkillSource{skillIn("forms")},
			[]string{"pdf: Fills in forms. [SKILL.md fill.py logo.png mail.md]"}, ""},
		"it has the name of its ConfigMap if it says none": {[]v1beta1.SkillSource{skillIn("bare")},
			[]string{"bare:  [SKILL.md]"}, ""},
		"items put keys in folders": {[]v1beta1.SkillSource{skillIn("forms", item("fill.py", "scripts/fill.py"))},
			[]string{"pdf: Fills in forms. [SKILL.md scripts/fill.py]"}, ""},
		"items name another SKILL.md": {[]v1beta1.SkillSource{skillIn("forms", item("mail.md", "SKILL.md")),
			skillIn("forms")},
			[]string{"mail:  [SKILL.md]", "pdf: Fills in forms. [SKILL.md fill.py logo.png mail.md]"}, ""},
		"items that lead elsewhere are no files": {[]v1beta1.SkillSource{skillIn("bare", item("SKILL.md", "../x"),
			item("SKILL.md", "/x"), item("SKILL.md", "./x"), item("SKILL.md", "a/.x"))}, []string{"bare:  [SKILL.md]"}, ""},
		"two of the same name": {[]v1beta1.SkillSource{skillIn("bare"), skillIn("bare")},
			[]string{"bare:  [SKILL.md]", "bare-2:  [SKILL.md]"}, ""},
		"a ConfigMap that is not there": {[]v1beta1.SkillSource{skillIn("none")}, nil, "ConfigMap none: it does not exist"},
		"a ConfigMap without SKILL.md": {[]v1beta1.SkillSource{skillIn("empty")}, nil,
			`ConfigMap empty: it has no key "SKILL.md"`},
		"an item that is not there": {[]v1beta1.SkillSource{skillIn("bare", item("x", "y"))}, nil,
			`ConfigMap bare: it has no key "x"`},
		"optional ones that are not there": {[]v1beta1.SkillSource{optional(skillIn("none")), optional(skillIn("empty")),
			optional(skillIn("bare", item("x", "y")))}, []string{"bare:  [SKILL.md]"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			all, err := r.Skills(t.Context(), "ns", c.from)
			check.Equal(t, "the error", cmp.Or(c.err, "<nil>"), fmt.Sprint(err))
			var got []string
			for _, s := range all {
				files, _, err := s.Files(t.Context())
				check.Equal(t, "error, source, dir", []any{nil, skill.FromConfigMap, ""}, []any{err, s.Source, s.Dir})
				got = append(got, fmt.Sprintf("%s: %s %v", s.Name, s.Description, files))
			}
			check.Equal(t, "the skills", c.want, got)
		})
	}
}

func TestFileOfASkillIsReadOnRequest(t *testing.T) {
	config := &apiclient.ConfigMap{Data: map[string]string{"SKILL.md": "Do it.", "a": "first"},
		BinaryData: map[string][]byte{"large": []byte(strings.Repeat("x", skill.MaxFileBytes+1))}}
	chat := &v1beta1.Chat{}
	chat.Spec.SkillsFrom = []v1beta1.SkillSource{skillIn("gone"), skillIn("s")}
	all, err := newReader(t, map[string]*apiclient.ConfigMap{"s": config}).SkillsOf(t.Context(), chat)
	check.Equal(t, "error, skills of one that is there and one that is not", []any{nil, 1}, []any{err, len(all)})
	config.Data["a"] = "second"
	got, err := all[0].File(t.Context(), "a")
	check.Equal(t, "error, the changed file", []any{nil, "second"}, []any{err, string(got)})
	for path, want := range map[string]error{"b": skill.ErrNoFile, "large": skill.ErrTooLarge} {
		_, err := all[0].File(t.Context(), path)
		check.Equal(t, path, true, errors.Is(err, want))
	}
}

func TestInstructionsAreReadInOrder(t *testing.T) {
	r := newReader(t, map[string]*apiclient.ConfigMap{"rules": {Data: map[string]string{"a": "Rhyme.", "b": "Be brief."}}})
	from := func(name, key string, optional bool) v1beta1.InstructionsSource {
		return v1beta1.InstructionsSource{Optional: optional,
			ConfigMapKeyRef: v1beta1.ConfigMapKeyReference{Name: name, Key: key}}
	}
	got, err := r.Instructions(t.Context(), "ns", []v1beta1.InstructionsSource{from("rules", "b", false),
		from("none", "a", true), from("rules", "c", true), from("rules", "a", false)})
	check.Equal(t, "error, texts", []any{nil, []string{"Be brief.", "Rhyme."}}, []any{err, got})
	_, err = r.Instructions(t.Context(), "ns", []v1beta1.InstructionsSource{from("rules", "c", false)})
	check.Equal(t, "the error", `ConfigMap rules: it has no key "c"`, fmt.Sprint(err))
}
