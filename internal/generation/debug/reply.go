// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package debug

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/debug/redact"
	"parley.dev/parley/internal/generation/provider/finish"
)

const (
	// maxReplyParts, maxWarnings and maxPartTypes are what the resource takes.
	maxReplyParts, maxWarnings, maxPartTypes = 256, 32, 32
)

// reply collects what a model says, within bounds. The zero reply is empty.
type reply struct {
	parts    []*replyPart
	index    map[string]*replyPart
	size     int
	counts   map[string]int32
	finished bool
	reason   string
	usage    fantasy.Usage
	warnings []fantasy.CallWarning
}

// replyPart is a part whose text may still grow.
type replyPart struct {
	v1alpha1.DebugPart
	text strings.Builder
	cut  bool
}

func (r *reply) count(of string) {
	if r.counts == nil {
		r.counts = map[string]int32{}
	}
	if _, ok := r.counts[of]; ok || len(r.counts) < maxPartTypes {
		r.counts[of]++
	}
}

// add takes a part of a stream.
func (r *reply) add(p *fantasy.StreamPart) {
	r.count(string(p.Type))
	switch p.Type {
	case fantasy.StreamPartTypeTextDelta:
		r.addText(v1alpha1.DebugText, p.ID, p.Delta)
	case fantasy.StreamPartTypeReasoningDelta:
		r.addText(v1alpha1.DebugReasoning, p.ID, p.Delta)
	case fantasy.StreamPartTypeToolCall:
		r.addWhole(v1alpha1.DebugPart{Type: v1alpha1.DebugToolCall, ID: p.ID, Name: p.ToolCallName}, p.ToolCallInput)
	case fantasy.StreamPartTypeToolResult:
		r.addWhole(v1alpha1.DebugPart{Type: v1alpha1.DebugToolResult, ID: p.ID, Name: p.ToolCallName}, p.Delta)
	case fantasy.StreamPartTypeSource:
		r.addWhole(v1alpha1.DebugPart{Type: v1alpha1.DebugSource, ID: p.ID, Name: p.Title}, p.URL)
	case fantasy.StreamPartTypeWarnings:
		r.warnings = append(r.warnings, p.Warnings...)
	case fantasy.StreamPartTypeFinish:
		r.finish(cmp.Or(finish.LastOf(p).Reason, string(p.FinishReason)), p.Usage, p.Warnings)
	}
}

func (r *reply) finish(reason string, usage fantasy.Usage, warnings []fantasy.CallWarning) {
	r.finished, r.reason, r.usage = true, reason, usage
	r.warnings = append(r.warnings, warnings...)
}

// addText adds to the part of the type and the id, which providers give out for each type.
func (r *reply) addText(kind v1alpha1.DebugPartType, id, text string) {
	key := string(kind) + "/" + id
	part := r.index[key]
	if part == nil {
		if part = r.begin(v1alpha1.DebugPart{Type: kind}); part == nil {
			return
		}
		if r.index == nil {
			r.index = map[string]*replyPart{}
		}
		r.index[key] = part
	}
	r.grow(part, text)
}

func (r *reply) addWhole(p v1alpha1.DebugPart, text string) {
	if part := r.begin(p); part != nil {
		r.grow(part, text)
	}
}

func (r *reply) begin(p v1alpha1.DebugPart) *replyPart {
	if len(r.parts) == maxReplyParts {
		return nil
	}
	part := &replyPart{DebugPart: p}
	r.parts = append(r.parts, part)
	return part
}

// grow takes as much of the text as there is room for.
func (r *reply) grow(part *replyPart, text string) {
	if room := v1alpha1.MaxDebugReplyBytes - r.size; len(text) > room {
		text, part.cut = text[:room], true
	}
	r.size += len(text)
	part.text.WriteString(text)
}

// copy is the reply as it stands.
func (r *reply) copy() reply {
	c := *r
	c.index, c.parts, c.counts = nil, make([]*replyPart, 0, len(r.parts)), maps.Clone(r.counts)
	for _, part := range r.parts {
		now := &replyPart{DebugPart: part.DebugPart, cut: part.cut}
		now.Text = part.text.String()
		c.parts = append(c.parts, now)
	}
	c.warnings = slices.Clone(r.warnings)
	return c
}

// response is what is recorded of a copy; nil, if nothing came.
func (r *reply) response(provider v1alpha1.ModelProvider, redactor redact.Redactor) *v1alpha1.DebugResponse {
	if len(r.counts) == 0 && !r.finished {
		return nil
	}
	out := &v1alpha1.DebugResponse{FinishReason: bound(r.reason, 64), Usage: collect.UsageOf(provider, r.usage)}
	for _, part := range r.parts {
		out.Parts = append(out.Parts, cleanPart(part.DebugPart, wholeOrRemark(part), v1alpha1.MaxDebugReplyBytes, redactor))
	}
	for _, of := range slices.Sorted(maps.Keys(r.counts)) {
		out.PartCounts = append(out.PartCounts, v1alpha1.DebugPartCount{Type: bound(of, 64), Count: r.counts[of]})
	}
	for _, w := range r.warnings[:min(len(r.warnings), maxWarnings)] {
		out.Warnings = append(out.Warnings, shortened(redactor.Text(warningText(w)), 1000))
	}
	return out
}

// wholeOrRemark is the text of a part. JSON that was cut is no JSON, so that no secret in it would be found.
func wholeOrRemark(part *replyPart) string {
	if !part.cut {
		return part.Text
	}
	if trimmed := strings.TrimSpace(part.Text); part.Type == v1alpha1.DebugToolCall || strings.HasPrefix(trimmed, "{") ||
		strings.HasPrefix(trimmed, "[") {
		return "[left out: too long]"
	}
	return strings.ToValidUTF8(part.Text, "") + " [cut]"
}

func warningText(w fantasy.CallWarning) string {
	words := []string{string(w.Type), w.Setting, w.Details, w.Message}
	if w.Tool != nil {
		words = append(words, w.Tool.GetName())
	}
	return strings.Join(slices.DeleteFunc(words, func(s string) bool { return s == "" }), ": ")
}

// cleanPart is a part as it is recorded.
func cleanPart(part v1alpha1.DebugPart, text string, runes int, redactor redact.Redactor) v1alpha1.DebugPart {
	part.Text = shortened(redactor.Text(text), runes)
	if text != "" && (part.Type == v1alpha1.DebugSource || part.Type == v1alpha1.DebugFile) {
		part.Text = shortened(redactor.URL(text), runes)
	}
	part.ID, part.Name = bound(redactor.Text(part.ID), 256), bound(redactor.Text(part.Name), 256)
	part.MediaType = bound(part.MediaType, 256)
	return part
}
