// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"iter"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"parley.dev/parley/internal/workspace/protocol"
)

// table has the commands that are remembered, each with its directory. It is safe for concurrent use.
type table struct {
	options Options
	store   store
	// stopping is set when the container stops.
	stopping atomic.Bool

	// retaining is held while the oldest are looked for.
	retaining sync.Mutex

	mu       sync.Mutex
	commands map[int]*command // by number
	keys     map[string]*command
	last     int // number of the newest command
}

// all are the commands that are remembered, the newest first.
func (t *table) all() []*command {
	t.mu.Lock()
	defer t.mu.Unlock()
	return slices.SortedFunc(maps.Values(t.commands), func(a, b *command) int { return b.number - a.number })
}

func (t *table) byID(id string) *command {
	number, ok := numberOf(id)
	if !ok {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.commands[number]
}

// find is a command that was started.
func (t *table) find(id string) (*command, error) {
	c := t.byID(id)
	if c == nil || !c.wasStarted() {
		return nil, refuse(protocol.NotFound, "There is no process %.40q.", id)
	}
	return c, nil
}

func (t *table) byKey(key string) *command {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.keys[key]
}

// reserve gives the key to a new command, unless it has one or there is no room for more.
func (t *table) reserve(key string, p *plan) (c *command, fresh bool, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if c := t.keys[key]; c != nil {
		return c, false, nil
	}
	running := countRunning(maps.Values(t.commands))
	switch {
	case t.stopping.Load():
		return nil, false, refuse(protocol.CannotStart, "The workspace is being stopped.")
	case running >= t.options.Limits.Running:
		return nil, false, refuse(protocol.TooMany, "%d commands run, which is the limit: stop one first.", running)
	}
	t.last++
	id := idOf(t.last)
	r := record{Process: protocol.Process{
		ID: id, Key: key, Command: p.shown, Dir: shown(p.Dir), Session: p.Socket != nil,
		State: protocol.Running, StartedAt: t.options.Now(),
	}, Starting: true}
	c = newCommand(r, newOutput(t.store.place(id), t.options.Now))
	t.commands[c.number], t.keys[key] = c, c
	return c, true, nil
}

// withdraw undoes reserve. No one has seen the command.
func (t *table) withdraw(c *command) {
	t.drop(c)
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.last == c.number {
		t.last--
	}
}

// drop forgets a command.
func (t *table) drop(c *command) {
	r := c.current()
	t.mu.Lock()
	delete(t.commands, c.number)
	if t.keys[r.Key] == c {
		delete(t.keys, r.Key)
	}
	t.mu.Unlock()
	if err := t.store.remove(r.ID); err != nil {
		t.options.Log.Warn("a command could not be forgotten", "id", r.ID, "error", err)
	}
}

// add remembers a command of an earlier life. A key is that of the newest command that has it; the main process is
// started in each life of the container.
func (t *table) add(c *command, key string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.commands[c.number] = c
	if earlier := t.keys[key]; key != MainKey && (earlier == nil || earlier.number < c.number) {
		t.keys[key] = c
	}
}

// countRunning returns how many of the commands run or are being started.
func countRunning(commands iter.Seq[*command]) (n int) {
	for c := range commands {
		if c.current().runs() {
			n++
		}
	}
	return n
}
