// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

// changeAgents asks for what an earlier pass has committed about sub-chats. It is done before the status is written
// that forgets it, and each of it once, however often it is done. So a crash between the two loses nothing.
func (p steering) changeAgents() error {
	p.plan.AgentsOf = p.status().Internal.AgentsOf
	p.status().Internal.AgentsOf = ""
	return nil
}
