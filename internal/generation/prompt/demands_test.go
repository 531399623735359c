// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/test/kit/check"
)

var dialects = map[string]prompt.Dialect{
	"none": {}, "anthropic": dialect(v1beta1.ProviderAnthropic, "m"), "openai": dialect(v1beta1.ProviderOpenAI, "m"),
	"compatible": dialect(v1beta1.ProviderOpenAICompatible, "m"), "google": dialect(v1beta1.ProviderGoogle, "gemini-3"),
}

// FuzzRepair holds what every provider demands, for any history.
func FuzzRepair(f *testing.F) {
	random := rand.New(rand.NewPCG(1, 2))
	for range 64 {
		f.Add(bytesOf(random))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		for name, d := range dialects {
			in := prompt.Input{SystemPrompt: "sys", History: historyOf(data), Dialect: d}
			messages := prompt.Build(in)
			if err := demands(messages, d); err != nil {
				t.Errorf("%s: %v: %s", name, err, outline(messages))
			}
			check.Equal(t, name, "", unheard(in.History, messages))
			if again := prompt.Build(in); !reflect.DeepEqual(outline(again), outline(messages)) {
				t.Errorf("%s: another prompt the second time", name)
			}
		}
	})
}

func bytesOf(random *rand.Rand) []byte {
	data := make([]byte, 20+random.IntN(400))
	for i := range data {
		data[i] = byte(random.Uint32())
	}
	return data
}

var claim = regexp.MustCompile(`says [^;]*;`)

// unheard is the first thing that a user said and that is not in the prompt.
func unheard(history []v1beta1.ChatMessage, messages []fantasy.Message) string {
	all := strings.Join(prompt.Texts(messages), "|")
	for i := range history {
		spec := &history[i].Spec
		texts := []string{spec.Content}
		for j := range spec.Parts {
			if spec.Role == v1beta1.RoleUser && spec.Parts[j].Type == v1beta1.PartText {
				texts = append(texts, *spec.Parts[j].Text)
			}
		}
		for _, text := range texts {
			if s := claim.FindString(text); !strings.Contains(all, s) {
				return s
			}
		}
	}
	return ""
}

// demands are what providers refuse a prompt for.
func demands(messages []fantasy.Message, d prompt.Dialect) error {
	if len(messages) < 2 || messages[0].Role != fantasy.MessageRoleSystem || messages[1].Role != fantasy.MessageRoleUser {
		return fmt.Errorf("it does not begin with the system message and a user's")
	}
	if messages[len(messages)-1].Role == fantasy.MessageRoleAssistant {
		return fmt.Errorf("a reply is last")
	}
	c := &checker{dialect: d, ids: map[string]bool{}}
	for i, m := range messages {
		if len(m.Content) == 0 {
			return fmt.Errorf("message %d is empty", i)
		}
		if i > 0 && (m.Role == fantasy.MessageRoleSystem || d.Alternate && m.Role == messages[i-1].Role) {
			return fmt.Errorf("message %d may not have role %s", i, m.Role)
		}
		if d.ReplyBetween && m.Role == fantasy.MessageRoleUser && messages[i-1].Role == fantasy.MessageRoleTool {
			return fmt.Errorf("message %d is a user's right after results", i)
		}
		if err := c.message(m); err != nil {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	return c.answered(nil)
}

type checker struct {
	dialect prompt.Dialect
	ids     map[string]bool
	open    []string
}

func (c *checker) message(m fantasy.Message) error {
	var results []string
	for i, p := range m.Content {
		switch p := p.(type) {
		case fantasy.TextPart:
			if err := sound(p.Text); err != nil {
				return err
			}
		case fantasy.ReasoningPart:
			if i == len(m.Content)-1 || m.Role != fantasy.MessageRoleAssistant {
				return fmt.Errorf("reasoning is at the end")
			}
		case fantasy.FilePart:
			if m.Role != fantasy.MessageRoleUser || len(p.Data) == 0 {
				return fmt.Errorf("a file is not a user's, or empty")
			}
		case fantasy.ToolResultPart:
			if err := sound(outputOf(p)); err != nil {
				return err
			}
			if !p.ProviderExecuted {
				results = append(results, p.ToolCallID)
			}
		}
	}
	if err := c.answered(results); err != nil {
		return err
	}
	return c.calls(m)
}

func outputOf(p fantasy.ToolResultPart) string {
	if out, ok := p.Output.(fantasy.ToolResultOutputContentText); ok {
		return out.Text
	}
	return p.Output.(fantasy.ToolResultOutputContentError).Error.Error()
}

// answered holds that the results are those of the open calls, in order.
func (c *checker) answered(results []string) error {
	if strings.Join(results, ",") != strings.Join(c.open, ",") {
		return fmt.Errorf("results of %v follow calls of %v", results, c.open)
	}
	c.open = nil
	return nil
}

var (
	validID   = regexp.MustCompile(`^[A-Za-z0-9_-]+$`)
	keptID    = regexp.MustCompile(`^[!-~]+$`)
	validName = regexp.MustCompile(`^[A-Za-z0-9_-]{1,64}$`)
)

func (c *checker) calls(m fantasy.Message) error {
	limit := 64
	if c.dialect.MaxCallID > 0 {
		limit = c.dialect.MaxCallID
	}
	form := validID
	if c.dialect.KeepsID != nil {
		form = keptID
	}
	for _, p := range m.Content {
		p, ok := p.(fantasy.ToolCallPart)
		if !ok {
			continue
		}
		var object map[string]any
		switch {
		case m.Role != fantasy.MessageRoleAssistant:
			return fmt.Errorf("%s calls", m.Role)
		case !form.MatchString(p.ToolCallID) || len(p.ToolCallID) > limit || c.ids[p.ToolCallID]:
			return fmt.Errorf("id %q is not valid, or used before", p.ToolCallID)
		case !validName.MatchString(p.ToolName):
			return fmt.Errorf("name %q is not valid", p.ToolName)
		case json.Unmarshal([]byte(p.Input), &object) != nil || object == nil || strings.Contains(p.Input, `\u0000`):
			return fmt.Errorf("arguments %q are no object", p.Input)
		}
		if c.ids[p.ToolCallID] = true; !p.ProviderExecuted {
			c.open = append(c.open, p.ToolCallID)
		}
	}
	return nil
}

func sound(text string) error {
	if strings.TrimSpace(text) == "" || strings.ContainsRune(text, 0) || !utf8.ValidString(text) {
		return fmt.Errorf("text %q is none", text)
	}
	return nil
}

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
func historyOf(data []byte) []v1beta1.ChatMessage {
	s := source(data)
	var history []v1beta1.ChatMessage
	for i := 0; len(s) > 0 && i < 40; i++ {
		m := v1beta1.ChatMessage{}
		m.Name = fmt.Sprint("m", i)
		m.Spec.Role = pick(&s, v1beta1.RoleUser, v1beta1.RoleAssistant, v1beta1.RoleTool, v1beta1.RoleAssistant,
			v1beta1.RoleTool, "System")
		if m.Spec.Role == v1beta1.RoleUser && s.draw(2) == 0 {
			m.Spec.Content = saying(&s, m.Name)
		} else {
			for j := range s.draw(6) {
				m.Spec.Parts = append(m.Spec.Parts, partOf(&s, m.Spec.Role, fmt.Sprint(m.Name, ".", j)))
			}
		}
		if m.Spec.Role == v1beta1.RoleAssistant {
			m = by(pick(&s, v1beta1.ProviderAnthropic, v1beta1.ProviderOpenAI, v1beta1.ProviderOpenAICompatible,
				v1beta1.ProviderGoogle), pick(&s, "m", "n"), m)
			if s.draw(4) == 0 {
				m.Spec.Generation = nil
			}
			if g := m.Spec.Generation; g == nil || g.Model.Provider != string(v1beta1.ProviderAnthropic) {
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

func partOf(s *source, role v1beta1.MessageRole, name string) v1beta1.MessagePart {
	kind := s.draw(8)
	switch {
	case role == v1beta1.RoleUser && kind < 5:
		return text(saying(s, name))
	case kind == 5:
		return inPlace(name, pick(s, "image/png", "application/pdf", "text/plain", "application/zip"),
			pick(s, png, pdf, "text", ""))
	case role == v1beta1.RoleTool && kind < 7:
		return aResult(s)
	case kind < 2:
		return text(pick(s, "text", "", " ", "a\x00\xff"))
	case kind == 2:
		return with(metadata(s), reasoning(pick(s, "hm", "", "\t")))
	case kind == 3:
		return aResult(s)
	case kind == 4:
		return v1beta1.MessagePart{Type: v1beta1.PartSource, Source: &v1beta1.Source{URL: "https://example.com"}}
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

func aCall(s *source) v1beta1.MessagePart {
	p := callOf(id(s), name(s), pick(s, "{}", `{"x":"\u0000"}`, "", "null", "[", `"x"`, "{}{}", `{"x":1e999}`, "\x00"))
	p.ToolCall.ProviderExecuted = s.draw(3) == 1
	return with(metadata(s), p)
}

func aResult(s *source) v1beta1.MessagePart {
	p := result(id(s), pick(s, "out", "", " ", "\x00\xff"))
	p.ToolResult.Name, p.ToolResult.IsError, p.ToolResult.ProviderExecuted = name(s), s.draw(3) == 1, s.draw(3) == 1
	return with(metadata(s), p)
}
