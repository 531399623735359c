// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Conditions of a ChatModelConfig, next to those of every kind, and reasons of all.
const (
	// ConditionContextLimitUnknown of a ChatModelConfig is True when it is not known how much the model's context holds,
	// so that it is compacted only once the model refuses it. It is absent otherwise,
	// and keeps no one from using the configuration.
	ConditionContextLimitUnknown = "ContextLimitUnknown"
	// ConditionReferencesUnresolved of a ChatModelConfig is True when its fallbacks, or the modelConfigRef of compaction,
	// titles, turnSummaries or advisor, name a ChatModelConfig that does not exist or is disabled. It is absent otherwise,
	// and keeps no one from using the configuration: chats are answered without what is missing.
	ConditionReferencesUnresolved = "ReferencesUnresolved"
	// ReasonUnknownModel surfaces in ContextLimitUnknown (True) when spec.contextLimit is not set and the model is in no
	// table.
	ReasonUnknownModel ConditionReason = "UnknownModel"

	// ReasonDisabled surfaces in Ready (True) when spec.disabled takes the configuration out of use.
	ReasonDisabled ConditionReason = "Disabled"
	// ReasonAccepted surfaces in Ready (True) when the configuration can be used.
	ReasonAccepted ConditionReason = "Accepted"
	// ReasonMultipleDefaults surfaces in Ready (True) when another ChatModelConfig of the namespace says default: true
	// too, and comes first by name.
	ReasonMultipleDefaults ConditionReason = "MultipleDefaults"
	// ReasonReferenceNotFound surfaces in ReferencesUnresolved (True) when a ChatModelConfig that is named does not exist
	// or is disabled.
	ReasonReferenceNotFound ConditionReason = "ReferenceNotFound"
	// ReasonHostNotAllowed surfaces in Ready (False) and Stalled (True) when models may not be called at the host that the
	// configuration or its proxy leads to: it is not among the manager's --model-hosts, or it is an address of the node or
	// of the pod.
	ReasonHostNotAllowed ConditionReason = "HostNotAllowed"
	// ReasonCABundleNotFound surfaces in Ready (Unknown) and Reconciling (True) when the ConfigMap that caBundleFrom
	// names, or its key, does not exist.
	ReasonCABundleNotFound ConditionReason = "CABundleNotFound"
	// ReasonCABundleInvalid surfaces in Ready (False) and Stalled (True) when that key holds no certificate.
	ReasonCABundleInvalid ConditionReason = "CABundleInvalid"
)
