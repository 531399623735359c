// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestRedactRemovesTextOfChatAndSubChats(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	sub := chattest.Chat("looks", chattest.ChildOf("triage"), chattest.Prompt("Try hunter2-2026"))
	sub.Namespace = p.namespace
	p.create(sub)
	p.write("m", "The password is hunter2-2026.")
	redact := func(stdin string, args ...string) *command {
		return p.start("certificate", stdin, append([]string{"-n", p.namespace, "redact", "triage"}, args...)...)
	}
	const both = "chats/looks would be redacted: spec.prompt\nchatmessages/m would be redacted: spec.content\n"
	redact("hunter2-2026\n", "--dry-run").shows(both, "")
	redact("hunter2-2026\n").shows(strings.ReplaceAll(both, "would be ", ""), "")
	m := find(p, "the message", &v1beta1.ChatMessageList{}, func(m *v1beta1.ChatMessage) bool { return m.Name == "m" })
	check.Equal(t, "the message", "The password is [redacted].", m.Spec.Content)
	check.OK(t, p.c.Get(t.Context(), client.ObjectKeyFromObject(sub), sub))
	check.Equal(t, "the prompt of the sub-chat", "Try [redacted]", sub.Spec.Prompt)

	redact("hunter2-2026\n").exits(exitFailed, "the text was not found")
	redact("short\n").exits(exitUsage, "less than 6 bytes")
	p.get(p.chat)
	p.chat.Status.Phase = v1beta1.ChatRunning
	p.begin(m)
	redact("password").exits(exitConflict, "chat triage is being answered: wait, or stop it with kubectl chat")
}

func TestRedactRemovesTextOfArchives(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	redact := func(stdin string, args ...string) *command {
		return p.start("token", stdin, append([]string{"--gateway", p.gateway, "archives", "redact"}, args...)...)
	}
	p.archived("old", "u1", "hunter2-2026")
	index := "index/" + p.namespace + "/2026-11-19/old/u1.json"
	entry, err := p.bucket.ReadAll(t.Context(), index)
	check.OK(t, err)
	redact("hunter2-2026\n", "old", "--dry-run").shows("chats/old would be redacted: status.title\n")
	redact("hunter2-2026\n", "old").shows("chats/old redacted: status.title\n")
	redact("hunter2-2026\n", "old").exits(exitFailed, "the text was not found")
	check.OK(t, p.bucket.WriteAll(t.Context(), index, entry, nil)) // As if the redaction had been interrupted.
	redact("hunter2-2026\n", "old", "--dry-run").shows("archives/old would be redacted: index entry\n")
	redact("hunter2-2026\n", "old").shows("archives/old redacted: index entry\n")
	redact("hunter2-2026\n", "old").exits(exitFailed, "the text was not found")
	redact("short\n", "old").exits(exitUsage, "less than 6 bytes")
	redact("hunter2-2026\n", "none").exits(exitNotFound, "there is no archive of chat none")
	got := p.run("archives", "get", "old", "--gateway", p.gateway)
	got.succeeds()
	if text := got.out.String(); strings.Contains(text, "hunter2") || !strings.Contains(text, "[redacted]") {
		t.Errorf("the archive is %s", text)
	}
	p.archived("secret-name", "u1", "Why")
	redact("secret-name\n", "secret-name", "--dry-run").exits(exitFailed,
		"would still be in chats/secret-name metadata.name")
	redact("secret-name\n", "secret-name").exits(exitFailed, "still in chats/secret-name metadata.name")
}

func TestRedactNamesArchivesOfTheChat(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.write("m", "The password is hunter2-2026.")
	p.archived("triage", "u1", "Why")
	p.archived("gone", "u2", "Why")
	redact := func(chat string) *command {
		return p.start("token", "hunter2-2026\n", "--gateway", p.gateway, "redact", chat)
	}
	redact("triage").shows("chatmessages/m redacted: spec.content\n", "An archive of chat triage may have the text, too: ",
		"archives redact triage/u1")
	redact("triage").exits(exitFailed, "the text was not found")
	gone := redact("gone")
	gone.exits(exitNotFound, "has no chat gone")
	check.Contains(t, gone.errOut.String(), "archives redact gone/u2")
}
