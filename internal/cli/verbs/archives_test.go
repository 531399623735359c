// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/archive"
	"parley.dev/parley/test/kit/check"
)

// archived archives a chat of the name, which is no longer in the cluster.
func (p *person) archived(name, uid, title string, messages ...*v1beta1.ChatMessage) {
	p.t.Helper()
	chat := &v1beta1.Chat{ObjectMeta: p.meta(name)}
	chat.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("Chat"))
	chat.UID, chat.CreationTimestamp = types.UID(uid), metav1.NewTime(time.Date(2026, 11, 19, 0, 0, 0, 0, time.UTC))
	chat.Status.Title, chat.Status.ChatClass = title, &v1beta1.AppliedChatClass{Name: "coder"}
	_, err := p.archive.Write(p.t.Context(), chat, func(yield func(archive.Object, error) bool) {
		for more := yield(chat, nil); more && len(messages) > 0; messages = messages[1:] {
			more = yield(messages[0], nil)
		}
	})
	check.OK(p.t, err)
}

func TestArchivesAreListedPrintedAndDeleted(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	run := func(args ...string) *command { return p.run(append(args, "--gateway", p.gateway)...) }
	p.start("certificate", "", "archives").exits(exitFailed, "name a service account with --service-account")
	run("archives").shows("", "No archives found in namespace "+p.namespace)
	p.archived("old", "u1", "Why")
	p.archived("other", "u2", "Why")
	list := run("archives", "list", "--created", "2026-11")
	list.succeeds()
	lines := strings.Split(strings.TrimSpace(list.out.String()), "\n")
	if fields := strings.Fields(lines[1]); len(lines) != 3 || strings.Join(fields[:5], " ") != "old u1 coder 1 0" ||
		fields[6] != "2026-11-19" || fields[8] != "Why" {
		t.Errorf("listed are %q", lines)
	}
	run("archives", "--created", "2025").shows("", "No archives found")
	got := run("archives", "get", "old")
	got.succeeds()
	var objects struct{ Items []v1beta1.Chat }
	if err := json.Unmarshal([]byte(got.out.String()), &objects); err != nil || len(objects.Items) != 1 ||
		objects.Items[0].Name != "old" {
		t.Errorf("printed is %s: %v", got.out.String(), err)
	}
	p.archived("old", "u3", "Why")
	run("archives", "get", "old").exits(exitUsage, "name one of old/u1, old/u3")
	run("archives", "delete", "old/u1").shows("archive of chat old deleted\n")
	run("archives", "get", "old/u1").exits(exitNotFound, "there is no archive of chat old/u1")
	run("archives", "get", "old").succeeds()
	run("archives", "restore", "old").shows("Chat old in namespace " + p.namespace + " restored, with 0 messages\n")
	var restored v1beta1.Chat
	check.OK(t, p.c.Get(t.Context(), client.ObjectKey{Namespace: p.namespace, Name: "old"}, &restored))
	if restored.UID == "u3" || restored.Status.Title != "Why" {
		t.Errorf("restored is %+v", restored)
	}
}

func TestFilesOfArchiveAreRestored(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	content := strings.Repeat("large ", 1<<18)
	sum := sha256.Sum256([]byte(content))
	stored := v1beta1.StoredFile{SHA256: hex.EncodeToString(sum[:]), Size: int64(len(content))}
	check.OK(t, p.archive.Files().Write(t.Context(), p.namespace, "u1", stored, strings.NewReader(content)))
	missing := v1beta1.StoredFile{SHA256: strings.Repeat("a", 64), Size: 1}
	note := &v1beta1.ChatMessage{ObjectMeta: p.meta("note")}
	note.SetGroupVersionKind(v1beta1.GroupVersion.WithKind("ChatMessage"))
	note.UID, note.Spec.ChatRef.Name, note.Spec.Visibility = "u2", "old", v1beta1.VisibleToUsers
	note.Spec.Role = v1beta1.RoleUser
	for _, file := range []*v1beta1.StoredFile{&stored, &missing} {
		note.Spec.Parts = append(note.Spec.Parts, v1beta1.MessagePart{Type: v1beta1.PartFile,
			File: &v1beta1.MessageFile{Name: "f", MediaType: "image/png", Stored: file}})
	}
	p.archived("old", "u1", "Why", note)
	check.OK(t, p.archive.Files().DeleteAll(t.Context(), p.namespace, "u1"))
	p.run("archives", "restore", "old", "--gateway", p.gateway).succeeds()
	restored := &v1beta1.Chat{ObjectMeta: p.meta("old")}
	p.get(restored)
	var files []string
	for f, err := range p.archive.Files().List(t.Context(), p.namespace, string(restored.UID)) {
		check.OK(t, err)
		files = append(files, f.SHA256)
	}
	check.Equal(t, "files", []string{stored.SHA256}, files)
}
