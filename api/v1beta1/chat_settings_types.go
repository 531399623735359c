// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ModelConfigUnavailablePolicy says what happens while the ChatModelConfig that is named does not exist or is disabled.
// +kubebuilder:validation:Enum=Fail;UseDefault
type ModelConfigUnavailablePolicy string

const (
	// ModelConfigUnavailableFail means that the chat waits for it.
	ModelConfigUnavailableFail ModelConfigUnavailablePolicy = "Fail"
	// ModelConfigUnavailableUseDefault means that the namespace's default answers instead.
	ModelConfigUnavailableUseDefault ModelConfigUnavailablePolicy = "UseDefault"
)

// ChatSettings is what a chat says itself, or has of its ChatClass.
type ChatSettings struct {
	// systemPrompt is the text before the conversation in every call of the model. A change takes effect with the next
	// step.
	// +kubebuilder:validation:MaxLength=131072
	// +optional
	SystemPrompt string `json:"systemPrompt,omitempty"`

	// instructionsFrom names texts that follow the system prompt in every call of the model, in this order. They are read
	// again at each step.
	// +kubebuilder:validation:MaxItems=16
	// +listType=atomic
	// +optional
	InstructionsFrom []InstructionsSource `json:"instructionsFrom,omitempty"`

	// skillsFrom names ConfigMaps that are skills: instructions and files for tasks of a kind, which the model reads when
	// it has such a task. What they are called and are for stands after the texts of instructionsFrom in every call of the
	// model. They are read again at each step, and each time the model reads one. Those of a sub-chat are its own.
	// +kubebuilder:validation:MaxItems=32
	// +listType=atomic
	// +optional
	SkillsFrom []SkillSource `json:"skillsFrom,omitempty"`

	// modelConfigRef names the ChatModelConfig that answers. Default: the namespace's ChatModelConfig with default: true.
	// +optional
	ModelConfigRef *ModelConfigReference `json:"modelConfigRef,omitempty"`

	// whenModelConfigUnavailable is what happens while the ChatModelConfig that modelConfigRef, or a message, names does
	// not exist or is disabled. Fail: the chat waits for it, and says so. UseDefault: the namespace's default answers, and
	// the condition ModelConfigFallback says so. Default: Fail.
	// +optional
	WhenModelConfigUnavailable ModelConfigUnavailablePolicy `json:"whenModelConfigUnavailable,omitempty"`

	// reasoningEffort is how much the model thinks in turns whose message asks for nothing else, up to reasoningEffort.max
	// of the ChatModelConfig. A change takes effect with the next step. Default: its reasoningEffort.default.
	// +optional
	ReasoningEffort ReasoningEffort `json:"reasoningEffort,omitempty"`

	// tools specifies which tools the model may call.
	// +optional
	Tools *ChatTools `json:"tools,omitempty"`

	// mcpServers lists servers of the Model Context Protocol whose tools the model may call. One that cannot be used stops
	// no turn: the model is asked without its tools, and the condition MCPServersUnavailable says why. A change takes
	// effect with the next step. Those of a sub-chat are its own.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	MCPServers []MCPServer `json:"mcpServers,omitempty"`

	// kubernetes lets the model read objects of the cluster, and change them if that is allowed, as a service account of
	// the namespace. A change takes effect with the next step. Those of a sub-chat are its own.
	// +optional
	Kubernetes *KubernetesAccess `json:"kubernetes,omitempty"`

	// advisor lets the model ask another one for advice.
	// +optional
	Advisor *ChatAdvisor `json:"advisor,omitempty"`

	// workspace is where the model has its files and runs its commands. It is created when the first call needs it, and
	// shared with the sub-chats. A change counts when the workspace starts the next time.
	// +optional
	// +kubebuilder:validation:XValidation:rule="[has(self.podTemplateRef), has(self.podTemplateSelector), has(self.warmPoolRef), has(self.podRef)].filter(s, s).size() <= 1",message="set one of podTemplateRef, podTemplateSelector, warmPoolRef and podRef"
	Workspace *WorkspaceSource `json:"workspace,omitempty"`

	// subAgents lets the model start chats of its own below this one, and talk to them. They have the settings of this
	// chat, except its workspace, which they share, its advisor, its retention and the tools of its client.
	// +optional
	SubAgents *SubAgentSettings `json:"subAgents,omitempty"`

	// compaction specifies when a summary replaces the context, and which ChatModelConfig writes it. Each field replaces
	// that of the ChatModelConfig that answers.
	// +optional
	Compaction *CompactionPolicy `json:"compaction,omitempty"`

	// limits bounds what the chat may do.
	// +optional
	Limits *ChatLimits `json:"limits,omitempty"`

	// retention is how long an idle chat is kept. A sub-chat is deleted with the chat above it.
	// +optional
	Retention *ChatRetention `json:"retention,omitempty"`

	// debug records the chat's model calls in ChatDebugSteps. They are also recorded if debug of the ChatModelConfig is
	// enabled.
	// +optional
	Debug *DebugSettings `json:"debug,omitempty"`
}
