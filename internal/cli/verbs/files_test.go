// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
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
	if *parts[0].Text != "Look:" || parts[1].File.Name != "small.log" || !strings.HasPrefix(parts[1].File.MediaType, "text/") ||
		parts[1].File.Data == "" || parts[2].File.MediaType != "image/png" || parts[2].File.Stored.Size != 1<<20 {
		t.Errorf("the parts are %+v", parts)
	}
	from, err := p.archive.Files().Open(t.Context(), p.namespace, string(p.chat.UID), parts[2].File.Stored.SHA256)
	check.OK(t, err)
	check.Equal(t, "size in the store", int64(1<<20), from.Size())
	check.OK(t, from.Close())
	send("--file", large).succeeds() // Without a text.
	send("--file", empty).exits(exitUsage, "is empty")
	send("--file", filepath.Join(dir, "none")).exits(exitUsage, "no such file")
	huge := []string{"--file", write("a.bin", 6<<20), "--file", write("b.bin", 7<<20)}
	send(huge...).exits(exitForbidden, "10Mi of files")
}
