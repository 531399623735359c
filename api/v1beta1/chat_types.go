// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// AnnotationTraceparent on a User message, or on a Chat for its prompt, is the W3C trace context (version 00) that the
// turn is traced under.
const AnnotationTraceparent = "parley.dev/traceparent"

// AnnotationCreatedBy names who created a Chat, a User or Tool message, or a ToolApproval, where the cluster stamps it
// (config/admission/stamp).
const AnnotationCreatedBy = "parley.dev/created-by"

// AnnotationEditedBy names who last changed the spec of a Chat, a User or Tool message, or a ToolApproval, where the
// cluster stamps it (config/admission/stamp). It is absent as long as no one has.
const AnnotationEditedBy = "parley.dev/edited-by"

// AnnotationHoldUntil on a User message that waits is the time, in RFC 3339, until which the chat does not start it,
// because someone edits it. A time that is over has no effect, and one that is more than 15 minutes ahead none until
// then.
const AnnotationHoldUntil = "parley.dev/hold-until"

// AnnotationRedacted on a Chat is when text was last removed from its messages, which generation pods then read again.
// On a generated message it is when text was removed from that. On a message of a person or a client it is two hashes
// of the content, joined by "/": before, and now. So the operator can tell a redaction from an edit. It takes the verb
// redact on Chats to write it.
const AnnotationRedacted = "parley.dev/redacted"

// AnnotationRedacting on a Chat is present while text is removed from it. Meanwhile its status can be changed by others
// than the manager, who have the verb redact on Chats. It takes the same verb to write it.
const AnnotationRedacting = "parley.dev/redacting"

// AnnotationRestoring on a Chat identifies the backup that the chat is being restored from. The operator holds the chat
// until the restore removes the annotation. Only users who may restore chats can set it, and only on a new Chat.
const AnnotationRestoring = "parley.dev/restoring"

// AnnotationRestoredFrom on a Chat, a ChatMessage or a ToolApproval is the UID that the object had in the backup from
// which it was restored; on a ChatMessage of a fork it is the UID of the message that it is a copy of. Only users who
// may restore chats, and the manager, can set it, and only on a new object.
const AnnotationRestoredFrom = "parley.dev/restored-from"

// IsRestoring reports whether the chat is held because a restore has not finished.
func (c *Chat) IsRestoring() bool { return c.Annotations[AnnotationRestoring] != "" }

// IsForking reports whether the chat is held because it does not have the history yet that spec.fork names.
func (c *Chat) IsForking() bool { return c.Spec.Fork != nil && c.Status.History.Version == 0 }

// ChatSpec is what a person wants of a chat.
// +kubebuilder:validation:XValidation:rule="!has(self.parentRef) || (!has(self.workspace) && !has(self.retention) && (!has(self.mode) || self.mode != 'Plan'))",messageExpression="has(self.workspace) ? 'a sub-chat shares the workspace of the chat above it: set workspace there' : has(self.retention) ? 'a sub-chat is deleted with the chat above it: set retention there' : 'a sub-chat proposes no plans: set mode to Explore, or leave it out'"
// +kubebuilder:validation:XValidation:rule="!has(self.fork) || !has(self.parentRef)",message="a sub-chat cannot be a fork: leave parentRef out, or let a model start the sub-chat"
// +kubebuilder:validation:XValidation:rule="has(self.prompt) == has(oldSelf.prompt) && has(self.parentRef) == has(oldSelf.parentRef) && has(self.fork) == has(oldSelf.fork)",messageExpression="has(self.fork) != has(oldSelf.fork) ? 'fork can only be given when the chat is created: create a new chat' : has(self.parentRef) != has(oldSelf.parentRef) ? 'parentRef cannot change: create a new chat' : has(self.prompt) ? 'prompt can only be given when the chat is created: continue with a ChatMessage' : 'prompt starts the chat and cannot change afterwards: continue with a ChatMessage'"
// +kubebuilder:validation:XValidation:rule="!has(self.workspace) || !has(oldSelf.workspace) || (has(self.workspace.podRef) == has(oldSelf.workspace.podRef) && has(self.workspace.warmPoolRef) == has(oldSelf.workspace.warmPoolRef) && (!has(self.workspace.warmPoolRef) || self.workspace.warmPoolRef == oldSelf.workspace.warmPoolRef))",message="a workspace cannot move between a template, a pool and a pod, nor to another pool: its files would stay behind. Create a new chat"
type ChatSpec struct {
	// prompt is the first user message, so that one manifest is enough for a whole chat. It becomes the ChatMessage
	// "<name of the chat>-prompt". It is not blank, and cannot change afterwards.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=524288
	// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || self.matches(r'[^\\s\\pZ\\pC]')",optionalOldSelf=true,message="prompt is blank: say something, or leave it out"
	// +optional
	Prompt string `json:"prompt,omitempty"`

	// fork makes the chat continue another chat of the namespace from one of its messages: it begins with a copy of the
	// history up to that message, and continues with its prompt and its messages. Only the conversation is copied, and the
	// files of the workspace if fork.workspace is Copy: no settings and no sub-chats. It requires permission to read that
	// chat and its messages, and to create messages. It cannot change, except that workspace can become None.
	// +kubebuilder:validation:XValidation:rule="self.chat == oldSelf.chat && self.message == oldSelf.message && (!has(self.workspace) || self.workspace == 'None' || (has(oldSelf.workspace) && self.workspace == oldSelf.workspace))",message="fork cannot change, except that its workspace can become None: create a new chat"
	// +optional
	Fork *ForkSource `json:"fork,omitempty"`

	// The limit of the title is a rule, because an API server calls the characters of a maxLength bytes. The maxLength
	// only bounds the cost of the rule.

	// title of the chat, for lists: one line of at most 80 characters. Default: what a model wrote, see
	// ChatModelConfig.spec.titles, or how the first message begins.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=4096
	// +kubebuilder:validation:XValidation:rule="self.size() <= 80 && self.matches('[^[:space:]]') && !self.matches('[[:cntrl:]]')",messageExpression="self.size() > 80 ? 'title may have at most 80 characters' : 'title must be one line that says something, without control characters'"
	// +optional
	Title string `json:"title,omitempty"`

	// chatClassName names the ChatClass of the chat: it supplies defaults, and restricts what the chat may set. A change
	// takes effect with the next step. Default: the namespace's ChatClass with default: true, if there is one.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +kubebuilder:validation:XValidation:rule="self.matches('^[a-z0-9]([-a-z0-9]*[a-z0-9])?([.][a-z0-9]([-a-z0-9]*[a-z0-9])?)*$')",message="the name of a ChatClass has lower-case letters, digits, - and . only, and begins and ends with a letter or digit, such as coder"
	// +optional
	ChatClassName string `json:"chatClassName,omitempty"`

	// mode bounds what the model may do. Plan: it looks, and proposes a plan; nothing is changed before a person approves
	// that, and then it has all its tools for the rest of the turn. Explore: it looks, and changes nothing. A change takes
	// effect with the next step. Default: no bounds.
	// +optional
	Mode ChatMode `json:"mode,omitempty"`

	ChatSettings `json:",inline"`

	// output asks for answers that are JSON. A message can ask for another output for its turn. A change takes effect with
	// the next step. Default: the answers are text.
	// +optional
	Output *OutputFormat `json:"output,omitempty"`

	// parentRef makes this a sub-chat of another chat: it is held,
	// archived and deleted together with it. It cannot change.
	// +kubebuilder:validation:XValidation:rule="self == oldSelf",message="parentRef cannot change: create a new chat"
	// +optional
	ParentRef *ChatReference `json:"parentRef,omitempty"`

	// archived archives the chat and its sub-chats, as soon as all of them are idle. An archived chat accepts no messages.
	// Default false.
	// +optional
	Archived bool `json:"archived,omitempty"`

	// suspend holds the chat's work, and that of its sub-chats: the step under way is finished and committed, no further
	// one begins. Messages wait. Default false.
	// +optional
	Suspend bool `json:"suspend,omitempty"`

	// sharing lists who may read the chat and its sub-chats through the gateway, in addition to those who may read the
	// chats of the namespace. It takes the verb share on Chats to change it. Condition Shared reports what is in force.
	// Default: no one.
	// +kubebuilder:validation:MaxItems=32
	// +listType=map
	// +listMapKey=kind
	// +listMapKey=name
	// +optional
	Sharing []ChatShare `json:"sharing,omitempty"`
}

// ForkSource is the place in another chat that a fork continues from.
type ForkSource struct {
	// chat is the name of that Chat. It may be deleted once the fork has its history.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +required
	Chat string `json:"chat"`

	// message is the name of the last ChatMessage to copy, which is part of the history of that chat. After a reply, the
	// fork waits for a message. A message of a person is answered again, and results of tools are continued. Tool calls
	// that have no results up to there are cancelled.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Message string `json:"message"`

	// workspace is Copy if the fork's workspace begins with the files of that chat's workspace. Both need storage. The
	// fork begins when the files are copied; if that does not work, None lets it begin without them. It requires
	// permission to get workspaces/changes of that chat. Default: None.
	// +optional
	Workspace ForkWorkspace `json:"workspace,omitempty"`
}

// ForkWorkspace is what a fork's workspace begins with.
// +kubebuilder:validation:Enum=None;Copy
type ForkWorkspace string

const (
	// ForkWorkspaceNone means that the workspace begins without files.
	ForkWorkspaceNone ForkWorkspace = "None"
	// ForkWorkspaceCopy means that the workspace begins with a copy of the files of the source's workspace.
	ForkWorkspaceCopy ForkWorkspace = "Copy"
)

// Chat is a conversation with a model. Apply one with a prompt and wait for condition Ready; continue with
// ChatMessages.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=llm
// +kubebuilder:selectablefield:JSONPath=`.status.phase`
// +kubebuilder:selectablefield:JSONPath=`.status.generation.pod`
// +kubebuilder:selectablefield:JSONPath=`.spec.parentRef.name`
// +kubebuilder:selectablefield:JSONPath=`.status.root.name`
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Msgs",type=integer,JSONPath=`.status.history.length`
// +kubebuilder:printcolumn:name="Reply",type=string,JSONPath=`.status.lastReply`
// +kubebuilder:printcolumn:name="Class",type=string,JSONPath=`.status.chatClass.name`,priority=1
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.status.model`,priority=1
// +kubebuilder:printcolumn:name="Title",type=string,JSONPath=`.status.title`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
// +kubebuilder:validation:XValidation:rule="oldSelf.hasValue() || (self.metadata.name.size() <= 200 && (!has(self.spec.parentRef) || self.spec.parentRef.name != self.metadata.name))",optionalOldSelf=true,messageExpression="self.metadata.name.size() > 200 ? 'the name of a Chat may have at most 200 characters, because the names of its messages begin with it' : 'parentRef names the chat itself: name the chat above it, such as triage, or leave parentRef out'"
type Chat struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is the desired state.
	// +kubebuilder:default:={}
	// +optional
	Spec ChatSpec `json:"spec,omitempty,omitzero"`

	// status is the state of the chat; only the operator writes it.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +structType=atomic
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
