// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/kit/check"
)

// repliedLast is a conversation in which the model has the last word, and askedLast one in which it has not.
const (
	repliedLast = `[{"role":"user","content":"why?"},{"role":"assistant","content":"because"}]`
	askedLast   = `[{"role":"user","content":"why?"}]`
)

var history = []v1alpha1.PriorMessage{{Role: v1alpha1.RoleUser, Content: "why?"},
	{Role: v1alpha1.RoleAssistant, Content: "because"}}

func TestAnImportedChatWaitsForAMessage(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	file := filepath.Join(t.TempDir(), "messages.json")
	check.OK(t, os.WriteFile(file, []byte(repliedLast), 0o600))
	c := p.run("import", file, "again", "--title", "Once more", "--class", "reviewer")
	c.shows("chat.parley.dev/again created from 2 messages\n")
	chat, m := p.created("again"), p.sent()
	if chat.Spec.Title != "Once more" || chat.Spec.ChatClassName != "reviewer" || chat.Spec.Prompt != "" {
		t.Errorf("created %+v", chat.Spec)
	}
	if diff := cmp.Diff(history, m.Spec.History); diff != "" || m.Spec.ChatRef.Name != "again" {
		t.Errorf("%s is told (-want +got):\n%s", m.Spec.ChatRef.Name, diff)
	}
	for prefix, args := range map[string]string{"chat-": "import - -o name",
		"made-": "import - made- --prompt x --no-follow -o name"} {
		p.start("token", repliedLast, strings.Fields(args)...).shows("chat.parley.dev/" + p.created(prefix).Name + "\n")
	}
}

func TestAnExportIsImportedAsItWas(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	evil := "two\x1b[2J\u202e\n\"}]}\n{\"type\":\"chat\"}"
	p.said("first", "one")
	p.note("n", "remember", 2)
	p.said("second", evil)
	p.chat.Status.Title = "A\x1b[2J title\nof somebody " + strings.Repeat("x", 40)
	p.updateStatus(p.chat)
	p.start("token", p.exact("export", "triage", "-o", "jsonl"), "import", "-", "again").
		shows("chat.parley.dev/again created from 4 messages\n", "▎[1 note left out")
	if title := p.created("again").Spec.Title; !strings.HasPrefix(title, "A [2J title of somebody xxx") {
		t.Errorf("the title is %q", title)
	}
	want := []v1alpha1.PriorMessage{{Role: v1alpha1.RoleUser, Content: "one"},
		{Role: v1alpha1.RoleAssistant, Content: "the answer to one"}, {Role: v1alpha1.RoleUser, Content: evil},
		{Role: v1alpha1.RoleAssistant, Content: "the answer to " + evil}}
	if diff := cmp.Diff(want, p.sent().Spec.History); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestImportShowsTheRequestedReply(t *testing.T) {
	t.Parallel()
	for flags, c := range map[string]struct{ file, asked, messages string }{
		"--prompt and?": {repliedLast, "and?", "2 messages"},
		"--answer":      {askedLast, "", "1 message"},
	} {
		t.Run(flags, func(t *testing.T) {
			p := newPerson(t)
			args := strings.Fields("--gateway " + p.gateway + " import - again " + flags)
			imported := p.start("token", c.file, args...)
			p.created("again")
			var m *v1alpha1.ChatMessage
			for m = p.sent(); m.Spec.Content != c.asked; m = p.sent() {
				m.Status.State = v1alpha1.MessageCommitted // The history is taken up first.
				p.updateStatus(m)
			}
			p.begin(m)
			p.answer(m, "so be it")
			if err := imported.wait(); err != nil || imported.out.String() != "so be it\n" ||
				imported.errOut.String() != "▎[chat.parley.dev/again created from "+c.messages+"]\n" {
				t.Errorf("shown %q, noted %q, %v", imported.out.String(), imported.errOut.String(), err)
			}
		})
	}
}

func TestAnImportThatWillNotDoLeavesNothing(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	long := `[` + strings.Repeat(repliedLast[1:len(repliedLast)-1]+",", 512) + repliedLast[1:]
	for _, c := range []struct {
		args, file, want string
		code             int
	}{
		{"import -", askedLast, "does not end with a reply", exitUsage},
		{"import - --answer --prompt x", repliedLast, "exclude each other", exitUsage},
		{"import /no/such/file", "", "no such file", exitUsage},
		{"import -", "# Triage", "standard input cannot be imported: it is neither an export", exitFailed},
		{"import -", long, "--truncate leaves the oldest 2 out", exitFailed},
		{"import - triage", repliedLast, "already exists", exitConflict},
		{"import - again", `[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":""}}]}]`,
			"telling the chat its conversation", exitFailed},
	} {
		p.start("token", c.file, strings.Fields(c.args)...).exits(c.code, c.want)
	}
	var chats v1alpha1.ChatList
	if err := p.c.List(t.Context(), &chats, client.InNamespace(p.namespace)); err != nil || len(chats.Items) != 1 {
		t.Errorf("%d chats are left, %v", len(chats.Items), err)
	}
	p.start("token", long, "import", "-", "short", "--truncate").
		shows("chat.parley.dev/short created from 1024 messages\n", "▎[2 messages left out: the oldest")
}
