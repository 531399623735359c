// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"

	"parley.dev/parley/api/v1beta1"
)

// maxCallID is the longest id that every provider takes, unless its dialect has a lower limit.
const maxCallID = 64

// place is the position of a part.
type place struct{ message, part int }

// pairing assigns results and ids to calls.
type pairing struct {
	dialect Dialect
	maxID   int
	used    map[string]bool
	// ids are those of all calls, and of results without a call.
	ids     map[place]string
	answers map[place]*v1beta1.ToolResult
	// own are the results of calls of the provider's own tools.
	own map[place]*v1beta1.MessagePart

	// open are the calls without a result in the newest message that used an id, by that id in the history.
	open   map[string][]place
	called map[string]bool
}

// pair finds the result of each call. A result belongs to the newest calls before it that have its id, because
// providers reuse ids. Other messages, such as one of a user, can come between.
func pair(history []v1beta1.ChatMessage, dialect Dialect) *pairing {
	p := &pairing{
		dialect: dialect, maxID: cmp.Or(dialect.MaxCallID, maxCallID), used: map[string]bool{}, ids: map[place]string{},
		answers: map[place]*v1beta1.ToolResult{}, own: map[place]*v1beta1.MessagePart{},
		open: map[string][]place{}, called: map[string]bool{},
	}
	for i := range history {
		switch history[i].Spec.Role {
		case v1beta1.RoleAssistant:
			p.calls(i, &history[i])
			p.results(i, history[i].Spec.Parts)
		case v1beta1.RoleTool:
			p.results(i, history[i].Spec.Parts)
		}
	}
	return p
}

func (p *pairing) calls(message int, m *v1beta1.ChatMessage) {
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
			p.open[call.ID], here[call.ID] = nil, true
		}
		p.called[call.ID] = true
		p.open[call.ID] = append(p.open[call.ID], at)
	}
}

// keeps reports whether a call keeps the id of its provider. A provider that has reused an id gets it back if its
// protocol matches results by position.
func (p *pairing) keeps(call *v1beta1.ToolCall, own bool) bool {
	id := cmp.Or(call.ProviderID, call.ID)
	if call.ProviderExecuted || p.dialect.KeepsID == nil || len(id) > p.maxID || !p.dialect.KeepsID(id, own) {
		return false
	}
	return !p.used[id] || own && call.ProviderID != "" && p.dialect.RepeatsIDs
}

// ownResult is the result of a call of the provider's own tools: in the same message, before the id is reused.
func ownResult(rest []v1beta1.MessagePart, id string) *v1beta1.MessagePart {
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

// results assigns each result to its call. It omits second results, and those of the provider's own tools without a
// call.
func (p *pairing) results(message int, parts []v1beta1.MessagePart) {
	for j := range parts {
		result := parts[j].ToolResult
		if result == nil || result.ProviderExecuted {
			continue
		}
		if open := p.open[result.ID]; len(open) > 0 {
			p.answers[open[0]], p.open[result.ID] = result, open[1:]
		} else if !p.called[result.ID] {
			p.called[result.ID] = true
			p.ids[place{message, j}] = p.unique(result.ID)
		}
	}
}

// unique is a valid and unused id.
func (p *pairing) unique(id string) string {
	unique := p.candidate(id, 1)
	for n := 2; p.used[unique]; n++ {
		unique = p.candidate(id, n)
	}
	p.used[unique] = true
	return unique
}

// candidate is a valid id, another one for each n.
func (p *pairing) candidate(id string, n int) string {
	valid, suffix := cmp.Or(ValidName(id, p.maxID), "call"), ""
	if n > 1 {
		suffix = fmt.Sprintf("-%d", n)
	}
	if length := p.dialect.HashedIDs; length > 0 {
		sum := sha256.Sum256([]byte(id + suffix))
		return hex.EncodeToString(sum[:])[:length]
	}
	return valid[:min(len(valid), p.maxID-len(suffix))] + suffix
}

// noResult begins the replacement of a missing result.
const noResult = "This call has no result: "

// whyNoResult is the rest of it.
var whyNoResult = map[v1beta1.CallsCanceledReason]string{
	"":                       "it was cancelled, interrupted or not answered in time.",
	v1beta1.CallsCanceled:    "the user cancelled it.",
	v1beta1.CallsInterrupted: "the user interrupted the turn before the call was done.",
	v1beta1.CallsTimedOut:    "it was not answered or approved in time.",
	v1beta1.CallsFailed:      "an error ended the turn before the call was done.",
	v1beta1.CallsEdited:      "the user changed the conversation before the call was done.",
}

// answer is the result of the call, or its replacement.
func (b *builder) answer(call place) *v1beta1.ToolResult {
	if result := b.paired.answers[call]; result != nil {
		return result
	}
	// A newer version of the operator may have more reasons.
	why := cmp.Or(whyNoResult[b.whyGivenUp(call.message)], whyNoResult[""])
	return &v1beta1.ToolResult{Output: noResult + why, IsError: true}
}

// whyGivenUp is why calls of the message have no result, according to the next reply or User message.
func (b *builder) whyGivenUp(message int) v1beta1.CallsCanceledReason {
	for _, m := range b.History[message+1:] {
		switch {
		case m.Spec.Role == v1beta1.RoleUser:
			return m.Status.CallsCanceledReasonBefore
		case m.Spec.Role == v1beta1.RoleAssistant && m.Spec.Generation != nil:
			return m.Spec.Generation.CallsCanceledReasonBefore
		case m.Spec.Role == v1beta1.RoleAssistant:
			return ""
		}
	}
	return b.CallsCanceledReason
}
