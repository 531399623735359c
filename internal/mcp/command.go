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
	"sync/atomic"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/text/clip"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/internal/workspace/protocol"
)

// housed is the agent of the workspace in which the server's command runs.
func housed(ctx context.Context, server *v1alpha1.MCPServer, places Places) (*client.Client, *failure) {
	if places.Workspace == nil {
		return nil, &failure{reason: v1alpha1.MCPWorkspaceNotReady, words: "its command needs a workspace: there is none"}
	}
	ctx, cancel := context.WithTimeout(ctx, server.ConnectTimeout())
	defer cancel()
	agent, err := places.Workspace(ctx)
	if err != nil {
		return nil, &failure{reason: v1alpha1.MCPWorkspaceNotReady,
			words: clip.Ellipsis("its command needs the workspace: "+scrubLine(err.Error(), scrubber{}), maxWords)}
	}
	return agent, nil
}

// command is a server that runs in the workspace, as one session speaks to it.
type command struct {
	session *client.Session
	// fault is why it is not listened to any more.
	fault atomic.Pointer[failure]

	mu sync.Mutex
	output
}

// begin starts the server's command, which ends when living does.
func begin(ctx, living context.Context, e *endpoint) (sdk.Transport, line, *failure) {
	request := protocol.StartRequest{Argv: e.server.Command}
	for _, v := range e.server.Env {
		request.Env = append(request.Env, v.Name+"="+v.Value)
	}
	session, err := e.agent.Speak(ctx, request)
	if err != nil {
		return nil, nil, notBegun(err)
	}
	c := &command{session: session}
	context.AfterFunc(living, func() { _ = c.Close() }) // It is over in any case.
	return &sdk.IOTransport{Reader: c, Writer: c, MaxLineLength: int(limits.Event) + aside}, c, nil
}

// aside is how many bytes more than a message has the protocol's library may hold, since it reads ahead: 64 KiB.
const aside = 64 << 10

// notBegun is why the command was not started.
func notBegun(err error) *failure {
	refused, ok := errors.AsType[*protocol.Error](err)
	switch {
	case ok:
		return &failure{reason: v1alpha1.MCPCommandFailed, words: scrubLine(refused.Message, scrubber{})}
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{reason: v1alpha1.MCPTimedOut, words: "its workspace did not answer in time", slow: true}
	}
	return &failure{reason: v1alpha1.MCPWorkspaceNotReady, words: scrubLine(err.Error(), scrubber{})}
}

// Read implements io.Reader, within the limits of what is read of a server.
func (c *command) Read(p []byte) (int, error) {
	if fault := c.fault.Load(); fault != nil {
		return 0, fault
	}
	n, err := c.session.Read(p)
	c.mu.Lock()
	c.add(p[:n])
	fault := c.exceeds()
	c.mu.Unlock()
	if fault != nil {
		c.fault.Store(fault)
		return 0, fault
	}
	return n, err
}

// Write implements io.Writer.
func (c *command) Write(p []byte) (int, error) { return c.session.Write(p) }

// Close ends the command.
func (c *command) Close() error { return c.session.Close() }

// failure implements line. What the command has written to its standard error is a part of it.
func (c *command) failure(ctx context.Context, err error, _ *httpguard.Notes, secrets scrubber) *failure {
	if known, ok := errors.AsType[*failure](err); ok {
		return known
	}
	if fault := c.fault.Load(); fault != nil {
		return fault
	}
	c.mu.Lock()
	stray := c.strayed()
	c.mu.Unlock()
	p, last, lost := c.session.Last(context.WithoutCancel(ctx))
	said := saidIn(err)
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return &failure{reason: v1alpha1.MCPTimedOut, words: with("it did not answer in time", last), slow: true}
	case stray != "":
		return &failure{reason: v1alpha1.MCPResponseInvalid,
			words: scrubLine("it writes to its standard output what is not of the protocol: "+stray, secrets)}
	case said != "":
		return &failure{reason: v1alpha1.MCPResponseInvalid, words: "it answered: " + scrubLine(said, secrets)}
	case errors.Is(lost, client.ErrGone):
		return &failure{reason: v1alpha1.MCPWorkspaceNotReady, words: client.ErrGone.Error()}
	case p == nil:
		return &failure{reason: v1alpha1.MCPWorkspaceNotReady, words: client.ErrUnreachable.Error()}
	case p.State == protocol.Running:
		return &failure{reason: v1alpha1.MCPResponseInvalid,
			words: with("its answer is not of the Model Context Protocol", last)}
	}
	return &failure{reason: v1alpha1.MCPCommandFailed, words: with(ending(p), last)}
}

// ending is how a command has ended.
func ending(p *protocol.Process) string {
	switch {
	case p.State == protocol.Lost:
		return "its command ended with a restart of the workspace"
	case p.ExitCode != nil:
		return fmt.Sprintf("its command ended with exit code %d (process %s)", *p.ExitCode, p.ID)
	}
	return fmt.Sprintf("its command was ended by %s (process %s)", p.Signal, p.ID)
}

// with adds the last of what a command has written to its standard error, from the beginning of a word on.
func with(words string, last []byte) string {
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

// output is what is known of what a command writes to its standard output.
type output struct {
	total, line int64
	// begins are the first bytes of the line that is being written, stray those of the last one that was no JSON.
	begins, stray []byte
}

// maxStray is how many bytes of a line are kept: 100.
const maxStray = 100

func (o *output) add(p []byte) {
	o.total += int64(len(p))
	for piece := range bytes.Lines(p) {
		o.line += int64(len(piece))
		o.begins = append(o.begins, piece[:min(len(piece), maxStray-len(o.begins))]...)
		if piece[len(piece)-1] == '\n' {
			o.settle()
			o.line, o.begins = 0, o.begins[:0]
		}
	}
}

// settle keeps the line if it is no JSON of the protocol.
func (o *output) settle() {
	if text := bytes.TrimSpace(o.begins); len(text) > 0 && text[0] != '{' && text[0] != '[' {
		o.stray = bytes.Clone(text)
	}
}

// strayed is the beginning of what was written that is not of the protocol; empty if all is.
func (o *output) strayed() string {
	o.settle()
	return string(o.stray)
}

// exceeds is the limit that was reached; nil: none.
func (o *output) exceeds() *failure {
	switch {
	case o.line > limits.Event:
		return &failure{reason: v1alpha1.MCPResponseInvalid,
			words: fmt.Sprintf("a message of it has more than %d bytes", limits.Event)}
	case o.total > limits.Stream:
		return &failure{reason: v1alpha1.MCPResponseInvalid,
			words: fmt.Sprintf("it writes more than %d bytes", limits.Stream)}
	}
	return nil
}
