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
	if !m.deliver([]*command{c}, signal) && state != protocol.Running {
		return protocol.Process{}, refuse(protocol.NotRunning, "The process %s has ended.", id)
	}
	return c.describe(), nil
}

// Cancel kills the commands of a chat and all that they have started, also what commands have left behind that have
// ended. An empty chat is all of them. The main process is no chat's. It returns how many commands ran.
func (m *Manager) Cancel(chat string) int {
	var those []*command
	ran := 0
	for _, c := range m.all() {
		if of := c.current().Chat; of == "" || chat != "" && of != chat {
			continue
		}
		if c.cancelStart() {
			ran++
			continue
		}
		if state, _ := c.standing(); state == protocol.Running {
			ran++
		}
		those = append(those, c)
	}
	m.deliver(those, unix.SIGKILL)
	return ran
}

// cancelStart has a command that is being started killed as soon as it runs. It reports whether it is being started.
func (c *command) cancelStart() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	select {
	case <-c.settled:
		return false
	default:
		c.cancelled = true
		return true
	}
}

// deliver sends a signal to commands and to all that they have started, once to each, and reports whether there was
// anything. It looks before it signals, as long as parents tell whose their children are; then process 1 reaches each
// process group at once, and what has left the groups is signalled by itself.
func (m *Manager) deliver(those []*command, signal syscall.Signal) bool {
	q := m.quarry(those)
	if len(q.bySession) == 0 {
		return false
	}
	if signal == unix.SIGKILL {
		m.freeze(q)
	}
	members := m.members(q)
	m.signalGroups(q, signal)
	for _, p := range members {
		if !q.reached[p.Group] {
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
	m.signalGroups(q, unix.SIGSTOP)
	stopped := map[int]bool{}
	for range maxLooks {
		before := len(stopped)
		for _, p := range m.members(q) {
			if !stopped[p.PID] && !q.reached[p.Group] {
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

// signalGroups signals the process groups of the commands that run.
func (m *Manager) signalGroups(q *quarry, signal syscall.Signal) {
	for pid, t := range q.bySession {
		if !t.runs {
			continue
		}
		a, err := m.init.ask(&link.Message{Signal: &link.Signal{ID: t.id, Signal: signal}})
		q.reached[pid] = err == nil && a.reply.Errno == 0
	}
}

// quarry is what a signal is for.
type quarry struct {
	bySession map[int]target
	ids       map[string]bool
	// reached are the process groups that have had the signal.
	reached map[int]bool
}

type target struct {
	id   string
	runs bool
}

// quarry are the commands of this life of the container: nothing is left of others.
func (m *Manager) quarry(those []*command) *quarry {
	q := &quarry{bySession: map[int]target{}, ids: map[string]bool{}, reached: map[int]bool{}}
	for _, c := range those {
		r := c.current()
		if r.Boot != m.hello.Boot || r.PID == 0 {
			continue
		}
		runs := r.State == protocol.Running
		if _, taken := q.bySession[r.PID]; runs || !taken { // The number may have been another's before.
			q.bySession[r.PID] = target{id: r.ID, runs: runs}
		}
		q.ids[r.ID] = true
	}
	return q
}

// members are the processes that belong to the commands: by their session, by the mark in their environment, or because
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

// has reports whether a process belongs to the commands by itself, and whether that is sure. The number of a session
// that has ended may have become another's; then its mark tells.
func (q *quarry) has(p proctree.Process) (belongs, sure bool) {
	t, ok := q.bySession[p.Session]
	if ok && t.runs {
		return true, true
	}
	mark, sure := p.Variable(markName)
	return q.ids[mark] || ok && mark == "" && sure, sure
}
