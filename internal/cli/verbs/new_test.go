// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
)

// created waits for a chat that the plug-in creates, and has the person's other steps be about it.
func (p *person) created(prefix string) *v1alpha1.Chat {
	p.t.Helper()
	p.chat = find(p, "a chat is created", &v1alpha1.ChatList{},
		func(c *v1alpha1.Chat) bool { return strings.HasPrefix(c.Name, prefix) })
	return p.chat
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
	chat.Status.Conditions = ready(metav1.ConditionFalse, v1alpha1.ReasonPromptNameTaken, "another message has the name")
	p.updateStatus(chat)
	c.failsWith("PromptNameTaken: another message has the name")
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
