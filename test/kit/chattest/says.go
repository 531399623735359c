// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chattest

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
)

// tool is what the model calls.
const tool = "current_time"

// usage is that of every reply of a model.
func usage() *v1beta1.TokenUsage {
	return &v1beta1.TokenUsage{InputTokens: 10, OutputTokens: 5, TotalTokens: 15}
}

// Says is a text of the model, for 15 tokens.
func Says(text string) Reply {
	return func(m *v1beta1.ChatMessage) {
		m.Spec.Parts = append(m.Spec.Parts, v1beta1.MessagePart{Type: v1beta1.PartText, Text: &text})
		m.Spec.Generation.Preview, m.Spec.Generation.Usage = clip.Ellipsis(text, 28), usage()
	}
}

// Calls is that the model calls a tool that Parley runs, once for each id, for 15 tokens.
func Calls(ids ...string) Reply { return CallsRequiring("", ids...) }

// CallsRequiring is that the model calls a tool whose calls wait for people.
func CallsRequiring(whom v1beta1.RequiredAction, ids ...string) Reply {
	calls := make([]v1beta1.ToolCall, len(ids))
	for i, id := range ids {
		calls[i] = v1beta1.ToolCall{ID: id, Name: tool, Input: "{}", RequiresAction: whom}
	}
	return CallsOf(calls...)
}

// CallsOf is that the model calls tools, for 15 tokens.
func CallsOf(calls ...v1beta1.ToolCall) Reply {
	return func(m *v1beta1.ChatMessage) {
		g := m.Spec.Generation
		for _, call := range calls {
			m.Spec.Parts = append(m.Spec.Parts, v1beta1.MessagePart{Type: v1beta1.PartToolCall, ToolCall: &call})
			g.PendingCalls++
			if call.RequiresAction != "" {
				g.CallsRequiringAction++
			}
		}
		g.Usage = usage()
	}
}

// Waits is that the model calls the tool that waits for the sub-chat, for as long as that.
func Waits(id, chat string, seconds int32) Reply {
	return func(m *v1beta1.ChatMessage) {
		CallsOf(v1beta1.ToolCall{ID: id, Name: "wait_agent", Input: "{}"})(m)
		m.Spec.Generation.WaitingFor = append(m.Spec.Generation.WaitingFor,
			v1beta1.WaitingCall{ID: id, Chat: chat, TimeoutSeconds: seconds})
	}
}

// Works is that the model calls a tool that works in the workspace.
func Works(id string) Reply {
	return func(m *v1beta1.ChatMessage) {
		CallsOf(v1beta1.ToolCall{ID: id, Name: "execute", Input: "{}"})(m)
		m.Spec.Generation.NeedsWorkspace = true
	}
}

// Results is what the calls of Calls yield.
func Results(ids ...string) Reply {
	results := make([]v1beta1.ToolResult, len(ids))
	for i, id := range ids {
		results[i] = v1beta1.ToolResult{ID: id, Name: tool, Output: "noon"}
	}
	return func(m *v1beta1.ChatMessage) { m.Spec.Parts = append(m.Spec.Parts, resultParts(results)...) }
}

func resultParts(results []v1beta1.ToolResult) (parts []v1beta1.MessagePart) {
	for _, result := range results {
		parts = append(parts, v1beta1.MessagePart{Type: v1beta1.PartToolResult, ToolResult: &result})
	}
	return parts
}

// Chooses is what the results decide about the workspace of the chat.
func Chooses(change *v1beta1.WorkspaceChange) Reply {
	return func(m *v1beta1.ChatMessage) { m.Spec.Generation.Workspace = change }
}

// Changes is what the results decide about sub-chats.
func Changes(agents ...v1beta1.AgentChange) Reply {
	return func(m *v1beta1.ChatMessage) { m.Spec.Generation.Agents = agents }
}

// StoppedBy is that a result of the tool ends the turn.
func StoppedBy(tool string) Reply {
	return func(m *v1beta1.ChatMessage) { m.Spec.Generation.StoppedBy = tool }
}

// Compacts is a summary that a person asked for, of all messages, for 15 tokens; changed.
func Compacts(summary string, change ...func(*v1beta1.CompactionAccount)) Reply {
	return func(m *v1beta1.ChatMessage) {
		m.Spec.Parts = append(m.Spec.Parts, v1beta1.MessagePart{Type: v1beta1.PartText, Text: &summary})
		m.Spec.Generation.Usage = usage()
		account := &v1beta1.CompactionAccount{Source: v1beta1.CompactionManual}
		if m.Spec.Index != nil {
			account.ContextStart = *m.Spec.Index
		}
		m.Spec.Generation.Compaction = changed(account, change)
	}
}

// From makes the context begin with the message at the index, besides the summary.
func From(index int64) func(*v1beta1.CompactionAccount) {
	return func(a *v1beta1.CompactionAccount) { a.ContextStart = index }
}

// Fails is that the attempt ends in an error, changed.
func Fails(reason v1beta1.ErrorReason, change ...func(*v1beta1.GenerationError)) Reply {
	return func(m *v1beta1.ChatMessage) {
		m.Spec.Generation.Outcome = v1beta1.OutcomeFailed
		m.Spec.Generation.Error = changed(
			&v1beta1.GenerationError{Reason: reason, Message: "what is wrong", Advice: "what to do"}, change)
	}
}

// ForNow makes the error one that may pass.
func ForNow(e *v1beta1.GenerationError) { e.Retryable = true }

// Of makes the error a provider's.
func Of(provider string) func(*v1beta1.GenerationError) {
	return func(e *v1beta1.GenerationError) { e.Provider = provider }
}

// After makes the provider ask for a wait of so many seconds; 0: for none.
func After(seconds int32) func(*v1beta1.GenerationError) {
	return func(e *v1beta1.GenerationError) {
		if e.RetryAfterSeconds = nil; seconds > 0 {
			e.RetryAfterSeconds = &seconds
		}
	}
}

// Lost is that a restarted generator finds the attempt begun.
func Lost() Reply {
	return func(m *v1beta1.ChatMessage) { m.Spec.Generation.Outcome = v1beta1.OutcomeLost }
}

// Interrupted is that the attempt is told to stop, with what it has until then.
func Interrupted() Reply {
	return func(m *v1beta1.ChatMessage) { m.Spec.Generation.Outcome = v1beta1.OutcomeInterrupted }
}

// Took is how long the attempt took.
func Took(d time.Duration) Reply {
	return func(m *v1beta1.ChatMessage) {
		g := m.Spec.Generation
		g.FinishedAt = metav1.NewMicroTime(g.StartedAt.Add(d))
	}
}

// Uncounted is that the provider does not say what the call used.
func Uncounted() Reply {
	return func(m *v1beta1.ChatMessage) { m.Spec.Generation.Usage = nil }
}

// Costs is what the call cost, in millionths of a dollar.
func Costs(micro int64) Reply {
	return func(m *v1beta1.ChatMessage) {
		m.Spec.Generation.Cost = &v1beta1.Cost{Currency: "USD", MicroUnits: micro}
	}
}

// Fills is how full the context was when the model gave its n-th reply in it.
func Fills(tokens, n int64) Reply {
	return func(m *v1beta1.ChatMessage) {
		m.Spec.Generation.Context = &v1beta1.ContextStatus{Tokens: tokens, Replies: n}
	}
}

// Compacted is that there is a summary in the context.
func Compacted() Reply {
	return func(m *v1beta1.ChatMessage) { m.Spec.Generation.Context.Compacted = true }
}

// Titles is that a title comes with the step.
func Titles(title string, source v1beta1.TitleSource) Reply {
	return func(m *v1beta1.ChatMessage) { m.Spec.Generation.Title, m.Spec.Generation.TitleSource = title, source }
}

// PlanApproved is that people have approved a plan.
func PlanApproved() Reply {
	return func(m *v1beta1.ChatMessage) { m.Spec.Generation.PlanApproved = true }
}
