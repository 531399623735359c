// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/realagent"
)

// roleVariable has the test binary be a server that speaks on its standard input and output.
const roleVariable = "MCP_TEST_ROLE"

func TestMain(m *testing.M) {
	role := os.Getenv(roleVariable)
	if role == "" {
		os.Exit(realagent.Main(m))
	}
	play, ok := roles[role]
	if !ok {
		log.Fatalf("unknown role %q", role)
	}
	play()
}

// roles are what a server may be like.
var roles = map[string]func(){
	"honest": func() {
		fmt.Fprintln(os.Stderr, "the server has started")
		serveStdio(stdioServer())
	},
	"booking":            func() { serveStdio(booking()) },
	"ends at once":       func() { fmt.Fprintln(os.Stderr, "Error: Cannot find module 'x'"); os.Exit(3) },
	"talks to people":    func() { say("Server listening on port 80\x1b[31m\n", 1) },
	"ends no line":       func() { fmt.Fprint(os.Stdout, "{"); say(strings.Repeat(" ", 1<<16), 80) },
	"says too much":      func() { say(strings.Repeat(" ", 1<<15)+"\n", 1<<30) },
	"says nothing":       forever,
	"closes its streams": func() { os.Stdin.Close(); os.Stdout.Close(); forever() },
}

func serveStdio(s *sdk.Server) {
	if err := s.Run(context.Background(), &sdk.StdioTransport{}); err != nil {
		log.Fatal(err)
	}
}

// forever does nothing, until the process is ended.
func forever() {
	for range time.Tick(time.Hour) {
	}
}

// say writes a text so often, and waits then.
func say(text string, times int) {
	for range times {
		if _, err := os.Stdout.WriteString(text); err != nil {
			os.Exit(1)
		}
	}
	forever()
}

// stdioServer has tools that show what a process does.
func stdioServer() *sdk.Server {
	s, calls := newServer(), 0
	tool(s, "count", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		calls++
		return textOf(fmt.Sprintf("call %d of process %d", calls, os.Getpid())), nil
	})
	tool(s, "variable", says(os.Getenv("GREETING")))
	tool(s, "die", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		fmt.Fprintln(os.Stderr, "out of memory")
		os.Exit(7)
		return nil, nil
	})
	tool(s, "fork", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if err := exec.Command("setsid", "sleep", "4711").Start(); err != nil {
			return nil, err
		}
		return textOf("forked"), nil
	})
	tool(s, "hang", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		_ = r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: r.Params.GetProgressToken(), Progress: 1, Message: "hanging"})
		forever()
		return nil, nil
	})
	return s
}

func textOf(text string) *sdk.CallToolResult {
	return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}
}

// playing is an entry of a server in that role.
func playing(t *testing.T, role string) v1beta1.MCPServer {
	t.Helper()
	self, err := os.Executable()
	check.OK(t, err)
	return v1beta1.MCPServer{Name: "s", Command: []string{self, "serve"}, ConnectTimeoutSeconds: new(int32(5)),
		Env: []v1beta1.MCPVariable{{Name: roleVariable, Value: role}, {Name: "GREETING", Value: "hello"}}}
}
