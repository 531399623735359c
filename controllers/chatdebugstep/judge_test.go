// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatdebugstep

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

var now = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

func TestRecordingIsRemovedOrInterruptedWhenDue(t *testing.T) {
	begun := func(ago time.Duration) *progress { return &progress{pod: "p", attempt: 1, since: now.Add(-ago)} }
	hour := now.Add(time.Hour)
	for name, c := range map[string]struct {
		facts facts
		what  verdict
		wait  time.Duration
	}{
		"its time is up":       {facts{expires: now}, remove, 0},
		"its chat is archived": {facts{expires: hour, archived: true, progress: begun(0)}, remove, 0},
		"it has ended":         {facts{expires: hour}, keep, time.Hour},
		"its pod is gone": {facts{expires: hour, progress: begun(time.Second), podGone: true},
			interrupt, 0},
		"its attempt is under way": {facts{expires: hour, progress: begun(time.Hour)}, keep, patience},
		"its attempt is under way, but not long": {facts{expires: now.Add(time.Minute), progress: begun(time.Hour)}, keep,
			time.Minute},
		"its chat has just moved on": {facts{expires: hour, progress: begun(time.Minute), movedOn: true}, keep,
			4 * time.Minute},
		"its chat has long moved on": {facts{expires: hour, progress: begun(patience), movedOn: true}, interrupt, 0},
	} {
		t.Run(name, func(t *testing.T) {
			c.facts.now = now
			if what, wait := c.facts.judge(); what != c.what || wait != c.wait {
				t.Errorf("got %d in %s, want %d in %s", what, wait, c.what, c.wait)
			}
		})
	}
}

func TestMalformedProgressAnnotationIsIgnored(t *testing.T) {
	for value, want := range map[string]*progress{
		"pod-1 2 2026-01-02T03:04:05Z": {pod: "pod-1", attempt: 2, since: now},
		"":                             nil, "pod-1": nil, "pod-1 x 2026-01-02T03:04:05Z": nil, "pod-1 2 today": nil,
		"a b c d": nil,
	} {
		step := &metav1.PartialObjectMetadata{
			ObjectMeta: metav1.ObjectMeta{Annotations: map[string]string{v1beta1.AnnotationInProgress: value}}}
		if got := progressOf(step); (got == nil) != (want == nil) || got != nil && (*got != *want) {
			t.Errorf("%q is %+v", value, got)
		}
	}
}
