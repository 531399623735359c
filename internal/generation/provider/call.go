// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package provider

import (
	"crypto/sha256"
	"encoding/hex"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/provider/wire"
)

// Call is a call with everything that the configuration says, and the effort that the turn's message asks for, if any.
// Prompt and tools have yet to be added.
func Call(spec *v1alpha1.ChatModelConfigSpec, asked v1alpha1.ReasoningEffort) fantasy.Call {
	settings := wire.Settings{Effort: spec.ReasoningEffort.Effort(asked)}
	if spec.ProviderOptions != nil {
		settings.Provider = *spec.ProviderOptions
	}
	return fantasy.Call{
		MaxOutputTokens: new(spec.MaxOutputTokensOrDefault()), Temperature: spec.Temperature, TopP: spec.TopP,
		TopK: spec.TopK, PresencePenalty: spec.PresencePenalty, FrequencyPenalty: spec.FrequencyPenalty,
		ProviderOptions: settings.With(),
	}
}

// ThinksOnlyIfTold reports whether the provider's models think only where they are told to, so that all of them can be
// told not to: Claude. It refuses a call that leaves no room for the thoughts that it is told to have.
func ThinksOnlyIfTold(p v1alpha1.ModelProvider) bool {
	return p == v1alpha1.ProviderAnthropic || p == v1alpha1.ProviderBedrock
}

// Pin makes a call one of the chat with that UID, for providers that keep the requests of one chat together.
func Pin(call *fantasy.Call, spec *v1alpha1.ChatModelConfigSpec, chatUID string) {
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
