// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package collect

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
)

// WithFiles puts files beside the parts of a step, all of them or, if one object has no room for them, none.
func WithFiles(s Step, files []v1alpha1.MessageFile) (with Step, fits bool) {
	r := newRoom()
	for i := range s.Parts {
		r.part(&s.Parts[i])
	}
	attached := slices.Clip(s.Parts)
	for i := range files {
		part := v1alpha1.MessagePart{Type: v1alpha1.PartFile, File: &files[i]}
		if !r.part(&part) {
			return s, false
		}
		attached = append(attached, part)
	}
	s.Parts = attached
	return s, true
}
