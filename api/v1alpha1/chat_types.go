// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

import (
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// ChatPhase is where a chat stands. It is for people: programs read the conditions.
// +kubebuilder:validation:Enum=Waiting;Running;Interrupting;RequiresAction;Error
type ChatPhase string

const (
	// ChatWaiting means that nothing is left to do until a message comes.
	ChatWaiting ChatPhase = "Waiting"
	// ChatRunning means that a turn is under way.
	ChatRunning ChatPhase = "Running"
	// ChatInterrupting means that a turn was interrupted and its partial reply is being finished.
	ChatInterrupting ChatPhase = "Interrupting"
	// ChatRequiresAction means that the turn waits for a person or a client.
	ChatRequiresAction ChatPhase = "RequiresAction"
	// ChatError means that the last turn failed; a new message goes on.
	ChatError ChatPhase = "Error"
)

// TurnResult is how a turn ended.
// +kubebuilder:validation:Enum=Answered;MaxStepsReached;Failed;Interrupted
type TurnResult string

const (
	// TurnAnswered means that the model had nothing left to do.
	TurnAnswered TurnResult = "Answered"
	// TurnMaxStepsReached means that limits.maxSteps ended the turn.
	TurnMaxStepsReached TurnResult = "MaxStepsReached"
	// TurnFailed means that lastError ended the turn.
	TurnFailed TurnResult = "Failed"
	// TurnInterrupted means that somebody stopped the turn; what was said until then is kept.
	TurnInterrupted TurnResult = "Interrupted"
)

// GenerationAction is what a generation pod is told to do.
// +kubebuilder:validation:Enum=GenerateAssistant;ExecuteTools;Compact
type GenerationAction string

const (
	// ActionGenerateAssistant calls the model with the history and yields one Assistant message.
	ActionGenerateAssistant GenerationAction = "GenerateAssistant"
	// ActionExecuteTools runs the tool calls of the newest Assistant message and yields one Tool message.
	ActionExecuteTools GenerationAction = "ExecuteTools"
	// ActionCompact asks a model for a summary of the context and yields one System message, with which the next call begins.
	ActionCompact GenerationAction = "Compact"
)

const (
	// DefaultMaxSteps is the number of Assistant messages after which a turn ends, unless limits.maxSteps says otherwise.
	DefaultMaxSteps = 1200
	// DefaultMaxQueue is the number of messages that may wait in a chat's queue, unless limits.maxQueue says otherwise.
	DefaultMaxQueue = 20
	// DefaultMaxSubChats is the number of chats below one that has no parent, unless limits.maxSubChats says otherwise.
	DefaultMaxSubChats = 20
	// DefaultMaxDepth is how deep sub-chats may be nested, unless limits.maxDepth says otherwise.
	DefaultMaxDepth = 1
	// MaxFamilyDepth is the greatest limits.maxDepth.
	MaxFamilyDepth = 8
	// DefaultActionDeadline is how long tool calls wait for a client or for approval, unless limits.actionDeadlineSeconds
	// says otherwise.
	DefaultActionDeadline = 5 * time.Minute
	// MaxPendingInput is the most characters of a call's arguments that status.requiresAction shows.
	MaxPendingInput = 16384
	// MaxLastReplyRunes bounds Chat.status.lastReply, so that "kubectl get chats" stays within 120 columns.
	MaxLastReplyRunes = 28
	// MaxHandledRequests is the number of kinds of requests that annotations make.
	MaxHandledRequests = 4
)

// Annotations on a Chat that ask for something once: each new value is one request. Any value will do, such as a time.
const (
	// AnnotationInterrupt stops the turn under way and keeps what was said so far.
	AnnotationInterrupt = "parley.dev/interrupt"
	// AnnotationClear begins a new context: the model sees nothing of what came before.
	AnnotationClear = "parley.dev/clear"
	// AnnotationCompact replaces what the model sees of the conversation by a summary.
	AnnotationCompact = "parley.dev/compact"
)

// AnnotationTraceparent on a User message, or on a Chat for its prompt, is the W3C trace context (version 00) that the turn is
// traced under.
const AnnotationTraceparent = "parley.dev/traceparent"

// AnnotationCreatedBy names who created a Chat, a User or Tool message, or a ToolApproval, where the cluster stamps it
// (config/admission/stamp).
const AnnotationCreatedBy = "parley.dev/created-by"

// RequestKind is what an annotation asks for.
// +kubebuilder:validation:Enum=Interrupt;Clear;Compact
type RequestKind string

const (
	// RequestInterrupt is asked for with the annotation parley.dev/interrupt.
	RequestInterrupt RequestKind = "Interrupt"
	// RequestClear is asked for with the annotation parley.dev/clear.
	RequestClear RequestKind = "Clear"
	// RequestCompact is asked for with the annotation parley.dev/compact.
	RequestCompact RequestKind = "Compact"
)

// RequestOutcome is what became of a request.
// +kubebuilder:validation:Enum=Done;Refused
type RequestOutcome string

const (
	// RequestDone means that the chat has done, or has begun to do, what was asked.
	RequestDone RequestOutcome = "Done"
	// RequestRefused means that the chat was in no state to do it; message says why. The same token is not tried again.
	RequestRefused RequestOutcome = "Refused"
)

// ChatSpec is what a person wants of a chat.
// +kubebuilder:validation:XValidation:rule="!has(oldSelf.prompt) || (has(self.prompt) && self.prompt == oldSelf.prompt)",message="prompt starts the chat and cannot change afterwards: go on with a ChatMessage"
// +kubebuilder:validation:XValidation:rule="has(self.parentRef) == has(oldSelf.parentRef) && (!has(self.parentRef) || self.parentRef == oldSelf.parentRef)",message="parentRef cannot change: create a new chat"
// +kubebuilder:validation:XValidation:rule="has(oldSelf.prompt) || !has(self.prompt)",message="prompt can only be given when the chat is created: go on with a ChatMessage"
type ChatSpec struct {
	// prompt is the first user message, so that one manifest is enough for a whole chat. It becomes the ChatMessage
	// "<name of the chat>-prompt". It cannot change afterwards.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=524288
	// +optional
	Prompt string `json:"prompt,omitempty"`

	// title of the chat, for lists. Default: what a model wrote, see ChatModelConfig.spec.titles, or how the first message begins.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=80
	// +kubebuilder:validation:XValidation:rule="self.matches('[^[:space:]]') && !self.matches('[[:cntrl:]]')",message="title must be one line that says something, without control characters"
	// +optional
	Title string `json:"title,omitempty"`

	// systemPrompt stands before the conversation in every call of the model. A change takes effect with the next step.
	// +kubebuilder:validation:MaxLength=131072
	// +optional
	SystemPrompt string `json:"systemPrompt,omitempty"`

	// instructionsFrom names texts that stand after the system prompt in every call of the model, in this order. They are read
	// anew at each step.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	InstructionsFrom []InstructionsSource `json:"instructionsFrom,omitempty"`

	// modelConfigRef names the ChatModelConfig that answers. Default: the namespace's ChatModelConfig with default: true.
	// +optional
	ModelConfigRef *ModelConfigReference `json:"modelConfigRef,omitempty"`

	// tools says which tools the model may call.
	// +optional
	Tools *ChatTools `json:"tools,omitempty"`

	// advisor lets the model ask another one for advice.
	// +optional
	Advisor *ChatAdvisor `json:"advisor,omitempty"`

	// limits bounds what the chat may do.
	// +optional
	Limits *ChatLimits `json:"limits,omitempty"`

	// parentRef makes this a sub-chat of another chat: it is held, put away and deleted together with it. It cannot change.
	// +optional
	ParentRef *ChatReference `json:"parentRef,omitempty"`

	// archived puts the chat away, with all its sub-chats or not at all: as soon as none of them is at work. An archived chat
	// takes no messages. Default false.
	// +optional
	Archived bool `json:"archived,omitempty"`

	// suspend holds the chat's work, and that of its sub-chats: the step under way is finished and committed, no further one begins. Messages wait.
	// Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// debug records the chat's model calls in ChatDebugSteps. They are also recorded if the ChatModelConfig says so.
	// +optional
	Debug *DebugSettings `json:"debug,omitempty"`
}

// ChatTools says which tools the model may call.
// +kubebuilder:validation:XValidation:rule="!has(self.client) || !has(self.approval) || !self.client.exists(c, c.name in self.approval)",message="a client decides itself about the calls of its tools: leave them out of approval"
type ChatTools struct {
	// builtIn says which of Parley's own tools the model may call. Default: all of them that are of use to the chat.
	// +optional
	BuiltIn *BuiltInTools `json:"builtIn,omitempty"`

	// client lists tools that a client of the chat runs, not Parley: a call of one waits in status.requiresAction until a
	// ChatMessage with role Tool brings its result.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	Client []ClientTool `json:"client,omitempty"`

	// approval names the tools whose calls wait in status.requiresAction until a ToolApproval approves or denies them.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=set
	// +optional
	Approval []string `json:"approval,omitempty"`
}

// ClientTool is a tool that a client of the chat runs.
type ClientTool struct {
	// name that the model calls.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +kubebuilder:validation:Pattern=`^[A-Za-z0-9_-]+$`
	// +kubebuilder:validation:XValidation:rule="!(self in ['current_time', 'wait_agent', 'advisor'])",message="this is the name of a built-in tool: choose another one"
	// +required
	Name string `json:"name"`

	// description tells the model what the tool does and when to call it.
	// +kubebuilder:validation:MaxLength=4096
	// +optional
	Description string `json:"description,omitempty"`

	// inputSchema is the JSON schema of the arguments, an object. Default: an object without properties.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +optional
	InputSchema *runtime.RawExtension `json:"inputSchema,omitempty"`
}

// BuiltInTools selects among Parley's own tools.
type BuiltInTools struct {
	// allow lists the built-in tools that the model may call; an empty list allows none.
	// +kubebuilder:validation:MaxItems=64
	// +listType=set
	// +required
	Allow []BuiltInTool `json:"allow"`
}

// BuiltInTool is the name of a tool that Parley brings.
// +kubebuilder:validation:Enum=current_time;wait_agent
// +kubebuilder:validation:MaxLength=64
type BuiltInTool string

const (
	// BuiltInCurrentTime tells the model the time of day.
	BuiltInCurrentTime BuiltInTool = "current_time"
	// BuiltInWaitAgent waits for a sub-chat and tells the model what it said last. Unless it is named in builtIn.allow, it is
	// offered only to a chat that has sub-chats.
	BuiltInWaitAgent BuiltInTool = "wait_agent"
)

// ChatLimits bounds what a chat may do.
type ChatLimits struct {
	// maxSteps is the number of Assistant messages after which a turn ends. Default 1200.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=10000
	// +optional
	MaxSteps *int32 `json:"maxSteps,omitempty"`

	// maxQueue is the number of messages that may wait while a turn is under way; one more is Rejected. Default 20.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxQueue *int32 `json:"maxQueue,omitempty"`

	// maxSubChats is the number of chats below this one, at all depths. It counts where a chat has no parent. Default 20.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=1000
	// +optional
	MaxSubChats *int32 `json:"maxSubChats,omitempty"`

	// maxDepth is how deep sub-chats may be nested: 1 allows sub-chats that have none of their own. It counts where a chat
	// has no parent. Default 1.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=8
	// +optional
	MaxDepth *int32 `json:"maxDepth,omitempty"`

	// actionDeadlineSeconds is how long tool calls wait for a client or for approval before they are cancelled. Default 300.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=2592000
	// +optional
	ActionDeadlineSeconds *int32 `json:"actionDeadlineSeconds,omitempty"`

	// budget is the most that the chat may cost. Once it is spent, turns end with reason BudgetExceeded before the model is
	// called again. Default: no limit.
	// +optional
	Budget *Budget `json:"budget,omitempty"`
}

// ChatStatus is the chat's state machine. Only the operator writes it, each time as one compare-and-swap.
type ChatStatus struct {
	// observedGeneration is the generation of the spec that this status describes; -1 until it has been seen.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase is where the chat stands, for people; programs read the conditions.
	// +optional
	Phase ChatPhase `json:"phase,omitempty"`

	// title is spec.title, or else what a model wrote, or how the first message begins; absent until there is one.
	// +kubebuilder:validation:MaxLength=80
	// +optional
	Title string `json:"title,omitempty"`

	// titleSource is where the title comes from.
	// +optional
	TitleSource TitleSource `json:"titleSource,omitempty"`

	// archived is true once the chat is put away.
	// +optional
	Archived bool `json:"archived,omitempty"`

	// parentUID of the chat that parentRef names, as it was first met: when that one goes, this one goes too.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ParentUID string `json:"parentUID,omitempty"`

	// waitingSince is since when the next step waits because as many chats are generating as may; absent when it does not.
	// +optional
	WaitingSince *metav1.MicroTime `json:"waitingSince,omitempty"`

	// history is the chain of committed messages.
	// +optional
	History HistoryStatus `json:"history,omitempty,omitzero"`

	// turn is the turn that is under way, or else the last one.
	// +optional
	Turn *TurnStatus `json:"turn,omitempty"`

	// queue holds the messages that wait for the turn to end, next first.
	// +kubebuilder:validation:MaxItems=100
	// +listType=map
	// +listMapKey=name
	// +optional
	Queue []QueuedMessage `json:"queue,omitempty"`

	// generation is the attempt under way; absent when no generation pod has work for this chat.
	// +optional
	Generation *GenerationStatus `json:"generation,omitempty"`

	// retry is the next attempt at a step that failed, and why it failed; absent while an attempt is under way.
	// +optional
	Retry *RetryStatus `json:"retry,omitempty"`

	// context is how full the model's context was at the newest reply; absent until there is one.
	// +optional
	Context *ContextStatus `json:"context,omitempty"`

	// compaction is what asked for the compaction that is next or under way, besides the threshold; absent if nothing did.
	// +optional
	Compaction CompactionSource `json:"compaction,omitempty"`

	// requiresAction is what a client or a person must do for the turn to go on; absent unless the phase is RequiresAction.
	// +optional
	RequiresAction *RequiresActionStatus `json:"requiresAction,omitempty"`

	// lastError is why the last turn failed; absent once a new one has begun.
	// +optional
	LastError *LastError `json:"lastError,omitempty"`

	// requests are the newest requests that annotations made, one of a kind, and what became of them.
	// +kubebuilder:validation:MaxItems=4
	// +listType=map
	// +listMapKey=kind
	// +optional
	Requests []HandledRequest `json:"requests,omitempty"`

	// lastReply is a preview of the newest reply: its first line, cut at 28 characters.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	LastReply string `json:"lastReply,omitempty"`

	// model that answered last, or is answering, as the provider calls it.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Model string `json:"model,omitempty"`

	// usage is the sum of the tokens of all committed messages.
	// +optional
	Usage TokenUsage `json:"usage,omitempty,omitzero"`

	// cost is the sum of what all committed messages cost, by currency; absent while no call had a price. A message in a
	// ninth currency is not counted.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=currency
	// +optional
	Cost []Cost `json:"cost,omitempty"`

	// advisorUsage is the sum of the tokens that asking the advisor took; usage is without them.
	// +optional
	AdvisorUsage TokenUsage `json:"advisorUsage,omitempty,omitzero"`

	// conditions of the chat: Ready, Reconciling, Stalled, Truncated.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// HistoryStatus names the chain of committed messages by its newest one.
type HistoryStatus struct {
	// version grows with every commit. It is part of the fence of an attempt.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Version int64 `json:"version,omitempty"`

	// head is the name of the newest committed ChatMessage; each names its parent.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Head string `json:"head,omitempty"`

	// length is the number of committed messages.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Length int64 `json:"length,omitempty"`

	// superseded names the messages that have left the history and have yet to be put aside; absent once they are.
	// +optional
	Superseded *SupersededRange `json:"superseded,omitempty"`

	// contextStart is the index of the first message that the model sees.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ContextStart int64 `json:"contextStart,omitempty"`

	// contextBoundaries are where the contexts begin that were begun so far, oldest first: a message that is edited takes the
	// chat back to the one that it was part of. The oldest of more than 64 are forgotten.
	// +kubebuilder:validation:MaxItems=64
	// +listType=atomic
	// +optional
	ContextBoundaries []ContextBoundary `json:"contextBoundaries,omitempty"`
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

// HandledRequest is a request that an annotation made.
type HandledRequest struct {
	// kind of the request.
	// +required
	Kind RequestKind `json:"kind"`

	// token is the annotation's value, cut at 128 bytes.
	// +kubebuilder:validation:MaxLength=128
	// +required
	Token string `json:"token"`

	// outcome is what became of it.
	// +required
	Outcome RequestOutcome `json:"outcome"`

	// message says why it was refused.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	Message string `json:"message,omitempty"`

	// time when it was acted on.
	// +required
	Time metav1.Time `json:"time"`
}

// TurnStatus is the turn that is under way, or else the last one. It carries what the user message's own status must
// say, so that a crash between the two writes loses nothing.
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

	// contentHash is of the User message's content as it was committed. A message whose content has another hash has been
	// edited since.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ContentHash string `json:"contentHash,omitempty"`

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

	// steps is the number of Assistant messages committed in this turn.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Steps int32 `json:"steps,omitempty"`

	// lastRole is the role of the newest message.
	// +optional
	LastRole MessageRole `json:"lastRole,omitempty"`

	// pendingCalls is the number of tool calls of the turn's newest reply that have no result yet.
	// +kubebuilder:validation:Minimum=0
	// +optional
	PendingCalls int32 `json:"pendingCalls,omitempty"`

	// awaitingCalls is how many of the pending calls wait for a client or for approval.
	// +kubebuilder:validation:Minimum=0
	// +optional
	AwaitingCalls int32 `json:"awaitingCalls,omitempty"`

	// waitsFor lists those of the pending calls that are not run before a sub-chat is done.
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=id
	// +optional
	WaitsFor []PendingWait `json:"waitsFor,omitempty"`

	// callingMessage is the reply that made the pending calls.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	CallingMessage string `json:"callingMessage,omitempty"`

	// decisions are those of people about calls that are about to be run or answered.
	// +kubebuilder:validation:MaxItems=512
	// +listType=map
	// +listMapKey=id
	// +optional
	Decisions []ToolDecision `json:"decisions,omitempty"`

	// results is the place of the newest message with a client's results in the history.
	// +optional
	Results *MessagePlace `json:"results,omitempty"`
}

// MessagePlace is where a person's message stands in the history.
type MessagePlace struct {
	// message is its name.
	// +kubebuilder:validation:MaxLength=253
	// +required
	Message string `json:"message"`

	// parent is the name of the message before it.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Parent string `json:"parent,omitempty"`

	// index in the history, from 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Index int64 `json:"index"`

	// historyVersion that its commit made.
	// +kubebuilder:validation:Minimum=0
	// +optional
	HistoryVersion int64 `json:"historyVersion,omitempty"`
}

// RequiresActionStatus is what a client or a person must do for the turn to go on.
type RequiresActionStatus struct {
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

	// input is the JSON object of the arguments, cut at 16384 characters; the whole is in the ChatMessage that
	// status.turn.callingMessage names.
	// +kubebuilder:validation:MaxLength=16384
	// +optional
	Input string `json:"input,omitempty"`

	// kind says what the call waits for.
	// +required
	Kind CallAwaits `json:"kind"`

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

	// comment of the person; the model reads it when the call was denied.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Comment string `json:"comment,omitempty"`
}

// QueuedMessage is a message that waits for the turn to end.
type QueuedMessage struct {
	// name of the ChatMessage.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// interrupts is true for a message that cut in (whenBusy: Interrupt).
	// +optional
	Interrupts bool `json:"interrupts,omitempty"`
}

// GenerationStatus is the attempt under way. Together with the chat's UID and history.version its attempt is the fence:
// a result that carries another one is never committed.
type GenerationStatus struct {
	// attempt counts the tries of this step, from 1.
	// +kubebuilder:validation:Minimum=1
	// +required
	Attempt int32 `json:"attempt"`

	// action that the pod performs.
	// +required
	Action GenerationAction `json:"action"`

	// pod that performs it, and the only one whose result counts.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Pod string `json:"pod"`

	// modelConfig is the name of the ChatModelConfig to use.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	ModelConfig string `json:"modelConfig"`

	// hasSubChats is true when the chat had sub-chats when the attempt was assigned: the model may wait for them.
	// +optional
	HasSubChats bool `json:"hasSubChats,omitempty"`

	// startedAt is when the attempt was assigned.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`

	// ruledOut names the ChatModelConfigs that failed in this step in a way that trying again would not change.
	// +kubebuilder:validation:MaxItems=9
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=atomic
	// +optional
	RuledOut []string `json:"ruledOut,omitempty"`

	// interruptedAt is when the attempt was told to stop and to hand over what it has; absent unless it was.
	// +optional
	InterruptedAt *metav1.MicroTime `json:"interruptedAt,omitempty"`
}

// LastError is why the last turn failed.
type LastError struct {
	GenerationError `json:",inline"`

	// time of the failure.
	// +optional
	Time metav1.Time `json:"time,omitempty,omitzero"`
}

// Chat is a conversation with a model. Apply one with a prompt and wait for condition Ready; go on with ChatMessages.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=llm
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.status.generation.pod`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Phase",type=string,JSONPath=`.status.phase`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.status.model`
// +kubebuilder:printcolumn:name="Msgs",type=integer,JSONPath=`.status.history.length`
// +kubebuilder:printcolumn:name="Reply",type=string,JSONPath=`.status.lastReply`
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.status.title`,priority=1
// +kubebuilder:printcolumn:name="Tokens",type=integer,JSONPath=`.status.usage.totalTokens`,priority=1
// +kubebuilder:printcolumn:name="CostMicros",type=integer,JSONPath=`.status.cost[0].microUnits`,priority=1
// +kubebuilder:printcolumn:name="Pod",type=string,JSONPath=`.status.generation.pod`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="self.metadata.name.size() <= 200",message="the name of a Chat may have at most 200 characters, because its messages' names begin with it"
type Chat struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what is wanted.
	// +kubebuilder:default:={}
	// +optional
	Spec ChatSpec `json:"spec,omitempty,omitzero"`

	// status is the state of the chat; only the operator writes it.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +optional
	Status ChatStatus `json:"status,omitempty,omitzero"`
}

// ChatList is a list of Chats.
// +kubebuilder:object:root=true
type ChatList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []Chat `json:"items"`
}

// MaxStepsOrDefault is limits.maxSteps, or DefaultMaxSteps.
func (s *ChatSpec) MaxStepsOrDefault() int32 {
	if s.Limits == nil || s.Limits.MaxSteps == nil {
		return DefaultMaxSteps
	}
	return *s.Limits.MaxSteps
}

// MaxQueueOrDefault is limits.maxQueue, or DefaultMaxQueue.
func (s *ChatSpec) MaxQueueOrDefault() int32 {
	if s.Limits == nil || s.Limits.MaxQueue == nil {
		return DefaultMaxQueue
	}
	return *s.Limits.MaxQueue
}

// MaxSubChatsOrDefault is limits.maxSubChats, or DefaultMaxSubChats.
func (s *ChatSpec) MaxSubChatsOrDefault() int32 {
	if s.Limits == nil || s.Limits.MaxSubChats == nil {
		return DefaultMaxSubChats
	}
	return *s.Limits.MaxSubChats
}

// MaxDepthOrDefault is limits.maxDepth, or DefaultMaxDepth.
func (s *ChatSpec) MaxDepthOrDefault() int32 {
	if s.Limits == nil || s.Limits.MaxDepth == nil {
		return DefaultMaxDepth
	}
	return *s.Limits.MaxDepth
}

// ActionDeadlineOrDefault is limits.actionDeadlineSeconds, or DefaultActionDeadline.
func (s *ChatSpec) ActionDeadlineOrDefault() time.Duration {
	if s.Limits == nil || s.Limits.ActionDeadlineSeconds == nil {
		return DefaultActionDeadline
	}
	return time.Duration(*s.Limits.ActionDeadlineSeconds) * time.Second
}
