// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"fmt"
	"image"
	"image/png"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

// onePixel is a PNG.
func onePixel(t *testing.T) []byte {
	t.Helper()
	var b bytes.Buffer
	check.OK(t, png.Encode(&b, image.NewRGBA(image.Rect(0, 0, 1, 1))))
	return b.Bytes()
}

// everything is a server that has all that results can be.
func everything(t *testing.T) *sdk.Server {
	s, pixel := newServer(), onePixel(t)
	sdk.AddTool(s, &sdk.Tool{Name: "add", Description: "Adds."},
		func(_ context.Context, _ *sdk.CallToolRequest, in struct{ A, B int }) (*sdk.CallToolResult,
			struct{ Sum int }, error) {
			return nil, struct{ Sum int }{in.A + in.B}, nil
		})
	results := map[string]*sdk.CallToolResult{
		"image": {Content: []sdk.Content{
			&sdk.TextContent{Text: "look"}, &sdk.ImageContent{Data: pixel, MIMEType: "text/html"},
		}},
		"not-an-image": {Content: []sdk.Content{&sdk.ImageContent{Data: []byte("<html>"), MIMEType: "image/png"}}},
		"fails":        {Content: []sdk.Content{&sdk.TextContent{Text: "no such city"}}, IsError: true},
		"resource": {Content: []sdk.Content{
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.txt", Text: "hello"}},
			&sdk.EmbeddedResource{Resource: &sdk.ResourceContents{URI: "file:///a.bin", Blob: []byte{0, 1, 2}}},
			&sdk.ResourceLink{URI: "file:///b.txt", Name: "b"},
		}},
		"structured": {Content: []sdk.Content{&sdk.TextContent{Text: "two cities"}},
			StructuredContent: map[string]any{"cities": []string{"Ulm", "Bonn"}}},
		"empty": {Content: []sdk.Content{}},
		"large": {Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("x", 300<<10)}}},
	}
	for name, result := range results {
		tool(s, name, func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return result, nil })
	}
	return s
}

// versions are servers of each version of the protocol.
var versions = map[string]struct {
	handler   func(*sdk.Server) http.Handler
	transport v1beta1.MCPTransport
}{
	"2026-07-28": {stateless, ""}, "with sessions": {withSessions, ""},
	"2024-11-05": {func(s *sdk.Server) http.Handler {
		return sdk.NewSSEHandler(func(*http.Request) *sdk.Server { return s }, nil)
	}, v1beta1.MCPSSE},
}

func TestToolsWorkWithEveryServerProtocolVersion(t *testing.T) {
	for version, c := range versions {
		t.Run(version, func(t *testing.T) {
			entry := serve(t, c.handler(everything(t)))
			entry.Transport = c.transport
			servers, _ := newServers(t, nil)
			o := offer(t, servers, entry)
			for name, want := range map[string]string{
				"add": `{"Sum":5}`,
				"resource": "[resource file:///a.txt]\nhello\n[resource file:///a.bin: 3 bytes that are no text and no image " +
					"were left out]\n[resource file:///b.txt: b]",
				"structured":   "two cities\n{\"cities\":[\"Ulm\",\"Bonn\"]}",
				"not-an-image": "[an image of 6 bytes was left out: it is no PNG, JPEG, GIF or WebP]",
				"empty":        "The call is done. Its result is empty.",
			} {
				input := "{}"
				if name == "add" {
					input = `{"A":2,"B":3}`
				}
				returns(t, o, "s__"+name, input, want)
			}
			seen := run(t, o, "s__image", "{}")
			check.Equal(t, "image", []v1beta1.MessageFile{{Name: "call_1-1.png", MediaType: "image/png",
				Data: base64.StdEncoding.EncodeToString(onePixel(t))}}, seen.files)
			check.Equal(t, "text", "look\n[image call_1-1.png is attached]", seen.output)
			returns(t, o, "s__fails", "{}", "failed: no such city")
			if large := run(t, o, "s__large", "{}"); len(large.output) > 256<<10 || len(large.output) < 200<<10 {
				t.Errorf("of the large result %d bytes are kept", len(large.output))
			}
			progresses(t, servers, c.handler, c.transport)
		})
	}
}

// progresses makes a call that ends once its progress was shown.
func progresses(t *testing.T, servers *mcp.Servers, handler func(*sdk.Server) http.Handler, by v1beta1.MCPTransport) {
	t.Helper()
	s, shown := newServer(), make(chan string, 1)
	tool(s, "slow", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		err := r.Session.NotifyProgress(ctx, &sdk.ProgressNotificationParams{
			ProgressToken: r.Params.GetProgressToken(), Progress: 1, Total: 2, Message: "half of it",
		})
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: <-shown}}}, err
	})
	entry := serve(t, handler(s))
	entry.Transport = by
	call := callOf("{}")
	call.Show = func(piece string) { shown <- piece }
	got, err := offer(t, servers, entry).Tools()[0].Run(t.Context(), call)
	check.OK(t, err)
	check.Equal(t, "progress", "1/2 half of it\n", got)
}

// sessions counts those of a server that were opened, and tells of those that end.
type sessions struct {
	http.Handler
	opened atomic.Int32
	ended  chan struct{}
}

// countedSessions serves s. It counts a session before its client hears of it, so that a test that reads
// opened after a call finds the session of the call counted.
func countedSessions(s *sdk.Server) *sessions {
	c := &sessions{Handler: withSessions(s), ended: make(chan struct{}, 10)}
	s.AddReceivingMiddleware(func(next sdk.MethodHandler) sdk.MethodHandler {
		return func(ctx context.Context, method string, r sdk.Request) (sdk.Result, error) {
			if method == "initialize" {
				c.opened.Add(1)
			}
			return next(ctx, method, r)
		}
	})
	return c
}

func (s *sessions) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodDelete {
		s.ended <- struct{}{}
	}
	s.Handler.ServeHTTP(w, r)
}

func TestCallsOfStepShareOneSession(t *testing.T) {
	counted := countedSessions(everything(t))
	servers, _ := newServers(t, nil)
	entry := serve(t, counted)
	o := offer(t, servers, entry)
	listed := counted.opened.Load()
	run(t, o, "s__empty", "{}")
	run(t, o, "s__empty", "{}")
	other := offer(t, servers, entry)
	run(t, other, "s__empty", "{}")
	check.Equal(t, "sessions of two steps", 2, counted.opened.Load()-listed)
	o.Close()
	other.Close()
	for range counted.opened.Load() {
		select {
		case <-counted.ended:
		case <-time.After(30 * time.Second):
			t.Fatal("a session has not ended")
		}
	}
}

func TestCallSendsItsKey(t *testing.T) {
	s, meta := newServer(), sdk.Meta{}
	tool(s, "look", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		meta = r.Params.Meta
		return &sdk.CallToolResult{}, nil
	})
	servers, _ := newServers(t, nil)
	run(t, offer(t, servers, serve(t, stateless(s))), "s__look", "{}")
	check.Equal(t, "key", any("uid.1.call_1"), meta["parley.dev/call-key"])
}

func TestHeaderArgumentsAreSentAsHeaders(t *testing.T) {
	s, seen := newServer(), atomic.Value{}
	s.AddTool(&sdk.Tool{Name: "route", InputSchema: map[string]any{"type": "object", "properties": map[string]any{
		"region": map[string]any{"type": "string", "x-mcp-header": "Region"},
	}}}, says("ok"))
	handler := stateless(s)
	entry := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.Header.Get("Mcp-Method") == "tools/call" {
			seen.Store(r.Header.Get("Mcp-Param-Region"))
		}
		handler.ServeHTTP(w, r)
	}))
	servers, _ := newServers(t, nil)
	returns(t, offer(t, servers, entry), "s__route", `{"region":"eu"}`, "ok")
	check.Equal(t, "header", any("eu"), seen.Load())
}

// Security (a hostile MCP server): cannot have a call made twice, unless its entry trusts it. Also
// TestCallOfLostAttemptIsNotMadeAgain of internal/generation/step.
func TestHintsAreHonoredOnlyForTrustedServers(t *testing.T) {
	s := newServer()
	for name, hints := range map[string]*sdk.ToolAnnotations{
		"reads": {ReadOnlyHint: true}, "sets": {IdempotentHint: true}, "adds": {}, "acts": nil,
	} {
		s.AddTool(&sdk.Tool{Name: name, Annotations: hints, InputSchema: map[string]any{"type": "object"}}, says("ok"))
	}
	entry := serve(t, stateless(s))
	servers, _ := newServers(t, nil)
	for _, trusted := range []bool{true, false} {
		entry.Trusted = trusted
		for _, tool := range offer(t, servers, entry).Tools() {
			d := tool.Definition()
			repeatable := trusted && (d.Name == "s__reads" || d.Name == "s__sets")
			want := tools.Traits{Plan: tools.WithApproval, Repeatable: repeatable, AtMostOnce: !repeatable, OwnsTimeout: true}
			if trusted && d.Name == "s__reads" {
				want.Plan, want.Explore = tools.Free, tools.Free
			}
			check.Equal(t, fmt.Sprint(d.Name, trusted), want, d.Traits)
		}
	}
}

// Security (a hostile MCP server): cannot have a chat use what it answered to another chat's entry.
func TestExpiredToolListIsFetchedAgain(t *testing.T) {
	var lists atomic.Int32
	entry := serve(t, answering(func(method string) any {
		if method != "tools/list" {
			return nil
		}
		lists.Add(1)
		return map[string]any{"ttlMs": 60_000, "tools": []any{map[string]any{"name": "a",
			"inputSchema": map[string]any{"type": "object"}}}}
	}))
	servers, clock := newServers(t, nil)
	for _, c := range []struct {
		after time.Duration
		want  int32
	}{{0, 1}, {59 * time.Second, 1}, {time.Second, 2}, {30 * time.Second, 2}} {
		clock.pass(c.after)
		if o := offer(t, servers, entry); !slices.Equal(names(o), []string{"s__a"}) || lists.Load() != c.want {
			t.Errorf("after %s more: %v, asked %d times", c.after, names(o), lists.Load())
		}
	}
	entry.Tools = &v1beta1.MCPToolFilter{Deny: []string{"a"}}
	if o := offer(t, servers, entry); len(o.Tools()) != 0 || lists.Load() != 3 {
		t.Errorf("an entry that was edited met the old list: %v", names(o))
	}
}

func TestHangingServerDelaysOnlyOneStep(t *testing.T) {
	var asked atomic.Int32
	release := make(chan struct{})
	entry := serve(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		asked.Add(1)
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}))
	defer close(release)
	entry.ConnectTimeoutSeconds = new(int32(1))
	servers, clock := newServers(t, nil)
	good := serve(t, stateless(everything(t)))
	good.Name = "good"
	for range 3 {
		o := offer(t, servers, entry, good)
		failsWith(t, o, v1beta1.MCPTimedOut, "it did not answer in time")
		if len(o.Tools()) == 0 {
			t.Error("the other server's tools are missing")
		}
	}
	before := asked.Load()
	clock.pass(5 * time.Minute)
	offer(t, servers, entry)
	if asked.Load() == before {
		t.Error("it is never asked again")
	}
}

func TestServerThatFailsIsAskedOncePerStep(t *testing.T) {
	var gone atomic.Bool
	var asked atomic.Int32
	handler := stateless(everything(t))
	entry := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if gone.Load() {
			asked.Add(1)
			http.Error(w, "go away", http.StatusUnauthorized)
			return
		}
		handler.ServeHTTP(w, r)
	}))
	servers, _ := newServers(t, nil)
	o := offer(t, servers, entry)
	gone.Store(true)
	first := run(t, o, "s__empty", "{}")
	before := asked.Load()
	second := run(t, o, "s__empty", "{}")
	check.Equal(t, "requests of the second call", 0, asked.Load()-before)
	check.Equal(t, "its error", fmt.Sprint(first.err), fmt.Sprint(second.err))
}

func TestClosedStreamOfACallIsResumed(t *testing.T) {
	s := newServer()
	tool(s, "long", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		r.Extra.CloseSSEStream(sdk.CloseSSEStreamArgs{RetryAfter: time.Millisecond})
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: "done"}}}, nil
	})
	servers, _ := newServers(t, nil)
	entry := serve(t, sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return s },
		&sdk.StreamableHTTPOptions{EventStore: sdk.NewMemoryEventStore(nil)}))
	returns(t, offer(t, servers, entry), "s__long", "{}", "done")
}

// The protocol's library answers the ping, and waits for the answer to that.
func TestServerThatPingsAndHangsDelaysOneStep(t *testing.T) {
	entry := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		switch {
		case bytes.Contains(body, []byte(`"server/discover"`)):
			http.Error(w, "no such method", http.StatusBadRequest)
			return
		case bytes.Contains(body, []byte(`"initialize"`)):
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "data: {\"jsonrpc\":\"2.0\",\"id\":7,\"method\":\"ping\"}\n\n")
			w.(http.Flusher).Flush()
		}
		<-r.Context().Done()
	}))
	entry.ConnectTimeoutSeconds = new(int32(1))
	servers, _ := newServers(t, nil)
	failsWith(t, offer(t, servers, entry), v1beta1.MCPTimedOut, "it did not answer in time")
}

func TestCallToUnavailableServerReportsReason(t *testing.T) {
	entry := serve(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		http.Error(w, "go away", http.StatusUnauthorized)
	}))
	servers, _ := newServers(t, nil)
	o := offer(t, servers, entry)
	check.Contains(t, fmt.Sprint(o.Absent("s__echo")), "MCP server s cannot be used: it answered 401")
	check.OK(t, o.Absent("execute"))
}

// Security (a hostile MCP server): can hold a call for an hour by sending progress, and otherwise for timeoutSeconds.
func TestSilentServerEndsCall(t *testing.T) {
	s, release := newServer(), make(chan struct{})
	defer close(release)
	tool(s, "hang", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		<-release
		return &sdk.CallToolResult{}, nil
	})
	entry := serve(t, stateless(s))
	entry.TimeoutSeconds = new(int32(1))
	servers, _ := newServers(t, nil)
	returns(t, offer(t, servers, entry), "s__hang", "{}",
		"failed: MCP server s gave no sign of life for 1s; whether the call was done is not known")
}

func TestServersAreCalledOnlyAtAllowedHosts(t *testing.T) {
	entry := serve(t, stateless(everything(t)))
	servers, _ := newServers(t, func(o *mcp.Options) { o.Hosts = []string{"mcp.example.com"} })
	failsWith(t, offer(t, servers, entry), v1beta1.MCPHostForbidden, "is none that MCP servers may be called at")
}

func TestToolsOfAllServersAreLimited(t *testing.T) {
	servers, _ := newServers(t, nil)
	var entries []v1beta1.MCPServer
	for i, count := range []int{60, 30, 20} {
		s := newServer()
		for j := range count {
			tool(s, fmt.Sprintf("tool%02d", j), says("done"))
		}
		entry := serve(t, stateless(s))
		entry.Name, entry.RequireApproval = fmt.Sprintf("s%d", i), []string{"*"}
		entries = append(entries, entry)
	}
	for range 2 { // It is the same each time.
		o := offer(t, servers, entries...)
		all := names(o)
		if len(all) != 96 || all[0] != "s0__tool00" || all[95] != "s2__tool05" || len(o.Hashes()) != 96 {
			t.Errorf("on offer are %d: %v", len(all), all)
		}
		want := []mcp.Warning{{Server: "s2", Words: `14 of its tools, "tool06" first, are too many: a model is offered 96 ` +
			`of all servers, of the first entries first; see tools.allow`}}
		check.Equal(t, "result", want, o.Warnings())
		if !o.RequiresApproval("s2__tool19") { // A model can call what it is not offered.
			t.Error("a tool that is left out needs no approval")
		}
	}
}
