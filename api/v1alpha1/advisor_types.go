// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ToolAdvisor is the name of the tool with which a model asks its advisor. advisor.enabled offers it where tools allows
// it.
const ToolAdvisor = "advisor"

const (
	// DefaultAdvisorUses is how often the advisor may be asked in a turn, unless advisor.maxUses says otherwise.
	DefaultAdvisorUses = 3
	// DefaultAdvisorOutputTokens is the most tokens of an advice, unless advisor.maxOutputTokens says otherwise. Models
	// that reason need some of them for that.
	DefaultAdvisorOutputTokens = 4000
)

// ChatAdvisor lets the model of a chat ask another model, usually a stronger one, for advice. It counts for chats
// without a parent alone: the model of a sub-chat is not offered the advisor.
type ChatAdvisor struct {
	// enabled offers the model the tool advisor, and tells it when to ask. false turns off what the ChatModelConfig offers
	// by default. Default false.
	// +optional
	Enabled bool `json:"enabled,omitempty"`

	// modelConfigRef names the ChatModelConfig that gives advice. Default: the one that answers the chat.
	// +optional
	ModelConfigRef *ModelConfigReference `json:"modelConfigRef,omitempty"`

	// reasoningEffort of its calls; the ChatModelConfig may allow less. Default: that of the ChatModelConfig.
	// +optional
	ReasoningEffort ReasoningEffort `json:"reasoningEffort,omitempty"`

	// maxUses is how many pieces of advice the model may get in one turn.
	// A question that failed does not count. Default 3.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxUses *int32 `json:"maxUses,omitempty"`

	// maxOutputTokens is the most tokens of an advice, reasoning included; maxOutputTokens of the ChatModelConfig counts
	// where it is less. Default 4000.
	// +kubebuilder:validation:Minimum=256
	// +kubebuilder:validation:Maximum=32000
	// +optional
	MaxOutputTokens *int64 `json:"maxOutputTokens,omitempty"`
}

// AdvisorMode says which chats of a ChatModelConfig have an advisor.
// +kubebuilder:validation:Enum=OptIn;OptOut;Forbidden
type AdvisorMode string

const (
	// AdvisorOptIn gives an advisor to the chats that set spec.advisor.enabled.
	AdvisorOptIn AdvisorMode = "OptIn"
	// AdvisorOptOut gives an advisor also to the chats that have no spec.advisor.
	AdvisorOptOut AdvisorMode = "OptOut"
	// AdvisorForbidden gives no chat an advisor.
	AdvisorForbidden AdvisorMode = "Forbidden"
)

// AdvisorPolicy is the default and the ceiling for the advisors of the chats that a ChatModelConfig answers. A
// ChatModelConfig that only a message or a fallback names has no say.
type AdvisorPolicy struct {
	// mode says which chats have an advisor. Default: OptIn.
	// +kubebuilder:default:=OptIn
	// +optional
	Mode AdvisorMode `json:"mode,omitempty"`

	// modelConfigRef names the ChatModelConfig that gives advice to chats that name none. Default: the one that answers.
	// +optional
	ModelConfigRef *ModelConfigReference `json:"modelConfigRef,omitempty"`

	// reasoningEffort of the calls for chats that say none. Default: that of the ChatModelConfig that gives advice.
	// +optional
	ReasoningEffort ReasoningEffort `json:"reasoningEffort,omitempty"`

	// maxUses is the most pieces of advice in one turn, whatever a chat says,
	// and the default. Default 3, without a ceiling.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	MaxUses *int32 `json:"maxUses,omitempty"`

	// maxOutputTokens is the most tokens of an advice, whatever a chat says,
	// and the default. Default 4000, without a ceiling.
	// +kubebuilder:validation:Minimum=256
	// +kubebuilder:validation:Maximum=32000
	// +optional
	MaxOutputTokens *int64 `json:"maxOutputTokens,omitempty"`
}

// MaxUsesOrDefault is maxUses, or DefaultAdvisorUses.
func (a *ChatAdvisor) MaxUsesOrDefault() int32 {
	if a.MaxUses == nil {
		return DefaultAdvisorUses
	}
	return *a.MaxUses
}

// MaxOutputTokensOrDefault is maxOutputTokens, or DefaultAdvisorOutputTokens.
func (a *ChatAdvisor) MaxOutputTokensOrDefault() int64 {
	if a.MaxOutputTokens == nil {
		return DefaultAdvisorOutputTokens
	}
	return *a.MaxOutputTokens
}
