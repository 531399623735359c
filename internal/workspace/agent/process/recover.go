// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"fmt"

	"parley.dev/parley/internal/workspace/protocol"
)

const (
	noteRestart = "It was ended by a restart of the workspace."
	noteUnknown = "The workspace was restarted while it was being started: it is not known whether it ran."
	noteUntold  = "It is not known how it ended."
	noteNoPaper = "Its record was lost."
	noteStopped = "The workspace was being stopped."
	noteOrphans = "Its supervisor was killed, and all its processes were ended."
)

// recover takes up the commands of earlier lives of this process, and of the container.
func (m *Manager) recover(kept map[string]handedOver) error {
	ids, err := m.table.store.ids()
	if err != nil {
		return err
	}
	for _, id := range ids {
		number, _ := numberOf(id)
		m.table.last = max(m.table.last, number)
		handed, runs := kept[id]
		r, err := m.table.store.load(id)
		switch {
		case err != nil && runs:
			continue // made up below
		case err != nil, !runs && r.Starting && r.Boot == m.table.hello.Boot:
			// Process 1 would know it had it been started.
			if err := m.table.store.remove(id); err != nil {
				return err
			}
			continue
		}
		delete(kept, id)
		if err := m.takeUp(r, handed); err != nil {
			return err
		}
	}
	return m.makeUp(kept)
}

// takeUp remembers a command. If process 1 has kept it, its output is collected again.
func (m *Manager) takeUp(r record, handed handedOver) error {
	out, err := openOutput(m.table.store.place(r.ID), m.options.Now, r.OutputBytes)
	if err != nil {
		return err
	}
	c := newCommand(r, out)
	c.settle(nil)
	m.table.add(c, r)
	if handed.Command != nil {
		if handed.Spoken {
			m.unheard = append(m.unheard, c)
		}
		m.take(c, handed)
		return nil
	}
	c.conclude()
	if r.State == protocol.Running {
		return m.lose(c)
	}
	return nil
}

// lose notes that the container was restarted while a command ran, or was being started.
func (m *Manager) lose(c *command) error {
	r := c.current()
	switch {
	case r.Starting:
		r.Note = noteUnknown
	case r.Boot == m.table.hello.Boot:
		r.Note = noteUntold
	default:
		r.Note = noteRestart
	}
	r.State, r.Starting, r.EndedAt = protocol.Lost, false, m.table.hello.Since
	c.become(r)
	return m.collector.save(c, r)
}

// makeUp gives a record to commands that run and have none, because somebody has removed it.
func (m *Manager) makeUp(kept map[string]handedOver) error {
	for id, handed := range kept {
		number, ok := numberOf(id)
		if !ok {
			return fmt.Errorf("process 1 knows a command %.40q", id)
		}
		m.table.last = max(m.table.last, number)
		r := record{Process: protocol.Process{
			ID: id, State: protocol.Running, StartedAt: handed.StartedAt, Note: noteNoPaper,
		}, Boot: m.table.hello.Boot}
		if err := m.table.store.amend(r); err != nil {
			return err
		}
		if err := m.takeUp(r, handed); err != nil {
			return err
		}
	}
	return nil
}
