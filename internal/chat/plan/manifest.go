// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"time"

	"parley.dev/parley/api/v1alpha1"
)

// ManifestPatience is how long a chat waits for what the manifest that it came with may still bring, before it says that a
// person is needed: 10 s. GitOps tools apply a manifest object by object, sorted by kind and name, and some give up at once when one
// is Stalled.
const ManifestPatience = 10 * time.Second

// mayCome reports whether what blocks the first open message may pass by itself, because something that it needs was not there yet
// when it was created; and if so, when to look again.
func (p *pass) mayCome(blocked *v1alpha1.GenerationError) bool {
	if blocked == nil || blocked.Reason != v1alpha1.ErrorModelConfigNotFound && blocked.Reason != v1alpha1.ErrorParentNotFound {
		return false
	}
	since := p.chat.CreationTimestamp.Time
	if said := p.facts.Open[0].Created; said.After(since) {
		since = said
	}
	p.plan.Again = max(0, ManifestPatience-p.facts.Now.Sub(since))
	return p.plan.Again > 0
}
