// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1alpha1

// Reasons of a ChatModelConfig's conditions.
const (
	// ReasonAccepted surfaces in Ready (True) when the configuration can be used.
	ReasonAccepted = "Accepted"
	// ReasonSeveralDefaults surfaces in Ready (True) when another ChatModelConfig of the namespace says default: true
	// too, and comes first by name.
	ReasonSeveralDefaults = "SeveralDefaults"
	// ReasonReferenceNotFound surfaces in Ready (False) and Stalled (True) when fallbacks, compaction.modelConfigRef or titles.modelConfigRef name a
	// ChatModelConfig that does not exist. Chats are answered without it.
	ReasonReferenceNotFound = "ReferenceNotFound"
	// ReasonInvalidConfiguration surfaces in Ready (False) and Stalled (True) when the provider does not take what
	// providerOptions say; the message names the field.
	ReasonInvalidConfiguration = "InvalidConfiguration"
)
