// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import "parley.dev/parley/api/v1beta1"

// changeAgents asks for what an earlier pass has committed about sub-chats. It is done before anything else is decided,
// such as whether one of them is still at work, and before the status is written that forgets it: a crash between the
// two loses nothing, and each of it is done once, however often it is asked for.
func changeAgents(p *pass) error {
	of := p.status().Internal.AgentsOf
	if of != "" && p.facts.AgentsOf != of {
		p.plan.Asks.Agents = of
		return nil
	}
	for _, refused := range p.facts.AgentsRejected {
		p.notice(v1beta1.EventAgentRejected, v1beta1.EventActionCommit, refused)
	}
	p.status().Internal.AgentsOf = ""
	return nil
}
