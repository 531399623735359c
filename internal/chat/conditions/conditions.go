// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

// Package conditions turns facts into conditions: Ready, Reconciling and Stalled of every kind, as kstatus reads them.
// It is pure. Whatever it returns keeps these invariants, which its tests check with the real kstatus library: Ready is
// always present; Reconciling and Stalled are present only while True, and never both; every condition carries the
// generation that it was computed from.
package conditions

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
)

// Summary is the one thing that the conditions of an object say.
type Summary struct {
	// Ready is True when nothing is left to do, Unknown while work is under way, False when a person is needed.
	Ready metav1.ConditionStatus
	// Reason and Message of Ready, and of Reconciling or Stalled with it.
	Reason  v1beta1.ConditionReason
	Message string
}

// Done says that nothing is left to do.
func Done(reason v1beta1.ConditionReason, message string) Summary {
	return Summary{Ready: metav1.ConditionTrue, Reason: reason, Message: message}
}

// Working says that work is under way, or waits for something that will come.
func Working(reason v1beta1.ConditionReason, message string) Summary {
	return Summary{Ready: metav1.ConditionUnknown, Reason: reason, Message: message}
}

// Failed says that a person is needed.
func Failed(reason v1beta1.ConditionReason, message string) Summary {
	return Summary{Ready: metav1.ConditionFalse, Reason: reason, Message: message}
}

// maxConditionMessage is the API's own bound on a condition's message, in bytes.
const maxConditionMessage = 32768

// apply writes the summary into the conditions and keeps those of other types.
func (s Summary) apply(conditions *[]metav1.Condition, generation int64, now time.Time) {
	set(conditions, metav1.Condition{Type: v1beta1.ConditionReady, Status: s.Ready, Reason: string(s.Reason),
		Message: s.Message},
		generation, now)
	setOrRemove(conditions, v1beta1.ConditionReconciling, s.Ready == metav1.ConditionUnknown, s, generation, now)
	setOrRemove(conditions, v1beta1.ConditionStalled, s.Ready == metav1.ConditionFalse, s, generation, now)
}

func setOrRemove(conditions *[]metav1.Condition, conditionType string, on bool, s Summary, generation int64,
	now time.Time) {
	if !on {
		meta.RemoveStatusCondition(conditions, conditionType)
		return
	}
	set(conditions, metav1.Condition{Type: conditionType, Status: metav1.ConditionTrue, Reason: string(s.Reason),
		Message: s.Message}, generation, now)
}

func set(conditions *[]metav1.Condition, c metav1.Condition, generation int64, now time.Time) {
	c.Message = clip.Bytes(printable.Text(c.Message), maxConditionMessage)
	c.ObservedGeneration = generation
	if old := meta.FindStatusCondition(*conditions, c.Type); old == nil || old.Status != c.Status {
		c.LastTransitionTime = metav1.NewTime(now)
	}
	meta.SetStatusCondition(conditions, c)
}
