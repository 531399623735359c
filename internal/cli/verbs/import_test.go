// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

// repliedLast is a conversation in which the model has the last word, and askedLast one in which it has not.
const (
	repliedLast = `[{"role":"user","content":"why?"},{"role":"assistant","content":"because"}]`
	askedLast   = `[{"role":"user","content":"why?"}]`
)

var priorMessages = []v1beta1.PriorMessage{{Role: v1beta1.RoleUser, Content: "why?"},
	{Role: v1beta1.RoleAssistant, Content: "because"}}

func TestAnImportedChatWaitsForAMessage(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	file := filepath.Join(t.TempDir(), "messages.json")
	check.OK(t, os.WriteFile(file, []byte(repliedLast), 0o600))
	p.create(chattest.In(p.namespace, chattest.Class("reviewer")))
	c := p.run("import", file, "again", "--title", "Once more", "--class", "reviewer")
	c.shows("chat.parley.dev/again created from 2 messages\n")
	chat, m := p.created("again"), p.sent()
	if chat.Spec.Title != "Once more" || chat.Spec.ChatClassName != "reviewer" || chat.Spec.Prompt != "" {
		t.Errorf("created %+v", chat.Spec)
	}
	if diff := cmp.Diff(priorMessages, m.Spec.History); diff != "" || m.Spec.ChatRef.Name != "again" {
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
	want := []v1beta1.PriorMessage{{Role: v1beta1.RoleUser, Content: "one"},
		{Role: v1beta1.RoleAssistant, Content: "the answer to one"}, {Role: v1beta1.RoleUser, Content: evil},
		{Role: v1beta1.RoleAssistant, Content: "the answer to " + evil}}
	check.Equal(t, "history", want, p.sent().Spec.History)
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
			var m *v1beta1.ChatMessage
			for m = p.sent(); m.Spec.Content != c.asked; m = p.sent() {
				m.Status.State = v1beta1.MessageCommitted // The history is taken up first.
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
		{"import - --file /no/such/file", repliedLast, "the message of --prompt", exitUsage},
		{"import - --answer --file /no/such/file", askedLast, "the message of --prompt", exitUsage},
		{"import - --prompt x --file /no/such/file", repliedLast, "no such file", exitUsage},
		{"import - --class none", repliedLast, "has no ChatClass none", exitNotFound},
		{"import /no/such/file", "", "no such file", exitUsage},
		{"import -", "# Triage", "standard input cannot be imported: it is neither an export", exitFailed},
		{"import -", long, "--truncate leaves the oldest 2 out", exitFailed},
		{"import - triage", repliedLast, "already exists", exitConflict},
		{"import - again", `[{"role":"assistant","tool_calls":[{"id":"1","function":{"name":""}}]}]`,
			"telling the chat its conversation", exitFailed},
	} {
		p.start("token", c.file, strings.Fields(c.args)...).exits(c.code, c.want)
	}
	var chats v1beta1.ChatList
	if err := p.c.List(t.Context(), &chats, client.InNamespace(p.namespace)); err != nil || len(chats.Items) != 1 {
		t.Errorf("%d chats are left, %v", len(chats.Items), err)
	}
	p.start("token", long, "import", "-", "short", "--truncate").
		shows("chat.parley.dev/short created from 1024 messages\n", "▎[2 messages left out: the oldest")
}

func TestImportAttachesFilesToItsPrompt(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	file := filepath.Join(t.TempDir(), "a.log")
	check.OK(t, os.WriteFile(file, []byte("a log"), 0o600))
	p.start("token", repliedLast, "import", "-", "again", "--prompt", "and?", "--file", file, "--no-follow").succeeds()
	m := find(p, "the prompt is sent", &v1beta1.ChatMessageList{}, func(m *v1beta1.ChatMessage) bool {
		return len(m.Spec.History) == 0
	})
	if parts := m.Spec.Parts; len(parts) != 2 || *parts[0].Text != "and?" || parts[1].File.Name != "a.log" {
		t.Errorf("the parts are %+v", parts)
	}
}

// created waits for a chat that the plug-in creates, and has the person's other steps be about it.
func (p *person) created(prefix string) *v1beta1.Chat {
	p.t.Helper()
	p.chat = find(p, "a chat is created", &v1beta1.ChatList{},
		func(c *v1beta1.Chat) bool { return strings.HasPrefix(c.Name, prefix) })
	return p.chat
}

func TestNewShowsTheFirstReply(t *testing.T) {
	t.Parallel()
	for _, kubeconfig := range []string{"token", "certificate"} {
		t.Run("with a "+kubeconfig, func(t *testing.T) {
			p := newPerson(t)
			p.create(chattest.In(p.namespace, chattest.Class("reviewer")))
			p.create(chattest.In(p.namespace, chattest.Config("small")))
			c := p.start(kubeconfig, "a long change", "--gateway", p.gateway, "new", "review", "-", "--class", "reviewer",
				"--model",
				"small", "--title", "A review", "--label", "team=blue", "--mode", "Explore")
			chat := p.created("review")
			s := chat.Spec
			if s.Prompt != "a long change" || s.ChatClassName != "reviewer" || s.ModelConfigRef.Name != "small" ||
				s.Title != "A review" || chat.Labels["team"] != "blue" || s.Mode != v1beta1.ModeExplore {
				t.Errorf("created %+v %+v", chat.Labels, s)
			}
			p.create(&v1beta1.ChatMessage{ObjectMeta: p.meta("review-prompt"), Spec: v1beta1.ChatMessageSpec{
				ChatRef: v1beta1.ChatReference{Name: "review"}, Role: v1beta1.RoleUser, Content: chat.Spec.Prompt}})
			m := p.sent()
			p.begin(m)
			p.answer(m, "looks good")
			c.shows("looks good\n", "▎[chat.parley.dev/review created]\n")
		})
	}
}

func TestNewMakesANameUp(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	for prefix, args := range map[string][]string{"chat-": {"new", "-o", "name"}, "review-": {"new", "review-", "-o",
		"name"},
		"held-": {"new", "held-", "a", "question", "--no-follow", "-o", "name"}} {
		p.run(args...).shows("chat.parley.dev/" + p.created(prefix).Name + "\n")
	}
	p.run("new", "triage").exits(exitConflict, "already exists")
}

func TestNewSaysWhyAChatCannotBegin(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	c := p.run("--gateway", p.gateway, "new", "stuck", "a question")
	chat := p.created("stuck")
	chat.Status.Conditions = ready(metav1.ConditionFalse, v1beta1.ReasonPromptNameConflict,
		"another message has the name")
	p.updateStatus(chat)
	c.failsWith("PromptNameConflict: another message has the name")
}

func TestReplyIsNotAwaitedFromAnArchivedChat(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.chat.Spec.Archived = true
	p.update(p.chat)
	p.run("send", "triage", "a question").exits(exitFailed, "chat triage is archived, and answers no messages: run "+
		"kubectl chat --kubeconfig "+p.files["token"]+" unarchive triage")
	var sent v1beta1.ChatMessageList
	check.OK(t, p.c.List(t.Context(), &sent, client.InNamespace(p.namespace)))
	check.Equal(t, "messages", 0, len(sent.Items))
}

func TestSendEndsWhereOnlyPeopleCanAct(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	imported := p.start("token", repliedLast, "--gateway", p.gateway, "import", "-", "again", "--prompt", "and?")
	p.created("again")
	const why = "none is default"
	reason := v1beta1.ConditionReason(v1beta1.ErrorModelConfigNotFound)
	p.chat.Status.Wait = &v1beta1.ChatWait{For: v1beta1.WaitForModelConfig, Reason: string(reason), Message: why,
		Since: metav1.Now()}
	p.chat.Status.Conditions = ready(metav1.ConditionFalse, reason, why)
	p.updateStatus(p.chat)
	imported.failsWith("ModelConfigNotFound: " + why)
	p.run("--gateway", p.gateway, "send", "again", "or?").failsWith("ModelConfigNotFound: " + why)
}

func TestTimeoutReportsUnreadMessage(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.chat.Status.Conditions = ready(metav1.ConditionTrue, v1beta1.ReasonAnswered, "")
	p.updateStatus(p.chat)
	p.run("--gateway", p.gateway, "send", "triage", "a question", "--timeout", "2s").
		exits(exitTimedOut, "the chat has not read the message; is Parley's manager running?")
}

func TestWaitForReplyEndsAtTimeout(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	c := p.run("--gateway", p.gateway, "send", "triage", "a question", "--timeout", "2s")
	p.begin(p.sent())
	c.exits(exitTimedOut, "timed out after 2s waiting for the reply")
	p.want()
	p.run("--gateway", p.gateway, "send", "triage", "another one", "--timeout", "2s").exits(exitNeedsPerson, "the reply")
}
