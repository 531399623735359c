// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "k8s.io/apimachinery/pkg/runtime"

// ProviderOptions are settings that one provider alone knows, in the member of that provider; a rule of
// ChatModelConfigSpec says which that is. Their values are the provider's own words. The effort of a turn goes before
// what they say about the same.
type ProviderOptions struct {
	// openai are those of the provider openai.
	// +optional
	OpenAI *OpenAIOptions `json:"openai,omitempty"`

	// openaiResponses are those of the provider openai with transport Responses.
	// +optional
	OpenAIResponses *OpenAIResponsesOptions `json:"openaiResponses,omitempty"`

	// azure are those of the provider azure.
	// +optional
	Azure *OpenAIOptions `json:"azure,omitempty"`

	// azureResponses are those of the provider azure with transport Responses.
	// +optional
	AzureResponses *OpenAIResponsesOptions `json:"azureResponses,omitempty"`

	// anthropic are those of the provider anthropic.
	// +optional
	Anthropic *AnthropicOptions `json:"anthropic,omitempty"`

	// bedrock are those of the provider bedrock.
	// +optional
	Bedrock *AnthropicOptions `json:"bedrock,omitempty"`

	// google are those of the provider google.
	// +optional
	Google *GoogleOptions `json:"google,omitempty"`

	// openaiCompatible are those of the provider openai-compatible.
	// +optional
	OpenAICompatible *OpenAICompatibleOptions `json:"openaiCompatible,omitempty"`

	// openrouter are those of the provider openrouter.
	// +optional
	OpenRouter *OpenRouterOptions `json:"openrouter,omitempty"`

	// vercel are those of the provider vercel.
	// +optional
	Vercel *VercelOptions `json:"vercel,omitempty"`
}

// AnthropicOptions are what Anthropic's messages API knows in addition.
type AnthropicOptions struct {
	// disableParallelToolUse makes the model call at most one tool in a reply.
	// +optional
	DisableParallelToolUse *bool `json:"disableParallelToolUse,omitempty"`

	// effort of a model that decides itself how much it thinks.
	// +optional
	Effort AnthropicEffort `json:"effort,omitempty"`

	// sendReasoning is false where the model is not to be told what it thought in earlier steps. Default true.
	// +optional
	SendReasoning *bool `json:"sendReasoning,omitempty"`

	// thinking makes a model think that has a budget of tokens for that.
	// +optional
	Thinking *AnthropicThinking `json:"thinking,omitempty"`

	// thinkingDisplay is whether a summary of what the model thought comes with the reply.
	// +optional
	ThinkingDisplay AnthropicThinkingDisplay `json:"thinkingDisplay,omitempty"`

	// extraBody are fields that go into the request as they are.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	ExtraBody *runtime.RawExtension `json:"extraBody,omitempty"`
}

// AnthropicEffort is an effort in Anthropic's words.
// +kubebuilder:validation:Enum=low;medium;high;xhigh;max
type AnthropicEffort string

// AnthropicThinking is how much a model may think.
type AnthropicThinking struct {
	// budgetTokens that it may think. They are part of maxOutputTokens.
	// +kubebuilder:validation:Minimum=1
	// +required
	BudgetTokens int64 `json:"budgetTokens"`
}

// AnthropicThinkingDisplay is whether thoughts are shown.
// +kubebuilder:validation:Enum=summarized;omitted
type AnthropicThinkingDisplay string

// GoogleOptions are what the Gemini API knows in addition.
type GoogleOptions struct {
	// cachedContent is the name of what Google keeps as the beginning of the prompt: cachedContents/ID.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	CachedContent string `json:"cachedContent,omitempty"`

	// safetySettings say what is kept out of replies.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=category
	// +optional
	SafetySettings []GoogleSafetySetting `json:"safetySettings,omitempty"`

	// thinkingConfig is how much the model thinks.
	// +optional
	ThinkingConfig *GoogleThinkingConfig `json:"thinkingConfig,omitempty"`
}

// GoogleSafetySetting is what is kept out of replies of one category.
type GoogleSafetySetting struct {
	// category of content, such as HARM_CATEGORY_HARASSMENT.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Category string `json:"category"`

	// threshold from which on it is kept out, such as BLOCK_ONLY_HIGH.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Threshold string `json:"threshold"`
}

// GoogleThinkingConfig is how much a model thinks: up to Gemini 2.5 a budget, after it a level.
// +kubebuilder:validation:XValidation:rule="!has(self.thinkingBudget) || !has(self.thinkingLevel)",message="thinkingConfig may have thinkingBudget or thinkingLevel, not both"
type GoogleThinkingConfig struct {
	// includeThoughts asks for a summary of the thoughts.
	// +optional
	IncludeThoughts *bool `json:"includeThoughts,omitempty"`

	// thinkingBudget is the number of tokens to think; -1: the model decides.
	// +kubebuilder:validation:Minimum=-1
	// +optional
	ThinkingBudget *int64 `json:"thinkingBudget,omitempty"`

	// thinkingLevel is MINIMAL, LOW, MEDIUM or HIGH.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ThinkingLevel string `json:"thinkingLevel,omitempty"`
}
