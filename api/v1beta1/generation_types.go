// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// GenerationOutcome is how an attempt ended.
// +kubebuilder:validation:Enum=Completed;Failed;Lost;Interrupted
type GenerationOutcome string

const (
	// OutcomeCompleted means that the step is whole and waits to be committed, or is.
	OutcomeCompleted GenerationOutcome = "Completed"
	// OutcomeFailed means that the attempt ended in an error; error says which. Nothing of it is committed.
	OutcomeFailed GenerationOutcome = "Failed"
	// OutcomeLost means that the generation pod was restarted in the middle of the attempt. Nothing of it is committed.
	OutcomeLost GenerationOutcome = "Lost"
	// OutcomeInterrupted means that the attempt was told to stop. What it had is committed, unless it had nothing.
	OutcomeInterrupted GenerationOutcome = "Interrupted"
)

// ReplyOutcome is how a model's reply ended. docs/reference/errors.md has the finish reasons of each provider that lead
// to it.
// +kubebuilder:validation:Enum=Complete;ToolCalls;MaxTokensReached;Filtered;Refused;Paused;Empty;Failed
type ReplyOutcome string

const (
	// ReplyComplete means that the model had said all it had to say.
	ReplyComplete ReplyOutcome = "Complete"
	// ReplyToolCalls means that the model calls tools, and speaks again once it has their results.
	ReplyToolCalls ReplyOutcome = "ToolCalls"
	// ReplyMaxTokensReached means that the reply reached the limit of output tokens, or of the model's context. A tool
	// call that is not whole has RefusalInputTruncated.
	ReplyMaxTokensReached ReplyOutcome = "MaxTokensReached"
	// ReplyFiltered means that a filter of the provider ended the reply: the attempt fails with ErrorContentFiltered.
	ReplyFiltered ReplyOutcome = "Filtered"
	// ReplyRefused means that the model refuses to answer. The reply is what it says to that.
	ReplyRefused ReplyOutcome = "Refused"
	// ReplyPaused means that the provider interrupted a long reply with tools of its own. The model continues it in the
	// next step.
	ReplyPaused ReplyOutcome = "Paused"
	// ReplyEmpty means that the reply has neither text nor tool calls: the attempt fails with ErrorEmptyReply.
	ReplyEmpty ReplyOutcome = "Empty"
	// ReplyFailed means that the provider could not finish the reply, or that its finish reason is not known: the attempt
	// fails with ErrorReplyFailed.
	ReplyFailed ReplyOutcome = "Failed"
)

// Note says what people need to know of a reply that was kept and is not simply complete; empty if there is nothing.
func (o ReplyOutcome) Note() string {
	switch o {
	case ReplyMaxTokensReached:
		return "The reply was cut: it reached its limit of output tokens"
	case ReplyRefused:
		return "The model refused to answer"
	case ReplyPaused:
		return "The provider paused the reply, which the next step continues"
	}
	return ""
}

// MessageGeneration is the fence and the account of the attempt that yielded a message.
type MessageGeneration struct {
	// chatUID of the chat that was answered.
	// +kubebuilder:validation:MaxLength=64
	// +required
	ChatUID string `json:"chatUID"`

	// historyVersion that the attempt built on.
	// +kubebuilder:validation:Minimum=1
	// +required
	HistoryVersion int64 `json:"historyVersion"`

	// attempt number within the historyVersion.
	// +kubebuilder:validation:Minimum=1
	// +required
	Attempt int32 `json:"attempt"`

	// action that was performed.
	// +required
	Action GenerationAction `json:"action"`

	// pod that performed it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Pod string `json:"pod"`

	// outcome is how the attempt ended.
	// +required
	Outcome GenerationOutcome `json:"outcome"`

	// truncated is true when the content was cut at what one object can hold.
	// +optional
	Truncated bool `json:"truncated,omitempty"`

	// replyOutcome is how the model's reply ended; absent if no model replied.
	// +optional
	ReplyOutcome ReplyOutcome `json:"replyOutcome,omitempty"`

	// finishReason is why the model stopped, in the provider's own word, such as end_turn; empty if it gave none.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	FinishReason string `json:"finishReason,omitempty"`

	// output says how the text of the reply stands to the schema that was asked for; absent if none was, or the reply
	// calls tools.
	// +optional
	Output *MessageOutput `json:"output,omitempty"`

	// responseID is the provider's id of the reply, requestID that of the HTTP request, to look the call up there; empty
	// if it gave none.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	ResponseID string `json:"responseID,omitempty"`

	// requestID: see responseID.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	RequestID string `json:"requestID,omitempty"`

	// modelMilliseconds is how long the model's call took, from the request to the end of the reply.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ModelMilliseconds int64 `json:"modelMilliseconds,omitempty"`

	// error is why the attempt failed.
	// +optional
	Error *GenerationError `json:"error,omitempty"`

	// model that was called.
	// +optional
	Model *ModelIdentity `json:"model,omitempty"`

	// usage of the call.
	// +optional
	Usage *TokenUsage `json:"usage,omitempty"`

	// advisorModel is the model that was asked for advice.
	// +optional
	AdvisorModel *ModelIdentity `json:"advisorModel,omitempty"`

	// advisorUsage of asking it.
	// +optional
	AdvisorUsage *TokenUsage `json:"advisorUsage,omitempty"`

	// advice is how many pieces of advice came of that.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Advice int32 `json:"advice,omitempty"`

	// context is how full the model's context was.
	// +optional
	Context *ContextStatus `json:"context,omitempty"`

	// compaction says what a System message stands for.
	// +optional
	Compaction *CompactionAccount `json:"compaction,omitempty"`

	// cost of the call, rounded up; absent if the ChatModelConfig has no pricing, or the provider told no usage.
	// +optional
	Cost *Cost `json:"cost,omitempty"`

	// warnings are about settings that the provider or the model does not take, files that the provider cannot fetch, and
	// MCP servers that cannot be used; the call was made without them.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	Warnings []string `json:"warnings,omitempty"`

	// pendingCalls is the number of tool calls in parts that Parley must answer.
	// +kubebuilder:validation:Minimum=0
	// +optional
	PendingCalls int32 `json:"pendingCalls,omitempty"`

	// callsRequiringAction is how many of the pending calls require a client's result or approval.
	// +kubebuilder:validation:Minimum=0
	// +optional
	CallsRequiringAction int32 `json:"callsRequiringAction,omitempty"`

	// waitingFor lists the calls that are not run before a sub-chat is done.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=id
	// +optional
	WaitingFor []WaitingCall `json:"waitingFor,omitempty"`

	// needsWorkspace is true when tool calls in parts need the workspace of the chat's family.
	// +optional
	NeedsWorkspace bool `json:"needsWorkspace,omitempty"`

	// workspace is what the results in parts decide about the workspace of the chat.
	// +optional
	Workspace *WorkspaceChange `json:"workspace,omitempty"`

	// agents is what the results decide about the sub-chats of the chat.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=key
	// +optional
	Agents []AgentChange `json:"agents,omitempty"`

	// questions are of the calls without a result that ask people before they continue.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=id
	// +optional
	Questions []ToolQuestion `json:"questions,omitempty"`

	// decisions are what people decided about the calls that the results in parts answer.
	// +kubebuilder:validation:MaxItems=512
	// +listType=map
	// +listMapKey=id
	// +optional
	Decisions []ToolDecision `json:"decisions,omitempty"`

	// mcp is what there is to say of the MCP servers of the chat; absent if there is nothing.
	// +optional
	MCP *MCPAccount `json:"mcp,omitempty"`

	// providerToolsUnavailable lists the tools of tools.provider that the model was not offered.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=tool
	// +optional
	ProviderToolsUnavailable []ProviderToolUnavailable `json:"providerToolsUnavailable,omitempty"`

	// kubernetesUnavailable is why the model could not work in the cluster; absent if it could, or was not to.
	// +optional
	KubernetesUnavailable *KubernetesUnavailable `json:"kubernetesUnavailable,omitempty"`

	// callsCanceledReasonBefore is why tool calls of the reply before the step have no result; absent if none was
	// cancelled.
	// +optional
	CallsCanceledReasonBefore CallsCanceledReason `json:"callsCanceledReasonBefore,omitempty"`

	// stoppedBy is the tool of the first result in parts that ends the turn, as the chat's tools.stopAfter said; empty if
	// none does.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	StoppedBy string `json:"stoppedBy,omitempty"`

	// planApproved is true when the results in parts say that a person has approved a plan.
	// +optional
	PlanApproved bool `json:"planApproved,omitempty"`

	// preview is the first line of the reply's text, cut at 28 characters.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	Preview string `json:"preview,omitempty"`

	// title for the chat that came with this step, if the chat has none or a model wrote a better one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	// +optional
	Title string `json:"title,omitempty"`

	// titleSource is where the title comes from.
	// +optional
	TitleSource TitleSource `json:"titleSource,omitempty"`

	// titleCall is the account of the call for a title that was accounted for with this step; usage is without it.
	// +optional
	TitleCall *CallAccount `json:"titleCall,omitempty"`

	// turnSummary is what became of the turn, in a few words; absent also if the model that was asked had none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=60
	// +optional
	TurnSummary string `json:"turnSummary,omitempty"`

	// startedAt is when the pod began.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`

	// finishedAt is when the pod was done.
	// +required
	FinishedAt metav1.MicroTime `json:"finishedAt"`
}

// CompactionAccount is what a compaction has done.
type CompactionAccount struct {
	// source is what asked for it.
	// +required
	Source CompactionSource `json:"source"`

	// messages is the number of messages that the summary stands for.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Messages int64 `json:"messages"`

	// contextStart is the index of the first message that the model sees from now on, next to the summary: the first
	// message that no one has answered yet, or else the System message itself.
	// +kubebuilder:validation:Minimum=0
	// +required
	ContextStart int64 `json:"contextStart"`

	CompactionCause `json:",inline"`
}

// CompactionCause is how full the context was when a compaction was asked for. It is the same for all sources: what is
// not known is absent.
type CompactionCause struct {
	// thresholdPercent is how full the context might have got.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	ThresholdPercent int32 `json:"thresholdPercent,omitempty"`

	// usagePercent is how full it was, rounded down. It can be more than 100.
	// +kubebuilder:validation:Minimum=0
	// +optional
	UsagePercent int32 `json:"usagePercent,omitempty"`

	// contextTokens is the number of tokens that were in it.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ContextTokens int64 `json:"contextTokens,omitempty"`

	// contextLimit is the number of tokens that it holds.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ContextLimit int64 `json:"contextLimit,omitempty"`
}

// ModelIdentity is a model as it was called.
type ModelIdentity struct {
	// config is the name of the ChatModelConfig.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Config string `json:"config,omitempty"`

	// provider of the model.
	// +kubebuilder:validation:MaxLength=63
	// +optional
	Provider string `json:"provider,omitempty"`

	// name of the model, as the provider calls it.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Name string `json:"name,omitempty"`
}
