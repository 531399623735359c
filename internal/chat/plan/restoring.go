// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"cmp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/chat/conditions"
)

// Restoring is the plan for a chat whose restore from a backup is not finished: it does nothing and says so.
func Restoring(f Facts) Plan {
	p := Plan{Status: *f.Chat.Status.DeepCopy()}
	p.Status.Phase = cmp.Or(p.Status.Phase, v1beta1.ChatWaiting)
	conditions.Chat(&p.Status, conditions.ChatFacts{Restoring: true, Generation: f.Chat.Generation, Now: f.Now})
	return p
}
