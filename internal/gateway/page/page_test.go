// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package page

import (
	"compress/gzip"
	"errors"
	"io"
	"io/fs"
	"net/http/httptest"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func get(path string, header ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest("GET", path, nil)
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w := httptest.NewRecorder()
	Handler(LoginToken).ServeHTTP(w, r)
	return w
}

func TestEveryAnswerHasItsPolicy(t *testing.T) {
	for path, media := range map[string]string{"/ui/": "text/html", "/ui/js/app.js": "text/javascript",
		"/ui/css/base.css":                   "text/css",
		"/ui/vendor/highlight.min.mjs":       "text/javascript",
		"/ui/vendor/markdown-it.esm.min.mjs": "text/javascript", "/ui/mode.json": "application/json",
		"/ui/icon.svg": "image/svg+xml",
		"/ui/none":     "text/plain", "/ui/../page.go": "text/plain"} {
		w := get(path)
		h := w.Header()
		if !strings.HasPrefix(h.Get("Content-Type"), media) || (media == "text/plain") != (w.Code == 404) {
			t.Errorf("%s: %d, %s", path, w.Code, h.Get("Content-Type"))
		}
		for name, want := range map[string]string{"Content-Security-Policy": "default-src 'none'; script-src 'self';",
			"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cross-Origin-Opener-Policy": "same-origin",
			"Cross-Origin-Resource-Policy": "same-origin", "Cache-Control": "no-cache"} {
			if !strings.HasPrefix(h.Get(name), want) {
				t.Errorf("%s: %s is %q", path, name, h.Get(name))
			}
		}
	}
	if csp := get("/ui/").Header().Get("Content-Security-Policy"); strings.Contains(csp, "unsafe") ||
		!strings.Contains(csp, "require-trusted-types-for 'script'") || !strings.Contains(csp, "frame-ancestors 'none'") {
		t.Errorf("the policy is %s", csp)
	}
}

// Security (the page): cannot be reached, nor can any network, from the frame that draws diagrams.
func TestDiagramFrameReachesNothing(t *testing.T) {
	w := get("/ui/frame/diagram.html")
	got := regexp.MustCompile(`'sha256-[^']+'`).ReplaceAllString(w.Header().Get("Content-Security-Policy"), "HASH")
	want := "default-src 'none'; script-src HASH HASH; style-src 'unsafe-inline'; sandbox allow-scripts; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
	if got != want {
		t.Errorf("the policy is %s", got)
	}
	if n := strings.Count(strings.ToLower(w.Body.String()), "</script"); n != 2 {
		t.Errorf("the document ends %d scripts", n)
	}
}

func TestWhatABrowserHasIsNotSentAgain(t *testing.T) {
	tag := get("/ui/js/app.js").Header().Get("ETag")
	if w := get("/ui/js/app.js", "If-None-Match", tag); w.Code != 304 || w.Body.Len() > 0 {
		t.Errorf("%d with %d bytes", w.Code, w.Body.Len())
	}
	if w := get("/ui/js/app.js", "If-None-Match", `"another"`); w.Code != 200 {
		t.Errorf("of another version: %d", w.Code)
	}
}

// forbidden is what makes text into HTML or a script, and what a policy without unsafe-inline refuses.
var forbidden = regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|setHTML|document\.write|\beval\(|new Function|` +
	`createContextualFragment|DOMParser|srcdoc|javascript:|\son[a-z]+="|<script>|\sstyle="|document\.cookie`)

// unused is what libraries have, and the page does not use; the policy refuses it, too. The parser of Markdown refuses
// addresses by their beginning, and a grammar of highlight.js has a rule of that name. Its innerHTML is in
// highlightElement, in place of which the page makes elements of tokens.
var unused = map[string][]string{"ui/vendor/markdown-it.esm.min.mjs": {"javascript:"},
	"ui/vendor/highlight.min.mjs": {"innerHTML", "javascript:"},
	// It runs where nothing else is.
	"ui/frame/diagram.js": {"innerHTML"},
	// The page makes elements of its tree.
	"ui/vendor/temml.min.mjs": {` style="`}}

// lazy are libraries that are loaded by the first message that needs them; mermaid runs in its frame alone.
var lazy = []string{"ui/vendor/mermaid.tiny.js", "ui/vendor/temml.min.mjs"}

// Security (the page): cannot be made by the texts that it shows to run or load them, or take them as HTML. Also
// TestEveryAnswerHasItsPolicy of internal/gateway/page.
func TestNoTextCanBecomeHTML(t *testing.T) {
	seen := 0
	err := fs.WalkDir(embedded, "ui", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, ".LICENSE") {
			return err
		}
		content, err := embedded.ReadFile(name)
		if name == "ui/vendor/mermaid.tiny.js" {
			return err
		}
		for _, found := range forbidden.FindAllString(string(content), -1) {
			if !slices.Contains(unused[name], found) {
				t.Errorf("%s has %q", name, found)
			}
		}
		seen++
		return err
	})
	if err != nil || seen < 20 {
		t.Errorf("looked at %d files, %v", seen, err)
	}
}

// maxTransfer is what a browser may load before it shows a chat, compressed as a proxy does it.
const maxTransfer = 300 << 10

func TestThePageIsSmall(t *testing.T) {
	var out countingWriter
	packed := gzip.NewWriter(&out)
	err := fs.WalkDir(embedded, "ui", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || strings.HasSuffix(name, ".LICENSE") || slices.Contains(lazy, name) {
			return err
		}
		content, err := embedded.ReadFile(name)
		_, _ = packed.Write(content) // It counts, and cannot fail.
		return errors.Join(err, packed.Flush())
	})
	t.Logf("the page has %d KiB, compressed", out>>10)
	if err != nil || out > maxTransfer {
		t.Errorf("the page has %d bytes, compressed, %v", out, err)
	}
}

type countingWriter int

func (n *countingWriter) Write(p []byte) (int, error) {
	*n += countingWriter(len(p))
	return len(p), nil
}

func TestReaderOfGzipGetsFilesCompressed(t *testing.T) {
	plain := get("/ui/js/app.js")
	w := get("/ui/js/app.js", "Accept-Encoding", "gzip, br")
	if w.Header().Get("Content-Encoding") != "gzip" || w.Header().Get("ETag") == plain.Header().Get("ETag") {
		t.Fatalf("the headers are %v", w.Header())
	}
	from, err := gzip.NewReader(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if got, err := io.ReadAll(from); err != nil || string(got) != plain.Body.String() {
		t.Errorf("read were %d bytes (%v), want %d", len(got), err, plain.Body.Len())
	}
	again := get("/ui/js/app.js", "Accept-Encoding", "gzip", "If-None-Match", w.Header().Get("ETag"))
	if again.Code != 304 {
		t.Errorf("the second answer is %d", again.Code)
	}
}
