// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TurnResult is how a turn ended.
// +kubebuilder:validation:Enum=Answered;MaxTokensReached;Refused;StoppedAfterTool;MaxStepsReached;Failed;Interrupted
type TurnResult string

const (
	// TurnAnswered means that the model had nothing left to do.
	TurnAnswered TurnResult = "Answered"
	// TurnMaxTokensReached means that the last reply reached the limit of output tokens, or of the model's context, in its
	// text. What came is kept.
	TurnMaxTokensReached TurnResult = "MaxTokensReached"
	// TurnRefused means that the model refused to answer; the last reply is what it says to that.
	TurnRefused TurnResult = "Refused"
	// TurnStoppedAfterTool means that the result of a tool in tools.stopAfter ended the turn.
	TurnStoppedAfterTool TurnResult = "StoppedAfterTool"
	// TurnMaxStepsReached means that limits.maxSteps ended the turn.
	TurnMaxStepsReached TurnResult = "MaxStepsReached"
	// TurnFailed means that lastError ended the turn.
	TurnFailed TurnResult = "Failed"
	// TurnInterrupted means that someone stopped the turn; what was said until then is kept.
	TurnInterrupted TurnResult = "Interrupted"
)

// CallsCanceledReason is why tool calls were given up without a result. The model reads it in place of one;
// limits.maxSteps gives up none, as calls are run before it ends a turn. What follows such calls in the
// history keeps it: the next step, or the next User message.
// +kubebuilder:validation:Enum=Canceled;Interrupted;TimedOut;Failed;Edited
type CallsCanceledReason string

// The reasons.
const (
	// CallsCanceled means that someone interrupted the turn while the calls waited for a client or for approval.
	CallsCanceled CallsCanceledReason = "Canceled"
	// CallsInterrupted means that a request or a message interrupted the turn.
	CallsInterrupted CallsCanceledReason = "Interrupted"
	// CallsTimedOut means that no one answered or approved them before the deadline.
	CallsTimedOut CallsCanceledReason = "TimedOut"
	// CallsFailed means that an error ended the turn.
	CallsFailed CallsCanceledReason = "Failed"
	// CallsEdited means that a message was edited or deleted.
	CallsEdited CallsCanceledReason = "Edited"
)

// TurnStatus is the turn that is under way, or else the last one.
type TurnStatus struct {
	// message is the name of the User message that began the turn.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Message string `json:"message"`

	// parent is the name of the message before it; empty for the first.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Parent string `json:"parent,omitempty"`

	// index of the User message in the history, from 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Index int64 `json:"index"`

	// historyVersion that its commit made.
	// +kubebuilder:validation:Minimum=0
	// +optional
	HistoryVersion int64 `json:"historyVersion,omitempty"`

	// modelConfig is the ChatModelConfig that the User message named; empty: the chat's.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	ModelConfig string `json:"modelConfig,omitempty"`

	// reasoningEffort that the User message asked for; empty: the default of the ChatModelConfig.
	// +optional
	ReasoningEffort ReasoningEffort `json:"reasoningEffort,omitempty"`

	// startedAt is when the turn began.
	// +optional
	StartedAt *metav1.MicroTime `json:"startedAt,omitempty"`

	// traceparent is the W3C trace context that the message's annotation parley.dev/traceparent named when the turn began;
	// absent if it named none.
	// +kubebuilder:validation:MaxLength=55
	// +optional
	Traceparent string `json:"traceparent,omitempty"`

	// result is how the turn ended; absent while it is under way.
	// +optional
	Result TurnResult `json:"result,omitempty"`

	// summary describes the turn in a few words, if the ChatModelConfig has turnSummaries; absent after an interruption.
	// +kubebuilder:validation:MaxLength=60
	// +optional
	Summary string `json:"summary,omitempty"`

	// summarySource is where the summary comes from.
	// +optional
	SummarySource TurnSummarySource `json:"summarySource,omitempty"`

	// steps is the number of Assistant messages committed in this turn.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Steps int32 `json:"steps,omitempty"`

	// advice is how many pieces of advice the turn has had, also such as a summary stands for.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Advice int32 `json:"advice,omitempty"`

	// waitingFor lists those of the pending calls that are not run before a sub-chat is done.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=id
	// +optional
	WaitingFor []WaitingCallStatus `json:"waitingFor,omitempty"`

	// callsCanceledReason is why calls of the turn's newest reply have no result; absent if none was cancelled.
	// +optional
	CallsCanceledReason CallsCanceledReason `json:"callsCanceledReason,omitempty"`

	// stoppedBy is the tool of the turn's first result that ends the turn, as tools.stopAfter said when the result was
	// made; empty if none does.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	StoppedBy string `json:"stoppedBy,omitempty"`

	// planApproved is true once a person has approved a plan in this turn of a chat in mode Plan: it has all its tools
	// since.
	// +optional
	PlanApproved bool `json:"planApproved,omitempty"`
}

// RequiresActionStatus is what a client or a person must do for the turn to continue.
type RequiresActionStatus struct {
	// message is the name of the reply that made the calls.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Message string `json:"message"`

	// deadline is when the calls are cancelled.
	// +required
	Deadline metav1.Time `json:"deadline"`

	// toolCalls that wait.
	// +kubebuilder:validation:MaxItems=512
	// +listType=map
	// +listMapKey=id
	// +optional
	ToolCalls []PendingToolCall `json:"toolCalls,omitempty"`
}

// PendingToolCall is a call that waits for a client's result or for approval.
type PendingToolCall struct {
	// id of the call.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	ID string `json:"id"`

	// name of the tool.
	// +kubebuilder:validation:MaxLength=128
	// +required
	Name string `json:"name"`

	// input is the JSON object of the arguments, complete and without insignificant whitespace. Characters that cannot be
	// seen, such as control characters, bidirectional formats and long runs of spaces, are escaped as \uXXXX. It is absent
	// when it has more than 16384 bytes in this form: a call that waits for a client has it in the ChatMessage that
	// status.requiresAction.message names, a call that needs approval is refused, and one with a proposal or inputRequests
	// is decided by these.
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Input string `json:"input,omitempty"`

	// digest of name, input, inputRequests and proposal as they are here. A ToolApproval carries it, and only a call with
	// the same digest is run. Absent from calls that wait for a client.
	// +kubebuilder:validation:MaxLength=71
	// +optional
	Digest string `json:"digest,omitempty"`

	// kind says whose action the call requires.
	// +required
	Kind RequiredAction `json:"kind"`

	// approvalCause is why the call requires approval although no policy asked for it; empty if one did.
	// +optional
	ApprovalCause ApprovalCause `json:"approvalCause,omitempty"`

	// inputRequests are what the tool asks people for before it continues with the call: JSON, an object of requests of
	// the Model Context Protocol by their ids; absent unless approvalCause is InputRequired.
	// +kubebuilder:validation:MaxLength=8192
	// +optional
	InputRequests string `json:"inputRequests,omitempty"`

	// proposal is what the call will do if it is approved; absent unless approvalCause is ReviewRequired.
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Proposal string `json:"proposal,omitempty"`

	// decision that a ToolApproval has made about it.
	// +optional
	Decision *ToolDecision `json:"decision,omitempty"`
}

// ToolDecision is what a person decided about a call.
type ToolDecision struct {
	// id of the call.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=128
	// +required
	ID string `json:"id"`

	// decision is Approve or Deny.
	// +required
	Decision ApprovalDecision `json:"decision"`

	// approval is the name of the ToolApproval.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Approval string `json:"approval"`

	// digest of the call that the person has seen.
	// +kubebuilder:validation:MaxLength=71
	// +optional
	Digest string `json:"digest,omitempty"`

	// by is who decided: the annotation parley.dev/created-by of the ToolApproval. Absent where the cluster does not stamp
	// it.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	By string `json:"by,omitempty"`

	// at is when the ToolApproval was created.
	// +optional
	At *metav1.Time `json:"at,omitempty"`

	// comment of the person; the model reads it when the call was denied.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Comment string `json:"comment,omitempty"`

	// content is the input that the person gives, a JSON object. Only the chat's internal status has it.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Content string `json:"content,omitempty"`
}
