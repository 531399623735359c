// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package mcp_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/kit/check"
)

// booking is a server whose tool asks who books before it does.
func booking() *sdk.Server {
	s := newServer()
	tool(s, "book", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		if r.Params.InputResponses == nil {
			return &sdk.CallToolResult{RequestState: "sealed", InputRequests: sdk.InputRequestMap{
				"who": &sdk.ElicitParams{Message: "Who books?", RequestedSchema: map[string]any{"type": "object",
					"properties": map[string]any{"name": map[string]any{"type": "string"}}}},
			}}, nil
		}
		answer, _ := r.Params.InputResponses["who"].(*sdk.ElicitResult)
		said, err := json.Marshal([]any{r.Params.RequestState, answer})
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(said)}}}, err
	})
	return s
}

// asking is a call that keeps its question.
func asking(kept *tools.Question) tools.Call {
	call := callOf("{}")
	call.Ask = func(q tools.Question) bool {
		*kept = q
		return true
	}
	return call
}

func TestAnyPodRepeatsCallWithElicitationAnswer(t *testing.T) {
	entry := serve(t, stateless(booking()))
	first, _ := newServers(t, nil)
	var q tools.Question
	_, err := offer(t, first, entry).Tools()[0].Run(t.Context(), asking(&q))
	if !errors.Is(err, tools.ErrAsks) || q.State != "sealed" || !strings.Contains(q.Requests, "Who books?") {
		t.Fatalf("it asks %+v, %v", q, err)
	}
	for name, c := range map[string]struct {
		answer tools.Answer
		want   string
	}{
		"an answer":        {tools.Answer{Given: true, Content: `{"name":"Ada"}`}, `["sealed",{"action":"accept","content":{"name":"Ada"}}]`},
		"an empty answer":  {tools.Answer{Given: true}, `["sealed",{"action":"accept"}]`},
		"no answer":        {tools.Answer{}, `["sealed",{"action":"decline"}]`},
		"one that is none": {tools.Answer{Given: true, Content: `{"name"`}, "the input that a person gave is no JSON object"},
	} {
		second, _ := newServers(t, nil)
		call := asking(new(tools.Question))
		c.answer.Question = q
		call.Answer = &c.answer
		got, err := offer(t, second, entry).Tools()[0].Run(t.Context(), call)
		if err != nil {
			got = err.Error()
		}
		if !strings.HasPrefix(got, c.want) {
			t.Errorf("%s: %s", name, got)
		}
	}
}

func TestSeveralRequestsAreAnsweredByTheirIDs(t *testing.T) {
	s := newServer()
	tool(s, "book", func(_ context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		said, err := json.Marshal(r.Params.InputResponses)
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(said)}}}, err
	})
	servers, _ := newServers(t, nil)
	call := callOf("{}")
	call.Answer = &tools.Answer{Given: true, Content: `{"a":{"x":1}}`, Question: tools.Question{Requests: `{"a":{"method":` +
		`"elicitation/create","params":{"message":"A?"}},"b":{"method":"elicitation/create","params":{"message":"B?"}}}`}}
	got, err := offer(t, servers, serve(t, stateless(s))).Tools()[0].Run(t.Context(), call)
	check.OK(t, err)
	check.Equal(t, "responses", `{"a":{"action":"accept","content":{"x":1}},"b":{"action":"accept"}}`, got)
}

func TestElicitationFromSessionServerIsDeclined(t *testing.T) {
	s := newServer()
	tool(s, "book", func(ctx context.Context, r *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
		answer, err := r.Session.Elicit(ctx, &sdk.ElicitParams{Message: "Who books?",
			RequestedSchema: map[string]any{"type": "object"}})
		if err != nil {
			return nil, err
		}
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: answer.Action}}}, nil
	})
	tool(s, "look", says("seen"))
	servers, _ := newServers(t, nil)
	offered := offer(t, servers, serve(t, withSessions(s)))
	got := run(t, offered, "s__book", "{}")
	check.OK(t, got.err)
	check.Contains(t, got.output, "decline\n[The server asked people for input")
	returns(t, offered, "s__look", "{}", "seen")
}

func TestUnsupportedElicitationIsAnError(t *testing.T) {
	asks := func(result *sdk.CallToolResult) http.Handler {
		s := newServer()
		tool(s, "book", func(context.Context, *sdk.CallToolRequest) (*sdk.CallToolResult, error) { return result, nil })
		return stateless(s)
	}
	form := &sdk.ElicitParams{Message: "Who?", RequestedSchema: map[string]any{"type": "object"}}
	files := sdk.InputRequestMap{"a": &sdk.ListRootsParams{}} //nolint:staticcheck // Servers may ask for them until 2027.
	for name, c := range map[string]struct {
		result *sdk.CallToolResult
		says   string
	}{
		"it is busy":        {&sdk.CallToolResult{InputRequests: sdk.InputRequestMap{}}, "the server is busy"},
		"it asks for files": {&sdk.CallToolResult{InputRequests: files}, "which Parley does not offer"},
		"there is no room":  {&sdk.CallToolResult{InputRequests: sdk.InputRequestMap{"a": form}}, "for too much at once"},
	} {
		servers, _ := newServers(t, nil)
		call := callOf("{}")
		call.Ask = func(tools.Question) bool { return false }
		_, err := offer(t, servers, serve(t, asks(c.result))).Tools()[0].Run(t.Context(), call)
		check.Contains(t, fmt.Sprintf("%s: %v", name, err), c.says)
	}
}
