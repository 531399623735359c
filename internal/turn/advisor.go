// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package turn

import "parley.dev/parley/api/v1alpha1"

// accountAdvice adds what asking the advisor has used up. It is kept apart: it is another model's, and says nothing of how
// full the context is.
func (p *pass) accountAdvice(g *v1alpha1.MessageGeneration) {
	if g.AdvisorUsage != nil {
		p.status().AdvisorUsage = p.status().AdvisorUsage.Add(*g.AdvisorUsage)
	}
}
