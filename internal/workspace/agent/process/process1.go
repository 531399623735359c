// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package process

import (
	"errors"
	"os"
	"sync"

	"parley.dev/parley/internal/workspace/agent/link"
)

// errHungUp is why a request of process 1 has no answer.
var errHungUp = errors.New("process 1 has closed the socket")

// process1 asks process 1. Somebody else receives, and brings the answers.
type process1 struct {
	conn *link.Conn

	mu      sync.Mutex
	seq     int64
	waiting map[int64]chan answer
	over    bool
}

type answer struct {
	reply *link.Reply
	pipe  *os.File
}

func newProcess1(conn *link.Conn) *process1 {
	return &process1{conn: conn, waiting: map[int64]chan answer{}}
}

// ask sends a request, and a duplicate of the descriptor unless that is negative, and waits for the answer, which is
// near: process 1 waits for nobody.
func (p *process1) ask(m *link.Message, descriptor int) (answer, error) {
	reply := make(chan answer, 1)
	p.mu.Lock()
	if p.over {
		p.mu.Unlock()
		return answer{}, errHungUp
	}
	p.seq++
	m.Seq = p.seq
	p.waiting[m.Seq] = reply
	p.mu.Unlock()
	if err := p.conn.Send(m, descriptor); err != nil {
		p.mu.Lock()
		delete(p.waiting, m.Seq)
		p.mu.Unlock()
		return answer{}, err
	}
	a, ok := <-reply
	if !ok {
		return answer{}, errHungUp
	}
	return a, nil
}

func (p *process1) answered(m *link.Message, pipe *os.File) {
	p.mu.Lock()
	reply := p.waiting[m.Seq]
	delete(p.waiting, m.Seq)
	p.mu.Unlock()
	if reply != nil {
		reply <- answer{reply: m.Reply, pipe: pipe}
	} else if pipe != nil {
		_ = pipe.Close() // Process 1 keeps its own.
	}
}

// hangUp ends all requests that wait, and those to come.
func (p *process1) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.over = true
	for seq, reply := range p.waiting {
		close(reply)
		delete(p.waiting, seq)
	}
}

// forget lets process 1 let a command go.
func (p *process1) forget(id string) error { return p.conn.Send(&link.Message{Forget: id}, -1) }
