// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn_test

import (
	"errors"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/gateway/turn"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
)

func outputOf(schema string) *v1beta1.OutputFormat {
	return &v1beta1.OutputFormat{Schema: runtime.RawExtension{Raw: []byte(schema)}}
}

func TestResultsContinueWithTheSettingsOfTheirTurn(t *testing.T) {
	required := &v1beta1.ToolChoice{Type: v1beta1.ToolChoiceRequired}
	none := &v1beta1.ToolChoice{Type: v1beta1.ToolChoiceNone}
	began := chattest.User("c", "q")
	began.Spec.Output, began.Spec.ToolChoice, began.Spec.Stop = outputOf(`{"type":"object","title":"a"}`), required, []string{"END"}
	plain := chattest.User("c", "q")
	chat, asks := chattest.Chat("c"), chattest.Chat("c")
	asks.Spec.Output = outputOf(`{"type":"object"}`)
	for name, c := range map[string]struct {
		chat     *v1beta1.Chat
		began    *v1beta1.ChatMessage
		settings turn.Settings
		want     turn.Setting
	}{
		"nothing":               {chat, began, turn.Settings{}, ""},
		"another effort":        {chat, began, turn.Settings{Effort: v1beta1.EffortLow}, ""},
		"the same, in disorder": {chat, began, turn.Settings{Output: outputOf(`{"title": "a", "type": "object"}`), ToolChoice: required, Stop: []string{"END"}}, ""},
		"the chat's output":     {asks, plain, turn.Settings{Output: outputOf(`{"type":"object"}`)}, ""},
		"another output":        {chat, began, turn.Settings{Output: outputOf(`{"type":"object"}`)}, turn.SettingOutput},
		"an output":             {chat, plain, turn.Settings{Output: outputOf(`{"type":"object"}`)}, turn.SettingOutput},
		"another choice":        {chat, began, turn.Settings{ToolChoice: none}, turn.SettingToolChoice},
		"a choice":              {chat, plain, turn.Settings{ToolChoice: none}, turn.SettingToolChoice},
		"other stops":           {chat, began, turn.Settings{Stop: []string{"X"}}, turn.SettingStop},
	} {
		var got turn.Setting
		err := c.settings.Continue(c.chat, c.began)
		if other, ok := errors.AsType[*turn.SettingError](err); ok {
			got = other.Setting
		}
		if got != c.want || (err == nil) != (c.want == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestOtherSettingsMakeAnotherRequest(t *testing.T) {
	ask := func(s turn.Settings) string {
		return (&turn.Request{Settings: s, Items: []turn.Item{said("Hi."), {Kind: turn.Reply}, said("And?")}}).Hash("anna")
	}
	hashes := map[string]bool{}
	for _, s := range []turn.Settings{{}, {Output: outputOf(`{"type":"object"}`)}, {Stop: []string{"END"}},
		{ToolChoice: &v1beta1.ToolChoice{Type: v1beta1.ToolChoiceNone}}} {
		hashes[ask(s)] = true
	}
	check.Equal(t, "hashes", 4, len(hashes))
}

func TestSettingsGoIntoTheMessage(t *testing.T) {
	settings := turn.Settings{Effort: v1beta1.EffortLow, Output: outputOf(`{"type":"object"}`), Stop: []string{"END"},
		ToolChoice: &v1beta1.ToolChoice{Type: v1beta1.ToolChoiceNone}}
	for name, items := range map[string][]turn.Item{
		"a message":            {said("Hi.")},
		"a whole conversation": {said("Hi."), {Kind: turn.Reply, Text: "Hello."}, said("And?")},
	} {
		spec := (&turn.Request{Settings: settings, Items: items}).Message(chattest.Chat("c"), "m", "h").Spec
		if spec.ReasoningEffort != settings.Effort || spec.Output != settings.Output ||
			spec.ToolChoice != settings.ToolChoice || len(spec.Stop) != 1 {
			t.Errorf("%s has %+v", name, spec)
		}
	}
}
