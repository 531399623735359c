// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// DefaultCompactionThresholdPercent is how full the context may get before it is compacted, unless
// compaction.thresholdPercent says otherwise.
const DefaultCompactionThresholdPercent = 70

// MaxContextBoundaries bounds HistoryStatus.ContextBoundaries.
const MaxContextBoundaries = 64

// CompactionSource is what asks for a compaction.
// +kubebuilder:validation:Enum=Manual;Threshold;ContextTooLong
type CompactionSource string

const (
	// CompactionManual means that somebody asked with the annotation parley.dev/compact.
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

	// length is the number of messages that the history had when the context was begun. It ends with the history before it.
	// +kubebuilder:validation:Minimum=0
	// +required
	Length int64 `json:"length"`
}

// ContextStatus is how full the model's context was at the newest reply.
type ContextStatus struct {
	// tokens of the prompt of that reply, those from and to the provider's cache included.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Tokens int64 `json:"tokens"`

	// limit of the model in tokens, as ChatModelConfig.spec.contextLimit says; absent if it says nothing.
	// +kubebuilder:validation:Minimum=0
	// +optional
	Limit int64 `json:"limit,omitempty"`

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
	// thresholdPercent is how full the context, of contextLimit tokens, may get before it is replaced by a summary; 100
	// switches that off. Without contextLimit nothing is compacted unless the model refuses the context as too long, or
	// somebody asks. Default 70.
	// +kubebuilder:validation:Minimum=1
	// +kubebuilder:validation:Maximum=100
	// +optional
	ThresholdPercent *int32 `json:"thresholdPercent,omitempty"`

	// modelConfigRef names the ChatModelConfig that writes the summary. The smaller of the two contextLimits counts then.
	// Default: this one.
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
