// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"

	"parley.dev/parley/api/stream"
	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/cli/cluster"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/internal/kube/apiclient"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/pty"
)

// session is that of a verb of the person.
func (p *person) session() *session {
	p.t.Helper()
	config, err := clientcmd.BuildConfigFromFlags("", p.files["token"])
	check.OK(p.t, err)
	api, err := apiclient.New(config, "kubectl-chat")
	check.OK(p.t, err)
	o := &options{}
	o.Out, o.ErrOut = &pty.Output{}, &pty.Output{}
	return &session{options: o, Objects: cluster.Objects{Namespace: p.namespace, Client: api}}
}

// note is a message for people alone, before the message of an index.
func (p *person) note(name, text string, index int64) {
	p.t.Helper()
	n := chattest.In(p.namespace, chattest.User("triage", name, chattest.Content(text)))
	n.Spec.Visibility = v1beta1.VisibleToUsers
	p.create(n)
	n.Status = v1beta1.ChatMessageStatus{State: v1beta1.MessageNoted, ChatUID: string(p.chat.UID), Index: &index}
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
	p.chat.Status.LastError = &v1beta1.LastError{GenerationError: v1beta1.GenerationError{
		Reason: v1beta1.ErrorOverloaded, Message: "no capacity"}}
	p.want()
	all := p.run("show", "triage", "--all")
	want := "▎> one\nthe answer to one\n▎[note:]\n▎  remember\n▎> two\nthe answer to two\n"
	all.shows(want, "Overloaded: no capacity", "approve triage call_2")
	p.run("show", "triage", "--last", "1").shows("the answer to two\n", "▎[3 messages before this: --all shows them]\n")
	named := p.run("show", "chat/triage", "--all", "--names")
	want = "▎[first]\n▎> one\n▎[" + one + "]\nthe answer to one\n▎[n]\n▎[note:]\n▎  remember\n▎[second]\n▎> two\n▎[" +
		two + "]\nthe answer to two\n"
	named.shows(want)
	events := p.exact("show", "triage", "-o", "json")
	for line := range strings.Lines(events) {
		if !json.Valid([]byte(line)) {
			t.Errorf("no JSON: %s", line)
		}
	}
	if !strings.Contains(events, `"event":"requires_action"`) || strings.Count(events, `"event":"message"`) != 4 {
		t.Errorf("shown %s", events)
	}
	check.Contains(t, p.exact("show", "triage", "-o", "yaml"), "\nkind: Chat\n")
}

func TestExportPrintsTheWholeChatInOrder(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "one")
	p.note("n", "remember", 1)
	p.create(chattest.In(p.namespace, chattest.Chat("below", chattest.ChildOf("triage"))))
	page := p.exact("export", "triage")
	check.InOrder(t, page, "# triage\n", "Its sub-chats are below.", "## 1. User,", "```markdown\none\n```", "## Note,",
		"remember", "## 2. Assistant,", "the answer to one")
	lines := strings.Split(strings.TrimSpace(p.exact("export", "triage", "-o", "jsonl")), "\n")
	var types []string
	for _, line := range lines {
		var entry struct{ Type, Name string }
		check.OK(t, json.Unmarshal([]byte(line), &entry))
		types = append(types, entry.Type)
	}
	check.Equal(t, "types", "chat message note message", strings.Join(types, " "))
}

func TestFieldVerbsWaitUntilInForce(t *testing.T) {
	t.Parallel()
	for verb, c := range map[string]struct {
		field    func(*v1beta1.Chat) *bool
		archived bool
		done     string
	}{
		"suspend":   {func(c *v1beta1.Chat) *bool { return &c.Spec.Suspend }, false, "suspended"},
		"archive":   {func(c *v1beta1.Chat) *bool { return &c.Spec.Archived }, true, "archived"},
		"resume":    {func(c *v1beta1.Chat) *bool { return &c.Spec.Suspend }, false, "resumed"},
		"unarchive": {func(c *v1beta1.Chat) *bool { return &c.Spec.Archived }, false, "unarchived"},
	} {
		t.Run(verb, func(t *testing.T) {
			p := newPerson(t)
			want := verb == "suspend" || verb == "archive"
			if !want {
				*c.field(p.chat) = true
				p.update(p.chat)
			}
			p.chat.Status.Archived = verb == "unarchive"
			p.chat.Status.Conditions = ready(metav1.ConditionUnknown, v1beta1.ReasonArchiving, "a sub-chat is at work")
			p.chat.Status.ObservedGeneration = p.chat.Generation
			p.updateStatus(p.chat)
			p.run(verb, "triage", "--timeout", "1s").exits(exitTimedOut, "Archiving: a sub-chat is at work")
			running := p.run(verb, "triage")
			p.created("triage")
			if *c.field(p.chat) != want {
				t.Fatalf("the spec is %+v", p.chat.Spec)
			}
			p.chat.Status.ObservedGeneration, p.chat.Status.Archived = p.chat.Generation, c.archived
			p.chat.Status.Phase = v1beta1.ChatWaiting
			p.updateStatus(p.chat)
			running.shows("chat.parley.dev/triage " + c.done + "\n")
		})
	}
}

func TestFieldVerbsTakeSeveralChats(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.create(chattest.In(p.namespace, chattest.Chat("other")))
	c := p.run("suspend", "triage", "missing", "chat/other", "--wait=false")
	c.exits(exitNotFound, "has no chat missing")
	check.Equal(t, "shown", "chat.parley.dev/triage changed\nchat.parley.dev/other changed\n", c.out.String())
	other := chattest.In(p.namespace, chattest.Chat("other"))
	if p.get(other); !other.Spec.Suspend {
		t.Error("the last chat is not suspended")
	}
}

func TestUsageIsSummedByCurrency(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "one")
	p.create(&v1beta1.ChatMessage{ObjectMeta: p.meta("cheap"), Spec: chattest.Answer(answering(p.chat),
		chattest.Says("x"), chattest.Costs(500_000)).Spec})
	p.chat.Status.Usage = v1beta1.TokenUsage{InputTokens: 5, OutputTokens: 2, TotalTokens: 7}
	p.chat.Status.Cost = []v1beta1.Cost{{Currency: "EUR", MicroUnits: 1_000_000}}
	p.updateStatus(p.chat)
	other := chattest.In(p.namespace, chattest.Chat("other"))
	p.create(other)
	other.Status.Usage = v1beta1.TokenUsage{InputTokens: 1, CacheReadTokens: 2, TotalTokens: 3}
	other.Status.Cost = []v1beta1.Cost{{Currency: "USD", MicroUnits: 2_000_000}}
	p.updateStatus(other)
	want := "CHAT|INPUT|CACHED|OUTPUT|TOTAL|COST\nother|1|2|0|3|2.00 USD\ntriage|5|0|2|7|1.00 EUR\n" +
		"SUM|6|2|2|10|2.00 USD, 1.00 EUR\n"
	check.Equal(t, "shown", want, p.shown("usage"))
	check.Lacks(t, p.shown("usage", "triage"), "SUM", "other")
	for _, by := range []string{"model", "config", "day"} {
		got := p.shown("usage", "triage", "--by", by)
		if !strings.HasPrefix(got, strings.ToUpper(by)+"|INPUT") || !strings.Contains(got, "0.50 ") {
			t.Errorf("by %s shown\n%s", by, got)
		}
		if by == "day" {
			check.Contains(t, got, "\n"+chattest.Now.Format(time.DateOnly)+"|") // Not when a restored one was created.
		}
	}
	var read struct{ Usage []render.Spent }
	if err := json.Unmarshal([]byte(p.exact("usage", "-o", "json")), &read); err != nil || len(read.Usage) != 2 {
		t.Errorf("read %+v, %v", read, err)
	}
	before := p.shown("usage", "--by", "model")
	fork := chattest.In(p.namespace, chattest.Chat("fork"))
	fork.Spec.Fork = &v1beta1.ForkSource{Chat: "triage", Message: "cheap"}
	p.create(fork)
	copied := &v1beta1.ChatMessage{ObjectMeta: p.meta("copied"), Spec: chattest.Answer(answering(p.chat),
		chattest.Says("x"), chattest.Costs(500_000)).Spec}
	copied.Spec.ChatRef.Name, copied.Annotations = "fork", map[string]string{v1beta1.AnnotationRestoredFrom: "cheap"}
	p.create(copied)
	check.Equal(t, "shown with a fork", before, p.shown("usage", "--by", "model"))
}

// counter counts the requests that it passes on.
type counter struct {
	http.RoundTripper

	requests int
}

func (c *counter) RoundTrip(r *http.Request) (*http.Response, error) {
	c.requests++
	return c.RoundTripper.RoundTrip(r)
}

func TestALongChatIsReadInFewRequests(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "one")
	for i := range 3 * cluster.MessagePage {
		p.reply(chattest.Says(fmt.Sprintf("answer %d", i)))
	}
	p.updateStatus(p.chat)
	length := int(p.chat.Status.History.Length)
	config, err := clientcmd.BuildConfigFromFlags("", p.files["token"])
	check.OK(t, err)
	made := &counter{}
	config.Wrap(func(inner http.RoundTripper) http.RoundTripper { made.RoundTripper = inner; return made })
	s := p.session()
	if s.Client, err = apiclient.New(config, "kubectl-chat"); err != nil {
		t.Fatal(err)
	}
	for last, most := range map[int]int{0: 6, 1: 3, 2: 4, 20: 6, 1000: 6} {
		made.requests = 0
		read, err := s.Snapshot(t.Context(), "triage", last)
		check.OK(t, err)
		if made.requests > most {
			t.Errorf("the last %d messages took %d requests, want at most %d", last, made.requests, most)
		}
		var told []int64
		for _, e := range read.Events {
			if e.Name == stream.EventMessage {
				m, err := stream.Decode[stream.MessageCommitted](e)
				check.OK(t, err)
				told = append(told, m.Index)
			}
		}
		want := length
		if last > 0 {
			want = min(last, length)
		}
		if len(told) != want || told[0] != int64(length-want) || told[want-1] != int64(length-1) {
			t.Errorf("of the last %d messages it reads %d, from %d to %d", last, len(told), told[0], told[len(told)-1])
		}
	}
}
