// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package verbs

import (
	"encoding/json"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/cli/render"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func TestSettingsSayWhereTheyComeFrom(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.create(chattest.In(p.namespace, chattest.Class("everybody", func(s *v1beta1.ChatClassSpec) {
		s.Default, s.NamespacePreamble = true, "Be lawful."
	})))
	p.create(chattest.In(p.namespace, chattest.Class("coder", func(s *v1beta1.ChatClassSpec) {
		s.Defaults.ModelConfigRef = &v1beta1.ModelConfigReference{Name: "small"}
		s.Defaults.SystemPrompt = "Be careful.\n\nRun the tests."
		s.Restrictions = &v1beta1.ChatRestrictions{
			Fields: []v1beta1.ChatField{v1beta1.FieldDebug}, Limits: &v1beta1.ChatLimits{MaxSteps: new(int32(100))},
		}
	})))
	p.create(chattest.In(p.namespace, chattest.Chat("fix", func(c *v1beta1.Chat) {
		c.Spec.ChatClassName, c.Spec.Debug = "coder", &v1beta1.DebugSettings{Enabled: true}
		c.Spec.Limits = &v1beta1.ChatLimits{MaxSteps: new(int32(500)), MaxQueue: new(int32(3))}
	})))
	c := p.run("settings", "fix")
	c.succeeds()
	const want = `# Chat fix has ChatClass coder.
# What it says in spec.debug does not count: ChatClass coder does not let it.
# ChatClass everybody, for every chat of the namespace
namespacePreamble: Be lawful.
# ChatClass coder
systemPrompt: |-
  Be careful.

  Run the tests.
# ChatClass coder
modelConfigRef:
  name: small
limits:
  # restrictions of ChatClass coder
  maxSteps: 100
  # the chat
  maxQueue: 3
`
	check.Equal(t, "shown", want, c.out.String())
	c = p.run("settings", "fix", "-o", "json")
	c.succeeds()
	var got render.Settings
	if err := json.Unmarshal([]byte(c.out.String()), &got); err != nil || got.ChatClass != "coder" ||
		len(got.Settings) != 5 || got.Settings[0].From != chatclass.FromNamespaceDefault || got.Ignored[0] != "debug" {
		t.Errorf("%v: %s", err, c.out.String())
	}
}

func TestMissingClassFailsSettings(t *testing.T) {
	t.Parallel()
	p := newPerson(t)
	p.create(chattest.In(p.namespace, chattest.Chat("fix", func(c *v1beta1.Chat) { c.Spec.ChatClassName = "gone" })))
	const want = "ChatClass gone, which spec.chatClassName names, does not exist. Create it, or change the reference"
	p.run("settings", "fix").failsWith(want)
	p.run("settings", "triage").shows("# Chat triage has no ChatClass.\n" +
		"{} # Nothing is set: the defaults of the API are in force.\n")
}
