// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package chatdebugstep

import (
	"strconv"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
)

// patience is how long a recording may be in progress after its chat's fence has changed. Work in addition to an
// attempt, such as writing a title, takes no longer.
const patience = 5 * time.Minute

// verdict is what happens to a recording.
type verdict int

const (
	keep verdict = iota
	remove
	interrupt
)

// progress is the attempt under way, from the annotation of a recording.
type progress struct {
	pod     string
	attempt int64
	since   time.Time
}

// progressOf reads the annotation; nil if no attempt is under way.
func progressOf(step metav1.Object) *progress {
	fields := strings.Fields(step.GetAnnotations()[v1beta1.AnnotationInProgress])
	if len(fields) != 3 {
		return nil
	}
	attempt, err := strconv.ParseInt(fields[1], 10, 32)
	since, wrong := time.Parse(time.RFC3339, fields[2])
	if err != nil || wrong != nil {
		return nil
	}
	return &progress{pod: fields[0], attempt: attempt, since: since}
}

// facts decide what happens to a recording.
type facts struct {
	expires  time.Time
	archived bool
	// progress of the attempt under way, whether its pod is gone, and whether the chat has another attempt.
	progress         *progress
	podGone, movedOn bool
	now              time.Time
}

// judge returns the verdict, and when to look again if the recording is kept.
func (f *facts) judge() (verdict, time.Duration) {
	left := f.expires.Sub(f.now)
	switch {
	case left <= 0 || f.archived:
		return remove, 0
	case f.progress == nil:
		return keep, left
	case f.podGone:
		return interrupt, 0
	}
	if waited := f.now.Sub(f.progress.since); waited < patience {
		return keep, min(left, patience-waited)
	}
	if f.movedOn {
		return interrupt, 0
	}
	return keep, min(left, patience)
}
