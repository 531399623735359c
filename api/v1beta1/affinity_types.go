// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// RequestAffinity brings the requests of one chat to the same replica of a provider. The value that it sends is the
// same for all requests of a chat, and says nothing about it.
type RequestAffinity struct {
	// promptCacheKey sends the value as prompt_cache_key in OpenAI's protocols. Default: true for openai and azure, else
	// false. A promptCacheKey of providerOptions goes before it.
	// +optional
	PromptCacheKey *bool `json:"promptCacheKey,omitempty"`

	// header is the name of a header that has the value, such as X-Session-Id, for gateways that route by it. Default:
	// none.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=63
	// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9-]+$')",message="the name of a header has letters, digits and - only, such as X-Session-Id"
	// +kubebuilder:validation:XValidation:rule="!(self.lowerAscii() in ['authorization', 'x-api-key', 'api-key', 'x-goog-api-key', 'host', 'content-type', 'content-length', 'user-agent'])",message="this header has another meaning: choose another one, such as X-Session-Id"
	// +optional
	Header string `json:"header,omitempty"`
}

// SendsPromptCacheKey reports whether requests have a prompt_cache_key.
func (s *ChatModelConfigSpec) SendsPromptCacheKey() bool {
	if s.Affinity != nil && s.Affinity.PromptCacheKey != nil {
		return *s.Affinity.PromptCacheKey
	}
	return s.Provider == ProviderOpenAI || s.Provider == ProviderAzure
}
