// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import (
	"fmt"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chatstate"
	"parley.dev/parley/internal/decide"
)

// compactable tells whether the context has something in it that a summary could stand for.
func (p *pass) compactable() bool {
	st := p.status()
	if st.Context != nil {
		return st.Context.Replies > 0
	}
	return st.History.Length-st.History.ContextStart > 1 // How many of them are replies is not known since an edit.
}

// fill is how the context stands to the threshold. The first reply after a summary tells whether the summary was of any use.
func (p *pass) fill() decide.Fill {
	context := p.status().Context
	model, _ := p.answering()
	if context == nil || model == nil || model.ContextLimit == 0 || model.ThresholdPercent >= 100 ||
		context.Tokens*100 < model.ContextLimit*int64(model.ThresholdPercent) {
		return decide.FillFits
	}
	if context.Compacted && context.Replies <= 1 {
		return decide.FillStillOver
	}
	return decide.FillOver
}

// mayCompactInstead tells whether a context that the model refused as too long can be made shorter.
func (p *pass) mayCompactInstead(e *v1alpha1.GenerationError) bool {
	return e.Reason == v1alpha1.ErrorContextTooLong && p.status().Generation.Action == v1alpha1.ActionGenerateAssistant && p.compactable()
}

// compactInstead compacts the context and asks the model again.
func (p *pass) compactInstead(e v1alpha1.GenerationError) error {
	if err := p.fire(chatstate.FinishError, subject{err: &e}); err != nil {
		return err
	}
	if err := p.fire(chatstate.RequestCompaction, subject{compaction: v1alpha1.CompactionContextTooLong}); err != nil {
		return err
	}
	return p.goOn()
}

// stillOverLimit is the error of a context that a summary did not make short enough: a further one would not either.
func (p *pass) stillOverLimit() v1alpha1.GenerationError {
	st := p.status()
	model, _ := p.answering()
	return v1alpha1.GenerationError{
		Reason: v1alpha1.ErrorContextTooLong,
		Message: fmt.Sprintf("The conversation fills %d of %d tokens right after it was summarised, and may fill %d%%",
			st.Context.Tokens, model.ContextLimit, model.ThresholdPercent),
		Advice: fmt.Sprintf("Raise contextLimit or compaction.thresholdPercent of ChatModelConfig %s, name a model with a larger context, or start a new chat", model.Config),
	}
}

// setCompaction asks for a compaction. A turn that failed goes on after it.
func (p *pass) setCompaction(source v1alpha1.CompactionSource) {
	st := p.status()
	st.Compaction = source
	if st.Turn != nil && st.Turn.Result == v1alpha1.TurnFailed {
		st.Turn.Result = ""
		st.Turn.StartedAt = new(metav1.NewMicroTime(p.facts.Now)) // It ends a second time.
		if before := p.chat.Status.Turn; before != nil && before.Result == v1alpha1.TurnFailed {
			st.Turn.HistoryVersion = st.History.Version + 1 // Its message says that it failed, and is being answered again.
		}
	}
}

// clearCompaction forgets what asked for a compaction, unless another step is committed before it.
func (p *pass) clearCompaction(s subject) {
	if s.result != nil && s.result.Spec.Generation.Action != v1alpha1.ActionCompact && p.status().Phase == v1alpha1.ChatRunning {
		return
	}
	p.status().Compaction = ""
}

// appendSummary makes a summary the head, and the beginning of what the model sees. The turn stands as it stood.
func (p *pass) appendSummary(result *v1alpha1.ChatMessage) {
	st := p.status()
	st.History.Head = result.Name
	st.History.Length++
	p.beginContext(min(result.Spec.Generation.Compaction.ContextStart, st.History.Length-1))
	st.Context = &v1alpha1.ContextStatus{Compacted: true}
	p.account(result)
}

// beginContext makes the message at start the first that the model sees.
func (p *pass) beginContext(start int64) {
	h := &p.status().History
	h.ContextStart = start
	h.ContextBoundaries = append(h.ContextBoundaries, v1alpha1.ContextBoundary{Start: start, Length: h.Length})
	if over := len(h.ContextBoundaries) - v1alpha1.MaxContextBoundaries; over > 0 {
		h.ContextBoundaries = slices.Delete(h.ContextBoundaries, 0, over)
	}
}

// backToContext takes a history that was cut back to the context that its newest message was part of.
func (p *pass) backToContext() {
	h := &p.status().History
	for n := len(h.ContextBoundaries); n > 0 && h.ContextBoundaries[n-1].Length > h.Length; n = len(h.ContextBoundaries) {
		h.ContextBoundaries = h.ContextBoundaries[:n-1]
	}
	h.ContextStart = 0
	if n := len(h.ContextBoundaries); n > 0 {
		h.ContextStart = h.ContextBoundaries[n-1].Start
	} else {
		h.ContextBoundaries = nil
	}
}
