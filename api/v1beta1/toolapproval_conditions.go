// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

// Reasons of a ToolApproval's conditions.
const (
	// ReasonApplied surfaces in Ready (True) when the decision counts.
	ReasonApplied ConditionReason = "Applied"
	// ReasonNotPending surfaces in Ready (False) and Stalled (True) when the chat has no such call that waits for
	// approval, or another ToolApproval came first.
	ReasonNotPending ConditionReason = "NotPending"
	// ReasonDigestMismatch surfaces in Ready (False) and Stalled (True) when the digest is not that of the call: the
	// person decided about something else.
	ReasonDigestMismatch ConditionReason = "DigestMismatch"
)
