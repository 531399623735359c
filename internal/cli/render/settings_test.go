// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package render

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/cli/terminal"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/test/kit/check"
)

func TestSettingsRoundTripAsYAML(t *testing.T) {
	for _, said := range []string{
		"plain", hostile, terminal.Mark + "[x]", "a # b", "a\nb: c\n", " - x", strings.Repeat("long words ", 40), "\n\n",
	} {
		chat := &v1beta1.Chat{}
		chat.Spec.SystemPrompt = said
		chat.Spec.Advisor = &v1beta1.ChatAdvisor{Enabled: new(true)}
		chat.Spec.Tools = &v1beta1.ChatTools{Client: []v1beta1.ClientTool{{Name: "ask", Description: said}}}
		var out strings.Builder
		of := Settings{Chat: "c"}
		of.Settings, _ = chatclass.Explain(chat, nil, nil)
		check.OK(t, of.Print(terminal.NewScreen(&out)))
		if printable.Escape(out.String()) != out.String() || strings.Contains(out.String(), terminal.Mark) {
			t.Errorf("shown %q", out.String())
		}
		var got v1beta1.ChatSettings
		if err := yaml.UnmarshalStrict([]byte(out.String()), &got); err != nil || got.SystemPrompt != said ||
			got.Tools.Client[0].Description != said || !got.Advisor.On() {
			t.Errorf("%v: %q is read as %q of\n%s", err, said, got.SystemPrompt, out.String())
		}
	}
}
