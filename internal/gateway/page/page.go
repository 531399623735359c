// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package page serves the page on which people use chats: plain modules of JavaScript, without a build. It uses the
// gateway's streams and operations with the token of its reader. docs/how-to/page.md describes it.
package page

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"mime"
	"net/http"
	"path"
	"strings"
	"time"
)

// Path is where the page is served.
const Path = "/ui/"

// policy allows the page to load and call only its own origin. No text becomes HTML or a script. An image is a link,
// unless the message has its data.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

//go:embed ui
var embedded embed.FS

// Login is how the page gets its reader's credentials.
type Login string

const (
	// LoginToken asks the reader to paste a token of the cluster.
	LoginToken Login = "token"
	// LoginLink exchanges the code in the link that kubectl chat ui prints.
	LoginLink Login = "link"
)

// file is one of the page, as it is served.
type file struct {
	content []byte
	etag    string
	media   string
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
			w.Header().Set("Content-Type", found.media)
			w.Header().Set("ETag", found.etag)
			http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(found.content))
		}
	})
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

func made(name string, content []byte) file {
	sum := sha256.Sum256(content)
	media := map[string]string{".js": "text/javascript; charset=utf-8", ".mjs": "text/javascript; charset=utf-8",
		".json": "application/json"}[path.Ext(name)]
	if media == "" {
		media = mime.TypeByExtension(path.Ext(name))
	}
	if media == "" {
		media = "text/plain; charset=utf-8"
	}
	return file{content: content, etag: `"` + hex.EncodeToString(sum[:16]) + `"`, media: media}
}
