// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

const (
	// MaxTitleRunes bounds the title of a chat, in characters.
	MaxTitleRunes = 80
	// MaxTurnSummaryRunes bounds the summary of a turn, in characters: a column of a table.
	MaxTurnSummaryRunes = 60
)

// TitleSource is where a chat's title comes from.
// +kubebuilder:validation:Enum=Spec;Model;FirstWords;Outdated
type TitleSource string

const (
	// TitleFromSpec means that spec.title says it.
	TitleFromSpec TitleSource = "Spec"
	// TitleFromModel means that a model wrote it, see ChatModelConfig.spec.titles.
	TitleFromModel TitleSource = "Model"
	// TitleFromFirstWords means that it is how the first message begins.
	TitleFromFirstWords TitleSource = "FirstWords"
	// TitleOutdated means that a model is to write another one, during the next reply:
	// the annotation parley.dev/title asked for it.
	TitleOutdated TitleSource = "Outdated"
)

// TurnSummarySource is where the summary of a turn comes from.
// +kubebuilder:validation:Enum=Model;State;Unavailable
type TurnSummarySource string

const (
	// TurnSummaryFromModel means that a model wrote it, see ChatModelConfig.spec.turnSummaries.
	TurnSummaryFromModel TurnSummarySource = "Model"
	// TurnSummaryFromState means that it says how the turn stands, in fixed words.
	TurnSummaryFromState TurnSummarySource = "State"
	// TurnSummaryUnavailable means that it says so too, because the model that was asked had no words for it.
	TurnSummaryUnavailable TurnSummarySource = "Unavailable"
)

// CaptionSettings make a model write captions: titles of chats, or summaries of turns.
type CaptionSettings struct {
	// enabled is false where no model is to write them after all. Default true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// modelConfigRef names the ChatModelConfig that writes them: a cheap model will do. Default: this one.
	// +optional
	ModelConfigRef *ModelConfigReference `json:"modelConfigRef,omitempty"`
}

// On reports whether a model writes them.
func (s *CaptionSettings) On() bool { return s != nil && (s.Enabled == nil || *s.Enabled) }

// CallAccount is the account of a call during a reply.
type CallAccount struct {
	// model that was called.
	// +optional
	Model *ModelIdentity `json:"model,omitempty"`

	// usage of the call. Chat.status.usage counts it.
	// +required
	Usage TokenUsage `json:"usage"`

	// cost of the call, rounded up; absent if the ChatModelConfig has no pricing. Chat.status.cost counts it.
	// +optional
	Cost *Cost `json:"cost,omitempty"`
}
