// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import (
	"slices"
	"strings"
)

// ReasoningEffort is how much a model thinks before it answers, from None to Max. What a provider makes of it is in the
// documentation of ChatModelConfig.
// +kubebuilder:validation:Enum=None;Minimal;Low;Medium;High;XHigh;Max
// +kubebuilder:validation:MaxLength=7
type ReasoningEffort string

const (
	// EffortNone asks for no thinking at all.
	EffortNone ReasoningEffort = "None"
	// EffortMinimal asks for as little thinking as there is.
	EffortMinimal ReasoningEffort = "Minimal"
	// EffortLow asks for a little thinking.
	EffortLow ReasoningEffort = "Low"
	// EffortMedium asks for what most providers do by themselves.
	EffortMedium ReasoningEffort = "Medium"
	// EffortHigh asks for much thinking.
	EffortHigh ReasoningEffort = "High"
	// EffortXHigh asks for very much thinking.
	EffortXHigh ReasoningEffort = "XHigh"
	// EffortMax asks for all the thinking that there is.
	EffortMax ReasoningEffort = "Max"
)

// efforts in their order.
var efforts = []ReasoningEffort{EffortNone, EffortMinimal, EffortLow, EffortMedium, EffortHigh, EffortXHigh, EffortMax}

// ReasoningEffortOf is the effort that the word means, in capitals or not; empty if it means none.
func ReasoningEffortOf(word string) ReasoningEffort {
	i := slices.IndexFunc(efforts, func(e ReasoningEffort) bool { return strings.EqualFold(string(e), word) })
	if i < 0 {
		return ""
	}
	return efforts[i]
}

// ReasoningEffortSettings says how much the model thinks.
// +kubebuilder:validation:XValidation:rule="!has(self.default) || !has(self.max) || {'None':0,'Minimal':1,'Low':2,'Medium':3,'High':4,'XHigh':5,'Max':6}[self.default] <= {'None':0,'Minimal':1,'Low':2,'Medium':3,'High':4,'XHigh':5,'Max':6}[self.max]",message="default may not be more than max: the order is None, Minimal, Low, Medium, High, XHigh, Max"
type ReasoningEffortSettings struct {
	// default is the effort of turns whose message asks for none. Default: the provider's own.
	// +optional
	Default ReasoningEffort `json:"default,omitempty"`

	// max is the most that a message gets; one that asks for more gets this. Default: Max.
	// +optional
	Max ReasoningEffort `json:"max,omitempty"`
}

// Effort is the effort of a turn whose message asks for the given one: that, or default, but not more than max. It is
// empty if neither says anything; then the provider decides.
func (s *ReasoningEffortSettings) Effort(asked ReasoningEffort) ReasoningEffort {
	if s == nil {
		return asked
	}
	if asked == "" {
		asked = s.Default
	}
	if s.Max != "" && slices.Index(efforts, asked) > slices.Index(efforts, s.Max) {
		return s.Max
	}
	return asked
}
