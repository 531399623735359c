// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChatInternalStatus is the operator's own memory of a chat between reconciles. It is not API: it may change in any
// release, and only Parley's own programs read it.
type ChatInternalStatus struct {
	// parentUID of the chat that parentRef names, as it was first met: when that one goes, this one goes too.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ParentUID string `json:"parentUID,omitempty"`

	// superseded names the messages that have left the history and have yet to be put aside; absent once they are.
	// +optional
	Superseded *SupersededRange `json:"superseded,omitempty"`

	// agentsOf is the committed message whose agents have yet to be dealt with; empty: of none.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	AgentsOf string `json:"agentsOf,omitempty"`

	// contextBoundaries are where the contexts begin that were begun so far, oldest first: a message that is edited takes
	// the chat back to the one that it was part of. The oldest of more than 64 are forgotten.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	ContextBoundaries []ContextBoundary `json:"contextBoundaries,omitempty"`

	// learnedContextLimit is what a provider said of its model's context when it last refused one as too long.
	// +optional
	LearnedContextLimit *LearnedContextLimit `json:"learnedContextLimit,omitempty"`

	// contextRefreshedVersion is the version that the history had when it was last asked to read the workspace's context
	// again: what results of that version or an earlier one hold of it may be older than the request. 0: no one asked.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ContextRefreshedVersion int64 `json:"contextRefreshedVersion,omitempty"`

	// compaction is what asked for the compaction that is next or under way, in addition to the threshold; absent if
	// nothing did.
	// +optional
	Compaction CompactionSource `json:"compaction,omitempty"`

	// mcpServers are where the servers are that the chat refers to, as the newest attempt was told.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	MCPServers []MCPServerAddress `json:"mcpServers,omitempty"`

	// budgets are those that bound the newest attempt, that of the chat first, and then those of the chats above.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	Budgets []EffectiveBudget `json:"budgets,omitempty"`

	// subChatCosts is what each chat below this one has cost, while this one has a budget. The cost of a chat that is
	// deleted moves from here to deletedCost. At most 1000: a chat without an entry no longer counts once it is deleted.
	// +kubebuilder:validation:MaxItems=1000
	// +listType=atomic
	// +optional
	SubChatCosts []SubChatCost `json:"subChatCosts,omitempty"`

	// turn is what belongs to status.turn: it comes and goes with that.
	// +optional
	Turn TurnInternalStatus `json:"turn,omitempty,omitzero"`

	// tail are the newest messages of the history, oldest first, behind the newest generated one: messages of people and
	// clients that no generated message follows yet. The next one takes them along in spec.follows.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Tail []CommittedMessage `json:"tail,omitempty"`

	// attempt is what belongs to status.generation, or between two attempts to status.retry: it goes when neither is left.
	// +optional
	Attempt AttemptInternalStatus `json:"attempt,omitempty,omitzero"`
}

// MaxSubChatCosts bounds ChatInternalStatus.SubChatCosts.
const MaxSubChatCosts = 1000

// SubChatCost is what a chat below has cost.
type SubChatCost struct {
	// name of the chat.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// uid of the chat: another one of its name is not the one that cost it.
	// +kubebuilder:validation:MaxLength=64
	// +required
	UID string `json:"uid"`

	// cost by currency, as of the newest write of this status. The end of a turn of the chat makes one.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=currency
	// +optional
	Cost []Cost `json:"cost,omitempty"`
}

// EffectiveBudget is a budget that a chat must keep.
type EffectiveBudget struct {
	Budget `json:",inline"`

	// chat above that has the budget; empty: it is the chat's own.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Chat string `json:"chat,omitempty"`

	// othersMicroUnits is what the other chats that the budget counts have cost, in millionths of its currency.
	// +kubebuilder:validation:Minimum=0
	// +optional
	OthersMicroUnits int64 `json:"othersMicroUnits,omitempty"`
}

// SupersededRange names messages by their former place: from an index on, committed before a version.
type SupersededRange struct {
	// fromIndex is the index of the first of them.
	// +kubebuilder:validation:Minimum=0
	// +required
	FromIndex int64 `json:"fromIndex"`

	// beforeVersion is the version of the history that they are no longer part of.
	// +kubebuilder:validation:Minimum=1
	// +required
	BeforeVersion int64 `json:"beforeVersion"`
}

// TurnInternalStatus is what the operator remembers of a turn.
type TurnInternalStatus struct {
	// resumedVersion is the version of the history with which the turn was taken up again, after a reply of it was deleted
	// or after a compaction that its error asked for; absent if it never was. It is greater than historyVersion.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ResumedVersion int64 `json:"resumedVersion,omitempty"`

	// contentHash is of the User message's content as it was committed. A message whose content has another hash has been
	// edited since.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ContentHash string `json:"contentHash,omitempty"`

	// callsCanceledReasonBefore is why calls of the reply before the turn's message have no result; absent if none was
	// cancelled.
	// +optional
	CallsCanceledReasonBefore CallsCanceledReason `json:"callsCanceledReasonBefore,omitempty"`

	// messageUID is that of the User message: another one of its name did not begin the turn.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	MessageUID string `json:"messageUID,omitempty"`

	// lastRole is the role of the newest message.
	// +optional
	LastRole MessageRole `json:"lastRole,omitempty"`

	// replyOutcome is how the turn's newest reply ended.
	// +optional
	ReplyOutcome ReplyOutcome `json:"replyOutcome,omitempty"`

	// pauses is how many replies in a row the provider has paused, up to the newest.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Pauses int32 `json:"pauses,omitempty"`

	// invalidOutputs is how many replies in a row do not match the schema that was asked for, up to the newest.
	// +kubebuilder:validation:Minimum=0
	// +optional
	InvalidOutputs int32 `json:"invalidOutputs,omitempty"`

	// callingMessage is the reply that made the pending calls, or the message with results of which calls ask for input if
	// no others require action.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	CallingMessage string `json:"callingMessage,omitempty"`

	// askingMessage holds results, and which calls ask people for input in addition to those of callingMessage that
	// require action.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	AskingMessage string `json:"askingMessage,omitempty"`

	// pendingCalls is the number of tool calls of the turn's newest reply that have no result yet.
	// +kubebuilder:validation:Minimum=0
	// +optional
	PendingCalls int32 `json:"pendingCalls,omitempty"`

	// callsRequiringAction is how many of the pending calls require a client's result or approval.
	// +kubebuilder:validation:Minimum=0
	// +optional
	CallsRequiringAction int32 `json:"callsRequiringAction,omitempty"`

	// needsWorkspace is true when pending calls need the workspace of the chat's family.
	// +optional
	NeedsWorkspace bool `json:"needsWorkspace,omitempty"`

	// decisions are those of people about calls that are about to be run or answered.
	// +kubebuilder:validation:MaxItems=512
	// +listType=map
	// +listMapKey=id
	// +optional
	Decisions []ToolDecision `json:"decisions,omitempty"`

	// results is the newest message with a client's results.
	// +optional
	Results *ClientResults `json:"results,omitempty"`
}

// ClientResults is a message with a client's results.
type ClientResults struct {
	// message is its name.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Message string `json:"message"`

	// position in the history, from 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Position int64 `json:"position"`
}

// MaxTail bounds ChatInternalStatus.Tail, and ChatMessageSpec.Follows with it. 256 records of at most 1 KiB fit with
// the largest reply, 1 MiB, into an object of 1.5 MiB.
const MaxTail = 256

// CommittedMessage is a message of a person or a client in the history of a chat, as the commit recorded it that made
// it part of that. It never changes.
type CommittedMessage struct {
	// message is its name.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Message string `json:"message"`

	// uid of the message: another one of its name is not part of the history.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	UID string `json:"uid,omitempty"`

	// parent is the name of the message before it; empty for the first.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Parent string `json:"parent,omitempty"`

	// position in the history, from 0: spec.index of a generated message.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Position int64 `json:"position"`

	// historyVersion that its commit made.
	// +kubebuilder:validation:Minimum=0
	// +optional
	HistoryVersion int64 `json:"historyVersion,omitempty"`

	// contentHash is of a User message's content. A message whose content has another hash has been edited since.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ContentHash string `json:"contentHash,omitempty"`

	// callsCanceledReasonBefore is why calls of the reply before it have no result; absent if none was cancelled.
	// +optional
	CallsCanceledReasonBefore CallsCanceledReason `json:"callsCanceledReasonBefore,omitempty"`

	// previousTurn is how the turn before the one that it began ended; absent for the first, and of a client's results.
	// +optional
	PreviousTurn *TurnOutcome `json:"previousTurn,omitempty"`

	// stoppedBy is the tool of the first of a client's results that ends the turn; empty if none does.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	StoppedBy string `json:"stoppedBy,omitempty"`
}

// TurnOutcome is how a turn ended.
type TurnOutcome struct {
	// message is the name of the User message that began the turn.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Message string `json:"message"`

	// resumedVersion of the turn; absent if it never was taken up again.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ResumedVersion int64 `json:"resumedVersion,omitempty"`

	// result is how it ended.
	// +required
	Result TurnResult `json:"result"`

	// stoppedBy is the tool whose result ended the turn; empty if none did.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	StoppedBy string `json:"stoppedBy,omitempty"`

	// reason of a failure.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Reason ErrorReason `json:"reason,omitempty"`

	// error says why the turn failed, and what to do. At most 512 bytes.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Error string `json:"error,omitempty"`
}

// AttemptInternalStatus is what the operator remembers of the attempts at a step. The next attempt inherits what is
// said of the step as a whole.
type AttemptInternalStatus struct {
	// lostAttempts is how many of the step's attempts were lost with their generation pods: gone, or never started.
	// +kubebuilder:validation:Minimum=0
	// +optional
	LostAttempts int32 `json:"lostAttempts,omitempty"`

	// excludedModels names the ChatModelConfigs that failed in this step in a way that trying again would not change.
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	ExcludedModels []string `json:"excludedModels,omitempty"`

	// retryAfter is until when providers asked to be left alone in this step.
	// +kubebuilder:validation:MaxItems=9
	// +listType=map
	// +listMapKey=modelConfig
	// +optional
	RetryAfter []ModelRetryAfter `json:"retryAfter,omitempty"`

	// afterEmptyReply is true when the attempt before had an empty reply: the model is told to continue, because the same
	// request would have the same reply.
	// +optional
	AfterEmptyReply bool `json:"afterEmptyReply,omitempty"`

	// hasSubChats is true when the chat had sub-chats when the attempt was assigned: the model may wait for them.
	// +optional
	HasSubChats bool `json:"hasSubChats,omitempty"`

	// hasWorkspace is true when the chat's family has a workspace.
	// +optional
	HasWorkspace bool `json:"hasWorkspace,omitempty"`

	// compaction is why the context is to be summarised, if that is the action of the attempt.
	// +optional
	Compaction *CompactionCause `json:"compaction,omitempty"`
}

// MaxModelRetryAfters bounds AttemptInternalStatus.RetryAfter: one entry for each model that a step can ask.
const MaxModelRetryAfters = 9

// ModelRetryAfter is until when the provider of a model asked to be left alone.
type ModelRetryAfter struct {
	// modelConfig is the name of the ChatModelConfig that is not asked before.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	ModelConfig string `json:"modelConfig"`

	// time from which on it may be asked again.
	// +required
	Time metav1.MicroTime `json:"time"`
}
