// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package plan

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/internal/chat/machine"
)

// archive archives the chat or takes it back. While that is not possible yet, the chat waits and takes no new work up, so
// that it becomes possible. A chat that has not begun is in no state of the machine: it is archived as it stands.
func (p *pass) archive() error {
	if p.facts.Archive == p.status().Archived {
		return nil
	}
	if p.state() == machine.None { // It has nothing to come to rest from.
		p.status().Archived = p.facts.Archive
		return nil
	}
	event := machine.Unarchive
	if p.facts.Archive {
		event = machine.Archive
	}
	p.try(event, subject{})
	return nil
}

// recordWaiting notes since when the next step waits for capacity: the order in which chats get it.
func (p *pass) recordWaiting() {
	st := p.status()
	switch {
	case p.held != machine.NoCapacity:
		if st.WaitingSince != nil && st.Generation != nil {
			p.plan.CapacityWait = new(p.facts.Now.Sub(st.WaitingSince.Time))
		}
		st.WaitingSince = nil
	case st.WaitingSince == nil:
		st.WaitingSince = new(metav1.NewMicroTime(p.facts.Now))
	}
}
