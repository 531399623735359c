// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/rest"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/test/kit/check"
)

func TestSendAttachesFilesOfEachSize(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	dir := t.TempDir()
	write := func(name string, size int) string {
		path := filepath.Join(dir, name)
		check.OK(t, os.WriteFile(path, []byte(strings.Repeat("a log\n", size/6+1)[:size]), 0o600))
		return path
	}
	small, large, empty := write("small.log", 100), write("large.png", 1<<20), write("empty.log", 0)
	send := func(args ...string) *command {
		return p.run(append([]string{"send", "triage", "--no-follow", "--gateway", p.gateway}, args...)...)
	}
	send("Look:", "--file", small, "--file", large).succeeds()
	message := find(p, "the message", &v1beta1.ChatMessageList{}, func(m *v1beta1.ChatMessage) bool {
		return len(m.Spec.Parts) == 3
	})
	parts := message.Spec.Parts
	if *parts[0].Text != "Look:" || parts[1].File.Name != "small.log" || parts[1].File.Data == "" ||
		!strings.HasPrefix(parts[1].File.MediaType, "text/") || parts[2].File.MediaType != "image/png" ||
		parts[2].File.Stored.Size != 1<<20 {
		t.Errorf("the parts are %+v", parts)
	}
	from, err := p.archive.Files().Open(t.Context(), p.namespace, string(p.chat.UID), parts[2].File.Stored.SHA256)
	check.OK(t, err)
	check.Equal(t, "size in the store", int64(1<<20), from.Size())
	check.OK(t, from.Close())
	send("--file", large).succeeds() // Without a text.
	send("--file", empty).exits(exitUsage, "is empty")
	send("--file", filepath.Join(dir, "none")).exits(exitUsage, "no such file")
	send("--file", write("huge.bin", v1beta1.MaxStoredFileBytes+1)).exits(exitUsage, "larger than 3.5 MiB")
	var huge []string
	for _, name := range []string{"a.bin", "b.bin", "c.bin"} {
		huge = append(huge, "--file", write(name, v1beta1.MaxStoredFileBytes-len(huge)))
	}
	send(huge...).exits(exitForbidden, "10Mi of files")
}

func TestNewChatBeginsWithFiles(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	path := filepath.Join(t.TempDir(), "large.png")
	check.OK(t, os.WriteFile(path, make([]byte, 1<<20), 0o600))
	p.run("new", "fresh", "Look:", "--no-follow", "--gateway", p.gateway, "--file", path).succeeds()
	message := find(p, "the message", &v1beta1.ChatMessageList{}, func(m *v1beta1.ChatMessage) bool {
		return m.Spec.ChatRef.Name == "fresh"
	})
	if parts := message.Spec.Parts; len(parts) != 2 || *parts[0].Text != "Look:" || parts[1].File.Stored == nil {
		t.Errorf("the parts are %+v", parts)
	}
	chat := &v1beta1.Chat{ObjectMeta: p.meta("fresh")}
	p.get(chat)
	check.Equal(t, "prompt", "", chat.Spec.Prompt)
}

func TestPageReachesFilesByGateway(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	server := httptest.NewServer(gatewayOf(&cluster.Dialer{Options: cluster.GatewayOptions{URL: p.gateway},
		Namespace: p.namespace, Config: &rest.Config{BearerToken: p.token()}}))
	t.Cleanup(server.Close)
	content := strings.Repeat("x", 1<<20)
	sum := sha256.Sum256([]byte(content))
	at := server.URL + "/v1beta1/namespaces/" + p.namespace + "/chats/triage/files/" + hex.EncodeToString(sum[:])
	for method, status := range map[string]int{http.MethodPut: http.StatusNoContent, http.MethodGet: http.StatusOK} {
		if method == http.MethodGet { // In either order.
			check.OK(t, p.archive.Files().Write(t.Context(), p.namespace, string(p.chat.UID),
				v1beta1.StoredFile{SHA256: hex.EncodeToString(sum[:]), Size: 1 << 20}, strings.NewReader(content)))
		}
		request, err := http.NewRequestWithContext(t.Context(), method, at, strings.NewReader(content))
		check.OK(t, err)
		request.Header.Set("Origin", "http://127.0.0.1:1")
		answer, err := http.DefaultClient.Do(request)
		check.OK(t, err)
		raw, err := io.ReadAll(answer.Body)
		check.OK(t, errors.Join(err, answer.Body.Close()))
		if answer.StatusCode != status || method == http.MethodGet && string(raw) != content {
			t.Errorf("%s: %d, %.100s", method, answer.StatusCode, raw)
		}
	}
}
