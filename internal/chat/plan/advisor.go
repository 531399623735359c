// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/chat/conditions"
)

// accountAdvice adds what asking the advisor has used up, and counts what came of it: a summary can stand for messages that the
// generation pod would have to count. It is kept apart: it is another model's, and says nothing of how
// full the context is.
func (p *pass) accountAdvice(g *v1alpha1.MessageGeneration) {
	if g.Advice > 0 {
		p.status().Turn.Advice += g.Advice
	}
	if g.AdvisorUsage != nil {
		p.status().AdvisorUsage = p.status().AdvisorUsage.Add(*g.AdvisorUsage)
	}
}

// markAdvisor says whether the advisor can be asked. It keeps no turn from going on: the model goes on without advice. A chat
// that is archived asks nobody.
func (p *pass) markAdvisor() {
	why := p.facts.NoAdvice
	if p.status().Archived {
		why = nil
	}
	conditions.MarkAdvisor(p.status(), why, p.facts.Now)
}
