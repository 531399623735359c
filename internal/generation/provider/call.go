// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/sha256"
	"encoding/hex"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/provider/messages"
	"parley.dev/parley/internal/generation/provider/wire"
)

// Call is a call with all settings of the configuration, and with the effort of the turn's message, if any. It has
// neither prompt nor tools yet.
func Call(spec *v1beta1.ChatModelConfigSpec, effort v1beta1.ReasoningEffort) fantasy.Call {
	settings := wire.Settings{Effort: spec.ReasoningEffort.Effort(effort)}
	if spec.ProviderOptions != nil {
		settings.Provider = *spec.ProviderOptions
	}
	return fantasy.Call{
		MaxOutputTokens: new(spec.MaxOutputTokensOrDefault()), Temperature: spec.Temperature, TopP: spec.TopP,
		TopK: spec.TopK, PresencePenalty: spec.PresencePenalty, FrequencyPenalty: spec.FrequencyPenalty,
		ProviderOptions: settings.With(),
	}
}

// IsClaude reports whether the provider's models are called as Claude is, for which no effort is safe: a call that has
// it think and leaves no room for thoughts is refused.
func IsClaude(p v1beta1.ModelProvider) bool {
	return p == v1beta1.ProviderAnthropic || p == v1beta1.ProviderBedrock
}

// AlwaysThinks reports whether the model of a configuration thinks whatever a call says.
func AlwaysThinks(spec *v1beta1.ChatModelConfigSpec) bool {
	return IsClaude(spec.Provider) && messages.ClaudeOf(spec.Model).AlwaysThinks()
}

// Pin makes a call one of the chat with that UID, for providers that keep the requests of one chat together.
func Pin(call *fantasy.Call, spec *v1beta1.ChatModelConfigSpec, chatUID string) {
	sum := sha256.Sum256([]byte("parley chat " + chatUID))
	value := hex.EncodeToString(sum[:16])
	if spec.SendsPromptCacheKey() {
		settings := wire.SettingsOf(call)
		settings.CacheKey = value
		call.ProviderOptions = settings.With()
	}
	if spec.Affinity != nil && spec.Affinity.Header != "" {
		call.Headers = map[string]string{spec.Affinity.Header: value}
	}
}
