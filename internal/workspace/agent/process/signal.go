// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"syscall"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/proctree"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// maxDescendants is how many descendants of a command are shown, and maxCommandLine how many bytes of each.
	maxDescendants, maxCommandLine = 10, 200
)

var signals = map[protocol.Signal]syscall.Signal{
	protocol.Interrupt: unix.SIGINT,
	protocol.Terminate: unix.SIGTERM,
	protocol.Kill:      unix.SIGKILL,
}

// Signal sends a signal to a command and to all that it has started, once to each. Of a command that has exited, what
// it has left behind is signalled.
func (m *Manager) Signal(id string, s protocol.Signal) (protocol.Process, error) {
	signal, ok := signals[s]
	if !ok {
		return protocol.Process{}, refuse(protocol.BadRequest, "%.40q is no signal: interrupt, terminate and kill are.", s)
	}
	c, err := m.table.find(id)
	if err != nil {
		return protocol.Process{}, err
	}
	if state := c.current().State; !deliver(c, m.table.processes, signal) && state != protocol.Running {
		return protocol.Process{}, refuse(protocol.NotRunning, "The process %s has ended.", id)
	}
	return withDescendants(c, m.table.processes), nil
}

// deliver sends a signal to a command and to all that it has started, once to each, and reports whether there was
// anything. The supervisor does not have it.
func deliver(c *command, processes func() []proctree.Process, signal syscall.Signal) (found bool) {
	look := func() (members, all []proctree.Process) {
		all = processes()
		return below(all, c), all
	}
	if signal == unix.SIGKILL {
		found, _ = proctree.Kill(look)
		return found
	}
	members, all := look()
	proctree.Send(signal, members, all)
	return len(members) > 0
}

// processes are all that there are.
func (t *table) processes() []proctree.Process {
	all, err := proctree.All()
	if err != nil {
		t.options.Log.Warn("the processes cannot be listed", "error", err)
	}
	return all
}

// below is what runs of a command.
func below(all []proctree.Process, c *command) (running []proctree.Process) {
	root := c.current().root()
	if root == 0 {
		return nil
	}
	for _, p := range proctree.Below(all, root) {
		if !p.Ended {
			running = append(running, p)
		}
	}
	return running
}

// withDescendants is a command as it is, with what still runs of it once it has exited.
func withDescendants(c *command, look func() []proctree.Process) protocol.Process {
	p := c.describe()
	if p.State == protocol.Running || c.current().root() == 0 {
		return p
	}
	running := below(look(), c)
	if len(running) == 0 {
		return p
	}
	p.Descendants = &protocol.Descendants{Count: len(running)}
	for _, d := range running[:min(len(running), maxDescendants)] {
		p.Descendants.First = append(p.Descendants.First,
			protocol.Descendant{PID: d.PID, Command: shown(d.CommandLine(maxCommandLine))})
	}
	return p
}
