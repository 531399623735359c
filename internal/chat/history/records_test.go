// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package history

import (
	"testing"

	"parley.dev/parley/api/v1beta1"
)

func TestCachedReplyRecordsWhatItFollows(t *testing.T) {
	tail := []v1beta1.CommittedMessage{{Message: "a", UID: "1", HistoryVersion: 1},
		{Message: "b", UID: "2", Parent: "a", Position: 1, HistoryVersion: 2}}
	cached := func(change func([]v1beta1.CommittedMessage)) *v1beta1.ChatMessage {
		m := made("c-2-1", 2, 3)
		for i := range tail {
			m.Spec.Follows = append(m.Spec.Follows, Named(&tail[i], i == len(tail)-1))
		}
		change(m.Spec.Follows)
		return m
	}
	for name, c := range map[string]struct {
		reply *v1beta1.ChatMessage
		want  bool
	}{
		"the same":        {cached(func([]v1beta1.CommittedMessage) {}), true},
		"another name":    {cached(func(f []v1beta1.CommittedMessage) { f[0].Message = "c" }), false},
		"another version": {cached(func(f []v1beta1.CommittedMessage) { f[1].HistoryVersion = 3 }), false},
		"nothing":         {made("c-2-1", 2, 3), false},
	} {
		if got := Records(c.reply, tail); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
	if Records(cached(func([]v1beta1.CommittedMessage) {}), tail[:1]) {
		t.Error("a reply that records more is taken for right")
	}
	known := commits{}
	if known.note(cached(func([]v1beta1.CommittedMessage) {}).Spec.Follows); len(known) > 0 {
		t.Errorf("names alone place %v", known)
	}
}
