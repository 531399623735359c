// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	"parley.dev/parley/api/v1beta1"
)

// Rest is since when none of the chats has had anything to do; zero if there are none. atWork is true while one has.
func Rest(chats []*v1beta1.Chat) (since time.Time, atWork bool) {
	for _, chat := range chats {
		rests := chat.Status.IdleSince
		if rests == nil {
			return time.Time{}, true
		}
		if rests.After(since) {
			since = rests.Time
		}
	}
	return since, false
}

// BeyondLimits reports whether the limits of its family keep the chat from beginning.
func BeyondLimits(chat *v1beta1.Chat) bool {
	ready := meta.FindStatusCondition(chat.Status.Conditions, v1beta1.ConditionReady)
	return v1beta1.ReasonOf(ready) == v1beta1.ConditionReason(v1beta1.ErrorSubChatLimitExceeded)
}
