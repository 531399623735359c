// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools

import (
	"slices"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/approval/toolpolicy"
)

// RequiresAction is whose action a call of the tool requires before Parley can continue; empty: no one's. A client
// decides about its own tools. A call of a tool that is not allowed gets its result from Parley.
func RequiresAction(spec *v1beta1.ChatTools, name string) v1beta1.RequiredAction {
	switch {
	case !toolpolicy.Allows(spec, name):
	case spec != nil && slices.ContainsFunc(spec.Client, func(c v1beta1.ClientTool) bool { return c.Name == name }):
		return v1beta1.RequiresClient
	case toolpolicy.NeedsApproval(spec, name):
		return v1beta1.RequiresApproval
	}
	return ""
}

// SplitByApproval finds the calls of the newest reply that have no result, and either wait for no one or have a
// decision. Every call passes here before it runs: one that requires approval runs only if a person has approved this
// very call. A call that has asked people is made again whatever they decide.
func SplitByApproval(chat *v1beta1.Chat, history []v1beta1.ChatMessage) *Batch {
	calls, reply := pendingCalls(history)
	b := &Batch{Chat: chat, Reply: reply, Answers: map[string]Answer{}}
	decisions := chat.Status.Internal.Turn.Decisions
	for _, call := range calls {
		question := lastQuestion(history, call.ID)
		i := slices.IndexFunc(decisions, func(d v1beta1.ToolDecision) bool { return d.ID == call.ID })
		if i >= 0 {
			decision := decisions[i]
			if question != nil {
				b.Answers[call.ID] = answerTo(question, &decision)
			}
			decision.Content = ""
			b.Decisions = append(b.Decisions, decision)
		}
		switch {
		case call.RequiresAction == "" || question != nil:
			b.Calls = append(b.Calls, call)
		case i < 0:
		case decisions[i].Decision == v1beta1.DecisionDeny:
			b.Denied = append(b.Denied, errorResult(call, deniedText(call, decisions[i].Comment)))
		case approval.Applies(&decisions[i], new(approval.Of(&call))):
			b.Calls = append(b.Calls, call)
		default:
			b.Denied = append(b.Denied, errorResult(call, notApproved))
		}
	}
	return b
}

// notApproved is the result of a call that differs from the approved one.
const notApproved = "The call was not run: it is not the call that a person has approved. Make it again if it is " +
	"still needed."

// answerTo makes the Answer from a decision about the question.
func answerTo(q *v1beta1.ToolQuestion, d *v1beta1.ToolDecision) Answer {
	return Answer{
		Question: Question{Requests: q.Requests, Proposal: q.Proposal, State: q.ToolState},
		Given:    d.Decision == v1beta1.DecisionApprove && approval.Applies(d, new(approval.OfQuestion(q))),
		Content:  d.Content, Comment: d.Comment,
	}
}

// lastQuestion is what a call has asked people last, since the newest reply; nil: nothing.
func lastQuestion(history []v1beta1.ChatMessage, id string) *v1beta1.ToolQuestion {
	for i := range slices.Backward(history) {
		m := &history[i].Spec
		if m.Role == v1beta1.RoleAssistant {
			return nil
		}
		if m.Generation == nil {
			continue
		}
		for j := range m.Generation.Questions {
			if q := &m.Generation.Questions[j]; q.ID == id {
				return q
			}
		}
	}
	return nil
}

// pendingCalls are the calls of the newest reply that have no result, and the version that the reply was made for.
func pendingCalls(history []v1beta1.ChatMessage) (calls []v1beta1.ToolCall, reply int64) {
	answered := map[string]bool{}
	for _, m := range slices.Backward(history) {
		calls = nil
		for i := range m.Spec.Parts {
			switch part := &m.Spec.Parts[i]; {
			case part.ToolResult != nil:
				answered[part.ToolResult.ID] = true
			case part.ToolCall != nil && !part.ToolCall.ProviderExecuted:
				calls = append(calls, *part.ToolCall)
			}
		}
		if m.Spec.Role == v1beta1.RoleAssistant {
			if m.Spec.Generation != nil {
				reply = m.Spec.Generation.HistoryVersion
			}
			return slices.DeleteFunc(calls, func(c v1beta1.ToolCall) bool { return answered[c.ID] }), reply
		}
	}
	return nil, 0
}

func deniedText(call v1beta1.ToolCall, comment string) string {
	text := "A person denied this call, so it was not run."
	if call.ApprovalCause == v1beta1.ApprovalPlanProposed {
		text = "A person did not approve this plan. Propose another one, or ask what is wrong with it."
	}
	if comment != "" {
		text += " They said: " + comment
	}
	return text
}

func errorResult(call v1beta1.ToolCall, text string) v1beta1.ToolResult {
	return v1beta1.ToolResult{ID: call.ID, Name: call.Name, Output: text, IsError: true}
}
