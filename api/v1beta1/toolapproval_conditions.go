// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of a ToolApproval's conditions.
const (
	// ReasonApplied surfaces in Ready (True) when the decision applies.
	ReasonApplied ConditionReason = "Applied"
	// ReasonNotPending surfaces in Ready (False) and Stalled (True) when the ToolApproval came too late, or names no
	// waiting call.
	ReasonNotPending ConditionReason = "NotPending"
	// ReasonDigestMismatch surfaces in Ready (False) and Stalled (True) when the digest does not match the call. Read the
	// call again.
	ReasonDigestMismatch ConditionReason = "DigestMismatch"
)
