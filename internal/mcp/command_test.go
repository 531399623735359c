// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/workspace/client"
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
func offerIn(t *testing.T, s *mcp.Servers, a *realagent.Agent, entries ...v1alpha1.MCPServer) *mcp.Offer {
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
	if got := strings.Join(names(o), " "); got != "s__count s__die s__fork s__hang s__variable" {
		t.Fatalf("it offers %s, %v", got, o.Unavailable())
	}
	noneRuns(t, a)
	if got := run(t, o, "s__variable", "{}"); got.err != nil || got.output != "hello" {
		t.Errorf("it says %+v %v", got, got.err)
	}
	// The calls of a step share a process.
	first, second := run(t, o, "s__count", "{}"), run(t, o, "s__count", "{}")
	if !strings.HasPrefix(first.output, "call 1 of") || !strings.HasPrefix(second.output, "call 2 of") {
		t.Errorf("it says %+v, then %+v", first, second)
	}
	o.Close()
	noneRuns(t, a)
	// The next step has another, and knows the list.
	o = offerIn(t, servers, a, playing(t, "honest"))
	if len(o.Tools()) != 5 || len(a.Running("serve\x00")) != 0 {
		t.Errorf("it offers %v", names(o))
	}
	if got := run(t, o, "s__count", "{}"); !strings.HasPrefix(got.output, "call 1 of") {
		t.Errorf("it says %+v %v", got, got.err)
	}
}

func TestAListIsThatOfOneWorkspaceAlone(t *testing.T) {
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

func TestCallOfWorkspaceServerNeedsWorkspace(t *testing.T) {
	a := realagent.Start(t)
	servers, _ := newServers(t, nil)
	o := servers.Offer(t.Context(), []v1alpha1.MCPServer{playing(t, "honest")}, in(a))
	defer o.Close()
	s := newServer()
	tool(s, "far", says("ok"))
	far := offer(t, servers, serve(t, stateless(s)))
	for name, c := range map[string]struct {
		offer *mcp.Offer
		needs bool
	}{"s__count": {o, true}, "s__far": {far, false}} {
		registry := tools.NewRegistry().Plus(c.offer.Tools(), nil)
		if got := registry.NeedWorkspace(&v1alpha1.Chat{}, []v1alpha1.ToolCall{{Name: name}}); got != c.needs {
			t.Errorf("%s: it needs one: %v", name, got)
		}
	}
}

func TestACommandThatCannotServeSaysWhy(t *testing.T) {
	a := realagent.Start(t)
	with := func(role string, change func(*v1alpha1.MCPServer)) v1alpha1.MCPServer {
		entry := playing(t, role)
		if change != nil {
			change(&entry)
		}
		return entry
	}
	argv := func(argv ...string) func(*v1alpha1.MCPServer) {
		return func(s *v1alpha1.MCPServer) { s.Command = argv }
	}
	hasty := func(s *v1alpha1.MCPServer) { s.ConnectTimeoutSeconds = new(int32(1)) }
	for name, c := range map[string]struct {
		entry  v1alpha1.MCPServer
		reason v1alpha1.MCPServerReason
		says   string
	}{
		"it ends at once": {with("ends at once", nil), v1alpha1.MCPCommandFailed,
			"its command ended with exit code 3 (process p"},
		"it is not there": {with("", argv("no-such-server")), v1alpha1.MCPCommandFailed,
			"no-such-server is no program in PATH"},
		"it is no program": {with("", argv("/etc/passwd")), v1alpha1.MCPCommandFailed, "/etc/passwd cannot be run"},
		"it has a NUL":     {with("", argv("a\x00b")), v1alpha1.MCPCommandFailed, "cannot contain the character NUL"},
		"it talks to people": {with("talks to people", nil), v1alpha1.MCPResponseInvalid,
			"not of the protocol: Server listening on port 80"},
		"it ends no line": {with("ends no line", nil), v1alpha1.MCPResponseInvalid,
			"a message of it has more than 4194304 bytes"},
		"it says too much": {with("says too much", nil), v1alpha1.MCPResponseInvalid,
			"not of the Model Context Protocol"},
		"it says nothing": {with("says nothing", hasty), v1alpha1.MCPTimedOut, "it did not answer in time"},
		"it closes its streams": {with("closes its streams", nil), v1alpha1.MCPCommandFailed,
			"its command was ended by SIGTERM"},
		"it is no server": {with("", argv("sh", "-c", "echo usage: x >&2; cat >/dev/null")), v1alpha1.MCPTimedOut,
			"usage: x"},
	} {
		t.Run(name, func(t *testing.T) {
			servers, _ := newServers(t, nil)
			began := time.Now()
			left := offerIn(t, servers, a, c.entry).Unavailable()
			if len(left) != 1 || left[0].Reason != c.reason || !strings.Contains(left[0].Message, c.says) ||
				len(left[0].Message) > 250 || strings.Contains(left[0].Message, "\x1b") {
				t.Errorf("it is %+v", left)
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("it took %s", took)
			}
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
		left := servers.Offer(t.Context(), []v1alpha1.MCPServer{playing(t, "honest")}, c.places).Unavailable()
		if len(left) != 1 || left[0].Reason != v1alpha1.MCPWorkspaceNotReady || left[0].Message != c.says {
			t.Errorf("%s: it is %+v", name, left)
		}
	}
	// It is not remembered: the next step finds the workspace.
	if o := offerIn(t, servers, realagent.Start(t), playing(t, "honest")); len(o.Tools()) == 0 {
		t.Errorf("it is %v", o.Unavailable())
	}
}

func TestACallWhoseCommandEndsSaysSoOnce(t *testing.T) {
	a := realagent.Start(t)
	servers, _ := newServers(t, nil)
	o := offerIn(t, servers, a, playing(t, "honest"))
	got := run(t, o, "s__die", "{}")
	if got.err == nil || !strings.Contains(got.err.Error(), "its command ended with exit code 7") ||
		!strings.Contains(got.err.Error(), "out of memory") ||
		!strings.HasSuffix(got.err.Error(), "; whether the call was done is not known") {
		t.Errorf("it says %+v %v", got, got.err)
	}
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
	if want := `["sealed",{"action":"accept","content":{"name":"Ada"}}]`; err != nil || got != want {
		t.Errorf("it says %s, %v", got, err)
	}
}

func TestEndOfStepStopsProcessesOfCommandServers(t *testing.T) {
	a := realagent.Start(t)
	servers, _ := newServers(t, nil)
	o := offerIn(t, servers, a, playing(t, "honest"))
	if got := run(t, o, "s__fork", "{}"); got.output != "forked" {
		t.Fatalf("it says %+v", got)
	}
	// A number alone stands in a port or a directory now and then, and setsid has yet to become the program.
	const forked = "sleep\x004711\x00"
	waiting.Until(t, patience, "one runs", func() bool { return len(a.Running(forked)) == 1 })
	o.Close()
	waiting.Until(t, patience, "all have ended", func() bool { return len(a.Running(forked)) == 0 })
	noneRuns(t, a)
}

// hanging is a call that runs at a server of the agent.
func hanging(ctx context.Context, t *testing.T, a *realagent.Agent, entry v1alpha1.MCPServer) chan error {
	t.Helper()
	servers, _ := newServers(t, nil)
	o := servers.Offer(ctx, []v1alpha1.MCPServer{entry}, in(a))
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
		"it is stopped":                   {unix.SIGTERM, ""},
		"its node is gone, and no answer": {unix.SIGSTOP, "the pod of the workspace is gone"},
	} {
		t.Run(name, func(t *testing.T) {
			a := realagent.Start(t)
			a.Options.Gone = func(context.Context) bool { return true }
			ended := hanging(t.Context(), t, a, playing(t, "honest"))
			began := time.Now()
			_ = a.Program.Process.Signal(c.signal)
			err := <-ended
			if err == nil || !strings.Contains(err.Error(), c.says) ||
				!strings.HasSuffix(err.Error(), "; whether the call was done is not known") {
				t.Errorf("it says %v", err)
			}
			t.Logf("after %s it says %v", time.Since(began), err)
			_ = a.Program.Process.Signal(unix.SIGCONT) // It may have ended.
		})
	}
}

func TestUnresponsiveCallTimesOutAndEndsItsCommand(t *testing.T) {
	a := realagent.Start(t)
	entry := playing(t, "honest")
	entry.TimeoutSeconds = new(int32(1))
	if err := <-hanging(t.Context(), t, a, entry); err == nil ||
		!strings.HasPrefix(err.Error(), "MCP server s gave no sign of life for 1s") {
		t.Errorf("it says %v", err)
	}
}

func TestAnInterruptionEndsACall(t *testing.T) {
	a := realagent.Start(t)
	ctx, interrupt := context.WithCancelCause(t.Context())
	ended := hanging(ctx, t, a, playing(t, "honest"))
	interrupt(tools.ErrInterrupted)
	if err := <-ended; !errors.Is(err, tools.ErrInterrupted) {
		t.Errorf("it says %v", err)
	}
}
