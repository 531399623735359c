// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// MessageRole is who speaks.
// +kubebuilder:validation:Enum=User;Assistant;Tool;System
type MessageRole string

const (
	// RoleUser is a person or a program that asks.
	RoleUser MessageRole = "User"
	// RoleAssistant is the model.
	RoleAssistant MessageRole = "Assistant"
	// RoleTool holds the results of a batch of tool calls.
	RoleTool MessageRole = "Tool"
	// RoleSystem holds the summary that a compaction put in place of what was said before.
	RoleSystem MessageRole = "System"
)

// WhenBusy is what a User message does to a turn that is under way.
// +kubebuilder:validation:Enum=Queue;Interrupt
type WhenBusy string

const (
	// WhenBusyQueue lets the message wait for the turn to end. This is the default.
	WhenBusyQueue WhenBusy = "Queue"
	// WhenBusyInterrupt stops the turn; what was said so far is kept, and the message is next.
	WhenBusyInterrupt WhenBusy = "Interrupt"
)

// MessageVisibility is for whom a message is meant.
// +kubebuilder:validation:Enum=All;Model;Users
type MessageVisibility string

const (
	// VisibleToAll means that the message is part of the transcript that people see. This is the default.
	VisibleToAll MessageVisibility = "All"
	// VisibleToModel means that the message is told to the model, and that transcripts for people leave its text out. It
	// is no secret: whoever may read ChatMessages can read it.
	VisibleToModel MessageVisibility = "Model"
	// VisibleToUsers makes a note of the message: transcripts for people show it, and no model is ever told of it. It is
	// not part of the history and begins no turn.
	VisibleToUsers MessageVisibility = "Users"
)

// MessageState is where a User message stands.
// +kubebuilder:validation:Enum=Pending;Queued;Committed;Noted;Superseded;Rejected
type MessageState string

const (
	// MessagePending means that the message has not been taken up; the Ready condition says why.
	MessagePending MessageState = "Pending"
	// MessageQueued means that the message waits for the turn under way to end.
	MessageQueued MessageState = "Queued"
	// MessageCommitted means that the message is part of the chat's history.
	MessageCommitted MessageState = "Committed"
	// MessageNoted means that the message is a note to people, with its place between the messages of the history. No
	// model answers it.
	MessageNoted MessageState = "Noted"
	// MessageSuperseded means that the message has left the history or the queue, because a message before it was edited
	// or deleted. It will not be answered.
	MessageSuperseded MessageState = "Superseded"
	// MessageRejected means that the message will not be answered; the Ready condition says why.
	MessageRejected MessageState = "Rejected"
)

// ChatMessageSpec is one message of a chat: what a person asks, or one finished step of the answer.
// +kubebuilder:validation:XValidation:rule="has(self.generation) || ((self.role == 'User' || (self.role == 'Tool' && has(self.parts) && !has(self.whenBusy) && !has(self.modelConfigRef) && !has(self.reasoningEffort) && !has(self.output) && !has(self.toolChoice) && !has(self.stop))) && (has(self.content) ? !has(self.parts) && !has(self.history) : has(self.parts) != has(self.history)) && !has(self.parent) && !has(self.index) && !has(self.follows))",messageExpression="!(self.role in ['User', 'Tool']) ? 'role must be User (or left out), or Tool for the results of tools that a client runs: the other messages are written by generation pods' : self.role == 'Tool' && has(self.history) ? 'history belongs to User messages, and to no notes: leave role and visibility out' : has(self.parent) || has(self.index) || has(self.follows) ? 'parent, index and follows are set by the operator: leave them out' : [has(self.content), has(self.parts), has(self.history)].filter(s, s).size() != 1 ? 'exactly one of content, parts and history must be set' : !has(self.parts) ? 'a Tool message has parts, all of type ToolResult' : has(self.whenBusy) ? 'a Tool message has no whenBusy: it answers the calls that wait' : 'modelConfigRef, reasoningEffort, output, toolChoice and stop belong to User messages: they count for the whole turn that one begins'"
// +kubebuilder:validation:XValidation:rule="!has(self.parts) || has(self.generation) || (self.role == 'Tool' ? self.parts.all(p, p.type == 'ToolResult') && self.parts.map(p, p.?toolResult.?output.optMap(o, o.size()).orValue(0)).sum() <= 1048576 : self.parts.all(p, p.type in ['Text', 'File']) && self.parts.map(p, p.?text.optMap(t, t.size()).orValue(0) + p.?file.?data.optMap(d, d.size()).orValue(0)).sum() <= 1048576)",messageExpression="self.role == 'Tool' ? (self.parts.all(p, p.type == 'ToolResult') ? 'the outputs of all results together may have at most 1048576 characters' : 'a Tool message has parts, all of type ToolResult') : self.parts.all(p, p.type in ['Text', 'File']) ? 'the texts of all parts together, and the files in base64, may have at most 1048576 characters: split the message' : 'parts of a User message must be of type Text or File'"
// +kubebuilder:validation:XValidation:rule="!has(self.visibility) || (has(self.generation) ? self.role == 'System' && self.visibility == 'Model' : self.role == 'User' && (self.visibility != 'Users' || (!has(self.history) && !has(self.whenBusy) && !has(self.modelConfigRef) && !has(self.reasoningEffort) && !has(self.output) && !has(self.toolChoice) && !has(self.stop))))",messageExpression="has(self.generation) ? 'of generated messages a summary alone has a visibility, which is Model' : self.role != 'User' ? 'visibility belongs to User messages: results are seen with their calls' : has(self.history) ? 'history belongs to User messages, and to no notes: leave role and visibility out' : 'a message with visibility Users begins no turn and stops none: leave whenBusy, modelConfigRef, reasoningEffort, output, toolChoice and stop out'"
// +kubebuilder:validation:XValidation:rule="has(self.generation) == has(oldSelf.generation)",message="a generated message cannot change"
// +kubebuilder:validation:XValidation:rule="(has(self.visibility) ? self.visibility : 'All') == (has(oldSelf.visibility) ? oldSelf.visibility : 'All')",message="visibility cannot change: create another message"
type ChatMessageSpec struct {
	// chatRef names the chat. It may be created after the message.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="chatRef cannot change: create a new message for the other chat"
	// +required
	ChatRef ChatReference `json:"chatRef"`

	// role is who speaks. Default: User.
	// +kubebuilder:default=User
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="role cannot change"
	// +optional
	Role MessageRole `json:"role,omitempty"`

	// content is the text of the message: short for one part of type Text. At most 1 MiB, and not blank.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=1048576
	// +kubebuilder:validation:XValidation:rule="(oldSelf.hasValue() && oldSelf.value() == self) || (bytes(self).size() <= 1048576 && self.matches(r'[^\\s\\pZ\\pC]'))",messageExpression="bytes(self).size() > 1048576 ? 'content may have at most 1048576 bytes (1 MiB): split it into several messages' : 'content is blank: say something'",optionalOldSelf=true,reason=FieldValueForbidden
	// +optional
	Content string `json:"content,omitempty"`

	// parts of the message, in order.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=512
	// +listType=atomic
	// +optional
	Parts []MessagePart `json:"parts,omitempty"`

	// history is what was said before, in a conversation that was led elsewhere, in place of content: the chat continues
	// from it. The model answers if it ends with words of a User or results of tools; after those of an Assistant the turn
	// ends at once, and the next message is answered. At most 1 MiB.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=1024
	// +listType=atomic
	// +optional
	History []PriorMessage `json:"history,omitempty"`

	// whenBusy is what the message does to a turn that is under way: Queue waits for its end, Interrupt stops it. A queued
	// message that is changed to Interrupt is answered next. Default Queue.
	// +optional
	WhenBusy WhenBusy `json:"whenBusy,omitempty"`

	// visibility is for whom the message is meant. Model: it is sent to the model, and transcripts for people omit its
	// text. Users: it is a note, which transcripts show and which is sent to no model; it is not part of the history,
	// begins no turn and waits for none. Neither is a protection: whoever may read ChatMessages can read it. It cannot
	// change. Default All.
	// +optional
	Visibility MessageVisibility `json:"visibility,omitempty"`

	// modelConfigRef names the ChatModelConfig that answers the turn which a User message begins. Default: the chat's. It
	// counts as it is when the turn begins.
	// +optional
	ModelConfigRef *ModelConfigReference `json:"modelConfigRef,omitempty"`

	// reasoningEffort is how much the model thinks in the turn that a User message begins, up to reasoningEffort.max of
	// the ChatModelConfig. Default: that of the chat, and then its reasoningEffort.default. It counts as it is when the
	// turn begins.
	// +optional
	ReasoningEffort ReasoningEffort `json:"reasoningEffort,omitempty"`

	// output asks for JSON as the answer of the turn that a User message begins. Default: that of the chat. It counts as
	// it is at each step of the turn.
	// +optional
	Output *OutputFormat `json:"output,omitempty"`

	// toolChoice is whether the first reply of the turn that a User message begins calls tools. Default: the model
	// decides.
	// +optional
	ToolChoice *ToolChoice `json:"toolChoice,omitempty"`

	// stop are texts at which the model stops in the turn that a User message begins, where the provider supports that.
	// The reply ends before the text.
	// +kubebuilder:validation:MaxItems=4
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	Stop []string `json:"stop,omitempty"`

	// parent is the message before a generated one.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Parent string `json:"parent,omitempty"`

	// index of a generated message in the history, from 0.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Index *int64 `json:"index,omitempty"`

	// follows are the messages of people and clients between a generated message and the one before that, oldest first.
	// +kubebuilder:validation:MaxItems=256
	// +listType=atomic
	// +optional
	Follows []CommittedMessage `json:"follows,omitempty"`

	// generation says which attempt yielded a generated message.
	// +structType=atomic
	// +optional
	Generation *MessageGeneration `json:"generation,omitempty"`
}

// ChatMessageStatus is where a User message stands, for people: the operator decides from the status of the chat and
// from spec.follows of generated messages. A generated message needs none: it is immutable, its spec says how it came
// about, and it is part of the history if the chain from Chat.status.history.head holds it.
type ChatMessageStatus struct {
	// observedGeneration is the generation of the spec that this status describes; -1 until it has been seen.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// state of the message.
	// +optional
	State MessageState `json:"state,omitempty"`

	// chatUID of the chat that took the message up.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ChatUID string `json:"chatUID,omitempty"`

	// parent is the message before it in the history.
	// +kubebuilder:validation:MaxLength=253
	// +optional
	Parent string `json:"parent,omitempty"`

	// index of the message in the history, from 0. That of a note is of the message before which it stands: as many were
	// committed when it came.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Index *int64 `json:"index,omitempty"`

	// historyVersion that its commit made.
	// +kubebuilder:validation:Minimum=0
	// +optional
	HistoryVersion int64 `json:"historyVersion,omitempty"`

	// resumedVersion is the version of the history with which the turn that the message began was taken up again last;
	// absent if it never was.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ResumedVersion int64 `json:"resumedVersion,omitempty"`

	// createdVersion is the resourceVersion that the message had before its status was written for the first time, as long
	// as the message waits to be taken up: messages of one second are taken in the order of their creation.
	// +kubebuilder:validation:MaxLength=32
	// +optional
	CreatedVersion string `json:"createdVersion,omitempty"`

	// callsCanceledReasonBefore is why tool calls of the reply before the message have no result; absent if none was
	// cancelled.
	// +optional
	CallsCanceledReasonBefore CallsCanceledReason `json:"callsCanceledReasonBefore,omitempty"`

	// stoppedBy is the tool of the first of a client's results that ends the turn, as the chat's tools.stopAfter said when
	// they were taken; empty if none does.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	StoppedBy string `json:"stoppedBy,omitempty"`

	// contentHash is of the content as it was committed; a message whose content has another hash has been edited since.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ContentHash string `json:"contentHash,omitempty"`

	// conditions of the message: Ready, Reconciling, Stalled.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ChatMessage is one message of a chat. People create those with role User; the others are finished steps of the
// answer, each written once by a generation pod.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:shortName=cmsg,categories=llm
// +kubebuilder:selectablefield:JSONPath=`.spec.chatRef.name`
// +kubebuilder:selectablefield:JSONPath=`.spec.visibility`
// +kubebuilder:printcolumn:name="Chat",type=string,JSONPath=`.spec.chatRef.name`
// +kubebuilder:printcolumn:name="Role",type=string,JSONPath=`.spec.role`
// +kubebuilder:printcolumn:name="Index",type=integer,JSONPath=`..index`
// +kubebuilder:printcolumn:name="State",type=string,JSONPath=`..['state','outcome']`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`,priority=1
// +kubebuilder:printcolumn:name="Visibility",type=string,JSONPath=`.spec.visibility`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || !self.metadata.name.matches('-[0-9]+-([0-9]+|summary)$') || has(self.spec.generation)",optionalOldSelf=true,message="names that end in -NUMBER-NUMBER or -NUMBER-summary belong to generated messages: choose another one"
type ChatMessage struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the message.
	// +required
	Spec ChatMessageSpec `json:"spec"`

	// status is where the message stands; only the operator writes it.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +structType=atomic
	// +optional
	Status ChatMessageStatus `json:"status,omitempty,omitzero"`
}

// ChatMessageList is a list of ChatMessages.
// +kubebuilder:object:root=true
type ChatMessageList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ChatMessage `json:"items"`
}
