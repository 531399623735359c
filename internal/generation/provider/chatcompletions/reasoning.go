// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatcompletions

import (
	"bytes"
	"cmp"
	"encoding/json"
	"maps"
	"net/url"
	"reflect"
	"regexp"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/wire"
)

// detail is one of the reasoning_details of OpenRouter and Vercel, which want them back as they were. Each reasoning
// has at most one with a text. The text is that of the reasoning, and not kept in the detail.
type detail map[string]any

// textDetail is the type of a detail that has the model's own words.
const textDetail = "reasoning.text"

// field is the field with the text of a detail; empty: its type has none.
func (d detail) field() string {
	switch d["type"] {
	case textDetail:
		return "text"
	case "reasoning.summary":
		return "summary"
	}
	return ""
}

// think reads the reasoning of a delta. A server that sends details mostly sends their texts a second time.
func (r *reply) think(more *additions) {
	hasText := false
	for _, piece := range more.Details {
		text, _ := piece[piece.field()].(string)
		r.keep(piece, text != "")
		r.reason(text)
		hasText = hasText || text != ""
	}
	if !hasText {
		r.reason(cmp.Or(more.ReasoningContent, more.Reasoning))
		r.short = r.short || more.ReasoningContent == "" && more.Reasoning != ""
	}
}

// reason adds to the reasoning. It ends the text before: what follows the reasoning is another one.
func (r *reply) reason(text string) {
	if text != "" && r.writing {
		r.parts.EndText(r.textID())
		r.texts, r.writing = r.texts+1, false
	}
	r.parts.Reasoning(thoughtID, text)
}

// keep keeps what a piece of a detail has besides its text.
func (r *reply) keep(piece detail, withText bool) {
	field := piece.field()
	delete(piece, field)
	maps.DeleteFunc(piece, func(_ string, value any) bool { return value == nil })
	if last := r.lastDetail(); field != "" && last["type"] == piece["type"] &&
		reflect.DeepEqual(last["index"], piece["index"]) && (!withText || last["signature"] == nil) {
		maps.Copy(last, piece)
		return
	}
	if field != "" {
		r.endThought()
	}
	r.details = append(r.details, piece)
}

func (r *reply) lastDetail() detail {
	if len(r.details) == 0 {
		return nil
	}
	return r.details[len(r.details)-1]
}

// unsigned reports whether a signature of the reasoning follows: Anthropic's comes behind the calls.
func (r *reply) unsigned() bool {
	last := r.lastDetail()
	format, _ := last["format"].(string)
	return last["type"] == textDetail && last["signature"] == nil && strings.HasPrefix(format, "anthropic-claude")
}

// endThought ends the reasoning, and gives it its details.
func (r *reply) endThought() {
	if item, err := json.Marshal(r.details); err == nil && len(r.details) > 0 {
		r.parts.ReasoningState(thoughtID, wire.State{Item: item})
	} else if r.short {
		r.parts.ReasoningState(thoughtID, wire.State{Item: shortField})
	}
	r.parts.EndReasoning(thoughtID)
	r.details, r.short = nil, false
}

// Fields of a message with its reasoning: DeepSeek's, which most servers have; and that of others, such as Groq and
// Ollama, who refuse or ignore the first one. The item of a reasoning has the name of the second.
const longField = "reasoning_content"

var shortField = json.RawMessage(`"reasoning"`)

// signs are models whose makers sign the reasoning, and take it back with the signature alone.
var signs = regexp.MustCompile(`^(?:anthropic|openai|google|x-?ai)/`)

// thoughts are the fields of a message that have its reasoning.
func (b *builder) thoughts(content []fantasy.MessagePart, calls bool) object {
	var texts []string
	var details []detail
	field := longField
	for _, part := range content {
		if thought, ok := part.(fantasy.ReasoningPart); ok {
			texts, details = append(texts, thought.Text), append(details, b.detailsOf(thought)...)
			if bytes.Equal(wire.StateOf(thought).Item, shortField) {
				field = "reasoning"
			}
		}
	}
	text := strings.Join(texts, "\n")
	switch {
	case len(details) > 0:
		return object{"reasoning_details": details}
	case b.spec.Provider != v1beta1.ProviderOpenAICompatible:
		return nil
	case text != "":
		return object{field: text}
	case calls:
		return b.noThoughts()
	}
	return nil
}

// needThoughts are the domains of DeepSeek and Kimi, which refuse a history that has calls without reasoning while they
// think, such as those of another model, and what stands for it. Kimi takes an empty one for missing.
var needThoughts = map[string]string{"deepseek.com": "", "moonshot.ai": " ", "moonshot.cn": " ", "kimi.com": " "}

// noThoughts is the field of a message with calls and without reasoning.
func (b *builder) noThoughts() object {
	at, err := url.Parse(b.url)
	if err != nil {
		return nil
	}
	for domain, none := range needThoughts {
		if host := at.Hostname(); host == domain || strings.HasSuffix(host, "."+domain) {
			return object{longField: none}
		}
	}
	return nil
}

// detailsOf are the details that came with a reasoning, or one for the gateways to a model that signs nothing.
func (b *builder) detailsOf(thought fantasy.ReasoningPart) (details []detail) {
	if json.Unmarshal(wire.StateOf(thought).Item, &details) != nil && !signs.MatchString(b.spec.Model) &&
		b.spec.Provider != v1beta1.ProviderOpenAICompatible {
		details = []detail{{"type": textDetail, "format": "unknown", "index": 0}}
	}
	for _, d := range details {
		if field := d.field(); field != "" {
			d[field] = thought.Text
		}
	}
	return details
}
