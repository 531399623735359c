// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// DefaultCompactionThresholdPercent is how full the context may get before it is compacted, unless
// compaction.thresholdPercent says otherwise.
const DefaultCompactionThresholdPercent = 70

// MaxContextBoundaries bounds ChatInternalStatus.ContextBoundaries.
const MaxContextBoundaries = 64

// CompactionSource is what asks for a compaction.
// +kubebuilder:validation:Enum=Manual;Threshold;ContextTooLong
type CompactionSource string

const (
	// CompactionManual means that someone asked with the annotation parley.dev/compact.
	CompactionManual CompactionSource = "Manual"
	// CompactionThreshold means that the context was as full as compaction.thresholdPercent allows.
	CompactionThreshold CompactionSource = "Threshold"
	// CompactionContextTooLong means that the model refused the context as too long.
	CompactionContextTooLong CompactionSource = "ContextTooLong"
)

// ContextBoundary is where a context begins.
type ContextBoundary struct {
	// start is the index of the first message that the model sees.
	// +kubebuilder:validation:Minimum=0
	// +required
	Start int64 `json:"start"`

	// length is the number of messages that the history had when the context was begun.
	// It ends with the history before it.
	// +kubebuilder:validation:Minimum=0
	// +required
	Length int64 `json:"length"`
}

// MinContextLimit and MaxContextLimit bound what is taken for the number of tokens that a model's context holds.
const (
	MinContextLimit = 1000
	MaxContextLimit = 100000000
)

// ContextLimitSource is where it is known from how many tokens a model's context holds.
// +kubebuilder:validation:Enum=Configured;Refusal;KnownModel
type ContextLimitSource string

const (
	// ContextLimitConfigured means that ChatModelConfig.spec.contextLimit says it.
	ContextLimitConfigured ContextLimitSource = "Configured"
	// ContextLimitRefusal means that the provider said it when it refused the context as too long.
	ContextLimitRefusal ContextLimitSource = "Refusal"
	// ContextLimitKnownModel means that it is in the table of models that Parley knows.
	ContextLimitKnownModel ContextLimitSource = "KnownModel"
)

// LearnedContextLimit is what a provider said of a model's context when it refused one as too long.
type LearnedContextLimit struct {
	// modelConfig is the name of the ChatModelConfig that was asked.
	// +kubebuilder:validation:MinLength=1
	// +kubebuilder:validation:MaxLength=253
	// +required
	ModelConfig string `json:"modelConfig"`

	// model that it named then. Once it names another one, the limit no longer counts.
	// +kubebuilder:validation:MaxLength=256
	// +optional
	Model string `json:"model,omitempty"`

	// tokens that the context holds.
	// +kubebuilder:validation:Minimum=1000
	// +kubebuilder:validation:Maximum=100000000
	// +required
	Tokens int64 `json:"tokens"`
}

// ContextStatus is how full the model's context was at the newest reply.
type ContextStatus struct {
	// tokens of the prompt of that reply, those from and to the provider's cache included.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Tokens int64 `json:"tokens"`

	// limit of the model in tokens; absent if it is not known.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Limit int64 `json:"limit,omitempty"`

	// limitSource is where the limit is known from.
	// +optional
	LimitSource ContextLimitSource `json:"limitSource,omitempty"`

	// replies is the number of Assistant messages in the context.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Replies int64 `json:"replies"`

	// compacted is true when the context begins with a summary.
	// +optional
	Compacted bool `json:"compacted,omitempty"`
}

// CompactionPolicy says when and by what a context is compacted.
type CompactionPolicy struct {
	// thresholdPercent is how full the context may get before it is replaced by a summary; 100 switches that off. Where it
	// is not known how much the context holds, nothing is compacted unless the model refuses the context as too long, or
	// someone asks. Default 70.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	ThresholdPercent *int32 `json:"thresholdPercent,omitempty"`

	// modelConfigRef names the ChatModelConfig that writes the summary. Its contextLimit counts then
	// if it is smaller than that of the one which answers. If it cannot, the one which answers is asked, and then its
	// fallbacks. Default: the one which answers.
	// +optional
	ModelConfigRef *ModelConfigReference `json:"modelConfigRef,omitempty"`
}

// ThresholdPercentOrDefault is thresholdPercent, or DefaultCompactionThresholdPercent.
func (p *CompactionPolicy) ThresholdPercentOrDefault() int32 {
	if p == nil || p.ThresholdPercent == nil {
		return DefaultCompactionThresholdPercent
	}
	return *p.ThresholdPercent
}
