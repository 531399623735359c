// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of a ChatModelConfig's conditions.
const (
	// ConditionContextLimitUnknown of a ChatModelConfig is True when it is not known how much the model's context holds,
	// so that it is compacted only once the model refuses it. It is absent otherwise,
	// and keeps nobody from using the configuration.
	ConditionContextLimitUnknown = "ContextLimitUnknown"
	// ReasonUnknownModel surfaces in ContextLimitUnknown (True) when spec.contextLimit is not set and the model is in no
	// table.
	ReasonUnknownModel ConditionReason = "UnknownModel"

	// ReasonDisabled surfaces in Ready (True) when spec.disabled takes the configuration out of use.
	ReasonDisabled ConditionReason = "Disabled"
	// ReasonAccepted surfaces in Ready (True) when the configuration can be used.
	ReasonAccepted ConditionReason = "Accepted"
	// ReasonSeveralDefaults surfaces in Ready (True) when another ChatModelConfig of the namespace says default: true
	// too, and comes first by name.
	ReasonSeveralDefaults ConditionReason = "SeveralDefaults"
	// ReasonReferenceNotFound surfaces in Ready (False) and Stalled (True) when fallbacks, or the modelConfigRef of
	// compaction, titles or turnSummaries, name a ChatModelConfig that does not exist or is disabled.
	// Chats are answered without it.
	ReasonReferenceNotFound ConditionReason = "ReferenceNotFound"
	// ReasonHostNotAllowed surfaces in Ready (False) and Stalled (True) when models may not be called at the host that the
	// configuration leads to: it is not among the manager's --model-hosts, or it is an address of the node.
	ReasonHostNotAllowed ConditionReason = "HostNotAllowed"
)
