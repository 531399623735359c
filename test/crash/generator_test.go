// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package crash

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/fence"
	"parley.dev/parley/internal/testing/playedpod"
)

// reply is what an attempt yields: a change of the message that a generation pod would create.
type reply func(*v1alpha1.ChatMessage)

// tokens is what each answer of the model costs.
const tokens = 15

// generator plays the generation pods. It answers each attempt at most once, with the replies of the scenario in their
// order. An attempt that repeats one which had been answered in full is given the same answer again.
type generator struct {
	replies  []reply
	answered map[fence.Fence]bool
	full     map[fence.Fence]reply // by the fence without its attempt
}

func newGenerator() *generator {
	return &generator{answered: map[fence.Fence]bool{}, full: map[fence.Fence]reply{}}
}

// attempts is the number of attempts that were answered.
func (g *generator) attempts() int { return len(g.answered) }

// generate answers the chat's attempt under way, if it has one and the scenario has an answer.
func (g *generator) generate(ctx context.Context, chat *v1alpha1.Chat) error {
	if chat == nil || chat.Status.Generation == nil {
		return nil
	}
	fence := fence.Fence{ChatUID: string(chat.UID), HistoryVersion: chat.Status.History.Version,
		Attempt: chat.Status.Generation.Attempt}
	if g.answered[fence] {
		return nil
	}
	step := fence
	step.Attempt = 0
	next, again := g.full[step]
	if !again {
		if len(g.replies) == 0 {
			return nil
		}
		next = g.replies[0]
	}
	message := playedpod.Message(chat)
	next(message)
	if err := suits(message); err != nil {
		return err
	}
	err := cluster.Client.Create(ctx, message)
	if apierrors.IsAlreadyExists(err) {
		return nil // A chat of the same name left it behind. Its removal is a change that comes.
	}
	if err != nil {
		return fmt.Errorf("creating %s: %w", message.Name, err)
	}
	g.answered[fence] = true
	if message.Spec.Generation.Outcome == v1alpha1.OutcomeCompleted {
		g.full[step] = next
	}
	if !again {
		g.replies = g.replies[1:]
	}
	return nil
}

// suits tells when the scenario answers with the model where tools are to run, or the other way round.
func suits(m *v1alpha1.ChatMessage) error {
	for _, p := range m.Spec.Parts {
		if (p.Type == v1alpha1.PartToolResult) != (m.Spec.Role == v1alpha1.RoleTool) {
			return fmt.Errorf("the scenario answers the action %s with a part of type %s", m.Spec.Generation.Action, p.Type)
		}
	}
	return nil
}

// text is a reply of one text.
func text(content string) reply {
	return func(m *v1alpha1.ChatMessage) {
		m.Spec.Parts = append(m.Spec.Parts, v1alpha1.MessagePart{Type: v1alpha1.PartText, Text: &content})
		m.Spec.Generation.Preview = content
		m.Spec.Generation.Usage = &v1alpha1.TokenUsage{InputTokens: tokens - 5, OutputTokens: 5, TotalTokens: tokens}
	}
}

// calls is a reply that calls tools.
func calls(ids ...string) reply {
	return func(m *v1alpha1.ChatMessage) {
		for _, id := range ids {
			m.Spec.Parts = append(m.Spec.Parts, v1alpha1.MessagePart{
				Type: v1alpha1.PartToolCall, ToolCall: &v1alpha1.ToolCall{ID: id, Name: "current_time", Input: "{}"},
			})
		}
		m.Spec.Generation.PendingCalls = int32(len(ids))
		m.Spec.Generation.Usage = &v1alpha1.TokenUsage{InputTokens: tokens - 5, OutputTokens: 5, TotalTokens: tokens}
	}
}

// results is what running the tool calls yields.
func results(ids ...string) reply {
	return func(m *v1alpha1.ChatMessage) {
		for _, id := range ids {
			m.Spec.Parts = append(m.Spec.Parts, v1alpha1.MessagePart{
				Type: v1alpha1.PartToolResult, ToolResult: &v1alpha1.ToolResult{ID: id, Name: "current_time", Output: "noon"},
			})
		}
	}
}

// fails is an attempt that ends in an error.
func fails(reason v1alpha1.ErrorReason) reply {
	return func(m *v1alpha1.ChatMessage) {
		m.Spec.Generation.Outcome = v1alpha1.OutcomeFailed
		m.Spec.Generation.Error = &v1alpha1.GenerationError{Reason: reason, Message: "what is wrong", Advice: "what to do"}
	}
}

// failsForNow is an attempt that ends in an error that may pass.
func failsForNow() reply {
	return func(m *v1alpha1.ChatMessage) {
		fails(v1alpha1.ErrorOverloaded)(m)
		m.Spec.Generation.Error.Retryable = true
	}
}

// summarises is what a compaction yields.
func summarises(content string) reply {
	return func(m *v1alpha1.ChatMessage) {
		text(content)(m)
		m.Spec.Generation.Preview = ""
		m.Spec.Generation.Compaction = &v1alpha1.CompactionAccount{Source: v1alpha1.CompactionManual,
			ContextStart: *m.Spec.Index}
	}
}

// isLost is an attempt that a restarted generator reports as lost.
func isLost() reply {
	return func(m *v1alpha1.ChatMessage) { m.Spec.Generation.Outcome = v1alpha1.OutcomeLost }
}

// isInterrupted is an attempt that was told to stop, with what it had until then; nil: nothing.
func isInterrupted(had reply) reply {
	return func(m *v1alpha1.ChatMessage) {
		if had != nil {
			had(m)
		}
		m.Spec.Generation.Outcome = v1alpha1.OutcomeInterrupted
	}
}
