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
	// waitPause is the least time between two requests of a wait, for an agent that answers at once.
	waitPause = 100 * time.Millisecond
	// maxCommand is how many bytes are kept of a command, and maxDescendants how many of its descendants.
	maxCommand, maxDescendants = 64 << 10, 10
)

// Start starts a command by its key; one that was started before is returned as it is.
func (c *Client) Start(ctx context.Context, key string, r protocol.StartRequest) (*protocol.Process, error) {
	if !protocol.ValidKey(key) {
		return nil, fmt.Errorf("%q cannot be the key of a command", key)
	}
	return c.process(ctx, request{method: http.MethodPut, path: "/v1/processes/" + key}, r)
}

// Processes lists the commands of the workspace, the newest first.
func (c *Client) Processes(ctx context.Context) ([]protocol.Process, error) {
	list, err := send[protocol.ProcessList](ctx, c, request{method: http.MethodGet, path: "/v1/processes"}, nil)
	if err != nil {
		return nil, err
	}
	for i := range list.Processes {
		if err := check(&list.Processes[i]); err != nil {
			return nil, err
		}
	}
	return list.Processes, nil
}

// Process returns a command as it is now.
func (c *Client) Process(ctx context.Context, id string) (*protocol.Process, error) {
	return c.look(ctx, id, 0)
}

// Wait waits until a command has ended or ctx is done. The error of the latter is that of ctx. It calls running each
// time the agent reports that the command runs.
func (c *Client) Wait(ctx context.Context, id string, running func()) (*protocol.Process, error) {
	for {
		p, err := c.look(ctx, id, protocol.MaxWait)
		if err != nil || p.State != protocol.Running {
			return p, err
		}
		running()
		if err := sleep(ctx, waitPause); err != nil {
			return nil, err
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

// Signal sends a signal to a command and all its descendants.
func (c *Client) Signal(ctx context.Context, id string, signal protocol.Signal) (*protocol.Process, error) {
	path, err := processPath(id)
	if err != nil {
		return nil, err
	}
	r := request{method: http.MethodPost, path: path + "/signal", once: signal == protocol.Interrupt}
	return c.process(ctx, r, protocol.SignalRequest{Signal: signal})
}

// Output is a piece of the output of a command.
type Output struct {
	// From is the offset of its first byte: the requested one, or a later one if the bytes between are not kept.
	From int64
	// Total is how much the command had written when the answer began.
	Total int64
	Data  []byte
}

// Next is the offset of the first byte after the piece.
func (o *Output) Next() int64 { return o.From + int64(len(o.Data)) }

// Output reads at most limit bytes of a command's output from an offset. If there are none yet, it waits, at most so
// long and at most 15 s, or until the command has ended.
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
	got, err := c.do(ctx, request{
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
	// A piece after the end begins at the end. More output may have come since the answer began.
	if first < min(from, total) {
		return nil, &AnswerError{Status: http.StatusOK, Problem: "output from before what was asked for"}
	}
	return &Output{From: first, Total: max(total, first+int64(len(got.body))), Data: got.body}, nil
}

// maxOffset is more than any command writes, so that sums of offsets and sizes do not overflow.
const maxOffset = 1 << 60

// offset reads an offset from the headers of an answer.
func offset(header http.Header, name string) (int64, error) {
	value, err := strconv.ParseInt(header.Get(name), 10, 64)
	if err != nil || value < 0 || value > maxOffset {
		return 0, &AnswerError{Status: http.StatusOK, Problem: "without a header " + name + " that can be used"}
	}
	return value, nil
}

// process sends a request whose answer is a process.
func (c *Client) process(ctx context.Context, r request, body any) (*protocol.Process, error) {
	p, err := send[protocol.Process](ctx, c, r, body)
	if err != nil {
		return nil, err
	}
	return p, check(p)
}

// check validates a process, and cleans its texts.
func check(p *protocol.Process) error {
	states := []protocol.ProcessState{protocol.Running, protocol.Exited, protocol.Lost}
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

// processPath is the path of a process. A model may have invented the id.
func processPath(id string) (string, error) {
	if !protocol.ValidKey(id) {
		return "", &protocol.Error{Code: protocol.NotFound, Message: fmt.Sprintf("there is no process %.80q", id)}
	}
	return "/v1/processes/" + id, nil
}

func seconds(d time.Duration) string { return strconv.Itoa(int((d + time.Second - 1) / time.Second)) }
