// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

// clock tells a time that only the test moves.
type clock struct {
	mu  sync.Mutex
	now time.Time
}

func (c *clock) Now() time.Time {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.now
}

func (c *clock) pass(d time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.now = c.now.Add(d)
}

func newServers(t *testing.T, change func(*mcp.Options)) (*mcp.Servers, *clock) {
	t.Helper()
	c := &clock{now: time.Unix(1_800_000_000, 0)}
	o := mcp.Options{HTTP: httpguard.Settings{Loopback: true}.Client, Log: slog.New(slog.DiscardHandler), Now: c.Now}
	if change != nil {
		change(&o)
	}
	return mcp.New(o), c
}

// serve starts the handler, and is an entry of it.
func serve(t *testing.T, h http.Handler) v1beta1.MCPServer {
	t.Helper()
	server := httptest.NewServer(h)
	t.Cleanup(func() {
		server.CloseClientConnections() // Close waits for requests that a fault has left open.
		server.Close()
	})
	return v1beta1.MCPServer{Name: "s", URL: server.URL + "/mcp", ConnectTimeoutSeconds: new(int32(5))}
}

// tool adds a tool without arguments to a server.
func tool(s *sdk.Server, name string, run func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error)) {
	s.AddTool(&sdk.Tool{Name: name, Description: "Does " + name + ".", InputSchema: map[string]any{"type": "object"}}, run)
}

func says(text string) func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
	return func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: text}}}, nil
	}
}

func newServer() *sdk.Server {
	return sdk.NewServer(&sdk.Implementation{Name: "test", Version: "1"}, nil)
}

// stateless serves as the protocol is from 2026-07-28 on.
func stateless(s *sdk.Server) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s },
		&sdk.StreamableHTTPOptions{Stateless: true})
}

// withSessions serves as it was before.
func withSessions(s *sdk.Server) http.Handler {
	return sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s }, nil)
}

// ran is what came of a call.
type ran struct {
	output string
	err    error
	files  []v1beta1.MessageFile
}

// run runs a call of a tool that is offered.
func run(t *testing.T, o *mcp.Offer, name, input string) (r ran) {
	t.Helper()
	for _, tool := range o.Tools() {
		if tool.Definition().Name == name {
			call := callOf(input)
			call.Attach = func(file v1beta1.MessageFile) bool {
				r.files = append(r.files, file)
				return true
			}
			r.output, r.err = tool.Run(t.Context(), call)
			return r
		}
	}
	t.Fatalf("tool %s is not offered: %v, %v", name, names(o), o.Unavailable())
	return r
}

// returns runs a call that must have the output.
func returns(t *testing.T, o *mcp.Offer, name, input, want string) {
	t.Helper()
	r := run(t, o, name, input)
	if r.err != nil {
		r.output = "failed: " + r.err.Error()
	}
	check.Equal(t, name, want, r.output)
}

// failsWith checks that only one server is unavailable, for a reason.
func failsWith(t *testing.T, o *mcp.Offer, reason v1beta1.MCPServerReason, words string) {
	t.Helper()
	u := o.Unavailable()
	if len(u) != 1 || u[0].Reason != reason || len(u[0].Message) > 250 ||
		strings.ContainsFunc(u[0].Message, unicode.IsControl) {
		t.Fatalf("unavailable are %+v", u)
	}
	check.Contains(t, u[0].Message, words)
}

func names(o *mcp.Offer) (all []string) {
	for _, tool := range o.Tools() {
		all = append(all, tool.Definition().Name)
	}
	return all
}

// offer is what the servers offer.
func offer(t *testing.T, s *mcp.Servers, entries ...v1beta1.MCPServer) *mcp.Offer {
	t.Helper()
	o := s.Offer(t.Context(), entries, mcp.Places{})
	t.Cleanup(o.Close)
	return o
}

// answering answers each JSON-RPC request with what the function makes of its method, as JSON.
func answering(result func(method string) any) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var asked struct {
			ID     any    `json:"id"`
			Method string `json:"method"`
		}
		if json.NewDecoder(r.Body).Decode(&asked) != nil || asked.ID == nil {
			w.WriteHeader(http.StatusAccepted)
			return
		}
		if asked.Method == "server/discover" {
			http.Error(w, "no such method", http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		answer := result(asked.Method)
		if asked.Method == "initialize" && answer == nil {
			answer = map[string]any{"protocolVersion": "2025-11-25", "capabilities": map[string]any{"tools": map[string]any{}},
				"serverInfo": map[string]any{"name": "liar", "version": "1"}}
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"jsonrpc": "2.0", "id": asked.ID, "result": answer})
	})
}

// echo is a server whose tool echo returns "done".
func echo() http.Handler {
	return answering(func(method string) any {
		switch method {
		case "tools/list":
			return map[string]any{"tools": []any{toolNamed("echo", nil)}}
		case "tools/call":
			return map[string]any{"content": []any{map[string]any{"type": "text", "text": "done"}}}
		}
		return nil
	})
}

func callOf(input string) tools.Call {
	return tools.Call{ToolCall: v1beta1.ToolCall{ID: "call_1", Input: input}, Key: "uid.1.call_1",
		Chat: &v1beta1.Chat{}, Show: func(string) {},
		Alive: func() {}, Attach: func(v1beta1.MessageFile) bool { return false }}
}
