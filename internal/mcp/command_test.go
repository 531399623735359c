// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realagent"
	"parley.dev/parley/test/kit/waiting"
)

// patience is for what takes milliseconds where nothing else runs.
const patience = 30 * time.Second

// in are the places of a chat whose workspace has the agent.
func in(a *realagent.Agent) mcp.Places {
	asking := a.Client()
	return mcp.Places{Workspace: func(context.Context) (*client.Client, error) { return asking, nil }}
}

// offerIn is what servers offer that run in the agent's workspace.
func offerIn(t *testing.T, s *mcp.Servers, a *realagent.Agent, entries ...v1beta1.MCPServer) *mcp.Offer {
	t.Helper()
	o := s.Offer(t.Context(), entries, in(a))
	t.Cleanup(o.Close)
	return o
}

// noneRuns waits until no server runs in the agent's workspace.
func noneRuns(t *testing.T, a *realagent.Agent) {
	t.Helper()
	waiting.Until(t, patience, "no server runs", func() bool { return len(a.Running("serve\x00")) == 0 })
}

func TestCommandServerListsAndCallsTools(t *testing.T) {
	a := realagent.Start(t)
	servers, _ := newServers(t, nil)
	o := offerIn(t, servers, a, playing(t, "honest"))
	check.Equal(t, "tools", "s__count s__die s__fork s__hang s__variable", strings.Join(names(o), " "))
	noneRuns(t, a)
	returns(t, o, "s__variable", "{}", "hello")
	// The calls of a step share a process.
	for _, want := range []string{"call 1 of", "call 2 of"} {
		check.Contains(t, run(t, o, "s__count", "{}").output, want)
	}
	o.Close()
	noneRuns(t, a)
	// The next step has another, and knows the list.
	o = offerIn(t, servers, a, playing(t, "honest"))
	if len(o.Tools()) != 5 || len(a.Running("serve\x00")) != 0 {
		t.Errorf("it offers %v", names(o))
	}
	check.Contains(t, run(t, o, "s__count", "{}").output, "call 1 of")
}

func TestListBelongsToOneWorkspace(t *testing.T) {
	first, second := realagent.Start(t), realagent.Start(t)
	second.Options.Pod = "another"
	servers, _ := newServers(t, nil)
	if o := offerIn(t, servers, first, playing(t, "honest")); len(o.Tools()) == 0 {
		t.Fatalf("it is %v", o.Unavailable())
	}
	second.Program.Process.Signal(unix.SIGTERM)
	second.Program.Wait()
	if o := offerIn(t, servers, second, playing(t, "honest")); len(o.Tools()) > 0 {
		t.Errorf("a workspace that is gone offers %v", names(o))
	}
}

func TestListIsReadInReplacementOfLostPod(t *testing.T) {
	lost, replacement := realagent.Start(t), realagent.Start(t)
	lost.Options.Pod = "lost"
	lost.Options.Gone = func(context.Context) bool { return true }
	lost.Program.Process.Signal(unix.SIGTERM)
	lost.Program.Wait()
	stale, fresh := lost.Client(), replacement.Client()
	for name, c := range map[string]struct {
		next    *client.Client
		offered int
	}{"there is one": {fresh, 5}, "there is none": {stale, 0}} {
		t.Run(name, func(t *testing.T) {
			servers, _ := newServers(t, nil)
			asked := 0
			o := servers.Offer(t.Context(), []v1beta1.MCPServer{playing(t, "honest")}, mcp.Places{
				Workspace: func(context.Context) (*client.Client, error) {
					if asked++; asked == 1 {
						return stale, nil
					}
					return c.next, nil
				}})
			defer o.Close()
			check.Equal(t, "tools", c.offered, len(o.Tools()))
			if c.offered == 0 {
				failsWith(t, o, v1beta1.MCPWorkspaceNotReady, "the pod of the workspace is gone")
			}
		})
	}
}

func TestCallOfWorkspaceServerNeedsWorkspace(t *testing.T) {
	a := realagent.Start(t)
	servers, _ := newServers(t, nil)
	o := servers.Offer(t.Context(), []v1beta1.MCPServer{playing(t, "honest")}, in(a))
	defer o.Close()
	s := newServer()
	tool(s, "far", says("ok"))
	far := offer(t, servers, serve(t, stateless(s)))
	for name, c := range map[string]struct {
		offer *mcp.Offer
		needs bool
	}{"s__count": {o, true}, "s__far": {far, false}} {
		registry := tools.NewRegistry().Plus(c.offer.Tools(), nil)
		check.Equal(t, name, c.needs, registry.NeedWorkspace(&v1beta1.Chat{}, []v1beta1.ToolCall{{Name: name}}))
	}
}

func TestInvalidCommandIsUnavailable(t *testing.T) {
	a := realagent.Start(t)
	with := func(role string, argv ...string) v1beta1.MCPServer {
		entry := playing(t, role)
		if len(argv) > 0 {
			entry.Command = argv
		}
		return entry
	}
	hasty := with("says nothing")
	hasty.ConnectTimeoutSeconds = new(int32(1))
	for name, c := range map[string]struct {
		entry  v1beta1.MCPServer
		reason v1beta1.MCPServerReason
		says   string
	}{
		"it ends at once": {with("ends at once"), v1beta1.MCPCommandFailed,
			"its command ended with exit code 3 (process p"},
		"it is not there": {with("", "no-such-server"), v1beta1.MCPCommandFailed,
			"no-such-server is no program in PATH"},
		"it is no program": {with("", "/etc/passwd"), v1beta1.MCPCommandFailed, "/etc/passwd cannot be run"},
		"it has a NUL":     {with("", "a\x00b"), v1beta1.MCPCommandFailed, "cannot contain the character NUL"},
		"it talks to people": {with("talks to people"), v1beta1.MCPResponseInvalid,
			"not of the protocol: Server listening on port 80"},
		"it ends no line": {with("ends no line"), v1beta1.MCPResponseInvalid,
			"a message of it has more than 4194304 bytes"},
		"it says too much": {with("says too much"), v1beta1.MCPResponseInvalid,
			"not of the Model Context Protocol"},
		"it says nothing": {hasty, v1beta1.MCPTimedOut, "it did not answer in time"},
		"it closes its streams": {with("closes its streams"), v1beta1.MCPCommandFailed,
			"its command was ended by SIGTERM"},
		"it is no server": {with("", "sh", "-c", "echo usage: x >&2; cat >/dev/null"), v1beta1.MCPTimedOut,
			"usage: x"},
	} {
		t.Run(name, func(t *testing.T) {
			servers, _ := newServers(t, nil)
			failsWith(t, offerIn(t, servers, a, c.entry), c.reason, c.says)
			noneRuns(t, a)
		})
	}
}

func TestCommandServerIsUnavailableWithoutReadyWorkspace(t *testing.T) {
	none := func(context.Context) (*client.Client, error) {
		return nil, errors.New("chat c has no workspace: its spec.workspace names none")
	}
	servers, _ := newServers(t, nil)
	for name, c := range map[string]struct {
		places mcp.Places
		says   string
	}{
		"no workspaces at all": {mcp.Places{}, "its command needs a workspace: there is none"},
		"none of the chat": {mcp.Places{Workspace: none},
			"its command needs the workspace: chat c has no workspace: its spec.workspace names none"},
	} {
		t.Run(name, func(t *testing.T) {
			failsWith(t, servers.Offer(t.Context(), []v1beta1.MCPServer{playing(t, "honest")}, c.places),
				v1beta1.MCPWorkspaceNotReady, c.says)
		})
	}
	// It is not remembered: the next step finds the workspace.
	if o := offerIn(t, servers, realagent.Start(t), playing(t, "honest")); len(o.Tools()) == 0 {
		t.Errorf("it is %v", o.Unavailable())
	}
}

func TestCallReportsEndOfItsCommand(t *testing.T) {
	a := realagent.Start(t)
	servers, _ := newServers(t, nil)
	o := offerIn(t, servers, a, playing(t, "honest"))
	check.InOrder(t, fmt.Sprint(run(t, o, "s__die", "{}").err), "its command ended with exit code 7", "out of memory",
		"; whether the call was done is not known")
}

func TestElicitationAnswerReachesCommandFromAnotherProcess(t *testing.T) {
	a := realagent.Start(t)
	first, _ := newServers(t, nil)
	var q tools.Question
	_, err := offerIn(t, first, a, playing(t, "booking")).Tools()[0].Run(t.Context(), asking(&q))
	if !errors.Is(err, tools.ErrAsks) || !strings.Contains(q.Requests, "Who books?") {
		t.Fatalf("it asks %+v, %v", q, err)
	}
	second, _ := newServers(t, nil)
	call := callOf("{}")
	call.Answer = &tools.Answer{Given: true, Content: `{"name":"Ada"}`, Question: q}
	got, err := offerIn(t, second, a, playing(t, "booking")).Tools()[0].Run(t.Context(), call)
	check.OK(t, err)
	check.Equal(t, "answer", `["sealed",{"action":"accept","content":{"name":"Ada"}}]`, got)
}

func TestEndOfStepStopsProcessesOfCommandServers(t *testing.T) {
	a := realagent.Start(t)
	servers, _ := newServers(t, nil)
	o := offerIn(t, servers, a, playing(t, "honest"))
	returns(t, o, "s__fork", "{}", "forked")
	// A number alone stands in a port or a directory now and then, and setsid has yet to become the program.
	const forked = "sleep\x004711\x00"
	waiting.Until(t, patience, "one runs", func() bool { return len(a.Running(forked)) == 1 })
	o.Close()
	waiting.Until(t, patience, "all have ended", func() bool { return len(a.Running(forked)) == 0 })
	noneRuns(t, a)
}

// hanging is a call that runs at a server of the agent.
func hanging(ctx context.Context, t *testing.T, a *realagent.Agent, entry v1beta1.MCPServer) chan error {
	t.Helper()
	servers, _ := newServers(t, nil)
	o := servers.Offer(ctx, []v1beta1.MCPServer{entry}, in(a))
	t.Cleanup(o.Close)
	shown, ended := make(chan string, 1), make(chan error, 1)
	for _, tool := range o.Tools() {
		if tool.Definition().Name != "s__hang" {
			continue
		}
		call := callOf("{}")
		call.Show = func(text string) { shown <- text }
		go func() {
			_, err := tool.Run(ctx, call)
			ended <- err
		}()
		if text := <-shown; text != "1 hanging\n" {
			t.Errorf("it shows %q", text)
		}
		return ended
	}
	t.Fatalf("it offers %v: %v", names(o), o.Unavailable())
	return nil
}

func TestLostWorkspaceEndsCallWithClearError(t *testing.T) {
	for name, c := range map[string]struct {
		signal unix.Signal
		says   string
	}{
		"it is stopped":    {unix.SIGTERM, ""},
		"its node is gone": {unix.SIGSTOP, "the pod of the workspace is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			a := realagent.Start(t)
			a.Options.Gone = func(context.Context) bool { return true }
			ended := hanging(t.Context(), t, a, playing(t, "honest"))
			_ = a.Program.Process.Signal(c.signal)
			err := <-ended
			check.InOrder(t, fmt.Sprint(err), c.says, "; whether the call was done is not known")
			_ = a.Program.Process.Signal(unix.SIGCONT) // It may have ended.
		})
	}
}

func TestUnresponsiveCallTimesOutAndEndsItsCommand(t *testing.T) {
	a := realagent.Start(t)
	entry := playing(t, "honest")
	entry.TimeoutSeconds = new(int32(1))
	check.Contains(t, fmt.Sprint(<-hanging(t.Context(), t, a, entry)), "MCP server s gave no sign of life for 1s")
}

func TestInterruptionEndsCall(t *testing.T) {
	a := realagent.Start(t)
	ctx, interrupt := context.WithCancelCause(t.Context())
	ended := hanging(ctx, t, a, playing(t, "honest"))
	interrupt(tools.ErrInterrupted)
	if err := <-ended; !errors.Is(err, tools.ErrInterrupted) {
		t.Errorf("it says %v", err)
	}
}
