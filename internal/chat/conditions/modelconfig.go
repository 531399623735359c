// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"strings"
	"time"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/modelconfig"
)

// ModelConfigFacts is what the conditions of a ChatModelConfig say.
type ModelConfigFacts struct {
	// FirstDefault is the name of the namespace's first ChatModelConfig that says default: true.
	FirstDefault string
	// Missing are the ChatModelConfigs that this one names and that do not exist or are disabled.
	Missing []string
	// ForbiddenHost is the host that it leads to, if models may not be called there; else it is empty.
	ForbiddenHost string
	// CABundle is what is wrong with the ConfigMap that caBundleFrom names; nil: nothing that is known.
	CABundle *modelconfig.CABundleProblem
}

// ModelConfig writes the conditions of a ChatModelConfig.
func ModelConfig(config *v1beta1.ChatModelConfig, f ModelConfigFacts, now time.Time) {
	summary := Done(v1beta1.ReasonAccepted, "Can be used; Secrets such as the API key are checked by the first call")
	if config.Spec.Default && f.FirstDefault != config.Name {
		summary = Done(v1beta1.ReasonMultipleDefaults,
			"Can be used by name, but is not the default: ChatModelConfig "+f.FirstDefault+
				" says default: true too and comes first by name")
	}
	if f.CABundle != nil {
		summary = caBundleSummary(f.CABundle)
	}
	if f.ForbiddenHost != "" {
		summary = Failed(v1beta1.ReasonHostNotAllowed, "Leads to "+f.ForbiddenHost+
			", where models may not be called: name another baseURL or proxy, or have the operator's administrator change "+
			"--model-hosts or --allow-loopback")
	}
	if config.Spec.Disabled {
		summary = Done(v1beta1.ReasonDisabled,
			"Is out of use, as spec.disabled says: chats that name it are answered by none, or by the default if they allow it")
	}
	summary.apply(&config.Status.Conditions, config.Generation, now)
	markContextLimit(config, now)
	markReferences(config, f.Missing, now)
	config.Status.ObservedGeneration = config.Generation
}

// caBundleSummary waits for a bundle that is missing, since the rest of a manifest may bring it.
func caBundleSummary(p *modelconfig.CABundleProblem) Summary {
	if !p.Found {
		return Working(v1beta1.ReasonCABundleNotFound, "Cannot be used yet: "+p.String()+". Create it")
	}
	return Failed(v1beta1.ReasonCABundleInvalid, "Cannot be used: "+p.String()+
		". Put the certificates of the authority there")
}

// markReferences says which ChatModelConfigs are missing that this one names. It can be used without them, so that a
// deployment which brings it has not failed.
func markReferences(config *v1beta1.ChatModelConfig, missing []string, now time.Time) {
	setOrRemove(&config.Status.Conditions, v1beta1.ConditionReferencesUnresolved,
		len(missing) > 0 && !config.Spec.Disabled, Summary{
			Reason: v1beta1.ReasonReferenceNotFound,
			Message: "Can be used without them, but names ChatModelConfigs that do not exist or are disabled: " +
				strings.Join(missing, ", ") + ". Create or enable them, or take them out of fallbacks and the modelConfigRef " +
				"of compaction, titles and turnSummaries",
		}, config.Generation, now)
}

// markContextLimit says how much the model's context holds, as far as it is known without asking.
func markContextLimit(config *v1beta1.ChatModelConfig, now time.Time) {
	limit := modelconfig.ContextLimit(config, nil)
	config.Status.ContextLimit, config.Status.ContextLimitSource = limit.Tokens, limit.Source
	setOrRemove(&config.Status.Conditions, v1beta1.ConditionContextLimitUnknown, limit.Tokens == 0, Summary{
		Reason: v1beta1.ReasonUnknownModel,
		Message: "How much the context of model " + config.Spec.Model +
			" holds is not known, so that it is compacted only once the model refuses it: " +
			"set spec.contextLimit to compact it before",
	}, config.Generation, now)
}
