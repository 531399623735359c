// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package client

import (
	"context"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"

	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/text/printable"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// waitPause is the least time between two questions of a wait: an agent that answers at once, although nothing has
	// happened, is not asked without a pause.
	waitPause = 100 * time.Millisecond
	// maxCommand is the most bytes that are kept of a command.
	maxCommand = 64 << 10
	// maxDescendants is how many descendants of a command are kept.
	maxDescendants = 10
)

// Start starts a command by its key; one that was started before is returned as it is.
func (c *Client) Start(ctx context.Context, key string, r protocol.StartRequest) (*protocol.Process, error) {
	if !protocol.ValidKey(key) {
		return nil, fmt.Errorf("%q cannot be the key of a command", key)
	}
	return c.process(ctx, request{method: http.MethodPut, path: "/v1/processes/" + key}, r)
}

// Processes are the commands that the workspace remembers, the newest first.
func (c *Client) Processes(ctx context.Context) ([]protocol.Process, error) {
	var list protocol.ProcessList
	if err := c.agent.json(ctx, request{method: http.MethodGet, path: "/v1/processes"}, nil, &list); err != nil {
		return nil, err
	}
	for i := range list.Processes {
		if err := check(&list.Processes[i]); err != nil {
			return nil, err
		}
	}
	return list.Processes, nil
}

// Process is a command as it is now.
func (c *Client) Process(ctx context.Context, id string) (*protocol.Process, error) {
	return c.look(ctx, id, 0)
}

// Wait waits until a command has ended or ctx is done. The error of the latter is that of ctx. Each time that the agent
// says that the command runs, running is called.
func (c *Client) Wait(ctx context.Context, id string, running func()) (*protocol.Process, error) {
	for {
		p, err := c.look(ctx, id, protocol.MaxWait)
		if err != nil || p.State != protocol.Running {
			return p, err
		}
		running()
		select {
		case <-ctx.Done():
			return nil, ctx.Err()
		case <-time.After(waitPause):
		}
	}
}

func (c *Client) look(ctx context.Context, id string, wait time.Duration) (*protocol.Process, error) {
	path, err := processPath(id)
	if err != nil {
		return nil, err
	}
	r := request{method: http.MethodGet, path: path, wait: wait}
	if wait > 0 {
		r.query = url.Values{"wait": {seconds(min(wait, longPoll))}}
	}
	return c.process(ctx, r, nil)
}

// Signal sends a signal to a command and to all that it has started.
func (c *Client) Signal(ctx context.Context, id string, signal protocol.Signal) (*protocol.Process, error) {
	path, err := processPath(id)
	if err != nil {
		return nil, err
	}
	r := request{method: http.MethodPost, path: path + "/signal", once: signal == protocol.Interrupt}
	return c.process(ctx, r, protocol.SignalRequest{Signal: signal})
}

// Output is a piece of what a command has written.
type Output struct {
	// From is the offset of its first byte: the one that was asked for, or a later one if what is between is not kept.
	From int64
	// Total is how much the command had written when the answer began.
	Total int64
	Data  []byte
}

// Next is the offset behind the piece.
func (o *Output) Next() int64 { return o.From + int64(len(o.Data)) }

// Output reads what a command has written from the offset on, at most limit bytes. If that is nothing yet, it waits
// for more, at most so long and at most 15 s, or until the command has ended.
func (c *Client) Output(ctx context.Context, id string, from, limit int64, wait time.Duration) (*Output, error) {
	path, err := processPath(id)
	if err != nil {
		return nil, err
	}
	wait = min(wait, protocol.MaxWait)
	query := url.Values{"from": {strconv.FormatInt(from, 10)}, "limit": {strconv.FormatInt(limit, 10)}}
	if wait > 0 {
		query.Set("wait", seconds(min(wait, longPoll)))
	}
	got, err := c.agent.do(ctx, request{
		method: http.MethodGet, path: path + "/output", query: query, most: limit, wait: wait,
	})
	if err != nil {
		return nil, err
	}
	first, err := offset(got.header, protocol.HeaderOutputFrom)
	if err != nil {
		return nil, err
	}
	total, err := offset(got.header, protocol.HeaderOutputTotal)
	if err != nil {
		return nil, err
	}
	// More may have come since the answer began; what is asked for behind the end begins at the end.
	if first < min(from, total) {
		return nil, &AnswerError{Status: http.StatusOK, Problem: "output from before what was asked for"}
	}
	return &Output{From: first, Total: max(total, first+int64(len(got.body))), Data: got.body}, nil
}

// maxOffset is beyond what any command writes, so that sums of offsets and sizes do not overflow.
const maxOffset = 1 << 60

// offset reads an offset from the headers of an answer.
func offset(header http.Header, name string) (int64, error) {
	value, err := strconv.ParseInt(header.Get(name), 10, 64)
	if err != nil || value < 0 || value > maxOffset {
		return 0, &AnswerError{Status: http.StatusOK, Problem: "without a header " + name + " that can be used"}
	}
	return value, nil
}

// process makes a request that is answered with a process.
func (c *Client) process(ctx context.Context, r request, body any) (*protocol.Process, error) {
	var p protocol.Process
	if err := c.agent.json(ctx, r, body, &p); err != nil {
		return nil, err
	}
	if err := check(&p); err != nil {
		return nil, err
	}
	return &p, nil
}

var states = []protocol.ProcessState{protocol.Running, protocol.Exited, protocol.Lost}

// check makes sure that a process can be used, and cleans its texts.
func check(p *protocol.Process) error {
	if !protocol.ValidKey(p.ID) || !slices.Contains(states, p.State) {
		return &AnswerError{Status: http.StatusOK, Problem: "not about a process"}
	}
	p.Command = printable.Text(clip.Bytes(p.Command, maxCommand))
	for _, text := range []*string{&p.Key, &p.Dir, &p.Signal, &p.Note} {
		*text = line(*text)
	}
	if d := p.Descendants; d != nil {
		d.First = d.First[:min(len(d.First), maxDescendants)]
		for i := range d.First {
			d.First[i].Command = line(d.First[i].Command)
		}
		d.Count = max(len(d.First), d.Count)
	}
	p.OutputBytes = min(max(0, p.OutputBytes), maxOffset)
	p.OutputDropped = min(max(0, p.OutputDropped), p.OutputBytes)
	return nil
}

// processPath is where a process is asked for. Ids come from models, too.
func processPath(id string) (string, error) {
	if !protocol.ValidKey(id) { // It is what a path can hold as it is.
		return "", &protocol.Error{Code: protocol.NotFound, Message: fmt.Sprintf("there is no process %.80q", id)}
	}
	return "/v1/processes/" + id, nil
}

func seconds(d time.Duration) string { return strconv.Itoa(int((d + time.Second - 1) / time.Second)) }
