// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

const (
	// readAhead is how many bytes more than a message the protocol's library may buffer.
	readAhead = 64 << 10
	// maxStray is how many bytes of a line are kept.
	maxStray = 100
)

// command is a server that runs in the workspace, for one session.
type command struct {
	*client.Session

	mu sync.Mutex
	output
}

// startCommand starts the server's command, which ends when living does.
func startCommand(ctx, living context.Context, e *endpoint) (sdk.Transport, line, *failure) {
	request := protocol.StartRequest{Argv: e.server.Command}
	for _, v := range e.server.Env {
		request.Env = append(request.Env, v.Name+"="+v.Value)
	}
	session, err := e.agent.Speak(ctx, request)
	refused, ok := errors.AsType[*protocol.Error](err)
	switch {
	case err == nil:
		c := &command{Session: session}
		context.AfterFunc(living, func() { _ = c.Close() }) // It ends in any case.
		return &sdk.IOTransport{Reader: c, Writer: c, MaxLineLength: int(limits.Event) + readAhead}, c, nil
	case ok:
		return nil, nil, fail(v1beta1.MCPCommandFailed, "%s", scrubLine(refused.Message, scrubber{}))
	case errors.Is(err, context.DeadlineExceeded):
		return nil, nil, timedOut("its workspace did not answer in time")
	}
	return nil, nil, fail(v1beta1.MCPWorkspaceNotReady, "%s", scrubLine(err.Error(), scrubber{}))
}

// Read implements io.Reader, within the limits of a server's answers.
func (c *command) Read(p []byte) (int, error) {
	if fault := c.overflow(nil); fault != nil {
		return 0, fault
	}
	n, err := c.Session.Read(p)
	if fault := c.overflow(p[:n]); fault != nil {
		return 0, fault
	}
	return n, err
}

// overflow adds what was read, and returns the limit that the output exceeds; nil: none.
func (c *command) overflow(p []byte) *failure {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.add(p)
	return c.exceeds()
}

// failure implements line. It quotes the end of the command's standard error.
func (c *command) failure(ctx context.Context, err error, _ *httpguard.Notes, secrets scrubber) *failure {
	if known, ok := errors.AsType[*failure](err); ok {
		return known
	}
	if fault := c.overflow(nil); fault != nil {
		return fault
	}
	c.mu.Lock()
	stray := c.strayText()
	c.mu.Unlock()
	p, last, lost := c.Last(context.WithoutCancel(ctx))
	message := serverMessage(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return timedOut(withStderr("it did not answer in time", last))
	case stray != "":
		return fail(v1beta1.MCPResponseInvalid, "%s",
			scrubLine("it writes to its standard output what is not of the protocol: "+stray, secrets))
	case message != "":
		return fail(v1beta1.MCPResponseInvalid, "it answered: %s", scrubLine(message, secrets))
	case errors.Is(lost, client.ErrGone):
		return fail(v1beta1.MCPWorkspaceNotReady, "%s", client.ErrGone)
	case p == nil:
		return fail(v1beta1.MCPWorkspaceNotReady, "%s", client.ErrUnreachable)
	case p.State == protocol.Running:
		return fail(v1beta1.MCPResponseInvalid, "%s",
			withStderr("its answer is not of the Model Context Protocol", last))
	}
	return fail(v1beta1.MCPCommandFailed, "%s", withStderr(describeEnd(p), last))
}

// describeEnd is how a command has ended.
func describeEnd(p *protocol.Process) string {
	switch {
	case p.State == protocol.Lost:
		return "its command ended with a restart of the workspace"
	case p.ExitCode != nil:
		return fmt.Sprintf("its command ended with exit code %d (process %s)", *p.ExitCode, p.ID)
	}
	return fmt.Sprintf("its command was ended by %s (process %s)", p.Signal, p.ID)
}

// withStderr adds the end of a command's standard error, from the beginning of a word on.
func withStderr(words string, last []byte) string {
	text := strings.TrimSpace(strings.ToValidUTF8(string(last), ""))
	if text == "" {
		return words
	}
	room := maxWords - len(words) - len(": …")
	if len(text) > room {
		text = text[len(text)-room:]
		if _, rest, found := strings.Cut(text, " "); found {
			text = rest
		}
		text = "…" + strings.ToValidUTF8(text, "")
	}
	return scrubLine(words+": "+text, scrubber{})
}

// output accounts for the standard output of a command.
type output struct {
	total, line int64
	// start has the first bytes of the current line, stray those of the last line that was no JSON.
	start, stray []byte
}

func (o *output) add(p []byte) {
	o.total += int64(len(p))
	for piece := range bytes.Lines(p) {
		o.line += int64(len(piece))
		o.start = append(o.start, piece[:min(len(piece), maxStray-len(o.start))]...)
		if piece[len(piece)-1] == '\n' {
			o.settle()
			o.line, o.start = 0, o.start[:0]
		}
	}
}

// settle keeps the line if it is no JSON of the protocol.
func (o *output) settle() {
	if text := bytes.TrimSpace(o.start); len(text) > 0 && text[0] != '{' && text[0] != '[' {
		o.stray = bytes.Clone(text)
	}
}

// strayText is the beginning of a line that is not of the protocol; empty if there is none.
func (o *output) strayText() string {
	o.settle()
	return string(o.stray)
}

// exceeds is the limit that was reached; nil: none.
func (o *output) exceeds() *failure {
	switch {
	case o.line > limits.Event:
		return fail(v1beta1.MCPResponseInvalid, "a message of it has more than %d bytes", limits.Event)
	case o.total > limits.Stream:
		return fail(v1beta1.MCPResponseInvalid, "it writes more than %d bytes", limits.Stream)
	}
	return nil
}
