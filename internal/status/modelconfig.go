// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"time"

	"parley.dev/parley/api/v1alpha1"
)

// ModelConfig writes the conditions of a ChatModelConfig. firstDefault is the name of the namespace's first
// ChatModelConfig that says default: true.
func ModelConfig(config *v1alpha1.ChatModelConfig, firstDefault string, now time.Time) {
	summary := Done(v1alpha1.ReasonAccepted, "Can be used; the API key is checked by the first call")
	if config.Spec.Default && firstDefault != config.Name {
		summary = Done(v1alpha1.ReasonSeveralDefaults,
			"Can be used by name, but is not the default: ChatModelConfig "+firstDefault+" says default: true too and comes first by name")
	}
	summary.apply(&config.Status.Conditions, config.Generation, now)
	config.Status.ObservedGeneration = config.Generation
}
