// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// ProviderTool is a tool that providers of models run themselves.
// +kubebuilder:validation:Enum=WebSearch;CodeExecution
type ProviderTool string

// The providers anthropic and google have both tools, and so have openai and azure with the transport Responses.
const (
	// ProviderWebSearch searches the web.
	ProviderWebSearch ProviderTool = "WebSearch"
	// ProviderCodeExecution runs code that the model writes, in a sandbox of the provider.
	ProviderCodeExecution ProviderTool = "CodeExecution"
)

// WebSearchSettings bound the searches of a provider. What a provider does not support is left out, and the message
// warns of it.
// +kubebuilder:validation:XValidation:rule="!has(self.allowedDomains) || !has(self.blockedDomains)",message="set allowedDomains or blockedDomains, not both: providers take one of them"
type WebSearchSettings struct {
	// allowedDomains are the only ones that are searched, such as example.com; their subdomains are included.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	AllowedDomains []string `json:"allowedDomains,omitempty"`

	// blockedDomains are not searched.
	// +kubebuilder:validation:MinItems=1
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=253
	// +listType=set
	// +optional
	BlockedDomains []string `json:"blockedDomains,omitempty"`

	// location that results are for. Default: the provider's.
	// +optional
	Location *SearchLocation `json:"location,omitempty"`
}

// SearchLocation is the approximate place of who searches.
// +kubebuilder:validation:MinProperties=1
type SearchLocation struct {
	// city, such as Vienna.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	City string `json:"city,omitempty"`

	// region, such as Lower Austria.
	// +kubebuilder:validation:MaxLength=128
	// +optional
	Region string `json:"region,omitempty"`

	// country is its code of two letters (ISO 3166-1), such as AT.
	// +kubebuilder:validation:MaxLength=2
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Z]{2}$')",message="country is its code of two capital letters, such as AT"
	// +optional
	Country string `json:"country,omitempty"`

	// timezone is its name in the IANA database, such as Europe/Vienna.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Timezone string `json:"timezone,omitempty"`
}

// ProviderToolReason is why a tool of tools.provider was not offered to a model.
// +kubebuilder:validation:Enum=ToolNotSupported;ToolNotAllowed;ToolNeedsApproval
type ProviderToolReason string

const (
	// ProviderToolNotSupported means that the provider which answers has no such tool, or Parley does not know it there.
	ProviderToolNotSupported ProviderToolReason = "ToolNotSupported"
	// ProviderToolNotAllowed means that the policy of the chat, or that of its ChatClass, does not let it be called.
	ProviderToolNotAllowed ProviderToolReason = "ToolNotAllowed"
	// ProviderToolNeedsApproval means that the policy has its calls approved, and a provider waits for no one.
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
