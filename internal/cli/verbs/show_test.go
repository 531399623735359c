// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"encoding/json"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/pty"
)

// session is that of a verb of the person.
func (p *person) session() *session {
	p.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.files["token"])
	if err != nil {
		p.t.Fatal(err)
	}
	api, err := apiclient.New(config, "kubectl-chat")
	if err != nil {
		p.t.Fatal(err)
	}
	o := &options{}
	o.Out, o.ErrOut = &pty.Output{}, &pty.Output{}
	return &session{options: o, Objects: cluster.Objects{Namespace: p.namespace, Client: api}}
}

// note is a message for people alone, before the message of an index.
func (p *person) note(name, text string, index int64) {
	p.t.Helper()
	n := &v1alpha1.ChatMessage{ObjectMeta: p.meta(name), Spec: v1alpha1.ChatMessageSpec{
		ChatRef: v1alpha1.ChatReference{Name: "triage"}, Role: v1alpha1.RoleUser, Content: text,
		Visibility: v1alpha1.VisibleToPeople}}
	p.create(n)
	n.Status = v1alpha1.ChatMessageStatus{State: v1alpha1.MessageNoted, ChatUID: string(p.chat.UID), Index: &index}
	p.updateStatus(n)
}

func TestShowPrintsConversationAndWait(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "one")
	one := p.chat.Status.History.Head
	p.said("second", "two")
	two := p.chat.Status.History.Head
	p.note("n", "remember", 2)
	p.chat.Status.LastError = &v1alpha1.LastError{GenerationError: v1alpha1.GenerationError{
		Reason: v1alpha1.ErrorOverloaded, Message: "no capacity"}}
	p.want()
	all := p.start("token", "", "show", "triage", "--all")
	if err := all.wait(); err != nil {
		t.Fatal(err)
	}
	want := "▎> one\nthe answer to one\n▎[note:]\n▎  remember\n▎> two\nthe answer to two\n"
	if all.out.String() != want {
		t.Errorf("shown %q, want %q", all.out.String(), want)
	}
	for _, words := range []string{"Overloaded: no capacity", "approve triage call_2"} {
		if !strings.Contains(all.errOut.String(), words) {
			t.Errorf("noted %q, want %q", all.errOut.String(), words)
		}
	}
	last := p.start("token", "", "show", "triage", "--last", "1")
	if err := last.wait(); err != nil || last.out.String() != "the answer to two\n" ||
		!strings.Contains(last.errOut.String(), "▎[3 messages before this: --all shows them]\n") {
		t.Errorf("shown %q, noted %q, %v", last.out.String(), last.errOut.String(), err)
	}
	named := p.start("token", "", "show", "chat/triage", "--all", "--names")
	want = "▎[first]\n▎> one\n▎[" + one + "]\nthe answer to one\n▎[n]\n▎[note:]\n▎  remember\n▎[second]\n▎> two\n▎[" +
		two + "]\nthe answer to two\n"
	if err := named.wait(); err != nil || named.out.String() != want {
		t.Errorf("shown %q, want %q, %v", named.out.String(), want, err)
	}
	events := p.exact("show", "triage", "-o", "json")
	for line := range strings.Lines(events) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
	if !strings.Contains(events, `"event":"requires_action"`) || strings.Count(events, `"event":"message"`) != 4 {
		t.Errorf("shown %s", events)
	}
	if got := p.exact("show", "triage", "-o", "yaml"); !strings.Contains(got, "\nkind: Chat\n") {
		t.Errorf("shown %s", got)
	}
}

func TestExportPrintsTheWholeChatInOrder(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "one")
	p.note("n", "remember", 1)
	p.create(chattest.In(p.namespace, chattest.Chat("below", chattest.ChildOf("triage"))))
	page := p.exact("export", "triage")
	for i, part := range []string{"# triage\n", "Its sub-chats are below.", "## 1. User,", "```markdown\none\n```",
		"## Note,",
		"remember", "## 2. Assistant,", "the answer to one"} {
		at := strings.Index(page, part)
		if at < 0 {
			t.Fatalf("part %d, %q, is not behind those before it:\n%s", i, part, page)
		}
		page = page[at+len(part):]
	}
	lines := strings.Split(strings.TrimSpace(p.exact("export", "triage", "-o", "jsonl")), "\n")
	var types []string
	for _, line := range lines {
		var entry struct{ Type, Name string }
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		types = append(types, entry.Type)
	}
	if got := strings.Join(types, " "); got != "chat message note message" {
		t.Errorf("printed are %s", got)
	}
}

func TestFieldVerbsWaitUntilInForce(t *testing.T) {
	t.Parallel()
	for verb, c := range map[string]struct {
		field    func(*v1alpha1.Chat) *bool
		archived bool
		done     string
	}{
		"suspend":   {func(c *v1alpha1.Chat) *bool { return &c.Spec.Suspend }, false, "suspended"},
		"archive":   {func(c *v1alpha1.Chat) *bool { return &c.Spec.Archived }, true, "archived"},
		"resume":    {func(c *v1alpha1.Chat) *bool { return &c.Spec.Suspend }, false, "resumed"},
		"unarchive": {func(c *v1alpha1.Chat) *bool { return &c.Spec.Archived }, false, "unarchived"},
	} {
		t.Run(verb, func(t *testing.T) {
			p := newPerson(t)
			want := verb == "suspend" || verb == "archive"
			if !want {
				*c.field(p.chat) = true
				if err := p.c.Update(t.Context(), p.chat); err != nil {
					t.Fatal(err)
				}
			}
			p.chat.Status.Archived = verb == "unarchive"
			p.chat.Status.Conditions = ready(metav1.ConditionUnknown, v1alpha1.ReasonArchiving, "a sub-chat is at work")
			p.chat.Status.ObservedGeneration = p.chat.Generation
			p.updateStatus(p.chat)
			vain := p.start("token", "", verb, "triage", "--timeout", "1s")
			if err := vain.wait(); exitCode(err) != exitTimedOut ||
				!strings.Contains(err.Error(), "Archiving: a sub-chat is at work") {
				t.Errorf("nobody has acted: %v", err)
			}
			running := p.start("token", "", verb, "triage")
			p.created("triage")
			if *c.field(p.chat) != want {
				t.Fatalf("the spec is %+v", p.chat.Spec)
			}
			p.chat.Status.ObservedGeneration, p.chat.Status.Archived = p.chat.Generation, c.archived
			p.chat.Status.Phase = v1alpha1.ChatWaiting
			p.updateStatus(p.chat)
			if err := running.wait(); err != nil || running.out.String() != "chat.parley.dev/triage "+c.done+": Waiting\n" {
				t.Errorf("shown %q, %v", running.out.String(), err)
			}
		})
	}
}

func TestUsageIsSummedByCurrency(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	m := p.said("first", "one")
	p.create(&v1alpha1.ChatMessage{ObjectMeta: p.meta("cheap"), Spec: chattest.Answer(answering(p.chat),
		chattest.Says("x"), chattest.Costs(500_000)).Spec})
	p.chat.Status.Usage = v1alpha1.TokenUsage{InputTokens: 5, OutputTokens: 2, TotalTokens: 7}
	p.chat.Status.Cost = []v1alpha1.Cost{{Currency: "EUR", MicroUnits: 1_000_000}}
	p.updateStatus(p.chat)
	other := chattest.In(p.namespace, chattest.Chat("other"))
	p.create(other)
	other.Status.Usage = v1alpha1.TokenUsage{InputTokens: 1, CacheReadTokens: 2, TotalTokens: 3}
	other.Status.Cost = []v1alpha1.Cost{{Currency: "USD", MicroUnits: 2_000_000}}
	p.updateStatus(other)
	want := "CHAT|INPUT|CACHED|OUTPUT|TOTAL|COST\nother|1|2|0|3|2.00 USD\ntriage|5|0|2|7|1.00 EUR\n" +
		"SUM|6|2|2|10|2.00 USD, 1.00 EUR\n"
	if got := p.shown("usage"); got != want {
		t.Errorf("shown\n%s", got)
	}
	if got := p.shown("usage", "triage"); strings.Contains(got, "SUM") || strings.Contains(got, "other") {
		t.Errorf("shown\n%s", got)
	}
	for _, by := range []string{"model", "config", "day"} {
		got := p.shown("usage", "triage", "--by", by)
		if !strings.HasPrefix(got, strings.ToUpper(by)+"|INPUT") || !strings.Contains(got, "0.50 ") {
			t.Errorf("by %s shown\n%s", by, got)
		}
		if by == "day" && !strings.Contains(got, "\n"+m.CreationTimestamp.UTC().Format("2006-01-02")+"|") {
			t.Errorf("shown\n%s", got)
		}
	}
	var read struct{ Usage []render.Spent }
	if err := json.Unmarshal([]byte(p.exact("usage", "-o", "json")), &read); err != nil || len(read.Usage) != 2 {
		t.Errorf("read %+v, %v", read, err)
	}
}
