// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

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
	// enabled offers the model the tool advisor, with guidance about when to ask. Default: false.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

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

// On reports whether there is an advisor.
func (a *ChatAdvisor) On() bool { return a != nil && a.Enabled != nil && *a.Enabled }

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
