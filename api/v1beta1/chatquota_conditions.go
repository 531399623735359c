// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of a ChatQuota's and of a ClusterChatQuota's conditions.
const (
	// ReasonEnforced surfaces in Ready (True) once chats are admitted by what the quota says.
	ReasonEnforced ConditionReason = "Enforced"
	// ReasonOverridden surfaces in Ready (True) of a ChatQuota that decides nothing, because other ChatQuotas of the
	// namespace set a smaller number for each of its own, or the same and come first by name.
	ReasonOverridden ConditionReason = "Overridden"
)
