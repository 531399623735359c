// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of a ChatQuota's and of a ClusterChatQuota's conditions.
const (
	// ReasonEnforced surfaces in Ready (True) while the quota limits chats; the message has the effective numbers,
	// defaults and other ChatQuotas included.
	ReasonEnforced ConditionReason = "Enforced"
	// ReasonOverridden surfaces in Ready (True) when another ChatQuota of the namespace, which the message names, applies
	// instead.
	ReasonOverridden ConditionReason = "Overridden"
)
