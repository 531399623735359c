// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
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
	// ChatError means that the last turn failed; a new message continues the chat.
	ChatError ChatPhase = "Error"
)

// HasTurn reports whether a turn is under way.
func (p ChatPhase) HasTurn() bool {
	return p == ChatRunning || p == ChatInterrupting || p == ChatRequiresAction
}

// GenerationAction is what a generation pod does. The first three are what it is told to do;
// the others it does meanwhile.
// +kubebuilder:validation:Enum=GenerateAssistant;ExecuteTools;Compact;SummarizeTurn;WriteTitle
type GenerationAction string

const (
	// ActionGenerateAssistant calls the model with the history and yields one Assistant message.
	ActionGenerateAssistant GenerationAction = "GenerateAssistant"
	// ActionExecuteTools runs the tool calls of the newest Assistant message and yields one Tool message.
	ActionExecuteTools GenerationAction = "ExecuteTools"
	// ActionCompact asks a model for a summary of the context and yields one System message,
	// with which the next call begins.
	ActionCompact GenerationAction = "Compact"
	// ActionSummarizeTurn asks a model what became of a turn, after its last reply. It yields a message without parts that
	// is part of no history and goes once the chat has taken its turnSummary.
	ActionSummarizeTurn GenerationAction = "SummarizeTurn"
	// ActionWriteTitle asks a model for the chat's title, during a reply,
	// which takes the title along. It yields no message.
	ActionWriteTitle GenerationAction = "WriteTitle"
)

// ChatStatus is the chat's state machine. Only the operator writes it, each time as one compare-and-swap.
type ChatStatus struct {
	// observedGeneration is the generation of the spec that this status describes; -1 until it has been seen.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// phase summarizes the state of the chat for people; programs read the conditions.
	// +optional
	Phase ChatPhase `json:"phase,omitempty"`

	// root is the chat at the top of the family: the chat itself, unless it is a sub-chat. Absent until each chat above
	// exists.
	// +optional
	Root *FamilyRoot `json:"root,omitempty"`

	// title is spec.title, or else what a model wrote, or how the first message begins; absent until there is one.
	// +kubebuilder:validation:MaxLength=80
	// +optional
	Title string `json:"title,omitempty"`

	// titleSource is where the title comes from.
	// +optional
	TitleSource TitleSource `json:"titleSource,omitempty"`

	// chatClass is the ChatClass that the chat has; absent while it has none. With what the chat says itself, it is what
	// is in force.
	// +optional
	ChatClass *AppliedChatClass `json:"chatClass,omitempty"`

	// settings says in short what chatClass made of what the chat says, as of the newest step; absent while the chat has
	// no class: then what it says itself is in force.
	// +optional
	Settings *EffectiveSettings `json:"settings,omitempty"`

	// namespaceClass is the ChatClass whose namespacePreamble stood before all else in the newest step; absent if there
	// was none. It is the namespace's default, whatever class the chat has.
	// +optional
	NamespaceClass *AppliedChatClass `json:"namespaceClass,omitempty"`

	// archived is true once spec.archived, of this chat or of one above it, has taken effect.
	// +optional
	Archived bool `json:"archived,omitempty"`

	// idleSince is since when the chat has had nothing to do; absent while it has. Of the chats below it says nothing.
	// +optional
	IdleSince *metav1.Time `json:"idleSince,omitempty"`

	// expiresAt is when the chat is deleted by its retention, unless it or a chat below it has something to do before;
	// absent while it is kept.
	// +optional
	ExpiresAt *metav1.Time `json:"expiresAt,omitempty"`

	// wait is what the chat waits for; absent while it waits for nothing but messages.
	// +optional
	Wait *ChatWait `json:"wait,omitempty"`

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
	// +kubebuilder:validation:MaxItems=120
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

	// requiresAction is what a client or a person must do for the turn to continue;
	// absent unless the phase is RequiresAction.
	// +optional
	RequiresAction *RequiresActionStatus `json:"requiresAction,omitempty"`

	// lastError is why the last turn failed; absent once a new one has begun.
	// +optional
	LastError *LastError `json:"lastError,omitempty"`

	// workspace is what the model has decided about the chat's workspace; absent while it has decided nothing.
	// +optional
	Workspace *ChatWorkspaceStatus `json:"workspace,omitempty"`

	// requests are the newest requests that annotations made, one of a kind, and what became of them.
	// +kubebuilder:validation:MaxItems=5
	// +listType=map
	// +listMapKey=kind
	// +optional
	Requests []HandledRequest `json:"requests,omitempty"`

	// lastReply is a preview of the newest reply: its first line, cut at 28 characters.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	LastReply string `json:"lastReply,omitempty"`

	// output of the newest turn, if spec.output or its message asked for one and it has at most 8 KiB. Condition
	// OutputReady says where it stands.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Schemaless
	// +optional
	Output *runtime.RawExtension `json:"output,omitempty"`

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

	// deletedCost is what chats below this one had cost that were deleted while it had a budget, by currency. Its budget
	// counts it.
	// +kubebuilder:validation:MaxItems=8
	// +listType=map
	// +listMapKey=currency
	// +optional
	DeletedCost []Cost `json:"deletedCost,omitempty"`

	// advisorUsage is the sum of the tokens that asking the advisor took; usage is without them.
	// +optional
	AdvisorUsage TokenUsage `json:"advisorUsage,omitempty,omitzero"`

	// internal is the operator's own memory between reconciles. It is not API: it may change in any release. Do not read
	// it.
	// +optional
	Internal ChatInternalStatus `json:"internal,omitempty,omitzero"`

	// conditions of the chat: Ready, Reconciling, Stalled, Truncated, AdvisorUnavailable, ModelConfigFallback,
	// SettingsIgnored, MCPServersUnavailable, ProviderToolsUnavailable,
	// KubernetesUnavailable, OutputReady, ArchiveUnavailable.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// FamilyRoot is the chat at the top of a family.
type FamilyRoot struct {
	// name of the Chat. kubectl get chats --field-selector status.root.name=NAME lists the family.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// uid of the Chat.
	// +kubebuilder:validation:MaxLength=64
	// +required
	UID string `json:"uid"`

	// workspace is the name of the Workspace that the family shares, as of the newest step; absent if it has none.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Workspace string `json:"workspace,omitempty"`
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

	// contextStart is the index of the first message that the model sees.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ContextStart int64 `json:"contextStart,omitempty"`
}

// QueuedMessage is a message that waits for the turn to end.
type QueuedMessage struct {
	// name of the ChatMessage.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// interrupts is true for a message that interrupts (whenBusy: Interrupt).
	// +optional
	Interrupts bool `json:"interrupts,omitempty"`

	// heldUntil is when a message that someone edits is released at the latest (annotation parley.dev/hold-until). Until
	// then the messages behind it come first. Absent if it is not held.
	// +optional
	HeldUntil *metav1.Time `json:"heldUntil,omitempty"`
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

	// startedAt is when the attempt was assigned.
	// +required
	StartedAt metav1.MicroTime `json:"startedAt"`

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

	// action that failed, such as Compact; absent where the turn failed before it had a next action.
	// +optional
	Action GenerationAction `json:"action,omitempty"`
}
