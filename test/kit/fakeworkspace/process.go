// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package fakeworkspace

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"parley.dev/parley/internal/workspace/protocol"
)

// Process is a command that was started.
type Process struct {
	// Asked is the request that started it.
	Asked protocol.StartRequest
	// Signals that came, in their order.
	Signals <-chan protocol.Signal

	signals chan protocol.Signal

	mu      sync.Mutex
	about   protocol.Process
	written []byte
	// first is the offset of the first byte that is kept behind head.
	head, first int64
	changed     chan struct{}
}

func newProcess(id, key string, asked protocol.StartRequest) *Process {
	signals := make(chan protocol.Signal, 16)
	return &Process{Asked: asked, Signals: signals, signals: signals, changed: make(chan struct{}),
		about: protocol.Process{ID: id, Key: key, Command: asked.Command, Dir: asked.Dir,
			State: protocol.Running, StartedAt: time.Now().UTC()}}
}

// Describe is the process as it is.
func (p *Process) Describe() protocol.Process {
	p.mu.Lock()
	defer p.mu.Unlock()
	about := p.about
	about.OutputBytes, about.OutputDropped = int64(len(p.written)), p.first-p.head
	return about
}

// Say writes output.
func (p *Process) Say(text string) {
	p.change(func() { p.written = append(p.written, text...) })
}

// Forget drops what was written between two offsets.
func (p *Process) Forget(from, to int64) { p.change(func() { p.head, p.first = from, to }) }

// Exit ends the process, if it has not ended.
func (p *Process) Exit(code int) { p.end(func(about *protocol.Process) { about.ExitCode = &code }) }

// Kill ends the process by a signal, such as SIGTERM.
func (p *Process) Kill(signal string) { p.end(func(about *protocol.Process) { about.Signal = signal }) }

// Lose ends the process as a restart of the workspace does.
func (p *Process) Lose() { p.end(func(about *protocol.Process) { about.State = protocol.Lost }) }

func (p *Process) end(how func(*protocol.Process)) {
	p.change(func() {
		if p.about.State != protocol.Running {
			return
		}
		p.about.State, p.about.EndedAt = protocol.Exited, time.Now().UTC()
		how(&p.about)
	})
}

func (p *Process) change(what func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	what()
	close(p.changed)
	p.changed = make(chan struct{})
}

// Ended waits until the process has ended or the context is done.
func (p *Process) Ended(ctx context.Context) { p.await(ctx, func() bool { return false }) }

// await waits until something holds, or the process has ended.
func (p *Process) await(ctx context.Context, holds func() bool) {
	for {
		p.mu.Lock()
		over, changed := holds() || p.about.State != protocol.Running, p.changed
		p.mu.Unlock()
		if over {
			return
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return
		}
	}
}

func look(p *Process, w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), seconds(r))
	defer cancel()
	p.Ended(ctx)
	reply(w, p.Describe())
}

func output(p *Process, w http.ResponseWriter, r *http.Request) {
	from, _ := strconv.ParseInt(r.URL.Query().Get("from"), 10, 64)
	limit, _ := strconv.ParseInt(r.URL.Query().Get("limit"), 10, 64)
	ctx, cancel := context.WithTimeout(r.Context(), seconds(r))
	defer cancel()
	p.await(ctx, func() bool { return int64(len(p.written)) > from })
	p.mu.Lock()
	total := int64(len(p.written))
	end := total
	if from < p.head {
		end = min(end, p.head)
	} else if from < p.first {
		from = p.first
	}
	end = min(end, from+limit)
	var data []byte
	if from < end {
		data = p.written[from:end]
	}
	p.mu.Unlock()
	w.Header().Set(protocol.HeaderOutputFrom, strconv.FormatInt(from, 10))
	w.Header().Set(protocol.HeaderOutputTotal, strconv.FormatInt(total, 10))
	_, _ = w.Write(data)
}

func signal(p *Process, w http.ResponseWriter, r *http.Request) {
	var asked protocol.SignalRequest
	if !decode(w, r, &asked) {
		return
	}
	if p.Describe().State != protocol.Running {
		refuse(w, http.StatusConflict, protocol.NotRunning, "The process "+p.about.ID+" has ended.")
		return
	}
	p.signals <- asked.Signal
	if asked.Signal == protocol.Kill {
		p.Kill("SIGKILL")
	}
	reply(w, p.Describe())
}
