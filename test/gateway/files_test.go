// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gateway

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/token"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/sources"
	"parley.dev/parley/internal/pods/podspec"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// TestGenerationPodReadsUploadedFile reads it with the token and the Role that generation pods have.
func TestGenerationPodReadsUploadedFile(t *testing.T) {
	w := newWorldOf(t, 1, "--archive-url=file://"+t.TempDir()+"?no_tmp_dir=true")
	role, binding := podspec.Role(w.namespace), podspec.RoleBinding(w.namespace)
	cluster.Create(t, role)
	cluster.Create(t, binding)
	cluster.Create(t, chattest.In(w.namespace, chattest.Chat("c")))
	content := bytes.Repeat([]byte("0123456789abcdef"), 200<<10/16*10)
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	request, err := http.NewRequestWithContext(t.Context(), http.MethodPut,
		w.gateway.URL+"/v1beta1/namespaces/"+w.namespace+"/chats/c/files/"+digest, bytes.NewReader(content))
	check.OK(t, err)
	request.Header.Set("Authorization", "Bearer "+w.person("anna", "parley-chat-user"))
	answer, err := http.DefaultClient.Do(request)
	check.OK(t, err)
	check.OK(t, answer.Body.Close())
	check.Equal(t, "status of the upload", http.StatusNoContent, answer.StatusCode)

	message := chattest.In(w.namespace, chattest.User("c", "m"))
	message.Spec.Role, message.Spec.Content = v1beta1.RoleUser, ""
	message.Spec.Parts = []v1beta1.MessagePart{{Type: v1beta1.PartFile, File: &v1beta1.MessageFile{Name: "f.png",
		MediaType: "image/png", Stored: &v1beta1.StoredFile{SHA256: digest, Size: int64(len(content))}}}}
	cluster.Create(t, message)
	file := filepath.Join(t.TempDir(), "token")
	check.OK(t, os.WriteFile(file, []byte(cluster.Token(t, w.namespace, podspec.ServiceAccount, token.Audience)), 0o600))
	reader := sources.New(sources.Options{Now: time.Now,
		Gateway: &sources.Gateway{URL: w.gateway.URL, TokenFile: file, HTTP: &http.Client{}}})
	read, err := reader.Files(t.Context(), w.namespace, []v1beta1.ChatMessage{*message})
	check.OK(t, err)
	if got := read[prompt.FileKey{Message: "m"}]; got.Problem != "" || !bytes.Equal(got.Data, content) {
		t.Errorf("read %d bytes: %s", len(got.Data), got.Problem)
	}
}
