// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// TokenUsage counts tokens in one meaning for every provider: inputTokens are those that the provider read fresh,
// cache reads and writes are counted apart, and reasoning is part of outputTokens.
type TokenUsage struct {
	// inputTokens that were read and neither came from nor went into the provider's prompt cache.
	// +kubebuilder:validation:Minimum=0
	// +optional
	InputTokens int64 `json:"inputTokens,omitempty"`

	// outputTokens that the model produced, reasoning included.
	// +kubebuilder:validation:Minimum=0
	// +optional
	OutputTokens int64 `json:"outputTokens,omitempty"`

	// reasoningTokens within outputTokens, where the provider tells.
	// +kubebuilder:validation:Minimum=0
	// +optional
	ReasoningTokens int64 `json:"reasoningTokens,omitempty"`

	// cacheReadTokens that came from the provider's prompt cache.
	// +kubebuilder:validation:Minimum=0
	// +optional
	CacheReadTokens int64 `json:"cacheReadTokens,omitempty"`

	// cacheWriteTokens that went into the provider's prompt cache.
	// +kubebuilder:validation:Minimum=0
	// +optional
	CacheWriteTokens int64 `json:"cacheWriteTokens,omitempty"`

	// totalTokens is the sum of input, cache and output tokens.
	// +kubebuilder:validation:Minimum=0
	// +optional
	TotalTokens int64 `json:"totalTokens,omitempty"`
}

// Add returns the sum of two usages.
func (u TokenUsage) Add(o TokenUsage) TokenUsage {
	return TokenUsage{
		InputTokens:      u.InputTokens + o.InputTokens,
		OutputTokens:     u.OutputTokens + o.OutputTokens,
		ReasoningTokens:  u.ReasoningTokens + o.ReasoningTokens,
		CacheReadTokens:  u.CacheReadTokens + o.CacheReadTokens,
		CacheWriteTokens: u.CacheWriteTokens + o.CacheWriteTokens,
		TotalTokens:      u.TotalTokens + o.TotalTokens,
	}
}
