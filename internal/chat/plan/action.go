// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"fmt"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/approval"
	"parley.dev/parley/internal/chat/chatclass"
	"parley.dev/parley/internal/chat/machine"
)

// takeDecisions takes people's decisions about calls down. The turn continues when every call has what it waits for.
func takeDecisions(p *pass) error {
	for i := range p.facts.Approvals {
		given := &p.facts.Approvals[i].ToolDecision
		switch call := waitingCall(p, given.ID); {
		case call == nil:
			p.plan.NotPending = append(p.plan.NotPending, given.Approval)
		case !approval.Applies(given, call):
			p.plan.Mismatched = append(p.plan.Mismatched, given.Approval)
		default:
			call.Decision = new(*given)
			p.plan.Applied = append(p.plan.Applied, given.Approval)
		}
	}
	if p.status().Phase == v1beta1.ChatRequiresAction && undecidedCalls(p, v1beta1.RequiresClient) == 0 &&
		undecidedCalls(p, v1beta1.RequiresApproval) == 0 {
		return completeAction(p, subject{})
	}
	return nil
}

// waitingCall is the call of that id, if it waits for approval.
func waitingCall(p *pass, id string) *v1beta1.PendingToolCall {
	required := p.status().RequiresAction
	if required == nil {
		return nil
	}
	i := slices.IndexFunc(required.ToolCalls, func(c v1beta1.PendingToolCall) bool {
		return c.ID == id && c.Kind == v1beta1.RequiresApproval && c.Decision == nil
	})
	if i < 0 {
		return nil
	}
	return &required.ToolCalls[i]
}

// undecidedCalls counts the calls of a kind without a decision and an answer.
func undecidedCalls(p *pass, kind v1beta1.RequiredAction) (n int) {
	if required := p.status().RequiresAction; required != nil {
		for _, call := range required.ToolCalls {
			if call.Kind == kind && call.Decision == nil {
				n++
			}
		}
	}
	return n
}

// takeResults takes a client's results, all at once, and only when nothing else is awaited.
func takeResults(p *pass) error {
	for _, message := range p.facts.Results {
		given := compareResults(p, message)
		if undecidedCalls(p, v1beta1.RequiresApproval) > 0 && given.problem == "" {
			p.early = append(p.early, given)
			continue // They stay open until then.
		}
		if p.status().Phase != v1beta1.ChatRequiresAction || given.problem != "" {
			p.plan.Rejected = append(p.plan.Rejected, invalidResults(p, given))
			continue
		}
		p.plan.Taken = append(p.plan.Taken, given.message)
		if err := completeAction(p, subject{results: &given}); err != nil {
			return err
		}
	}
	return nil
}

// refuseEarlyResults refuses results that waited for people to decide,
// once the calls are given up: nothing would come back to them.
func refuseEarlyResults(p *pass) error {
	if p.status().Phase != v1beta1.ChatRequiresAction {
		for _, given := range p.early {
			p.plan.Rejected = append(p.plan.Rejected, invalidResults(p, given))
		}
	}
	return nil
}

func invalidResults(p *pass, given clientResults) Rejection {
	if p.status().Phase != v1beta1.ChatRequiresAction {
		return Rejection{given.message, v1beta1.ReasonResultsInvalid,
			fmt.Sprintf("Chat %s has no tool call that waits for a result", p.chat.Name)}
	}
	return Rejection{given.message, v1beta1.ReasonResultsInvalid, given.problem}
}

func completeAction(p *pass, s subject) error {
	if err := p.fire(machine.CompleteRequiresAction, s); err != nil {
		return err
	}
	return proceed(p)
}

// recordStopTool records the first tool that ends the turn; empty if none does.
func recordStopTool(t *v1beta1.TurnStatus, tool string) {
	if t.StoppedBy == "" {
		t.StoppedBy = tool
	}
}

// expireAction continues without the calls that were not answered in time.
func expireAction(p *pass) error {
	required := p.status().RequiresAction
	if required == nil || p.facts.Now.Before(required.Deadline.Time) {
		return nil
	}
	p.notice(v1beta1.EventActionDeadlineExceeded, v1beta1.EventActionRequireAction,
		"The pending tool calls were not answered in time: they are cancelled, and the turn continues")
	if err := p.fire(machine.CancelRequiresAction, subject{}); err != nil {
		return err
	}
	return proceed(p)
}

// clearDeadline forgets the calls that waited.
func clearDeadline(p *pass, s subject) {
	required := p.status().RequiresAction
	if required == nil {
		return
	}
	if n := clientCalls(required); n > 0 {
		p.firing.ClientCalls = &ClientCalls{Number: n, Answered: s.results != nil}
	}
	p.status().RequiresAction = nil
}

// actionPatience is how long the calls wait: those that only people decide about wait longer by default. The limit of
// the class applies to both defaults.
func actionPatience(p *pass) time.Duration {
	limits, class := p.chat.Spec.Limits, p.facts.Class.Of()
	isClients := func(call v1beta1.PendingToolCall) bool { return call.Kind == v1beta1.RequiresClient }
	switch {
	case limits != nil && limits.ActionDeadlineSeconds != nil:
		return time.Duration(*limits.ActionDeadlineSeconds) * time.Second
	case slices.ContainsFunc(p.facts.Calls, isClients):
		return chatclass.BoundActionDeadline(v1beta1.DefaultActionDeadline, class)
	}
	return chatclass.BoundActionDeadline(v1beta1.DefaultApprovalDeadline, class)
}

func setDeadline(p *pass) {
	p.status().RequiresAction = &v1beta1.RequiresActionStatus{
		Message:   p.status().Internal.Turn.CallingMessage,
		Deadline:  metav1.NewTime(p.facts.Now.Add(actionPatience(p))),
		ToolCalls: slices.Clone(p.facts.Calls), // Decisions are noted in them, and the facts stay as they are.
	}
}

// cancelCalls cancels the calls that have no result.
func cancelCalls(p *pass) {
	st := p.status()
	if t := st.Turn; t != nil {
		cancelPendingCalls(t, &st.Internal.Turn, cancelReason(p.firing.Event, t.Result))
	}
}

// cancelReason is why an event gives up the calls of a turn with that result.
func cancelReason(event machine.Event, result v1beta1.TurnResult) v1beta1.CallsCanceledReason {
	switch event {
	case machine.Interrupt:
		return v1beta1.CallsCanceled
	case machine.CancelRequiresAction:
		return v1beta1.CallsTimedOut
	case machine.FinishInterruption:
		return v1beta1.CallsInterrupted
	}
	if why := cancelReasonOf(result); why != "" {
		return why
	}
	switch event {
	case machine.EditMessage, machine.DeleteMessage:
		return v1beta1.CallsEdited
	}
	return v1beta1.CallsInterrupted // A message cut in.
}

// cancelReasonOf is why a turn that ended so left calls without a result; empty if a turn that ends so leaves none.
func cancelReasonOf(result v1beta1.TurnResult) v1beta1.CallsCanceledReason {
	switch result {
	case v1beta1.TurnFailed:
		return v1beta1.CallsFailed
	case v1beta1.TurnInterrupted:
		return v1beta1.CallsInterrupted
	}
	return ""
}

// cancelPendingCalls counts the turn's calls without a result as answered,
// and keeps why they have none. They are given up once.
func cancelPendingCalls(t *v1beta1.TurnStatus, in *v1beta1.TurnInternalStatus, why v1beta1.CallsCanceledReason) {
	if in.PendingCalls == 0 {
		return
	}
	t.CallsCanceledReason, t.WaitingFor = why, nil
	in.PendingCalls, in.CallsRequiringAction, in.Decisions, in.LastRole = 0, 0, nil, v1beta1.RoleTool
}

// appendResults commits a client's results, if calls waited for them, and hands the decided calls to Parley.
func appendResults(p *pass, given *clientResults) {
	st := p.status()
	decided := []v1beta1.ToolDecision(nil)
	for _, call := range st.RequiresAction.ToolCalls {
		if call.Decision != nil {
			decided = append(decided, *call.Decision)
		}
	}
	in := &st.Internal.Turn
	in.Decisions = decided
	in.PendingCalls, in.CallsRequiringAction = int32(len(decided)), 0 // At most 512, as the API bounds parts.
	if given == nil {
		return
	}
	in.Results = &v1beta1.ClientResults{Message: given.message, Position: st.History.Length}
	recordStopTool(st.Turn, given.stoppedBy)
	in.LastRole = v1beta1.RoleTool
	p.appendCommit(v1beta1.CommittedMessage{Message: given.message, UID: given.uid, StoppedBy: given.stoppedBy})
}
