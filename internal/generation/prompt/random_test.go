// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"fmt"
	"strings"

	"parley.dev/parley/api/v1alpha1"
)

// source draws from bytes; 0 once they are used up.
type source []byte

func (s *source) draw(n int) int {
	if len(*s) == 0 {
		return 0
	}
	b := int((*s)[0])
	*s = (*s)[1:]
	return b % n
}

func pick[T any](s *source, of ...T) T { return of[s.draw(len(of))] }

// historyOf draws a history, as wild as the API lets it be and wilder. What users say is said once.
func historyOf(data []byte) []v1alpha1.ChatMessage {
	s := source(data)
	var history []v1alpha1.ChatMessage
	for i := 0; len(s) > 0 && i < 40; i++ {
		m := v1alpha1.ChatMessage{}
		m.Name = fmt.Sprint("m", i)
		m.Spec.Role = pick(&s, v1alpha1.RoleUser, v1alpha1.RoleAssistant, v1alpha1.RoleTool, v1alpha1.RoleAssistant,
			v1alpha1.RoleTool, "System")
		if m.Spec.Role == v1alpha1.RoleUser && s.draw(2) == 0 {
			m.Spec.Content = saying(&s, m.Name)
		} else {
			for j := range s.draw(6) {
				m.Spec.Parts = append(m.Spec.Parts, partOf(&s, m.Spec.Role, fmt.Sprint(m.Name, ".", j)))
			}
		}
		if m.Spec.Role == v1alpha1.RoleAssistant {
			m = by(pick(&s, v1alpha1.ProviderAnthropic, v1alpha1.ProviderOpenAI, v1alpha1.ProviderOpenAICompatible,
				v1alpha1.ProviderGoogle), pick(&s, "m", "n"), m)
			if s.draw(4) == 0 {
				m.Spec.Generation = nil
			}
			if g := m.Spec.Generation; g == nil || g.Model.Provider != string(v1alpha1.ProviderAnthropic) {
				for j := range m.Spec.Parts { // They are of Anthropic's form.
					m.Spec.Parts[j].ProviderMetadata = ""
				}
			}
		}
		history = append(history, m)
	}
	return history
}

func saying(s *source, name string) string {
	return pick(s, "says "+name+";", "", " \n", "\x00says "+name+";", "says "+name+";\xff")
}

func partOf(s *source, role v1alpha1.MessageRole, name string) v1alpha1.MessagePart {
	kind := s.draw(8)
	switch {
	case role == v1alpha1.RoleUser && kind < 5:
		return text(saying(s, name))
	case kind == 5:
		return inPlace(name, pick(s, "image/png", "application/pdf", "text/plain", "application/zip"),
			pick(s, png, pdf, "text", ""))
	case role == v1alpha1.RoleTool && kind < 7:
		return aResult(s)
	case kind < 2:
		return text(pick(s, "text", "", " ", "a\x00\xff"))
	case kind == 2:
		return with(metadata(s), reasoning(pick(s, "hm", "", "\t")))
	case kind == 3:
		return aResult(s)
	case kind == 4:
		return v1alpha1.MessagePart{Type: v1alpha1.PartSource, Source: &v1alpha1.Source{URL: "https://example.com"}}
	}
	return aCall(s)
}

func metadata(s *source) string {
	return pick(s, "", signature, found, "{", `{"openai":{"type":"nobody.knows"}}`)
}

func id(s *source) string {
	return pick(s, "a", "b", "a.1", "a:1", "", "srvtoolu_1", "srvtoolu_2", "a-2", strings.Repeat("x", 64),
		strings.Repeat("x", 128), "ü")
}

func name(s *source) string {
	return pick(s, "t", "web_search", "", "a.b", "\xff", strings.Repeat("n", 128))
}

func aCall(s *source) v1alpha1.MessagePart {
	p := callOf(id(s), name(s), pick(s, "{}", `{"x":"\u0000"}`, "", "null", "[", `"x"`, "{}{}", `{"x":1e999}`, "\x00"))
	p.ToolCall.ProviderExecuted = s.draw(3) == 1
	return with(metadata(s), p)
}

func aResult(s *source) v1alpha1.MessagePart {
	p := result(id(s), pick(s, "out", "", " ", "\x00\xff"))
	p.ToolResult.Name, p.ToolResult.IsError, p.ToolResult.ProviderExecuted = name(s), s.draw(3) == 1, s.draw(3) == 1
	return with(metadata(s), p)
}
