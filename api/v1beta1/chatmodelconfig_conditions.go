// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Conditions of a ChatModelConfig, next to those of every kind, and reasons of all.
const (
	// ConditionContextLimitUnknown of a ChatModelConfig is True when contextLimit is not set and Parley does not know the
	// model: its context is compacted only once the model refuses it. It is absent otherwise, and keeps no one from using
	// the configuration.
	ConditionContextLimitUnknown = "ContextLimitUnknown"
	// ConditionReferencesUnresolved of a ChatModelConfig or a ChatClass is True when it names a ChatModelConfig that does
	// not exist or is disabled; the message contains the name. Chats are answered without it. It is absent otherwise.
	ConditionReferencesUnresolved = "ReferencesUnresolved"
	// ReasonUnknownModel surfaces in ContextLimitUnknown (True) when the model is in no table.
	ReasonUnknownModel ConditionReason = "UnknownModel"

	// ReasonDisabled surfaces in Ready (True) when spec.disabled takes the configuration out of use.
	ReasonDisabled ConditionReason = "Disabled"
	// ReasonAccepted surfaces in Ready (True) when the object can be used. Secrets such as the API key are checked by the
	// first call.
	ReasonAccepted ConditionReason = "Accepted"
	// ReasonMultipleDefaults surfaces in Ready (True) when it can be used by name, but another default of the namespace
	// comes first by name.
	ReasonMultipleDefaults ConditionReason = "MultipleDefaults"
	// ReasonReferenceNotFound surfaces in ReferencesUnresolved (True) when a ChatModelConfig that is named does not exist
	// or is disabled.
	ReasonReferenceNotFound ConditionReason = "ReferenceNotFound"
	// ReasonHostNotAllowed surfaces in Ready (False) and Stalled (True) when the configuration or its proxy leads to a
	// host that may not be called: one that is not among the manager's --model-hosts, or an address of the node or of the
	// pod.
	ReasonHostNotAllowed ConditionReason = "HostNotAllowed"
	// ReasonCABundleNotFound surfaces in Ready (Unknown) and Reconciling (True) while the ConfigMap that caBundleFrom
	// names, or its key, does not exist.
	ReasonCABundleNotFound ConditionReason = "CABundleNotFound"
	// ReasonCABundleInvalid surfaces in Ready (False) and Stalled (True) when that key holds no certificate.
	ReasonCABundleInvalid ConditionReason = "CABundleInvalid"
)
