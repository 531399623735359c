// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package status

import (
	"strings"
	"time"

	"parley.dev/parley/api/v1alpha1"
)

// ModelConfig writes the conditions of a ChatModelConfig. firstDefault is the name of the namespace's first
// ChatModelConfig that says default: true; missing are the ChatModelConfigs that this one names and that do not exist.
func ModelConfig(config *v1alpha1.ChatModelConfig, firstDefault string, missing []string, now time.Time) {
	summary := Done(v1alpha1.ReasonAccepted, "Can be used; the API key is checked by the first call")
	if config.Spec.Default && firstDefault != config.Name {
		summary = Done(v1alpha1.ReasonSeveralDefaults,
			"Can be used by name, but is not the default: ChatModelConfig "+firstDefault+" says default: true too and comes first by name")
	}
	if len(missing) > 0 {
		summary = Failed(v1alpha1.ReasonReferenceNotFound, "Can be used without them, but names ChatModelConfigs that do not exist: "+
			strings.Join(missing, ", ")+". Create them, or take them out of fallbacks and compaction.modelConfigRef")
	}
	summary.apply(&config.Status.Conditions, config.Generation, now)
	config.Status.ObservedGeneration = config.Generation
}
