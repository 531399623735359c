// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

func TestMissingReferenceIsProgressUntilItsPatienceEnds(t *testing.T) {
	for name, c := range map[string]struct {
		reason             v1beta1.ErrorReason
		chatAge, saidSince time.Duration
		stalled            bool
		again              time.Duration
	}{
		"a new chat without a model": {v1beta1.ErrorModelConfigNotFound, time.Second, time.Second, false,
			9 * time.Second},
		"a new chat without its parent": {v1beta1.ErrorParentNotFound, 0, 0, false, 10 * time.Second},
		"a new message of an older chat": {v1beta1.ErrorModelConfigNotFound, time.Hour, 4 * time.Second, false,
			6 * time.Second},
		"a chat that has waited long enough": {v1beta1.ErrorModelConfigNotFound, 10 * time.Second, 10 * time.Second, true,
			0},
		"a new chat that there is no way for": {v1beta1.ErrorSubChatLimitExceeded, 0, 0, true, 0},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t)
			w.chat.CreationTimestamp = metav1.NewTime(w.now.Add(-c.chatAge))
			w.pass(func(f *Facts) {
				f.Open, f.Model, f.Blocked = messages(false, "a"), nil,
					&v1beta1.GenerationError{Reason: c.reason, Message: "it is not there", Advice: "create it"}
				f.Open[0].Created = w.now.Add(-c.saidSince)
			})
			conditions := w.chat.Status.Conditions
			ready := meta.FindStatusCondition(conditions, v1beta1.ConditionReady)
			if ready == nil || ready.Reason != string(c.reason) ||
				meta.IsStatusConditionTrue(conditions, v1beta1.ConditionStalled) != c.stalled ||
				meta.IsStatusConditionTrue(conditions, v1beta1.ConditionReconciling) == c.stalled {
				t.Errorf("the conditions are %+v", conditions)
			}
			if w.last.Again != c.again {
				t.Errorf("it is looked at again after %v, want %v", w.last.Again, c.again)
			}
		})
	}
}
