// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// waits says what ends the wait that a reason of Ready tells of. A reason that is not here tells of none.
var waits = map[v1alpha1.ConditionReason]v1alpha1.WaitFor{
	v1alpha1.ReasonWaitingForPod:         v1alpha1.WaitForPod,
	v1alpha1.ReasonGenerationPodRejected: v1alpha1.WaitForQuota,
	v1alpha1.ReasonWaitingForCapacity:    v1alpha1.WaitForCapacity,
	v1alpha1.ReasonWaitingForModel:       v1alpha1.WaitForModel,
	v1alpha1.ReasonWaitingForSubChats:    v1alpha1.WaitForSubChats,
	v1alpha1.ReasonWaitingForWorkspace:   v1alpha1.WaitForWorkspace,
	v1alpha1.ReasonWaitingForMCPServers:  v1alpha1.WaitForMCPServers,
	v1alpha1.ReasonRetrying:              v1alpha1.WaitForRetry,
	v1alpha1.ReasonSuspended:             v1alpha1.WaitForResume,
	v1alpha1.ReasonArchiving:             v1alpha1.WaitForSubChats,
	v1alpha1.ReasonArchived:              v1alpha1.WaitForUnarchive,
	v1alpha1.ReasonPromptRejected:        v1alpha1.WaitForMessage,
	v1alpha1.ReasonPromptNameConflict:    v1alpha1.WaitForMessage,
}

// blocks is the same for errors that keep an idle chat from taking its message up, or hold work that is under way.
var blocks = map[v1alpha1.ErrorReason]v1alpha1.WaitFor{
	v1alpha1.ErrorModelConfigNotFound:   v1alpha1.WaitForModelConfig,
	v1alpha1.ErrorModelConfigDisabled:   v1alpha1.WaitForModelConfig,
	v1alpha1.ErrorModelConfigInvalid:    v1alpha1.WaitForModelConfig,
	v1alpha1.ErrorModelConfigNotAllowed: v1alpha1.WaitForModelConfig,
	v1alpha1.ErrorChatClassNotFound:     v1alpha1.WaitForChatClass,
	v1alpha1.ErrorParentNotFound:        v1alpha1.WaitForChat,
	v1alpha1.ErrorSubChatLimitExceeded:  v1alpha1.WaitForChat,
	v1alpha1.ErrorAPIKeyMissing:         v1alpha1.WaitForSecret,
	v1alpha1.ErrorBudgetReached:         v1alpha1.WaitForBudget,
	v1alpha1.ErrorModelPriceMissing:     v1alpha1.WaitForModelConfig,
}

// ReferencePatience is how long a turn waits for a ChatClass or a ChatModelConfig that does not exist before it fails:
// 10 minutes. That is longer than the usual interval of a GitOps tool, which may bring it.
const ReferencePatience = 10 * time.Minute

// markWait records what the chat waits for, which its summary says to people; nothing if it waits for nothing.
func markWait(st *v1alpha1.ChatStatus, s Summary, f ChatFacts) {
	wait := waitOf(st, s, f)
	if wait == nil {
		st.Wait = nil
		return
	}
	wait.Reason, wait.Since = string(s.Reason), metav1.NewTime(f.Now.Truncate(time.Second))
	wait.Message = clip.Runes(printable.Text(s.Message), v1alpha1.MaxWaitMessage)
	before := st.Wait
	if before != nil && before.For == wait.For && before.Reason == wait.Reason &&
		(f.MissingReference == nil || before.Until != nil) { // The wait of an idle chat has no end, and is another one.
		wait.Since = before.Since
	}
	if f.MissingReference != nil {
		wait.Until = new(metav1.NewTime(turnWaitsSince(st, wait.Since.Time).Add(ReferencePatience)))
	}
	st.Wait = wait
}

// turnWaitsSince is the later of the beginning of a wait and that of the turn: the turn before may have waited, too.
func turnWaitsSince(st *v1alpha1.ChatStatus, since time.Time) time.Time {
	if t := st.Turn; t != nil && t.StartedAt != nil && t.StartedAt.After(since) {
		return t.StartedAt.Time
	}
	return since
}

func waitOf(st *v1alpha1.ChatStatus, s Summary, f ChatFacts) *v1alpha1.ChatWait {
	end := waits[s.Reason]
	if s.Reason == v1alpha1.ReasonRequiresAction && st.RequiresAction != nil {
		end = actionOf(st.RequiresAction)
	}
	if end == "" && f.blockedBy(s.Reason) {
		end = blocks[v1alpha1.ErrorReason(s.Reason)]
	}
	if end == "" {
		return nil
	}
	return &v1alpha1.ChatWait{For: end, Until: untilOf(st, s.Reason, f)}
}

// untilOf is when the wait of that reason ends by itself; nil if it does not.
func untilOf(st *v1alpha1.ChatStatus, reason v1alpha1.ConditionReason, f ChatFacts) *metav1.Time {
	switch {
	case reason == v1alpha1.ReasonRequiresAction && st.RequiresAction != nil:
		return &st.RequiresAction.Deadline
	case reason == v1alpha1.ReasonRetrying && st.Retry != nil:
		return new(metav1.NewTime(st.Retry.At.Time))
	case reason == v1alpha1.ReasonWaitingForModel && !f.ModelLimitUntil.IsZero():
		return new(metav1.NewTime(f.ModelLimitUntil))
	case reason == v1alpha1.ReasonWaitingForSubChats && st.Turn != nil:
		return latest(st.Turn.WaitingFor)
	}
	return nil
}

// blockedBy reports whether the reason is that of an error which ends no turn.
func (f *ChatFacts) blockedBy(reason v1alpha1.ConditionReason) bool {
	return f.Held != "" || f.Blocked != nil && reason == v1alpha1.ConditionReason(f.Blocked.Reason)
}

// actionOf is what calls wait for: people come before clients, whose results are taken last.
func actionOf(required *v1alpha1.RequiresActionStatus) v1alpha1.WaitFor {
	end := v1alpha1.WaitForClientResult
	for i := range required.ToolCalls {
		switch call := &required.ToolCalls[i]; {
		case call.Kind != v1alpha1.RequiresApproval || call.Decision != nil:
		case call.ApprovalCause != v1alpha1.ApprovalInputRequired:
			return v1alpha1.WaitForApproval
		default:
			end = v1alpha1.WaitForAnswer
		}
	}
	return end
}
