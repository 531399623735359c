// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page serves the page on which people use chats: plain modules of JavaScript, without a build. It uses the
// gateway's streams and operations with the token of its reader. docs/how-to/page.md describes it.
package page

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"embed"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"
)

// Path is where the page is served.
const Path = "/ui/"

// policy allows the page to load and call only its own origin. No text becomes HTML or a script. An image is a link,
// unless the chat has its data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; frame-src 'self'; " +
	"img-src 'self' data: blob:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; " +
	"require-trusted-types-for 'script'; trusted-types 'none'"

// diagramFrame is the document that draws diagrams. The page loads it into a sandboxed frame, because the library
// makes HTML of texts.
const diagramFrame = "frame/diagram.html"

//go:embed ui
var embedded embed.FS

// Login is how the page gets its reader's credentials.
type Login string

const (
	// LoginToken asks the reader to paste a token of the cluster.
	LoginToken Login = "token"
	// LoginOIDC sends the reader to an OpenID provider: see package signin.
	LoginOIDC Login = "oidc"
	// LoginLink exchanges the code in the link that kubectl chat ui prints.
	LoginLink Login = "link"
)

// file is one of the page, as it is served.
type file struct {
	content []byte
	etag    string
	media   string
	policy  string
	// compressed is the content in gzip, which is made for the first reader.
	compressed func() []byte
}

// Handler serves the page below Path.
func Handler(login Login) http.Handler {
	files := map[string]file{"mode.json": made("mode.json", fmt.Appendf(nil, "{\"login\":%q}\n", login))}
	err := fs.WalkDir(embedded, "ui", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		content, err := embedded.ReadFile(name)
		files[strings.TrimPrefix(name, "ui/")] = made(name, content)
		return err
	})
	if err != nil {
		panic(fmt.Sprintf("reading the page: %v", err)) // Cannot happen: it is part of the program.
	}
	const library, drawing = "vendor/mermaid.tiny.js", "frame/diagram.js"
	files[diagramFrame] = frame(files[library].content, files[drawing].content)
	delete(files, library) // It is too large to keep twice, and no other document needs it.
	delete(files, drawing)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		Guard(w.Header())
		name := strings.TrimPrefix(r.URL.Path, Path)
		if name == "" {
			name = "index.html"
		}
		found, ok := files[name]
		switch {
		case r.Method != http.MethodGet && r.Method != http.MethodHead:
			w.Header().Set("Allow", "GET, HEAD")
			http.Error(w, "the page is only read", http.StatusMethodNotAllowed)
		case !ok:
			http.Error(w, "the page has no such file", http.StatusNotFound)
		default:
			if found.policy != "" {
				w.Header().Set("Content-Security-Policy", found.policy)
			}
			found.serve(w, r)
		}
	})
}

// serve answers with the file, in gzip if the reader accepts that.
func (f *file) serve(w http.ResponseWriter, r *http.Request) {
	content, etag := f.content, f.etag
	if strings.Contains(r.Header.Get("Accept-Encoding"), "gzip") {
		content, etag = f.compressed(), strings.TrimSuffix(etag, `"`)+`-gzip"`
		w.Header().Set("Content-Encoding", "gzip")
	}
	w.Header().Set("Vary", "Accept-Encoding")
	w.Header().Set("Content-Type", f.media)
	w.Header().Set("ETag", etag)
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(content))
}

// Guard sets the headers that isolate an answer from other origins.
func Guard(h http.Header) {
	h.Set("Content-Security-Policy", policy)
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Permissions-Policy", "camera=(), geolocation=(), microphone=()")
	h.Set("Cache-Control", "no-cache")
}

// frame is a document of these scripts, which may run no other ones and reach no network, also not the gateway.
func frame(scripts ...[]byte) file {
	document, sources := []byte("<!doctype html><meta charset=\"utf-8\"><title>Diagram</title>"), ""
	for _, script := range scripts {
		document = fmt.Appendf(document, "<script>%s</script>", script)
		sum := sha256.Sum256(script)
		sources += " 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
	}
	made := made(diagramFrame, document)
	made.policy = "default-src 'none'; script-src" + sources + "; style-src 'unsafe-inline'; sandbox allow-scripts; " +
		"base-uri 'none'; form-action 'none'; frame-ancestors 'self'"
	return made
}

func made(name string, content []byte) file {
	sum := sha256.Sum256(content)
	media := map[string]string{".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
		".html": "text/html; charset=utf-8", ".json": "application/json"}[path.Ext(name)]
	if media == "" {
		media = mime.TypeByExtension(path.Ext(name))
	}
	if media == "" {
		media = "text/plain; charset=utf-8"
	}
	return file{content: content, etag: `"` + hex.EncodeToString(sum[:16]) + `"`, media: media,
		compressed: sync.OnceValue(func() []byte { return compress(content) })}
}

func compress(content []byte) []byte {
	var out bytes.Buffer
	to := gzip.NewWriter(&out)
	_, _ = to.Write(content) // A buffer takes everything.
	_ = to.Close()
	return out.Bytes()
}
