// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"time"

	"parley.dev/parley/api/v1alpha1"
)

// ModelConfigFacts is what the conditions of a ChatModelConfig say.
type ModelConfigFacts struct {
	// FirstDefault is the name of the namespace's first ChatModelConfig that says default: true.
	FirstDefault string
	// Missing are the ChatModelConfigs that this one names and that do not exist.
	Missing []string
	// Invalid is why the configuration cannot be used; empty if it can.
	Invalid string
}

// ModelConfig writes the conditions of a ChatModelConfig.
func ModelConfig(config *v1alpha1.ChatModelConfig, f ModelConfigFacts, now time.Time) {
	summary := Done(v1alpha1.ReasonAccepted, "Can be used; the API key is checked by the first call")
	if config.Spec.Default && f.FirstDefault != config.Name {
		summary = Done(v1alpha1.ReasonSeveralDefaults,
			"Can be used by name, but is not the default: ChatModelConfig "+f.FirstDefault+" says default: true too and comes first by name")
	}
	if len(f.Missing) > 0 {
		summary = Failed(v1alpha1.ReasonReferenceNotFound, "Can be used without them, but names ChatModelConfigs that do not exist: "+
			strings.Join(f.Missing, ", ")+". Create them, or take them out of fallbacks and the modelConfigRef of compaction, titles and turnSummaries")
	}
	if f.Invalid != "" {
		summary = Failed(v1alpha1.ReasonInvalidConfiguration, f.Invalid)
	}
	summary.apply(&config.Status.Conditions, config.Generation, now)
	config.Status.ObservedGeneration = config.Generation
}
