// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect_test

import (
	"testing"
	"time"

	"charm.land/fantasy"

	"parley.dev/parley/api/stream/parts"
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/collect"
)

func TestReasoningAndCallsSayWhenTheyCame(t *testing.T) {
	now := time.Unix(1000, 0).UTC()
	reply := collect.NewAccumulator(v1alpha1.ProviderOpenAI, 1, nil)
	reply.TellTime(func() time.Time { now = now.Add(time.Second); return now })
	var shown []parts.Part
	for _, p := range []fantasy.StreamPart{
		part(fantasy.StreamPartTypeReasoningStart, "0", ""), reasoning("0", "Let me "), reasoning("0", "see"),
		part(fantasy.StreamPartTypeReasoningEnd, "0", ""), text("0", "Hello"), call("c", "t", "{}"),
	} {
		if one, ok := reply.Add(&p); ok {
			shown = append(shown, one)
		}
	}
	said := reply.Finish().Parts
	at := func(seconds int64) time.Time { return time.Unix(1000+seconds, 0).UTC() }
	if hm := said[0]; !hm.StartedAt.Time.Equal(at(1)) || !hm.FinishedAt.Time.Equal(at(2)) {
		t.Errorf("the reasoning went from %s to %s", hm.StartedAt, hm.FinishedAt)
	}
	if said[1].StartedAt != nil || !said[2].StartedAt.Time.Equal(at(3)) {
		t.Errorf("the text came at %s, the call at %s", said[1].StartedAt, said[2].StartedAt)
	}
	for i, want := range []time.Time{at(1), {}, {}, at(3)} {
		if got := shown[i].At; !got.Equal(want) {
			t.Errorf("part %d, %s, was shown with %s and not %s", i, shown[i].Type, got, want)
		}
	}
}
