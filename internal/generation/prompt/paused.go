// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt

import (
	"slices"

	"parley.dev/parley/api/v1alpha1"
)

// joined makes one reply of replies that the provider has paused and what continued them: a call of its own tools can
// have its result in the next of them.
func joined(history []v1alpha1.ChatMessage, d Dialect) []v1alpha1.ChatMessage {
	var out []v1alpha1.ChatMessage
	for i := range history {
		last := len(out) - 1
		if last < 0 || !continues(&out[last], d) || history[i].Spec.Role != v1alpha1.RoleAssistant || !d.wrote(&history[i]) {
			out = append(out, history[i])
			continue
		}
		both := *out[last].DeepCopy()
		both.Spec.Parts = slices.Concat(both.Spec.Parts, history[i].Spec.Parts)
		both.Spec.Generation = history[i].Spec.Generation
		out[last] = both
	}
	return out
}

// continues reports whether the provider has paused the reply and is to continue it.
func continues(m *v1alpha1.ChatMessage, d Dialect) bool {
	g := m.Spec.Generation
	return g != nil && g.ReplyOutcome == v1alpha1.ReplyPaused && d.wrote(m)
}
