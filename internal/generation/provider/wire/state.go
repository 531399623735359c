// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package wire

import (
	"encoding/json"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/finish"
)

// Key is the key of a State, a CacheMark and Settings among fantasy's options and metadata.
const Key = "parley"

// State is what a provider wants back with a part of a reply, as it was.
type State struct {
	// Protocol is the one that the part came by: to another one, the rest means nothing. Parts sets it.
	Protocol finish.Protocol `json:"protocol,omitempty"`
	// Signature of a reasoning, a text or a call.
	Signature string `json:"signature,omitempty"`
	// Item is JSON in a form of the protocol.
	Item json.RawMessage `json:"item,omitempty"`
}

// stateType is the name of a State in the metadata of a ChatMessage.
const stateType = "parley.state"

func init() {
	fantasy.RegisterProviderType(stateType, func(raw []byte) (fantasy.ProviderOptionsData, error) {
		var s State
		return &s, json.Unmarshal(raw, (*plainState)(&s))
	})
}

type plainState State

// Options implements fantasy.ProviderOptionsData.
func (*State) Options() {}

// MarshalJSON implements fantasy.ProviderOptionsData.
func (s State) MarshalJSON() ([]byte, error) {
	return fantasy.MarshalProviderType(stateType, plainState(s))
}

// UnmarshalJSON implements fantasy.ProviderOptionsData.
func (s *State) UnmarshalJSON(raw []byte) error {
	return fantasy.UnmarshalProviderType(raw, (*plainState)(s))
}

// IsOf reports whether the options of a part of a prompt have a state of that protocol.
func IsOf(options fantasy.ProviderOptions, protocol finish.Protocol) bool {
	s, ok := options[Key].(*State)
	return ok && s.Protocol == protocol
}

func (s *State) metadata() fantasy.ProviderMetadata { return fantasy.ProviderMetadata{Key: s} }

// With are the options of a part of a prompt with that state.
func (s *State) With() fantasy.ProviderOptions { return fantasy.ProviderOptions(s.metadata()) }

// StateOf is what the provider gave with a part of a prompt; the zero State if it gave nothing.
func StateOf(part interface {
	Options() fantasy.ProviderOptions
}) State {
	if s, ok := part.Options()[Key].(*State); ok {
		return *s
	}
	return State{}
}

// cacheMark is set on messages up to which the provider is to cache the prompt.
type cacheMark struct {
	CacheMark bool `json:"cacheMark"`
}

// CacheMark are the options of a message up to which the provider is to cache the prompt.
func CacheMark() fantasy.ProviderOptions {
	return fantasy.ProviderOptions{Key: &finish.Option[cacheMark]{Value: cacheMark{true}}}
}

// IsCacheMarked reports whether a message has a CacheMark.
func IsCacheMarked(message *fantasy.Message) bool {
	_, marked := message.ProviderOptions[Key].(*finish.Option[cacheMark])
	return marked
}

// Settings are what a call asks for that fantasy's Call has no field for.
type Settings struct {
	// Provider are options of the provider; the zero value if there are none.
	Provider v1beta1.ProviderOptions `json:"provider,omitzero"`
	// Effort overrides the options; empty: they apply.
	Effort v1beta1.ReasoningEffort `json:"effort,omitempty"`
	// Output is the form of the reply; nil: it is text.
	Output *Output `json:"output,omitempty"`
	// Stop are texts at which the model is to stop.
	Stop []string `json:"stop,omitempty"`
	// CacheKey brings requests of one chat to one replica of the provider; empty: none.
	CacheKey string `json:"cacheKey,omitempty"`
}

// Output is the form of a reply that is JSON.
type Output struct {
	// Name of the schema, as a provider takes it: letters, digits, "_" and "-".
	Name string `json:"name"`
	// Schema is a JSON Schema of type object.
	Schema map[string]any `json:"schema,omitempty"`
}

// With are the options of a call with the settings.
func (s Settings) With() fantasy.ProviderOptions {
	return fantasy.ProviderOptions{Key: &finish.Option[Settings]{Value: s}}
}

// SettingsOf are the settings of a call. What they point to must not be changed.
func SettingsOf(call *fantasy.Call) Settings {
	if s, ok := call.ProviderOptions[Key].(*finish.Option[Settings]); ok {
		return s.Value
	}
	return Settings{}
}
