// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/attempts"
	"parley.dev/parley/internal/chat/conditions"
	"parley.dev/parley/internal/chat/cost"
	"parley.dev/parley/internal/chat/machine"
)

// settleAttempt ends the attempt under way if it has a result, its pod is gone, its result was deleted, or another
// message has the name of its result.
func settleAttempt(p *pass) error {
	st := p.status()
	switch {
	case st.Phase == v1beta1.ChatInterrupting:
		return endInterrupted(p)
	case st.Phase != v1beta1.ChatRunning:
		return nil
	case st.Generation == nil:
		return proceed(p)
	case st.Generation != p.underWay: // It began in this pass, and the facts are about the one before it.
		return nil
	case attempts.AnswersCurrentAttempt(p.chat, st, p.facts.Result):
		return useResult(p, p.facts.Result)
	case attemptGone(p):
		return loseAttempt(p)
	}
	return nil
}

func useResult(p *pass, result *v1beta1.ChatMessage) error {
	switch g := result.Spec.Generation; g.Outcome {
	case v1beta1.OutcomeFailed:
		accountStep(p, result)
		return retryOrFail(p, *g.Error)
	case v1beta1.OutcomeLost, v1beta1.OutcomeInterrupted: // Nobody asked for an interruption, or no longer.
		return loseAttempt(p)
	default:
		if err := p.fire(machine.CommitStep, subject{result: result, attempt: committedEnd(p, result)}); err != nil {
			return err
		}
		return proceed(p)
	}
}

func maxAttempts(p *pass) int32 {
	model, _ := answeringModel(p)
	if model == nil {
		return v1beta1.DefaultMaxAttempts
	}
	return model.Retry.MaxAttemptsOrDefault()
}

// accountAdvice adds what asking the advisor has used up, and counts what came of it: a summary can stand for messages
// that the generation pod would have to count. It is kept apart: it is another model's, and says nothing of how
// full the context is.
func accountAdvice(p *pass, g *v1beta1.MessageGeneration) {
	if g.Advice > 0 {
		p.status().Turn.Advice += g.Advice
	}
	if g.AdvisorUsage != nil {
		p.status().AdvisorUsage = p.status().AdvisorUsage.Add(*g.AdvisorUsage)
	}
}

// appendStep makes the result the head.
func appendStep(p *pass, result *v1beta1.ChatMessage) {
	st, g := p.status(), result.Spec.Generation
	if result.Spec.Role == v1beta1.RoleSystem {
		appendSummary(p, result)
		return
	}
	p.appendGenerated(result.Name)
	in := &st.Internal.Turn
	in.LastRole = result.Spec.Role
	if result.Spec.Role == v1beta1.RoleAssistant {
		noteCalls(st.Turn, in, result)
	} else {
		in.PendingCalls, in.Decisions = in.CallsRequiringAction, nil
		noteQuestions(in, result)
		st.Turn.WaitingFor = stillWaiting(st.Turn, in)
		recordStopTool(st.Turn, g.StoppedBy)
		st.Turn.PlanApproved = st.Turn.PlanApproved || g.PlanApproved
		changeWorkspace(p, g.Workspace)
		if len(g.Agents) > 0 {
			st.Internal.AgentsOf = result.Name
		}
	}
	accountStep(p, result)
	if result.Spec.Role == v1beta1.RoleAssistant {
		st.Turn.Steps++
		st.LastReply, st.Context = g.Preview, g.Context
		conditions.MarkMCPServers(st, g.MCP, p.facts.Now)
		conditions.MarkProviderTools(st, g.ProviderToolsUnavailable, p.facts.Now)
		conditions.MarkKubernetes(st, g.KubernetesUnavailable, p.facts.Now)
		conditions.MarkOutput(st, result.Name, g.Output, p.facts.Now)
	}
	conditions.MarkTruncated(st, result.Name, g.Truncated, p.facts.Now)
	if g.Truncated {
		p.notice(v1beta1.EventReplyTooLarge, v1beta1.EventActionCommit,
			"Message "+result.Name+" was cut at 1 MiB, the most that one object holds")
	}
}

// noteCalls notes the calls that a reply of the turn makes.
func noteCalls(t *v1beta1.TurnStatus, in *v1beta1.TurnInternalStatus, reply *v1beta1.ChatMessage) {
	g := reply.Spec.Generation
	in.PendingCalls, in.CallsRequiringAction, in.CallingMessage = g.PendingCalls, g.CallsRequiringAction, ""
	in.NeedsWorkspace, in.AskingMessage = g.NeedsWorkspace, ""
	in.ReplyOutcome = g.ReplyOutcome
	if g.ReplyOutcome == v1beta1.ReplyPaused {
		in.Pauses++
	} else {
		in.Pauses = 0
	}
	if g.Output != nil && g.Output.Problem != "" && g.ReplyOutcome == v1beta1.ReplyComplete {
		in.InvalidOutputs++
	} else {
		in.InvalidOutputs = 0
	}
	if g.PendingCalls > 0 {
		in.CallingMessage = reply.Name
	}
	t.CallsCanceledReason, t.WaitingFor = "", waitingCalls(g.WaitingFor)
}

// accountStep adds what a step has used up.
func accountStep(p *pass, result *v1beta1.ChatMessage) {
	st, g := p.status(), result.Spec.Generation
	if g.Usage != nil {
		st.Usage = st.Usage.Add(*g.Usage)
	}
	if g.Cost != nil {
		st.Cost = cost.Add(st.Cost, *g.Cost)
	}
	if call := g.TitleCall; call != nil {
		st.Usage = st.Usage.Add(call.Usage)
		if call.Cost != nil {
			st.Cost = cost.Add(st.Cost, *call.Cost)
		}
	}
	takeTitle(p, result)
	accountAdvice(p, g)
}

func beginAttempt(p *pass, action v1beta1.GenerationAction) {
	st, model := p.status(), nextModel(p, action)
	next := &v1beta1.GenerationStatus{
		Attempt: 1, Action: action, ModelConfig: model.Config, Pod: p.facts.Pod, StartedAt: metav1.NewMicroTime(p.facts.Now),
	}
	var internal v1beta1.AttemptInternalStatus
	if last := st.Retry; last == nil {
		noticeMissing(p, action)
	} else {
		next.Attempt, internal = last.Attempt+1, inherited(&st.Internal.Attempt)
		internal.AfterEmptyReply = last.Reason == v1beta1.ErrorEmptyReply
	}
	internal.HasSubChats, internal.HasWorkspace = p.facts.HasSubChats, p.facts.HasWorkspace
	internal.Compaction = compactionCause(p, action)
	st.Internal.MCPServers, st.Internal.Budgets = addresses(p.facts.Servers), effectiveBudgets(p)
	setAttempt(st, attemptRecord{underWay: next, internal: internal})
	st.Model = model.Name
}

// inherited is what the next attempt inherits from the one before: what is known of the step, and nothing that was of
// that attempt alone.
func inherited(last *v1beta1.AttemptInternalStatus) v1beta1.AttemptInternalStatus {
	return v1beta1.AttemptInternalStatus{
		LostAttempts: last.LostAttempts, ExcludedModels: slices.Clone(last.ExcludedModels),
		RetryAfter: slices.Clone(last.RetryAfter),
	}
}
