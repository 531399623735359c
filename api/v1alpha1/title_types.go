// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// MaxTitleRunes bounds the title of a chat.
const MaxTitleRunes = 80

// TitleSource is where a chat's title comes from.
// +kubebuilder:validation:Enum=Spec;Model;FirstWords
type TitleSource string

const (
	// TitleFromSpec means that spec.title says it.
	TitleFromSpec TitleSource = "Spec"
	// TitleFromModel means that a model wrote it, see ChatModelConfig.spec.titles.
	TitleFromModel TitleSource = "Model"
	// TitleFromFirstWords means that it is how the first message begins.
	TitleFromFirstWords TitleSource = "FirstWords"
)

// TitleSettings make a model write the titles of chats.
type TitleSettings struct {
	// enabled is false where titles are to stay the first words of the first message after all. Default true.
	// +optional
	Enabled *bool `json:"enabled,omitempty"`

	// modelConfigRef names the ChatModelConfig that writes the titles: a cheap model will do. Default: this one.
	// +optional
	ModelConfigRef *ModelConfigReference `json:"modelConfigRef,omitempty"`
}

// On tells whether a model writes titles.
func (s *TitleSettings) On() bool { return s != nil && (s.Enabled == nil || *s.Enabled) }

// TitleCall is the account of a call for a title.
type TitleCall struct {
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
