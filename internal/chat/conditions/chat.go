// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/machine"
)

// ChatFacts is what a Chat's conditions say beyond its state machine.
type ChatFacts struct {
	// Generation of the Chat's spec.
	Generation int64
	// Restoring is true until the chat is restored from a backup.
	Restoring bool
	// PodStarting says what keeps the pod of the attempt from being ready for the first time; empty once it was.
	PodStarting string
	// Beginning is true while spec.prompt has not become the first message.
	Beginning bool
	// Blocked is why an idle chat's waiting message cannot be taken up, if it cannot.
	Blocked *v1beta1.GenerationError
	// MayCome is true while what the message waits for may still be on its way.
	MayCome bool
	// Held is why work that is due may not begin; empty if it may.
	Held machine.Reason
	// OverBudget is why a budget holds the work; nil if none does.
	OverBudget *v1beta1.GenerationError
	// ModelLimit says which limit of the model holds the work, and what to do, if one does; ModelLimitUntil is when time
	// alone may end that, or zero.
	ModelLimit      string
	ModelLimitUntil time.Time
	// NoCapacity says which limit holds the chat, and what to do, if it waits for capacity.
	NoCapacity string
	// PodRejected is why the API server refuses a generation pod, if work waits for one.
	PodRejected string
	// MissingReference is why the turn waits for a ChatClass or a ChatModelConfig that does not exist, if it does.
	MissingReference *v1beta1.GenerationError
	// WorkspaceStarting is what the workspace waits for that calls need, if they are held until it is ready.
	WorkspaceStarting string
	// ServersStarting is what the MCP servers wait for that the chat refers to, if the step is held until they are ready.
	ServersStarting string
	// NoPrompt is why spec.prompt cannot become the first message; nil if it can.
	NoPrompt *NoPrompt
	// Forking is true until the chat has the history that Fork names; ForkProblem is why it cannot have it, if it cannot.
	Forking     bool
	Fork        *v1beta1.ForkSource
	ForkProblem *ForkProblem
	// HeldUntil is when the first message that someone edits is released at the latest; nil if none is held.
	HeldUntil *metav1.Time
	// Archiving is true while the chat is to be archived and is not yet; FamilyAtWork names who is still at work.
	Archiving    bool
	FamilyAtWork string
	// Now is the time of transitions.
	Now time.Time
}

// NoPrompt is why spec.prompt cannot become a message.
type NoPrompt struct {
	// Message that has the name which is needed, or would have it.
	Message string
	// Refused is what the API server says against the message; empty if the name is taken.
	Refused string
	// MayPass is true while a name that is taken may become free by itself.
	MayPass bool
}

// ForkProblem is why a chat cannot have the history that spec.fork names.
type ForkProblem struct {
	Reason  v1beta1.ConditionReason
	Message string
	// MayPass is true while what is missing may still come with the manifest.
	MayPass bool
}

// NeedsPerson reports whether the problem does not pass by itself.
func (p *ForkProblem) NeedsPerson() bool { return !p.MayPass && p.Reason != v1beta1.ReasonForking }

func forkSummary(f ChatFacts) Summary {
	switch {
	case f.ForkProblem == nil:
		return Working(v1beta1.ReasonForking, "Copying the history of chat "+f.Fork.Chat+" up to message "+f.Fork.Message)
	case !f.ForkProblem.NeedsPerson():
		return Working(f.ForkProblem.Reason, f.ForkProblem.Message)
	}
	return Failed(f.ForkProblem.Reason, f.ForkProblem.Message)
}

func (n *NoPrompt) summary() Summary {
	taken := "Message " + n.Message + " has the name that spec.prompt needs, and is not what this chat would make of it"
	switch {
	case n.Refused != "":
		return Working(v1beta1.ReasonPromptRejected, "The API server refuses message "+n.Message+" for spec.prompt: "+
			n.Refused)
	case n.MayPass:
		return Working(v1beta1.ReasonPromptNameConflict, taken)
	}
	return Failed(v1beta1.ReasonPromptNameConflict, taken+": delete that message, and the chat begins")
}

// Chat computes every condition of a Chat from its status and the facts, and marks the generation as observed.
func Chat(st *v1beta1.ChatStatus, f ChatFacts) {
	summary := chatSummary(st, f)
	summary.apply(&st.Conditions, f.Generation, f.Now)
	markWait(st, summary, f)
	for i := range st.Conditions {
		st.Conditions[i].ObservedGeneration = f.Generation
	}
	st.ObservedGeneration = f.Generation
}

func chatSummary(st *v1beta1.ChatStatus, f ChatFacts) Summary {
	switch {
	case f.Restoring:
		return Working(v1beta1.ReasonRestoring, "The chat is being restored from a backup. If the restore was interrupted, "+
			"run kubectl chat restore again")
	case st.Archived:
		return Done(v1beta1.ReasonArchived, "The chat is archived; spec.archived: false takes it back")
	case f.Forking:
		return forkSummary(f)
	case st.Phase == v1beta1.ChatRunning:
		return runningSummary(st, f)
	case st.Phase == v1beta1.ChatInterrupting:
		return Working(v1beta1.ReasonInterrupting, "Finishing the partial reply")
	case st.Phase == v1beta1.ChatRequiresAction:
		return Working(v1beta1.ReasonRequiresAction, requiredOf(st.RequiresAction))
	case f.Archiving:
		return Working(v1beta1.ReasonArchiving, "Waits until chat "+f.FamilyAtWork+" is done")
	case f.Blocked != nil:
		return blockedSummary(f)
	case st.Phase == v1beta1.ChatError:
		return failedSummary(st.LastError)
	}
	return waitingSummary(st, f)
}

func blockedSummary(f ChatFacts) Summary {
	if f.MayCome {
		return Working(v1beta1.ConditionReason(f.Blocked.Reason), f.Blocked.Text())
	}
	return Failed(v1beta1.ConditionReason(f.Blocked.Reason), f.Blocked.Text())
}

func waitingSummary(st *v1beta1.ChatStatus, f ChatFacts) Summary {
	switch {
	case f.NoPrompt != nil:
		return f.NoPrompt.summary()
	case f.HeldUntil != nil:
		return HeldForEdit(f.HeldUntil)
	case f.Beginning:
		return Working(v1beta1.ReasonStarting, "Creating the first message from spec.prompt")
	case st.Turn == nil:
		return Done(v1beta1.ReasonAwaitingFirstMessage, "Create a ChatMessage that names this chat to begin")
	case st.Turn.Result == v1beta1.TurnInterrupted:
		return Done(v1beta1.ReasonInterrupted, "The last turn was interrupted; send a message to continue")
	case st.Turn.Result == v1beta1.TurnMaxTokensReached:
		return Done(v1beta1.ReasonMaxTokensReached, v1beta1.ReplyMaxTokensReached.Note()+
			"; send a message to continue, or raise maxOutputTokens of the ChatModelConfig")
	case st.Turn.Result == v1beta1.TurnRefused:
		return Done(v1beta1.ReasonRefused, v1beta1.ReplyRefused.Note()+"; the last reply is what it says to that")
	case st.Turn.Result == v1beta1.TurnStoppedAfterTool:
		return Done(v1beta1.ReasonStoppedAfterTool, "The turn ended with the result of tool "+st.Turn.StoppedBy+
			" (tools.stopAfter); send a message to continue")
	case st.Turn.Result == v1beta1.TurnMaxStepsReached:
		return Done(v1beta1.ReasonMaxStepsReached,
			fmt.Sprintf("The turn was ended after %d steps (limits.maxSteps); send a message to continue", st.Turn.Steps))
	}
	return Done(v1beta1.ReasonAnswered, "Every message is answered")
}

func runningSummary(st *v1beta1.ChatStatus, f ChatFacts) Summary {
	switch {
	case f.Held != "" && st.Generation == nil:
		return heldSummary(st, f)
	case st.Generation == nil:
		return Working(v1beta1.ReasonGenerating, "Choosing a generation pod")
	case f.PodStarting != "":
		return Working(v1beta1.ReasonWaitingForPod, "Generation pod "+st.Generation.Pod+" is starting: "+f.PodStarting)
	case st.Generation.Action == v1beta1.ActionCompact:
		return Working(v1beta1.ReasonCompacting, "Asking "+st.Model+" for a summary of the conversation")
	case st.Generation.Action == v1beta1.ActionExecuteTools:
		return Working(v1beta1.ReasonExecutingTools, fmt.Sprintf("Running %d tool calls", st.Internal.Turn.PendingCalls))
	}
	return Working(v1beta1.ReasonGenerating, "Asking "+st.Model)
}

// heldSummary says why work that is due does not begin.
func heldSummary(st *v1beta1.ChatStatus, f ChatFacts) Summary {
	switch f.Held {
	case machine.OverBudget:
		return Failed(v1beta1.ConditionReason(f.OverBudget.Reason), f.OverBudget.Text())
	case machine.SubChatsAtWork:
		return Working(v1beta1.ReasonWaitingForSubChats, waitingFor(st.Turn.WaitingFor))
	case machine.RetryNotDue:
		return Working(v1beta1.ReasonRetrying, retryOf(st.Retry)+". The next one begins at "+st.Retry.At.UTC().
			Format(time.RFC3339))
	}
	return Working(heldBy(f))
}

// heldBy is the reason, and the message, of what holds work whatever the status of the chat says.
func heldBy(f ChatFacts) (v1beta1.ConditionReason, string) {
	switch f.Held {
	case machine.Suspended:
		return v1beta1.ReasonSuspended, "Work is held until spec.suspend is false, here and in the chats above"
	case machine.ReferenceMissing:
		return v1beta1.ConditionReason(f.MissingReference.Reason), f.MissingReference.Text()
	case machine.WorkspaceStarting:
		return v1beta1.ReasonWaitingForWorkspace, "The tool calls wait for the workspace: " + f.WorkspaceStarting
	case machine.ServersStarting:
		return v1beta1.ReasonWaitingForMCPServers, "The next step waits for MCP servers: " + f.ServersStarting
	case machine.ModelLimited:
		return v1beta1.ReasonWaitingForModel, f.ModelLimit
	case machine.NoCapacity:
		return v1beta1.ReasonWaitingForCapacity, f.NoCapacity
	case machine.PodRejected:
		return v1beta1.ReasonGenerationPodRejected, "The API server refuses a generation pod: " + f.PodRejected
	}
	return v1beta1.ReasonGenerating, "Choosing a generation pod"
}

// retryOf says what became of the last attempt, and why.
func retryOf(retry *v1beta1.RetryStatus) string {
	switch {
	case retry.Reason == v1beta1.ErrorGenerationPodLost:
		return retry.Message
	case retry.Message == "":
		return fmt.Sprintf("Attempt %d failed: %s", retry.Attempt, retry.Reason)
	}
	return fmt.Sprintf("Attempt %d failed: %s: %s", retry.Attempt, retry.Reason, retry.Message)
}

// maxNamedChats is how many of the chats that are waited for a condition names.
const maxNamedChats = 3

// waitingFor says for which sub-chats calls wait. It changes only with the waits themselves.
func waitingFor(waits []v1beta1.WaitingCallStatus) string {
	chats, until := []string{}, latest(waits)
	for _, w := range waits {
		if w.Deadline != nil && !slices.Contains(chats, w.Chat) {
			chats = append(chats, w.Chat)
		}
	}
	if n := len(chats) - maxNamedChats; n > 0 {
		chats = append(chats[:maxNamedChats], fmt.Sprintf("%d more", n))
	}
	if until == nil {
		return "Waits for sub-chats " + strings.Join(chats, ", ")
	}
	return fmt.Sprintf("Waits for sub-chats %s, at most until %s", strings.Join(chats, ", "),
		until.UTC().Format(time.RFC3339))
}

// latest is when the last of the waits is over; nil if none has begun.
func latest(waits []v1beta1.WaitingCallStatus) (until *metav1.Time) {
	for i := range waits {
		if d := waits[i].Deadline; d != nil && (until == nil || until.Before(d)) {
			until = d
		}
	}
	return until
}

func failedSummary(e *v1beta1.LastError) Summary {
	if e == nil {
		return Failed(v1beta1.ConditionReason(v1beta1.ErrorInternal), "The last turn failed; send a message to continue")
	}
	return Failed(v1beta1.ConditionReason(e.Reason), e.Text())
}

// MarkTruncated records whether the newest reply was cut at the size that one object can hold.
func MarkTruncated(st *v1beta1.ChatStatus, message string, truncated bool, now time.Time) {
	if !truncated {
		meta.RemoveStatusCondition(&st.Conditions, v1beta1.ConditionTruncated)
		return
	}
	set(&st.Conditions, metav1.Condition{
		Type: v1beta1.ConditionTruncated, Status: metav1.ConditionTrue, Reason: string(v1beta1.ReasonReplyTooLarge),
		Message: fmt.Sprintf("Message %s was cut at 1 MiB, the most that one object holds; ask for the rest in a new message",
			message),
	}, st.ObservedGeneration, now)
}

// MarkOutput records whether the message holds the output that was asked for; nil: it is no answer, or none was asked
// for.
func MarkOutput(st *v1beta1.ChatStatus, message string, output *v1beta1.MessageOutput, now time.Time) {
	st.Output = nil
	if output == nil {
		meta.RemoveStatusCondition(&st.Conditions, v1beta1.ConditionOutputReady)
		return
	}
	c := metav1.Condition{Type: v1beta1.ConditionOutputReady, Status: metav1.ConditionTrue,
		Reason: string(v1beta1.ReasonOutputValid), Message: "Message " + message + " holds the output"}
	switch {
	case output.Problem != "":
		c.Status, c.Reason = metav1.ConditionFalse, string(v1beta1.ErrorOutputInvalid)
		c.Message = "The answer in message " + message + " does not match the schema: " + output.Problem
	case output.Value == nil:
		c.Message += fmt.Sprintf("; it has more than %d bytes, so that status.output does not", v1beta1.MaxOutputBytes)
	default:
		st.Output = output.Value.DeepCopy()
	}
	set(&st.Conditions, c, st.ObservedGeneration, now)
}

// MarkAdvisor records why the advisor that the chat names can give no advice; nil: it can, or the chat names none. It
// says nothing of the chat itself, which continues without advice.
func MarkAdvisor(st *v1beta1.ChatStatus, why *v1beta1.GenerationError, now time.Time) {
	if why == nil {
		meta.RemoveStatusCondition(&st.Conditions, v1beta1.ConditionAdvisorUnavailable)
		return
	}
	set(&st.Conditions, metav1.Condition{
		Type: v1beta1.ConditionAdvisorUnavailable, Status: metav1.ConditionTrue, Reason: string(why.Reason),
		Message: why.Text(),
	}, st.ObservedGeneration, now)
}

// MarkFallback records why the ChatModelConfig answers in place of the one that is named; nil: it does not.
func MarkFallback(st *v1beta1.ChatStatus, why *v1beta1.GenerationError, answers string, now time.Time) {
	if why == nil {
		meta.RemoveStatusCondition(&st.Conditions, v1beta1.ConditionModelConfigFallback)
		return
	}
	set(&st.Conditions, metav1.Condition{
		Type: v1beta1.ConditionModelConfigFallback, Status: metav1.ConditionTrue, Reason: string(why.Reason),
		Message: fmt.Sprintf("%s: ChatModelConfig %s, the namespace's default, answers instead", why.Message, answers),
	}, st.ObservedGeneration, now)
}

// MarkArchive records why a chat that is to be deleted cannot be archived; an empty reason: it need not be, or was not
// tried. The wait of the chat is that for the store.
func MarkArchive(st *v1beta1.ChatStatus, reason v1beta1.ConditionReason, why string, now time.Time) {
	if reason == "" {
		meta.RemoveStatusCondition(&st.Conditions, v1beta1.ConditionArchiveUnavailable)
		return
	}
	set(&st.Conditions, metav1.Condition{
		Type: v1beta1.ConditionArchiveUnavailable, Status: metav1.ConditionTrue, Reason: string(reason),
		Message: "The chat is kept although its retention is over, because it cannot be archived: " + why,
	}, st.ObservedGeneration, now)
}

// MarkIgnored records which fields of the chat do not count because its class keeps them to itself; none: all do.
func MarkIgnored(st *v1beta1.ChatStatus, class string, fields []string, now time.Time) {
	if len(fields) == 0 {
		meta.RemoveStatusCondition(&st.Conditions, v1beta1.ConditionSettingsIgnored)
		return
	}
	names := make([]string, len(fields))
	for i, field := range fields {
		names[i] = "spec." + field
	}
	set(&st.Conditions, metav1.Condition{
		Type: v1beta1.ConditionSettingsIgnored, Status: metav1.ConditionTrue,
		Reason: string(v1beta1.ReasonRestrictedByClass),
		Message: fmt.Sprintf("ChatClass %s does not let its chats set %s: what this chat says there does not count. "+
			"Take it out, or name another class in spec.chatClassName", class, strings.Join(names, ", ")),
	}, st.ObservedGeneration, now)
}

// MarkShared records who has access by spec.sharing; an empty reason: no one was given any.
func MarkShared(st *v1beta1.ChatStatus, shared Summary, now time.Time) {
	if shared.Reason == "" {
		meta.RemoveStatusCondition(&st.Conditions, v1beta1.ConditionShared)
		return
	}
	set(&st.Conditions, metav1.Condition{Type: v1beta1.ConditionShared, Status: shared.Ready,
		Reason: string(shared.Reason), Message: shared.Message}, st.ObservedGeneration, now)
}
