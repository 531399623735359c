// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// ProviderTool is a tool that providers of models run themselves.
// +kubebuilder:validation:Enum=WebSearch
type ProviderTool string

// ProviderWebSearch searches the web. The providers anthropic and google have it, and so have openai and azure with the
// transport Responses.
const ProviderWebSearch ProviderTool = "WebSearch"

// ProviderToolReason is why a tool of tools.provider was not offered to a model.
// +kubebuilder:validation:Enum=ToolNotSupported;ToolNotAllowed;ToolNeedsApproval
type ProviderToolReason string

const (
	// ProviderToolNotSupported means that the provider which answers has no such tool, or Parley does not know it there.
	ProviderToolNotSupported ProviderToolReason = "ToolNotSupported"
	// ProviderToolNotAllowed means that the policy of the chat, or that of its ChatClass, does not let it be called.
	ProviderToolNotAllowed ProviderToolReason = "ToolNotAllowed"
	// ProviderToolNeedsApproval means that the policy has its calls approved, and a provider waits for nobody.
	ProviderToolNeedsApproval ProviderToolReason = "ToolNeedsApproval"
)

// ProviderToolUnavailable is a tool of tools.provider that was not offered to a model, and why.
type ProviderToolUnavailable struct {
	// tool that tools.provider names.
	// +required
	Tool ProviderTool `json:"tool"`

	// reason why it was not offered.
	// +required
	Reason ProviderToolReason `json:"reason"`
}
