// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"fmt"
	"strings"
	"testing"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestConversationForksWithRemarksInLines(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.said("first", "one")
	p.get(p.chat)
	p.chat.Spec.Workspace = &v1beta1.WorkspaceSource{PodTemplateRef: &v1beta1.WorkspaceTemplateReference{Name: "go"}}
	p.update(p.chat)
	c := &conversation{s: p.session(), chat: "triage"}
	c.s.config = genericclioptions.NewConfigFlags(false)
	words, err := c.Command(t.Context(), "fork", "second")
	check.OK(t, err)
	check.Equal(t, "words", []string{"not copied: workspace", "chat.parley.dev/second created",
		"talk there: kubectl chat send second"}, words)
	words, err = c.Command(t.Context(), "fork", "")
	check.OK(t, err)
	fork := p.created("triage-").Name
	check.Equal(t, "words", []string{"not copied: workspace", "chat.parley.dev/" + fork + " created",
		"talk there: kubectl chat send " + fork}, words)
}

func TestModelsAreListedAndChecked(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	c := &conversation{s: p.session(), chat: "triage"}
	_, err := c.Command(t.Context(), "model", "")
	check.Contains(t, fmt.Sprint(err), "listing the ChatModelConfigs: ")
	role := &rbacv1.Role{ObjectMeta: p.meta("person")}
	p.get(role)
	role.Rules = append(role.Rules, rbacv1.PolicyRule{APIGroups: []string{"parley.dev"},
		Resources: []string{"chatmodelconfigs"}, Verbs: []string{"list"}})
	p.update(role)
	eventually(t, "the person may list models", func() bool { return p.may("list", "chatmodelconfigs") })
	p.create(chattest.In(p.namespace, chattest.Config("large", chattest.Default)))
	p.create(chattest.In(p.namespace, chattest.Config("small", func(s *v1beta1.ChatModelConfigSpec) { s.Model = "tiny" })))
	models, err := c.Command(t.Context(), "model", "")
	check.OK(t, err)
	check.Equal(t, "models", "large: scripted (the chat uses it), small: tiny", strings.Join(models, ", "))
	_, err = c.Command(t.Context(), "model", "bogus")
	check.Equal(t, "error", "namespace "+p.namespace+" has no ChatModelConfig bogus: there is large, small",
		fmt.Sprint(err))
	_, err = c.Command(t.Context(), "model", "small")
	check.OK(t, err)
	models, err = c.Command(t.Context(), "model", "")
	check.OK(t, err)
	check.Contains(t, strings.Join(models, ", "), "small: tiny (the chat uses it)")
}

// Security (a client of the gateway): cannot be shown one call by a gateway and decide about another one.
func TestConversationDecidesOnlyAboutTheCallShown(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.want()
	c := &conversation{s: p.session(), chat: "triage"}
	c.s.config = genericclioptions.NewConfigFlags(false)
	call := p.chat.Status.RequiresAction.ToolCalls[1]
	for name, change := range map[string]func(*v1beta1.PendingToolCall){
		"a part of the id": func(c *v1beta1.PendingToolCall) { c.ID = "_2" },
		"another input":    func(c *v1beta1.PendingToolCall) { c.Input = `{"timezone":"UTC"}` },
		"another kind":     func(c *v1beta1.PendingToolCall) { c.Kind = v1beta1.RequiresClient },
		"another cause":    func(c *v1beta1.PendingToolCall) { c.ApprovalCause = v1beta1.ApprovalReviewRequired },
		"another call":     func(c *v1beta1.PendingToolCall) { c.Name = "execute"; c.Digest = c.CallDigest() },
	} {
		for _, decision := range []v1beta1.ApprovalDecision{v1beta1.DecisionApprove, v1beta1.DecisionDeny} {
			shown := call
			change(&shown)
			err := c.Decide(t.Context(), shown, decision, "")
			check.Equal(t, name+" made", 0, p.decisions())
			check.Contains(t, fmt.Sprint(err), "call "+shown.ID+" does not wait as it was shown")
		}
	}
}
