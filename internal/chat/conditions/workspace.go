// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package conditions

import (
	"time"

	"parley.dev/parley/api/v1beta1"
)

// Workspace writes the conditions of a workspace.
func Workspace(w *v1beta1.Workspace, s Summary, now time.Time) {
	s.apply(&w.Status.Conditions, w.Generation, now)
	w.Status.ObservedGeneration = w.Generation
}
