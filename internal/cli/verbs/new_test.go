// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1alpha1"
)

// created waits for a chat that the plug-in creates, and has the person's other steps be about it.
func (p *person) created(prefix string) *v1alpha1.Chat {
	p.t.Helper()
	for range poll(p.t, "a chat is created") {
		var list v1alpha1.ChatList
		if err := p.c.List(p.t.Context(), &list, client.InNamespace(p.namespace)); err != nil {
			p.t.Fatal(err)
		}
		for i := range list.Items {
			if strings.HasPrefix(list.Items[i].Name, prefix) {
				p.chat = &list.Items[i]
				return p.chat
			}
		}
	}
	p.t.FailNow()
	return nil
}

func TestNewShowsTheFirstReply(t *testing.T) {
	t.Parallel()
	for _, kubeconfig := range []string{"token", "certificate"} {
		t.Run("with a "+kubeconfig, func(t *testing.T) {
			p := newPerson(t)
			c := p.start(kubeconfig, "a long change", "--gateway", p.gateway, "new", "review", "-", "--class", "reviewer",
				"--model",
				"small", "--title", "A review", "--label", "team=blue", "--mode", "Explore")
			chat := p.created("review")
			s := chat.Spec
			if s.Prompt != "a long change" || s.ChatClassName != "reviewer" || s.ModelConfigRef.Name != "small" ||
				s.Title != "A review" || chat.Labels["team"] != "blue" || s.Mode != v1alpha1.ModeExplore {
				t.Errorf("created %+v %+v", chat.Labels, s)
			}
			p.create(&v1alpha1.ChatMessage{ObjectMeta: p.meta("review-prompt"), Spec: v1alpha1.ChatMessageSpec{
				ChatRef: v1alpha1.ChatReference{Name: "review"}, Role: v1alpha1.RoleUser, Content: chat.Spec.Prompt}})
			m := p.sent()
			p.begin(m)
			p.answer(m, "looks good")
			if err := c.wait(); err != nil || c.out.String() != "looks good\n" ||
				!strings.Contains(c.errOut.String(), "▎[chat.parley.dev/review created]\n") {
				t.Errorf("shown %q, noted %q, %v", c.out.String(), c.errOut.String(), err)
			}
		})
	}
}

func TestNewMakesANameUp(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	for prefix, args := range map[string][]string{"chat-": {"new", "-o", "name"}, "review-": {"new", "review-", "-o",
		"name"},
		"held-": {"new", "held-", "a", "question", "--no-follow", "-o", "name"}} {
		c := p.start("token", "", args...)
		if err := c.wait(); err != nil || c.out.String() != "chat.parley.dev/"+p.created(prefix).Name+"\n" {
			t.Errorf("%v: shown %q, %v", args, c.out.String(), err)
		}
	}
	taken := p.start("token", "", "new", "triage")
	if err := taken.wait(); exitCode(err) != exitConflict {
		t.Errorf("a name that is taken: %v", err)
	}
}

func TestNewSaysWhyAChatCannotBegin(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	c := p.start("token", "", "--gateway", p.gateway, "new", "stuck", "a question")
	chat := p.created("stuck")
	chat.Status.Conditions = ready(metav1.ConditionFalse, v1alpha1.ReasonPromptNameTaken, "another message has the name")
	p.updateStatus(chat)
	if err := c.wait(); err == nil || err.Error() != "PromptNameTaken: another message has the name" {
		t.Errorf("error %v", err)
	}
}

func TestWaitForReplyEndsAtTimeout(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	c := p.start("token", "", "--gateway", p.gateway, "send", "triage", "a question", "--timeout", "2s")
	p.begin(p.sent())
	if err := c.wait(); exitCode(err) != exitTimedOut || !strings.Contains(err.Error(),
		"timed out after 2s waiting for the reply") {
		t.Errorf("error %v", err)
	}
	p.want()
	c = p.start("token", "", "--gateway", p.gateway, "send", "triage", "another one", "--timeout", "2s")
	if err := c.wait(); exitCode(err) != exitNeedsPerson {
		t.Errorf("error %v", err)
	}
}
