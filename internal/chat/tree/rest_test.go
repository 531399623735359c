// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tree

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

func TestChatsRestSinceTheLastOfThemDoes(t *testing.T) {
	noon := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	since := func(at time.Time) *v1beta1.Chat {
		return &v1beta1.Chat{Status: v1beta1.ChatStatus{IdleSince: new(metav1.NewTime(at))}}
	}
	atWork := &v1beta1.Chat{}
	for name, c := range map[string]struct {
		chats  []*v1beta1.Chat
		since  time.Time
		atWork bool
	}{
		"none":              {nil, time.Time{}, false},
		"one":               {[]*v1beta1.Chat{since(noon)}, noon, false},
		"the last of two":   {[]*v1beta1.Chat{since(noon), since(noon.Add(-time.Hour))}, noon, false},
		"one that does not": {[]*v1beta1.Chat{since(noon), atWork}, time.Time{}, true},
	} {
		t.Run(name, func(t *testing.T) {
			if got, works := Rest(c.chats); !got.Equal(c.since) || works != c.atWork {
				t.Errorf("since %v, at work: %v", got, works)
			}
		})
	}
}
