// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"os"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/internal/workspace/agent/link"
	"parley.dev/parley/internal/workspace/agent/proctree"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// killPatience is how long new processes of a command that is being killed are looked for, and killInterval the time
	// between two looks.
	killPatience = time.Second
	killInterval = 5 * time.Millisecond
	// maxLooks bounds how often something new is looked for that must be stopped.
	maxLooks = 20
)

var signals = map[protocol.Signal]syscall.Signal{
	protocol.Interrupt: unix.SIGINT,
	protocol.Terminate: unix.SIGTERM,
	protocol.Kill:      unix.SIGKILL,
}

// Signal sends a signal to a command and to all that it has started, once to each. Of a command that has ended, what it
// has left behind is signalled.
func (m *Manager) Signal(id string, s protocol.Signal) (protocol.Process, error) {
	signal, ok := signals[s]
	if !ok {
		return protocol.Process{}, refuse(protocol.BadRequest, "%.40q is no signal: interrupt, terminate and kill are.", s)
	}
	c, err := m.find(id)
	if err != nil {
		return protocol.Process{}, err
	}
	state, _ := c.standing()
	if !m.deliver(c, signal) && state != protocol.Running {
		return protocol.Process{}, refuse(protocol.NotRunning, "The process %s has ended.", id)
	}
	return c.describe(), nil
}

// deliver sends a signal to a command and to all that it has started, once to each, and reports whether there was
// anything. It looks before it signals, as long as parents tell whose their children are; then process 1 reaches the
// process group at once, and what has left the group is signalled by itself.
func (m *Manager) deliver(c *command, signal syscall.Signal) bool {
	q := m.quarry(c)
	if q == nil {
		return false
	}
	if signal == unix.SIGKILL {
		m.freeze(q)
	}
	members := m.members(q)
	m.signalGroup(q, signal)
	for _, p := range members {
		if !q.covers(p) {
			_ = p.Signal(signal) // It has gone.
		}
	}
	if signal == unix.SIGKILL {
		m.killRest(q)
	}
	return len(members) > 0
}

// freeze stops all that is to be killed, so that nothing is forked and no parent dies while it is looked for.
func (m *Manager) freeze(q *quarry) {
	m.signalGroup(q, unix.SIGSTOP)
	stopped := map[int]bool{}
	for range maxLooks {
		before := len(stopped)
		for _, p := range m.members(q) {
			if !stopped[p.PID] && !q.covers(p) {
				_ = p.Signal(unix.SIGSTOP) // It has gone.
				stopped[p.PID] = true
			}
		}
		if len(stopped) == before {
			return
		}
	}
}

// killRest kills what is still there, such as what was forked where nothing could be stopped.
func (m *Manager) killRest(q *quarry) {
	until := time.NewTimer(killPatience)
	defer until.Stop()
	for {
		members, sure := m.survey(q)
		if len(members) == 0 && sure {
			return
		}
		for _, p := range members {
			_ = p.Signal(unix.SIGKILL) // It has gone.
		}
		pause := time.NewTimer(killInterval)
		select {
		case <-pause.C:
		case <-until.C:
			pause.Stop()
			return
		}
	}
}

// signalGroup signals the process group of a command that runs.
func (m *Manager) signalGroup(q *quarry, signal syscall.Signal) {
	if !q.runs {
		return
	}
	a, err := m.init.ask(&link.Message{Signal: &link.Signal{ID: q.id, Signal: signal}}, -1)
	q.reached = err == nil && a.reply.Errno == 0
}

// quarry is what a signal is for: a command, and all that it has started.
type quarry struct {
	id string
	// session of the command, which is also its own process and the process group of that.
	session int
	// runs reports whether its own process does.
	runs bool
	// reached reports whether the process group has had the signal.
	reached bool
}

// quarry of a command of this life of the container; nil: nothing is left of others.
func (m *Manager) quarry(c *command) *quarry {
	r := c.current()
	if r.Boot != m.hello.Boot || r.PID == 0 {
		return nil
	}
	return &quarry{id: r.ID, session: r.PID, runs: r.State == protocol.Running}
}

// covers reports whether a process has had the signal with its group.
func (q *quarry) covers(p proctree.Process) bool { return q.reached && p.Group == q.session }

// members are the processes that belong to the command: by their session, by the mark in their environment, or because
// their parent does.
func (m *Manager) members(q *quarry) []proctree.Process {
	members, _ := m.survey(q)
	return members
}

// survey is the same, and reports whether it is sure that these are all.
func (m *Manager) survey(q *quarry) (members []proctree.Process, sure bool) {
	all, err := proctree.All()
	if err != nil {
		m.options.Log.Warn("the processes cannot be seen", "error", err)
		return nil, true
	}
	found := map[int]bool{}
	sure = true
	for _, p := range proctree.Below(all, m.options.InitPID) {
		if p.Ended || p.PID == os.Getpid() {
			continue
		}
		belongs, known := q.has(p)
		sure = sure && known
		if belongs || found[p.Parent] {
			found[p.PID] = true
			members = append(members, p)
		}
	}
	return members, sure
}

// has reports whether a process belongs to the command by itself, and whether that is sure. The number of a session
// that has ended may have become another's; then its mark tells.
func (q *quarry) has(p proctree.Process) (belongs, sure bool) {
	within := p.Session == q.session
	if within && q.runs {
		return true, true
	}
	mark, sure := p.Variable(markName)
	return mark == q.id || within && mark == "" && sure, sure
}
