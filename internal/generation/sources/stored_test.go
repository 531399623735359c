// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package sources

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// storedAs is a message with a stored file.
func storedAs(content string, size int64) []v1beta1.ChatMessage {
	sum := sha256.Sum256([]byte(content))
	m := chattest.User("c", "m")
	m.Spec.Role = v1beta1.RoleUser
	m.Spec.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{Name: "f",
		MediaType: "image/png", Stored: &v1beta1.StoredFile{SHA256: hex.EncodeToString(sum[:]), Size: size}}}}
	return []v1beta1.ChatMessage{*m}
}

func TestStoredFileIsReadFromGateway(t *testing.T) {
	var requests atomic.Int32
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		dir, digest := filepath.Split(r.URL.Path)
		sum := sha256.Sum256([]byte("content"))
		switch {
		case requests.Add(1) == 1:
			http.Error(w, "later", http.StatusServiceUnavailable)
		case r.Header.Get("Authorization") != "Bearer secret" || dir != "/v1beta1/namespaces/ns/chats/c/files/":
			http.Error(w, "no", http.StatusForbidden)
		case digest == hex.EncodeToString(sum[:]):
			_, _ = w.Write([]byte("content"))
		case strings.HasPrefix(digest, "a"):
			_, _ = w.Write([]byte("other"))
		case strings.HasPrefix(digest, "b"):
			_, _ = w.Write(bytes.Repeat([]byte("x"), prompt.MaxFileBytes+1))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(gateway.Close)
	token := filepath.Join(t.TempDir(), "token")
	check.OK(t, os.WriteFile(token, []byte("secret\n"), 0o600))
	r := New(Options{Gateway: &Gateway{URL: gateway.URL + "/", TokenFile: token, HTTP: gateway.Client()}, Now: time.Now})
	ask := func(namespace, digest string, size int64) (prompt.File, error) {
		messages := storedAs("content", size)
		if digest != "" {
			messages[0].Spec.Parts[0].File.Stored.SHA256 = strings.Repeat(digest, 64)
		}
		files, err := r.Files(t.Context(), namespace, messages)
		return files[prompt.FileKey{Message: "m", Part: 0}], err
	}
	read := func(namespace, digest string, size int64) prompt.File {
		f, err := ask(namespace, digest, size)
		check.OK(t, err)
		return f
	}
	for range 2 { // It is asked for once more after the error, and then kept.
		check.Equal(t, "file", prompt.File{Data: []byte("content")}, read("ns", "", 7))
	}
	check.Equal(t, "requests", 2, requests.Load())
	for name, c := range map[string]struct {
		got     prompt.File
		problem string
	}{
		"unknown":   {read("ns", "c", 7), "it was not uploaded for this chat, or is deleted"},
		"damaged":   {read("ns", "a", 7), "its content is not what was uploaded"},
		"longer":    {read("ns", "b", 7), tooLarge},
		"too large": {read("ns", "", prompt.MaxFileBytes+1), tooLarge},
	} {
		check.Equal(t, name, prompt.File{Problem: c.problem}, c.got)
	}
	before := requests.Load()
	_, err := ask("other", "", 7)
	if _, ok := errors.AsType[*GatewayError](err); !ok || err.Error() != "the gateway answered 403" {
		t.Errorf("a refused request fails with %v", err)
	}
	check.Equal(t, "requests that were refused", before+1, requests.Load())
	r.options.Gateway = nil
	check.Equal(t, "no gateway", prompt.File{Problem: "the installation stores no files"}, read("ns", "", 7))
}
