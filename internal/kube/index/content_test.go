// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/content"
	"parley.dev/parley/test/kit/check"
)

func text(content string, parts ...string) *v1beta1.ChatMessage {
	m := &v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Content: content}}
	for _, part := range parts {
		m.Spec.Parts = append(m.Spec.Parts, v1beta1.MessagePart{Type: v1beta1.PartText, Text: &part})
	}
	return m
}

func withFile(m *v1beta1.ChatMessage, file v1beta1.MessageFile) *v1beta1.ChatMessage {
	m.Spec.Parts = append(m.Spec.Parts, v1beta1.MessagePart{Type: v1beta1.PartFile, File: &file})
	return m
}

func conversation(said ...v1beta1.PriorMessage) *v1beta1.ChatMessage {
	return &v1beta1.ChatMessage{Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleUser, History: said}}
}

func TestContentHashIsDistinctAndSurvivesStripping(t *testing.T) {
	seen := map[string]string{}
	for name, m := range map[string]*v1beta1.ChatMessage{
		"a": text("a"), "b": text("b"), "part a": text("", "a"), "parts a and b": text("", "a", "b"),
		"part ab":                   text("", "ab"),
		"a file":                    withFile(text("", "a"), v1beta1.MessageFile{Name: "f", Data: "eA=="}),
		"a file with other content": withFile(text("", "a"), v1beta1.MessageFile{Name: "f", Data: "eQ=="}),
		"a file of another name":    withFile(text("", "a"), v1beta1.MessageFile{Name: "g", Data: "eA=="}),
		"a file elsewhere":          withFile(text("", "a"), v1beta1.MessageFile{Name: "f", URL: "https://x"}),
		"a history":                 conversation(v1beta1.PriorMessage{Role: v1beta1.RoleUser, Content: "a"}),
		"a history with another speaker": conversation(v1beta1.PriorMessage{Role: v1beta1.RoleAssistant,
			Content: "a"}),
		"a history in two messages": conversation(v1beta1.PriorMessage{Role: v1beta1.RoleUser, Content: "a"},
			v1beta1.PriorMessage{Role: v1beta1.RoleAssistant}),
	} {
		before := content.Of(m)
		if other, ok := seen[before]; ok {
			t.Errorf("%q and %q have the same hash", name, other)
		}
		seen[before] = name
		last := m.Spec.LastRole()
		stripped, err := StripMessage(m)
		check.OK(t, err)
		if m := stripped.(*v1beta1.ChatMessage); m.Spec.Content != "" || m.Spec.Parts != nil || content.Of(m) != before {
			t.Errorf("%s: %+v is left, with another hash", name, m)
		}
		m := stripped.(*v1beta1.ChatMessage)
		for i := range m.Spec.History {
			check.Equal(t, name, "", m.Spec.History[i].Content)
		}
		check.Equal(t, name, last, m.Spec.LastRole())
		if again, _ := StripMessage(stripped); content.Of(again.(*v1beta1.ChatMessage)) != before {
			t.Errorf("%s: stripping twice changes the hash", name)
		}
	}
}
