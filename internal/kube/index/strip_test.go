// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package index

import (
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

func TestTerminatingChatHoldsNoSlot(t *testing.T) {
	for name, c := range map[string]struct {
		change         func(*v1beta1.Chat)
		works, waiting bool
	}{
		"it generates":        {func(*v1beta1.Chat) {}, true, true},
		"it is at rest":       {func(c *v1beta1.Chat) { c.Status = v1beta1.ChatStatus{} }, false, false},
		"it is being deleted": {func(c *v1beta1.Chat) { c.DeletionTimestamp = new(metav1.Now()) }, false, false},
	} {
		t.Run(name, func(t *testing.T) {
			chat := &v1beta1.Chat{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "c", ResourceVersion: "7"}}
			chat.Status.Generation, chat.Status.WaitingSince = &v1beta1.GenerationStatus{Pod: "p"}, new(metav1.NowMicro())
			c.change(chat)
			stripped, err := StripToSlot(chat)
			left, ok := stripped.(*v1beta1.Chat)
			if err != nil || !ok || left.ResourceVersion != "7" || (left.Status.Generation != nil) != c.works ||
				(left.Status.WaitingSince != nil) != c.waiting {
				t.Errorf("got %+v, %v", stripped, err)
			}
		})
	}
}
