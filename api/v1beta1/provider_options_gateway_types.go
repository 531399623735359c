// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import "k8s.io/apimachinery/pkg/runtime"

// GatewayReasoningEffort is an effort in the words of OpenRouter and Vercel.
// +kubebuilder:validation:Enum=none;minimal;low;medium;high;xhigh
type GatewayReasoningEffort string

// GatewayReasoning is how much a model behind OpenRouter or Vercel thinks.
type GatewayReasoning struct {
	// effort of the model.
	// +optional
	Effort GatewayReasoningEffort `json:"effort,omitempty"`

	// enabled lets it think.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// exclude leaves the thoughts out of the reply.
	// +optional
	Exclude *bool `json:"exclude,omitempty"`

	// maxTokens that it may think.
	// +kubebuilder:validation:Minimum=1
	// +optional
	MaxTokens *int64 `json:"maxTokens,omitempty"`
}

// OpenRouterOptions are what OpenRouter knows in addition.
type OpenRouterOptions struct {
	// includeUsage asks for what the call cost.
	// +optional
	IncludeUsage *bool `json:"includeUsage,omitempty"`

	// logitBias makes tokens more or less likely.
	// +kubebuilder:validation:MaxItems=1024
	// +listType=map
	// +listMapKey=token
	// +optional
	LogitBias []LogitBias `json:"logitBias,omitempty"`

	// logProbs asks for the probabilities of the reply's tokens.
	// +optional
	LogProbs *bool `json:"logProbs,omitempty"`

	// parallelToolCalls is whether the model may call several tools in a reply.
	// +optional
	ParallelToolCalls *bool `json:"parallelToolCalls,omitempty"`

	// provider says who may answer behind OpenRouter.
	// +optional
	Provider *OpenRouterProvider `json:"provider,omitempty"`

	// reasoning is how much the model thinks.
	// +optional
	Reasoning *GatewayReasoning `json:"reasoning,omitempty"`

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

// OpenRouterProvider says who may answer behind OpenRouter.
type OpenRouterProvider struct {
	// allowFallbacks is whether others may answer where those in order cannot.
	// +optional
	AllowFallbacks *bool `json:"allowFallbacks,omitempty"`

	// dataCollection is whether providers may that keep what they are told: allow or deny.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	DataCollection string `json:"dataCollection,omitempty"`

	// ignore names providers that may not.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	// +optional
	Ignore []string `json:"ignore,omitempty"`

	// only names those that may.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	// +optional
	Only []string `json:"only,omitempty"`

	// order names those that are asked first, in this order.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	// +optional
	Order []string `json:"order,omitempty"`

	// quantizations of the model that will do, such as fp8.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=64
	// +listType=atomic
	// +optional
	Quantizations []string `json:"quantizations,omitempty"`

	// requireParameters leaves out those that do not take every setting of the call.
	// +optional
	RequireParameters *bool `json:"requireParameters,omitempty"`

	// sort is by what they are preferred: price, throughput or latency.
	// +kubebuilder:validation:MaxLength=64
	// +optional
	Sort string `json:"sort,omitempty"`
}

// VercelOptions are what Vercel's AI gateway knows in addition. Keys of providers behind it are no part of them: who
// may read the ChatModelConfig would read them.
type VercelOptions struct {
	// gateway says who may answer behind it.
	// +optional
	Gateway *VercelGateway `json:"gateway,omitempty"`

	// logitBias makes tokens more or less likely.
	// +kubebuilder:validation:MaxItems=1024
	// +listType=map
	// +listMapKey=token
	// +optional
	LogitBias []LogitBias `json:"logitBias,omitempty"`

	// logProbs asks for the probabilities of the reply's tokens.
	// +optional
	LogProbs *bool `json:"logProbs,omitempty"`

	// parallelToolCalls is whether the model may call several tools in a reply.
	// +optional
	ParallelToolCalls *bool `json:"parallelToolCalls,omitempty"`

	// reasoning is how much the model thinks.
	// +optional
	Reasoning *GatewayReasoning `json:"reasoning,omitempty"`

	// topLogProbs is for how many likely tokens the probabilities are asked for.
	// +kubebuilder:validation:Minimum=0
	// +kubebuilder:validation:Maximum=20
	// +optional
	TopLogProbs *int64 `json:"topLogProbs,omitempty"`

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

// VercelGateway says who may answer behind Vercel's gateway.
type VercelGateway struct {
	// models are those to ask when this one cannot answer, in order.
	// +kubebuilder:validation:MaxItems=16
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=256
	// +listType=atomic
	// +optional
	Models []string `json:"models,omitempty"`

	// order names the providers that are asked first, in this order.
	// +kubebuilder:validation:MaxItems=64
	// +kubebuilder:validation:items:MinLength=1
	// +kubebuilder:validation:items:MaxLength=128
	// +listType=atomic
	// +optional
	Order []string `json:"order,omitempty"`

	// zeroDataRetention asks only providers that keep nothing.
	// +optional
	ZeroDataRetention *bool `json:"zeroDataRetention,omitempty"`
}
