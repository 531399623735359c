// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// AnnotationSpawnedBy on a sub-chat that a model has started is the key of the call that did: the UID of the chat that
// called, the version of its history, and the id of the call.
const AnnotationSpawnedBy = "parley.dev/spawned-by"

const (
	// MaxAgentChanges is how many calls of one reply may start sub-chats, or say something to them.
	MaxAgentChanges = 8
	// MaxAgentText is the most characters of what a sub-chat is told. With MaxAgentChanges it keeps a batch of results
	// within what one object holds.
	MaxAgentText = 32768
)

// SubAgentSettings lets the model of a chat start chats of its own below it. It counts for chats without a parent.
type SubAgentSettings struct {
	// enabled offers the model the tools spawn_agent, message_agent, interrupt_agent, list_agents and
	// list_subagent_models. Default: false.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// modelConfigs are the ChatModelConfigs that the model may choose for its sub-chats, in addition to the one that it
	// has itself. Default: none.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	ModelConfigs []ModelConfigReference `json:"modelConfigs,omitempty"`
}

// On reports whether the model may start chats.
func (s *SubAgentSettings) On() bool { return s != nil && s.Enabled != nil && *s.Enabled }

// AgentType is what a sub-chat that a model starts is for.
// +kubebuilder:validation:Enum=general;explore
type AgentType string

const (
	// AgentGeneral has the tools of the chat that started it.
	AgentGeneral AgentType = "general"
	// AgentExplore has those of them that change nothing.
	AgentExplore AgentType = "explore"
)

// AgentChange is what a step decides about the sub-chats of its chat. The operator does it once the step is committed,
// once.
// +kubebuilder:validation:XValidation:rule="[has(self.spawn), has(self.message), has(self.interrupt)].filter(s, s).size() == 1",message="set one of spawn, message and interrupt"
type AgentChange struct {
	// key of the call that decided it.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=256
	// +required
	Key string `json:"key"`

	// chat that is meant.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=200
	// +kubebuilder:validation:Pattern=`^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$`
	// +required
	Chat string `json:"chat"`

	// spawn starts it.
	// +optional
	Spawn *AgentSpawn `json:"spawn,omitempty"`

	// message is said to it.
	// +optional
	Message *AgentMessage `json:"message,omitempty"`

	// interrupt ends its turn.
	// +optional
	Interrupt *AgentInterrupt `json:"interrupt,omitempty"`
}

// AgentSpawn starts a sub-chat.
type AgentSpawn struct {
	// type of the sub-chat.
	// +required
	Type AgentType `json:"type"`

	// prompt is its task.
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Prompt string `json:"prompt,omitempty"`

	// title of the sub-chat.
	// +kubebuilder:validation:MaxLength=80
	// +optional
	Title string `json:"title,omitempty"`

	// modelConfigRef names the ChatModelConfig that answers it. Default: as the chat that starts it says.
	// +optional
	ModelConfigRef *ModelConfigReference `json:"modelConfigRef,omitempty"`

	// reasoningEffort is how much it thinks. Default: as the chat that starts it says.
	// +optional
	ReasoningEffort ReasoningEffort `json:"reasoningEffort,omitempty"`
}

// AgentMessage is said to a sub-chat.
type AgentMessage struct {
	// content is what is said.
	// +kubebuilder:validation:MaxLength=32768
	// +optional
	Content string `json:"content,omitempty"`

	// interrupts is true for a message that ends the turn under way. Default false: it waits for its end.
	// +optional
	Interrupts bool `json:"interrupts,omitempty"`
}

// AgentInterrupt ends the turn of a sub-chat.
type AgentInterrupt struct{}
