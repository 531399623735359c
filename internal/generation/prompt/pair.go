// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"cmp"
	"fmt"

	"parley.dev/parley/api/v1alpha1"
)

// maxCallID is the longest id that every provider takes, unless its dialect says less.
const maxCallID = 64

func (d Dialect) maxCallID() int {
	if d.MaxCallID > 0 {
		return d.MaxCallID
	}
	return maxCallID
}

// place is where a part is.
type place struct{ message, part int }

// pairing says which result answers which call, and what each call is called.
type pairing struct {
	dialect Dialect
	maxID   int
	used    map[string]bool
	// ids are the names of the calls, of those of the provider's own tools too, and of results that answer no call.
	ids map[place]string
	// answers are the results of calls.
	answers map[place]*v1alpha1.ToolResult
	// own are the results of calls of the provider's own tools.
	own map[place]*v1alpha1.MessagePart

	// waiting are the calls of the newest message that used an id,
	// as it stands in the history, and that have no result yet.
	waiting map[string][]place
	called  map[string]bool
}

// pair finds the result of each call. A result belongs to the newest calls before it that have its id: providers use
// ids again in later replies. It can come after other messages, such as one of a user.
func pair(history []v1alpha1.ChatMessage, dialect Dialect) *pairing {
	p := &pairing{
		dialect: dialect, maxID: dialect.maxCallID(), used: map[string]bool{}, ids: map[place]string{},
		answers: map[place]*v1alpha1.ToolResult{},
		own:     map[place]*v1alpha1.MessagePart{}, waiting: map[string][]place{}, called: map[string]bool{},
	}
	for i := range history {
		switch history[i].Spec.Role {
		case v1alpha1.RoleAssistant:
			p.calls(i, &history[i])
			p.results(i, history[i].Spec.Parts)
		case v1alpha1.RoleTool:
			p.results(i, history[i].Spec.Parts)
		}
	}
	return p
}

func (p *pairing) calls(message int, m *v1alpha1.ChatMessage) {
	here, kept, own, parts := map[string]bool{}, map[string]bool{}, p.dialect.wrote(m), m.Spec.Parts
	for j := range parts {
		call := parts[j].ToolCall
		if call == nil {
			continue
		}
		at := place{message, j}
		if id := cmp.Or(call.ProviderID, call.ID); !kept[id] && p.keeps(call, own) {
			p.ids[at], p.used[id], kept[id] = id, true, true
		} else {
			p.ids[at] = p.unique(call.ID)
		}
		if call.ProviderExecuted {
			p.own[at] = ownResult(parts[j+1:], call.ID)
			continue
		}
		if !here[call.ID] {
			p.waiting[call.ID], here[call.ID] = nil, true
		}
		p.called[call.ID] = true
		p.waiting[call.ID] = append(p.waiting[call.ID], at)
	}
}

// keeps reports whether a call keeps the id that its provider gave it. Where the provider itself has used an id again,
// it gets it back again if its protocol finds a result by its place.
func (p *pairing) keeps(call *v1alpha1.ToolCall, own bool) bool {
	id := cmp.Or(call.ProviderID, call.ID)
	if call.ProviderExecuted || p.dialect.KeepsID == nil || len(id) > p.maxID || !p.dialect.KeepsID(id, own) {
		return false
	}
	return !p.used[id] || own && call.ProviderID != "" && p.dialect.RepeatsIDs
}

// ownResult is the result of a call of the provider's own tools:
// it is in the same message, before the id is used again.
func ownResult(rest []v1alpha1.MessagePart, id string) *v1alpha1.MessagePart {
	for j := range rest {
		if call := rest[j].ToolCall; call != nil && call.ProviderExecuted && call.ID == id {
			return nil
		}
		if r := rest[j].ToolResult; r != nil && r.ProviderExecuted && r.ID == id {
			return &rest[j]
		}
	}
	return nil
}

// results gives each result to its call. Another one for a call that has its result is left out, as is one of the
// provider's own tools without its call.
func (p *pairing) results(message int, parts []v1alpha1.MessagePart) {
	for j := range parts {
		result := parts[j].ToolResult
		if result == nil || result.ProviderExecuted {
			continue
		}
		if waiting := p.waiting[result.ID]; len(waiting) > 0 {
			p.answers[waiting[0]] = result
			p.waiting[result.ID] = waiting[1:]
		} else if !p.called[result.ID] {
			p.called[result.ID] = true
			p.ids[place{message, j}] = p.unique(result.ID)
		}
	}
}

// unique is a valid id that no other call has.
func (p *pairing) unique(id string) string {
	valid := validName(id, p.maxID)
	if valid == "" {
		valid = "call"
	}
	unique := valid
	for n := 2; p.used[unique]; n++ {
		suffix := fmt.Sprintf("-%d", n)
		unique = valid[:min(len(valid), p.maxID-len(suffix))] + suffix
	}
	p.used[unique] = true
	return unique
}
