// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// waits says what ends the wait that a reason of Ready tells of. A reason that is not here tells of none.
var waits = map[v1beta1.ConditionReason]v1beta1.WaitFor{
	v1beta1.ReasonWaitingForPod:         v1beta1.WaitForPod,
	v1beta1.ReasonGenerationPodRejected: v1beta1.WaitForQuota,
	v1beta1.ReasonWaitingForCapacity:    v1beta1.WaitForCapacity,
	v1beta1.ReasonWaitingForModel:       v1beta1.WaitForModel,
	v1beta1.ReasonWaitingForSubChats:    v1beta1.WaitForSubChats,
	v1beta1.ReasonWaitingForWorkspace:   v1beta1.WaitForWorkspace,
	v1beta1.ReasonWaitingForMCPServers:  v1beta1.WaitForMCPServers,
	v1beta1.ReasonRetrying:              v1beta1.WaitForRetry,
	v1beta1.ReasonWaitingForEdit:        v1beta1.WaitForEdit,
	v1beta1.ReasonSuspended:             v1beta1.WaitForResume,
	v1beta1.ReasonArchiving:             v1beta1.WaitForSubChats,
	v1beta1.ReasonArchived:              v1beta1.WaitForUnarchive,
	v1beta1.ReasonPromptRejected:        v1beta1.WaitForMessage,
	v1beta1.ReasonPromptNameConflict:    v1beta1.WaitForMessage,
	v1beta1.ReasonRestoring:             v1beta1.WaitForRestore,
	v1beta1.ReasonForkSourceNotFound:    v1beta1.WaitForChat,
	v1beta1.ReasonForkRejected:          v1beta1.WaitForMessage,
	v1beta1.ReasonForkFilesNotCopied:    v1beta1.WaitForWorkspace,
}

// blocks is the same for errors that keep an idle chat from taking its message up, or hold work that is under way.
var blocks = map[v1beta1.ErrorReason]v1beta1.WaitFor{
	v1beta1.ErrorModelConfigNotFound:   v1beta1.WaitForModelConfig,
	v1beta1.ErrorModelConfigDisabled:   v1beta1.WaitForModelConfig,
	v1beta1.ErrorModelConfigInvalid:    v1beta1.WaitForModelConfig,
	v1beta1.ErrorModelConfigNotAllowed: v1beta1.WaitForModelConfig,
	v1beta1.ErrorChatClassNotFound:     v1beta1.WaitForChatClass,
	v1beta1.ErrorParentNotFound:        v1beta1.WaitForChat,
	v1beta1.ErrorSubChatLimitExceeded:  v1beta1.WaitForChat,
	v1beta1.ErrorAPIKeyMissing:         v1beta1.WaitForSecret,
	v1beta1.ErrorBudgetReached:         v1beta1.WaitForBudget,
	v1beta1.ErrorModelPriceMissing:     v1beta1.WaitForModelConfig,
}

// ReferencePatience is how long a turn waits for a ChatClass or a ChatModelConfig that does not exist before it fails:
// 10 minutes. That is longer than the usual interval of a GitOps tool, which may bring it.
const ReferencePatience = 10 * time.Minute

// markWait records what the chat waits for, which its summary says to people; nothing if it waits for nothing.
func markWait(st *v1beta1.ChatStatus, s Summary, f ChatFacts) {
	wait := waitOf(st, s, f)
	if wait == nil {
		st.Wait = nil
		return
	}
	wait.Reason, wait.Since = string(s.Reason), metav1.NewTime(f.Now.Truncate(time.Second))
	wait.Message = clip.Runes(printable.Text(s.Message), v1beta1.MaxWaitMessage)
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
func turnWaitsSince(st *v1beta1.ChatStatus, since time.Time) time.Time {
	if t := st.Turn; t != nil && t.StartedAt != nil && t.StartedAt.After(since) {
		return t.StartedAt.Time
	}
	return since
}

func waitOf(st *v1beta1.ChatStatus, s Summary, f ChatFacts) *v1beta1.ChatWait {
	end := waits[s.Reason]
	if s.Reason == v1beta1.ReasonRequiresAction && st.RequiresAction != nil {
		end = actionOf(st.RequiresAction)
	}
	if end == "" && f.blockedBy(s.Reason) {
		end = blocks[v1beta1.ErrorReason(s.Reason)]
	}
	if end == "" {
		return nil
	}
	return &v1beta1.ChatWait{For: end, Until: untilOf(st, s.Reason, f)}
}

// untilOf is when the wait of that reason ends by itself; nil if it does not.
func untilOf(st *v1beta1.ChatStatus, reason v1beta1.ConditionReason, f ChatFacts) *metav1.Time {
	switch {
	case reason == v1beta1.ReasonRequiresAction && st.RequiresAction != nil:
		return &st.RequiresAction.Deadline
	case reason == v1beta1.ReasonRetrying && st.Retry != nil:
		return new(metav1.NewTime(st.Retry.At.Time))
	case reason == v1beta1.ReasonWaitingForModel && !f.ModelLimitUntil.IsZero():
		return new(metav1.NewTime(f.ModelLimitUntil))
	case reason == v1beta1.ReasonWaitingForEdit:
		return f.HeldUntil
	case reason == v1beta1.ReasonWaitingForSubChats && st.Turn != nil:
		return latest(st.Turn.WaitingFor)
	}
	return nil
}

// blockedBy reports whether the reason is that of an error which ends no turn.
func (f *ChatFacts) blockedBy(reason v1beta1.ConditionReason) bool {
	return f.Held != "" || f.Blocked != nil && reason == v1beta1.ConditionReason(f.Blocked.Reason)
}

// actionOf is what calls wait for: people come before clients, whose results are taken last.
func actionOf(required *v1beta1.RequiresActionStatus) v1beta1.WaitFor {
	end := v1beta1.WaitForClientResult
	for i := range required.ToolCalls {
		switch call := &required.ToolCalls[i]; {
		case call.Kind != v1beta1.RequiresApproval || call.Decision != nil:
		case call.ApprovalCause != v1beta1.ApprovalInputRequired:
			return v1beta1.WaitForApproval
		default:
			end = v1beta1.WaitForAnswer
		}
	}
	return end
}
