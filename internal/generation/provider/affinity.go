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
