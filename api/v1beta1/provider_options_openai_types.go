// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "k8s.io/apimachinery/pkg/runtime"

// OpenAIReasoningEffort is an effort in the words of OpenAI's protocols.
// +kubebuilder:validation:Enum=none;minimal;low;medium;high;xhigh;max
type OpenAIReasoningEffort string

// OpenAIOptions are what OpenAI's chat completions know in addition.
type OpenAIOptions struct {
	// logitBias makes tokens more or less likely.
	// +kubebuilder:validation:MaxItems=1024
	// +listType=map
	// +listMapKey=token
	// +optional
	LogitBias []LogitBias `json:"logitBias,omitempty"`

	// logProbs asks for the probabilities of the reply's tokens.
	// +optional
	LogProbs *bool `json:"logProbs,omitempty"`

	// maxCompletionTokens is sent in place of maxOutputTokens.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxCompletionTokens *int64 `json:"maxCompletionTokens,omitempty"`

	// metadata that OpenAI keeps with the reply.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Metadata []MetadataEntry `json:"metadata,omitempty"`

	// parallelToolCalls is whether the model may call several tools in a reply.
	// +optional
	ParallelToolCalls *bool `json:"parallelToolCalls,omitempty"`

	// prediction is what most of the reply will be.
	// +optional
	Prediction *OpenAIPrediction `json:"prediction,omitempty"`

	// promptCacheKey keeps prompts that begin alike together in the cache.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	PromptCacheKey string `json:"promptCacheKey,omitempty"`

	// reasoningEffort is how much the model thinks.
	// +optional
	ReasoningEffort OpenAIReasoningEffort `json:"reasoningEffort,omitempty"`

	// safetyIdentifier is who asks, for the provider's watch on abuse.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	SafetyIdentifier string `json:"safetyIdentifier,omitempty"`

	// serviceTier that the call is made in.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ServiceTier string `json:"serviceTier,omitempty"`

	// store keeps the reply at the provider.
	// +optional
	Store *bool `json:"store,omitempty"`

	// textVerbosity is how much the model says.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	TextVerbosity string `json:"textVerbosity,omitempty"`

	// topLogProbs is for how many likely tokens the probabilities are asked for.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +optional
	TopLogProbs *int64 `json:"topLogProbs,omitempty"`

	// user is who asks.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	User string `json:"user,omitempty"`
}

// LogitBias makes a token more or less likely.
type LogitBias struct {
	// token is its number in the model's vocabulary.
	// +kubebuilder:validation:Minimum=0
	// +required
	Token int64 `json:"token"`

	// bias is from -100, never, to 100, nothing else.
	// +kubebuilder:validation:Minimum=-100
	// +kubebuilder:validation:Maximum=100
	// +required
	Bias int64 `json:"bias"`
}

// MetadataEntry is a name and a value that a provider keeps with a reply.
type MetadataEntry struct {
	// name of the value.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=64
	// +required
	Name string `json:"name"`

	// value that is kept.
	// +kubebuilder:validation:MaxLength=512
	// +required
	Value string `json:"value"`
}

// OpenAIPrediction is what most of a reply will be.
type OpenAIPrediction struct {
	// content is the text.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=131072
	// +required
	Content string `json:"content"`
}

// OpenAIResponsesOptions are what OpenAI's responses API knows in addition. Each call sends the whole conversation, so
// that there is no previous response to name.
type OpenAIResponsesOptions struct {
	// include names what else is to come with the reply, such as reasoning.encrypted_content.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=set
	// +optional
	Include []string `json:"include,omitempty"`

	// instructions stand before the system prompt.
	// +kubebuilder:validation:MaxLength=131072
	// +optional
	Instructions string `json:"instructions,omitempty"`

	// maxToolCalls is how many calls of the provider's own tools a reply may take.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxToolCalls *int64 `json:"maxToolCalls,omitempty"`

	// metadata that OpenAI keeps with the reply.
	// +kubebuilder:validation:MaxItems=16
	// +listType=map
	// +listMapKey=name
	// +optional
	Metadata []MetadataEntry `json:"metadata,omitempty"`

	// parallelToolCalls is whether the model may call several tools in a reply.
	// +optional
	ParallelToolCalls *bool `json:"parallelToolCalls,omitempty"`

	// promptCacheKey keeps prompts that begin alike together in the cache.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	PromptCacheKey string `json:"promptCacheKey,omitempty"`

	// reasoningEffort is how much the model thinks.
	// +optional
	ReasoningEffort OpenAIReasoningEffort `json:"reasoningEffort,omitempty"`

	// reasoningSummary asks for a summary of the thoughts: auto, concise or detailed.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ReasoningSummary string `json:"reasoningSummary,omitempty"`

	// safetyIdentifier is who asks, for the provider's watch on abuse.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	SafetyIdentifier string `json:"safetyIdentifier,omitempty"`

	// serviceTier that the call is made in.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	ServiceTier string `json:"serviceTier,omitempty"`

	// store keeps the reply at the provider. Default false.
	// +optional
	Store *bool `json:"store,omitempty"`

	// strictJSONSchema holds the arguments of tools to their schemas.
	// +optional
	StrictJSONSchema *bool `json:"strictJSONSchema,omitempty"`

	// topLogProbs is for how many likely tokens the probabilities are asked for.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=20
	// +optional
	TopLogProbs *int64 `json:"topLogProbs,omitempty"`

	// user is who asks.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	User string `json:"user,omitempty"`
}

// OpenAICompatibleOptions are what can be told to any server that speaks OpenAI's chat completions.
type OpenAICompatibleOptions struct {
	// reasoningEffort is how much the model thinks.
	// +optional
	ReasoningEffort OpenAIReasoningEffort `json:"reasoningEffort,omitempty"`

	// user is who asks.
	// +kubebuilder:validation:MaxLength=512
	// +optional
	User string `json:"user,omitempty"`

	// extraBody are fields that go into the request as they are.
	// +kubebuilder:pruning:PreserveUnknownFields
	// +kubebuilder:validation:Type=object
	// +kubebuilder:validation:MaxProperties=32
	// +optional
	ExtraBody *runtime.RawExtension `json:"extraBody,omitempty"`
}
