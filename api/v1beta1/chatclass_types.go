// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ChatClassSpec is what many chats share, and what they may not choose.
// +kubebuilder:validation:XValidation:rule="!has(self.defaults) || !has(oldSelf.defaults) || !has(self.defaults.workspace) || !has(oldSelf.defaults.workspace) || (has(self.defaults.workspace.warmPoolRef) == has(oldSelf.defaults.workspace.warmPoolRef) && (!has(self.defaults.workspace.warmPoolRef) || self.defaults.workspace.warmPoolRef == oldSelf.defaults.workspace.warmPoolRef))",message="workspaces cannot move between a template and a pool, nor to another pool: the files of chats would stay behind. Create another class"
// +kubebuilder:validation:XValidation:rule="!has(self.defaults) || !has(self.defaults.workspace) || !has(self.defaults.workspace.podRef)",message="a pod has the workspace of one chat: leave podRef to the chats"
// +kubebuilder:validation:XValidation:rule="!has(self.namespacePreamble) || (has(self.default) && self.default)",message="namespacePreamble counts in the default class of the namespace alone: say default true, or use preamble"
// +kubebuilder:validation:XValidation:rule="!has(self.spareGenerationPods) || self.spareGenerationPods == 0 || (has(self.default) && self.default)",message="spareGenerationPods counts in the default class of the namespace alone: say default true"
type ChatClassSpec struct {
	// default makes this the ChatClass of every chat in the namespace that names none. If several are default, the first
	// by name counts. Default false.
	// +optional
	Default bool `json:"default,omitempty"`

	// description says what its chats are for, to people who choose one.
	// +kubebuilder:validation:MaxLength=1024
	// +optional
	Description string `json:"description,omitempty"`

	// firstPrompts are first messages that clients offer to people who create a chat. Default: none.
	// +kubebuilder:validation:MaxItems=8
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=1024
	// +kubebuilder:validation:XValidation:rule="self.all(p, p.matches(r'\\S'))",message="a first prompt is blank: say something, or leave it out"
	// +listType=set
	// +optional
	FirstPrompts []string `json:"firstPrompts,omitempty"`

	// preamble stands before the system prompt in every call of the model, whatever the chat says.
	// +kubebuilder:validation:MaxLength=131072
	// +optional
	Preamble string `json:"preamble,omitempty"`

	// namespacePreamble stands before all else in every call of a model for every chat of the namespace, also for chats
	// that name another class, and for titles and summaries of turns. It is that of the default class: of several, that of
	// the first by name. A change counts from the next step on.
	// +kubebuilder:validation:MaxLength=131072
	// +optional
	NamespacePreamble string `json:"namespacePreamble,omitempty"`

	// spareGenerationPods is how many generation pods with room for another chat the namespace keeps, whether or not there
	// is work: no chat waits for one of them to start. It is that of the default class: of several, that of the first by
	// name. Default 0: a pod is created when a chat needs one, and removed when none has needed it for a while.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=10
	// +optional
	SpareGenerationPods int32 `json:"spareGenerationPods,omitempty"`

	// keep is how many of its chats are kept at rest, whatever their retention says. Default: all.
	// +optional
	Keep *ChatKeep `json:"keep,omitempty"`

	// defaults is what its chats have where they say nothing themselves. Of tools, advisor, subAgents, compaction
	// and limits each field counts for itself; any other field of a chat takes the place of this one as a whole.
	// +optional
	Defaults ChatSettings `json:"defaults,omitempty,omitzero"`

	// restrictions is what its chats may not choose. It holds for defaults, too.
	// +optional
	Restrictions *ChatRestrictions `json:"restrictions,omitempty"`
}

// ChatField is a field of Chat.spec that a ChatClass may keep to itself.
// +kubebuilder:validation:Enum=systemPrompt;instructionsFrom;skillsFrom;modelConfigRef;whenModelConfigUnavailable;reasoningEffort;tools;mcpServers;kubernetes;advisor;workspace;subAgents;compaction;limits;retention;debug
type ChatField string

// The fields that a ChatClass may keep to itself.
const (
	FieldSystemPrompt               ChatField = "systemPrompt"
	FieldInstructionsFrom           ChatField = "instructionsFrom"
	FieldSkillsFrom                 ChatField = "skillsFrom"
	FieldModelConfigRef             ChatField = "modelConfigRef"
	FieldWhenModelConfigUnavailable ChatField = "whenModelConfigUnavailable"
	FieldReasoningEffort            ChatField = "reasoningEffort"
	FieldTools                      ChatField = "tools"
	FieldMCPServers                 ChatField = "mcpServers"
	FieldKubernetes                 ChatField = "kubernetes"
	FieldAdvisor                    ChatField = "advisor"
	FieldWorkspace                  ChatField = "workspace"
	FieldSubAgents                  ChatField = "subAgents"
	FieldCompaction                 ChatField = "compaction"
	FieldLimits                     ChatField = "limits"
	FieldRetention                  ChatField = "retention"
	FieldDebug                      ChatField = "debug"
)

// ChatRestrictions is what the chats of a ChatClass may not choose.
type ChatRestrictions struct {
	// fields of Chat.spec that chats may not set. modelConfigRef may not be set in messages either. What is set
	// nonetheless does not count, and the chat says so in its condition SettingsIgnored. Default: none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	Fields []ChatField `json:"fields,omitempty"`

	// modelConfigs are the only ChatModelConfigs that may answer the chats, and that chats may name for advice and for
	// summaries. What these name in turn does not matter, nor who advises and summarises by defaults. Default: all of the
	// namespace.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +listType=map
	// +listMapKey=name
	// +optional
	ModelConfigs []ModelConfigReference `json:"modelConfigs,omitempty"`

	// tools is the policy within which the chats' own one stays: a tool may be called if both allow it, and its calls need
	// approval if one of them says so. Default: no bounds.
	// +optional
	Tools *ToolPolicy `json:"tools,omitempty"`

	// limits are the greatest that chats may have, and count where neither a chat nor defaults says less. A budget in
	// another currency does not count. Default: no bounds.
	// +optional
	Limits *ChatLimits `json:"limits,omitempty"`

	// retention is the longest that chats may be kept at rest, and counts where neither a chat nor defaults says less.
	// With archive: true all are archived. Default: no bounds.
	// +optional
	Retention *ChatRetention `json:"retention,omitempty"`

	// advisor bounds how much chats may ask for advice. tools.deny: [advisor] leaves them without. Default: no bounds.
	// +optional
	Advisor *AdvisorBounds `json:"advisor,omitempty"`
}

// AdvisorBounds bounds how much chats may ask for advice.
type AdvisorBounds struct {
	// maxUses is the most pieces of advice in one turn.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxUses *int32 `json:"maxUses,omitempty"`

	// maxOutputTokens is the most tokens of an advice, reasoning included.
	// +kubebuilder:validation:Minimum=256
	// +kubebuilder:validation:Maximum=32000
	// +optional
	MaxOutputTokens *int64 `json:"maxOutputTokens,omitempty"`
}

// ChatClassStatus says whether the class is in force.
type ChatClassStatus struct {
	// observedGeneration is the generation of the spec that is in force; -1 until one is.
	// +optional
	ObservedGeneration int64 `json:"observedGeneration,omitempty"`

	// conditions of the class: Ready, ReferencesUnresolved.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=type
	// +optional
	Conditions []metav1.Condition `json:"conditions,omitempty"`
}

// ChatClass is what many chats share, and what they may not choose. A chat names one, or has the namespace's default.
//
// +kubebuilder:object:root=true
// +kubebuilder:subresource:status
// +kubebuilder:resource:categories=llm
// +kubebuilder:printcolumn:name="Ready",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].status`
// +kubebuilder:printcolumn:name="Reason",type=string,JSONPath=`.status.conditions[?(@.type=="Ready")].reason`
// +kubebuilder:printcolumn:name="Default",type=boolean,JSONPath=`.spec.default`
// +kubebuilder:printcolumn:name="Model",type=string,JSONPath=`.spec.defaults.modelConfigRef.name`
// +kubebuilder:printcolumn:name="Description",type=string,JSONPath=`.spec.description`,priority=1
// +kubebuilder:printcolumn:name="Age",type=date,JSONPath=`.metadata.creationTimestamp`
type ChatClass struct {
	metav1.TypeMeta `json:",inline"`
	// +optional
	metav1.ObjectMeta `json:"metadata,omitempty,omitzero"`

	// spec is what its chats share, and what they may not choose.
	// +kubebuilder:default:={}
	// +optional
	Spec ChatClassSpec `json:"spec,omitempty,omitzero"`

	// status says whether the class is in force; only the operator writes it.
	// +kubebuilder:default:={"observedGeneration":-1}
	// +structType=atomic
	// +optional
	Status ChatClassStatus `json:"status,omitempty,omitzero"`
}

// ChatClassList is a list of ChatClasses.
// +kubebuilder:object:root=true
type ChatClassList struct {
	metav1.TypeMeta `json:",inline"`
	metav1.ListMeta `json:"metadata"`
	Items           []ChatClass `json:"items"`
}

// AppliedChatClass is the ChatClass that a chat has.
type AppliedChatClass struct {
	// name of the ChatClass.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	Name string `json:"name"`

	// uid of the ChatClass. Another one of the same name starts its generations at 1 again.
	// +kubebuilder:validation:MaxLength=36
	// +required
	UID string `json:"uid"`

	// generation of the ChatClass that the last decision about the chat rests on. A step that began before finishes with
	// what counted then.
	// +kubebuilder:validation:Minimum=0
	// +required
	Generation int64 `json:"generation"`
}

// EffectiveSettings says in short what a ChatClass makes of the settings of a chat.
type EffectiveSettings struct {
	// fromClass are the fields of spec of which something else is in force than the chat says itself: a default of the
	// class, its preamble, or a restriction.
	// +kubebuilder:validation:MaxItems=16
	// +listType=set
	// +optional
	FromClass []ChatField `json:"fromClass,omitempty"`

	// limits in force, defaults included. maxSubChats and maxDepth count where the chat has no parent;
	// actionDeadlineSeconds is absent where no one says it, as its default depends on the calls that wait.
	// +optional
	Limits ChatLimits `json:"limits,omitempty,omitzero"`
}
