// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"math"
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/machine"
	"parley.dev/parley/internal/text/clip"
)

// compactable reports whether the context has something in it that a summary could stand for.
func compactable(p *pass) bool {
	st := p.status()
	if st.Context != nil {
		return st.Context.Replies > 0
	}
	return st.History.Length-st.History.ContextStart > 1 // How many of them are replies is not known since an edit.
}

// contextFill is how the context stands to the threshold. The first reply after a summary reports whether the summary
// was of any use. If it was not, only a limit that somebody gave ends the turn: what is known otherwise may be less
// than the model takes, so the model is asked, and a context that it refuses is compacted.
func contextFill(p *pass) fill {
	context := p.status().Context
	model, _ := answeringModel(p)
	if context == nil || model == nil || model.ContextLimit.Tokens == 0 || model.ThresholdPercent >= 100 ||
		context.Tokens*100 < model.ContextLimit.Tokens*int64(model.ThresholdPercent) {
		return fillFits
	}
	switch {
	case !context.Compacted || context.Replies > 1:
		return fillOver
	case model.ContextLimit.Source == v1beta1.ContextLimitConfigured:
		return fillStillOver
	}
	return fillFits
}

// compactInstead compacts a context that the model refused as too long,
// if it can be made shorter; then the model is asked again.
func compactInstead(p *pass, e *v1beta1.GenerationError, attempt *AttemptEnd) (compacts bool) {
	if e.Reason != v1beta1.ErrorContextTooLong || p.status().Generation.Action != v1beta1.ActionGenerateAssistant {
		return false
	}
	return p.try(machine.ContextTooLong, subject{compaction: v1beta1.CompactionContextTooLong, attempt: attempt}) == ""
}

// learnContextLimit keeps what the provider said of its model's context when it refused one as too long.
func learnContextLimit(p *pass, e *v1beta1.GenerationError) {
	model, _ := answeringModel(p)
	if e.ContextLimit == 0 || model == nil {
		return
	}
	config := p.status().Generation.ModelConfig
	for _, asked := range model.forAction(p.status().Generation.Action) {
		if asked.Config == config {
			p.status().Internal.LearnedContextLimit = &v1beta1.LearnedContextLimit{ModelConfig: config, Model: asked.Name,
				Tokens: e.ContextLimit}
		}
	}
}

// noticeSummarizer says that another model is asked for a summary than the one that is named for it.
func noticeSummarizer(p *pass, failed *v1beta1.GenerationStatus, e *v1beta1.GenerationError) {
	model, _ := answeringModel(p)
	if failed.Action != v1beta1.ActionCompact || !AsksFallbacks(e.Reason) || model.Summarizer == nil ||
		failed.ModelConfig != model.Summarizer.Config {
		return
	}
	p.notice(v1beta1.EventSummarizerUnavailable, v1beta1.EventActionCompact, clip.Ellipsis(fmt.Sprintf(
		"ChatModelConfig %s, which compaction.modelConfigRef names, cannot write a summary (%s), and %s is asked instead. %s",
		failed.ModelConfig, e.Reason, model.Config, e.Text()), maxMessage))
}

// noticeMissing says that the ChatModelConfig which is to write the summary cannot be asked.
func noticeMissing(p *pass, action v1beta1.GenerationAction) {
	model, _ := answeringModel(p)
	if action != v1beta1.ActionCompact || model.SummarizerMissing == "" {
		return
	}
	p.notice(v1beta1.EventSummarizerUnavailable, v1beta1.EventActionCompact, fmt.Sprintf("ChatModelConfig %s, which "+
		"compaction.modelConfigRef names, does not exist or is disabled, and %s is asked instead. Create it, or change the "+
		"reference", model.SummarizerMissing, model.Config))
}

// compactionCause is how full the context is; nil for other actions.
func compactionCause(p *pass, action v1beta1.GenerationAction) *v1beta1.CompactionCause {
	model, _ := answeringModel(p)
	if action != v1beta1.ActionCompact || model == nil {
		return nil
	}
	cause := &v1beta1.CompactionCause{ThresholdPercent: model.ThresholdPercent, ContextLimit: model.ContextLimit.Tokens}
	if context := p.status().Context; context != nil {
		cause.ContextTokens = context.Tokens
	}
	if cause.ContextLimit > 0 {
		cause.UsagePercent = int32(min(cause.ContextTokens*100/cause.ContextLimit, math.MaxInt32))
	}
	return cause
}

// contextStillOverLimit is the error of a context that a summary did not make short enough: a further one would not
// either.
func contextStillOverLimit(p *pass) v1beta1.GenerationError {
	st := p.status()
	model, _ := answeringModel(p)
	threshold, raise := "compaction.thresholdPercent of ChatModelConfig "+model.Config, "contextLimit or "
	if own := p.chat.Spec.Compaction; own != nil && own.ThresholdPercent != nil {
		threshold, raise = "spec.compaction.thresholdPercent of the chat or its ChatClass",
			"contextLimit of ChatModelConfig "+model.Config+", or "
	}
	if model.ContextLimitConfig != model.Config {
		raise = fmt.Sprintf("contextLimit of ChatModelConfig %s, which writes the summaries, or ", model.ContextLimitConfig)
	}
	return v1beta1.GenerationError{
		Reason: v1beta1.ErrorContextTooLong,
		Message: fmt.Sprintf("The conversation fills %d of %d tokens right after it was summarised, and may fill %d%%",
			st.Context.Tokens, model.ContextLimit.Tokens, model.ThresholdPercent),
		Advice: "Raise " + raise + threshold + ", name a model with a larger context, or start a new chat",
	}
}

// askCompaction asks for a compaction. A turn that failed continues after it.
func askCompaction(p *pass, source v1beta1.CompactionSource) {
	st := p.status()
	st.Internal.Compaction = source
	if st.Turn != nil && st.Turn.Result == v1beta1.TurnFailed {
		st.Turn.Result = ""
		resumeTurn(p)
	}
}

// forgetCompaction forgets what asked for a compaction, unless another step is committed before it.
func forgetCompaction(p *pass, s subject) {
	if s.result != nil && s.result.Spec.Generation.Action != v1beta1.ActionCompact && p.status().
		Phase == v1beta1.ChatRunning {
		return
	}
	p.status().Internal.Compaction = ""
}

// appendSummary makes a summary the head, and the beginning of what the model sees. The turn stands as it stood.
func appendSummary(p *pass, result *v1beta1.ChatMessage) {
	st := p.status()
	p.appendGenerated(result.Name)
	beginContext(p, min(result.Spec.Generation.Compaction.ContextStart, st.History.Length-1))
	st.Context = &v1beta1.ContextStatus{Compacted: true}
	accountStep(p, result)
}

// beginContext makes the message at start the first that the model sees.
func beginContext(p *pass, start int64) {
	h, in := &p.status().History, &p.status().Internal
	h.ContextStart = start
	in.ContextBoundaries = append(in.ContextBoundaries, v1beta1.ContextBoundary{Start: start, Length: h.Length})
	if over := len(in.ContextBoundaries) - v1beta1.MaxContextBoundaries; over > 0 {
		in.ContextBoundaries = slices.Delete(in.ContextBoundaries, 0, over)
	}
}

// backToContext takes a history that was cut back to the context that its newest message was part of.
func backToContext(p *pass) {
	h, in := &p.status().History, &p.status().Internal
	n := len(in.ContextBoundaries)
	for n > 0 && in.ContextBoundaries[n-1].Length > h.Length {
		n--
	}
	h.ContextStart = 0
	if in.ContextBoundaries = in.ContextBoundaries[:n]; n > 0 {
		h.ContextStart = in.ContextBoundaries[n-1].Start
	} else {
		in.ContextBoundaries = nil
	}
	if t := p.facts.Truncated; t != nil && t.ContextAt < h.ContextStart { // That was another context.
		p.status().Context = nil
	}
}
