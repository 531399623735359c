// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1beta1"
)

// mcpWorld are MCP servers, and the connections to them.
type mcpWorld struct {
	urls []string
	// hangs is the url of one that accepts connections and answers nothing.
	hangs string
	open  connections
}

// serveMCP serves so many servers until the context ends.
func serveMCP(ctx context.Context, servers int) (*mcpWorld, error) {
	w := &mcpWorld{}
	for range servers {
		server := sdk.NewServer(&sdk.Implementation{Name: "bench", Version: "1"}, nil)
		for i := range 10 {
			server.AddTool(&sdk.Tool{Name: fmt.Sprintf("tool%d", i), Description: "Says that it is done.",
				InputSchema: map[string]any{"type": "object"}},
				func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
					return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil
				})
		}
		url, err := w.serve(ctx, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return server },
			&sdk.StreamableHTTPOptions{Stateless: true}), w.open.note)
		if err != nil {
			return nil, err
		}
		w.urls = append(w.urls, url)
	}
	hangs := http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() })
	var err error
	w.hangs, err = w.serve(ctx, hangs, nil)
	return w, err
}

// serve serves at an address of this pod, and returns the url.
func (*mcpWorld) serve(ctx context.Context, h http.Handler, note func(net.Conn, http.ConnState)) (string, error) {
	address, err := ownAddress()
	if err != nil {
		return "", err
	}
	var config net.ListenConfig
	listener, err := config.Listen(ctx, "tcp", net.JoinHostPort(address, "0"))
	if err != nil {
		return "", fmt.Errorf("listening for MCP clients: %w", err)
	}
	server := &http.Server{Handler: h, ReadHeaderTimeout: time.Minute, ConnState: note}
	context.AfterFunc(ctx, func() { _ = server.Close() })
	go func() { _ = server.Serve(listener) }()
	return "http://" + listener.Addr().String() + "/mcp", nil
}

// ownAddress is the address of this pod.
func ownAddress() (string, error) {
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return "", fmt.Errorf("looking for the own address: %w", err)
	}
	for _, a := range addresses {
		if own, ok := a.(*net.IPNet); ok && own.IP.IsGlobalUnicast() {
			return own.IP.String(), nil
		}
	}
	return "", errors.New("this pod has no address")
}

// entries are those of a chat: what is known of one is known of no other's.
func (w *mcpWorld) entries(chat string) (all []v1beta1.MCPServer) {
	for i, url := range w.urls {
		all = append(all, v1beta1.MCPServer{Name: fmt.Sprintf("s%d", i), URL: url,
			Headers: []v1beta1.MCPHeader{{Name: "X-Chat", Value: chat}}})
	}
	return all
}

// withHanging are those of a chat that has the server which hangs, too.
func (w *mcpWorld) withHanging(chat string) []v1beta1.MCPServer {
	return append(w.entries(chat), v1beta1.MCPServer{Name: "hangs", URL: w.hangs,
		ConnectTimeoutSeconds: new(int32(mcpPatience))})
}

// connections are those that were opened since it was forgotten which there are. The zero value has none.
type connections struct {
	mu   sync.Mutex
	open map[net.Conn]bool
	peak int
}

func (c *connections) note(conn net.Conn, state http.ConnState) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch state {
	case http.StateNew:
		if c.open == nil {
			c.open = map[net.Conn]bool{}
		}
		c.open[conn] = true
		c.peak = max(c.peak, len(c.open))
	case http.StateClosed, http.StateHijacked:
		delete(c.open, conn)
	}
}

// forget restarts the count: those that are open do not count.
func (c *connections) forget() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.open, c.peak = nil, 0
}

// most are the most that were open at once, and those that are left.
func (c *connections) most() (peak, left int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.peak, len(c.open)
}
