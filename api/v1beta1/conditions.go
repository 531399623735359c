// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package v1beta1

import metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

// Condition types of every kind in this package. They follow kstatus, so that kubectl wait, Argo CD and Flux understand
// the objects without a plug-in: Ready is always present; Reconciling is present and True while work is under way;
// Stalled is present and True when a person is needed; never both of the latter.
const (
	// ConditionReady is True when nothing is left to do, Unknown while work is under way, False when it failed.
	ConditionReady = "Ready"
	// ConditionReconciling is True while work is under way, and absent otherwise.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing will happen until a person acts, and absent otherwise.
	ConditionStalled = "Stalled"
)

// ConditionReason is the reason of a condition. Each kind has its own, in the file of its conditions; every ErrorReason
// is one, too.
type ConditionReason string

// ReasonOf is the reason of a condition; empty if there is none.
func ReasonOf(c *metav1.Condition) ConditionReason {
	if c == nil {
		return ""
	}
	return ConditionReason(c.Reason)
}
