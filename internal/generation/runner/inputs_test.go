// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/mcp"
	"parley.dev/parley/internal/netguard/httpguard"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/test/modelserver"
)

// repeating is a tool that returns its input.
type repeating struct{ doing }

func (repeating) Run(_ context.Context, call tools.Call) (string, error) { return call.Input, nil }

// kindsOfTools are one tool each: of Parley, with approval, of an MCP server, and of the client.
var kindsOfTools = []string{"own", "approved", "s__own", "client"}

// callingWith is a model that calls a tool of each kind with the input that the user's message names.
func callingWith(inputs map[string]string) (script modelserver.Script) {
	for name, input := range inputs {
		var step modelserver.Step
		sent, _ := json.Marshal(input) // A string is sent as the text that it contains.
		for _, tool := range kindsOfTools {
			step.ToolCalls = append(step.ToolCalls, modelserver.ToolCall{Name: tool, Arguments: sent})
		}
		script.Rules = append(script.Rules, modelserver.Rule{Match: modelserver.Match{LastUserText: name},
			Reply: modelserver.Reply{Steps: []modelserver.Step{step}}})
	}
	return script
}

// withEveryKind is a pod whose chats have all kindsOfTools.
func withEveryKind(t *testing.T, script modelserver.Script) (*pod, func(*v1alpha1.ChatSpec)) {
	t.Helper()
	own := sdk.NewServer(&sdk.Implementation{Name: "own", Version: "1"}, nil)
	own.AddTool(&sdk.Tool{Name: "own", InputSchema: map[string]any{"type": "object"}},
		func(_ context.Context, call *sdk.CallToolRequest) (*sdk.CallToolResult, error) {
			return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: string(call.Params.Arguments)}}}, nil
		})
	server := httptest.NewServer(sdk.NewStreamableHTTPHandler(func(*http.Request) *sdk.Server { return own },
		&sdk.StreamableHTTPOptions{Stateless: true}))
	t.Cleanup(server.Close)
	p := startPod(t, script, func(_ *pod, o *runner.Options) {
		o.Tools = tools.NewRegistry(repeating{doing{name: "own"}}, repeating{doing{name: "approved"}},
			with{tools.Traits{UsefulTo: func(*v1alpha1.Chat) bool { return false }}, doing{name: "idle"}})
		o.MCP = mcp.New(mcp.Options{HTTP: httpguard.Settings{Loopback: true}.Client,
			Log: slog.New(slog.DiscardHandler), Now: time.Now})
	})
	return p, func(s *v1alpha1.ChatSpec) {
		s.MCPServers = []v1alpha1.MCPServer{{Name: "s", URL: server.URL}, {Name: "t", URL: server.URL}}
		s.Tools = &v1alpha1.ChatTools{Approval: []v1alpha1.ToolPattern{"approved"},
			Client: []v1alpha1.ClientTool{{Name: "client"}}}
	}
}

func TestNullAndEmptyInputsAreEmptyObjects(t *testing.T) {
	t.Parallel()
	inputs := map[string]string{"empty": "", "blank": " \n", "null": "null", "object": "{}"}
	p, spec := withEveryKind(t, callingWith(inputs))
	for name := range inputs {
		c := p.newChat(name, spec)
		c.ask(name+"-1", name)
		reply := c.result()
		for i, want := range []v1alpha1.RequiredAction{"", v1alpha1.RequiresApproval, "", v1alpha1.RequiresClient} {
			call := reply.Spec.Parts[i].ToolCall
			if call.Input != "{}" || call.Refusal != "" || call.RequiresAction != want {
				t.Errorf("%s: the call is %+v", name, call)
			}
		}
		c.commit(reply, v1alpha1.ActionExecuteTools)
		for _, part := range c.result().Spec.Parts {
			if got := part.ToolResult; got.IsError || got.Output != "{}" {
				t.Errorf("%s: the result is %+v", name, got)
			}
		}
	}
}

func TestInputThatIsNoObjectAsksNobody(t *testing.T) {
	t.Parallel()
	inputs := map[string]string{"text": "not JSON", "half": `{"a":`, "twice": `{} {}`, "string": `"{\"a\":1}"`, "list": ` [{}]`,
		"number": "7", "boolean": "true"}
	p, spec := withEveryKind(t, callingWith(inputs))
	for name, came := range map[string]string{
		"text": "not JSON (invalid character", "half": "not JSON (unexpected end", "twice": "not JSON (invalid character",
		"string": "a JSON string: send the object itself, without quotes around it", "list": "a list", "number": "a number",
		"boolean": "a boolean",
	} {
		c := p.newChat(name, spec)
		c.ask(name+"-1", name)
		reply := c.result()
		if g := reply.Spec.Generation; g.CallsRequiringAction != 0 || len(reply.Spec.Parts) != len(kindsOfTools) {
			t.Fatalf("%s: of %d calls %d require action; the error is %v", name, len(reply.Spec.Parts), g.CallsRequiringAction,
				g.Error)
		}
		for i := range kindsOfTools {
			call := reply.Spec.Parts[i].ToolCall
			if call.Refusal != v1alpha1.RefusalInputInvalid || call.RequiresAction != "" || call.Input != inputs[name] {
				t.Errorf("%s: the call is %+v", name, call)
			}
		}
		c.commit(reply, v1alpha1.ActionExecuteTools)
		results := c.result()
		if len(results.Spec.Parts) != len(kindsOfTools) {
			t.Fatalf("%s: the results are %+v", name, results.Spec.Parts)
		}
		for i, tool := range kindsOfTools {
			want := fmt.Sprintf("tool %q was not run: its input must be a JSON object, but is %s", tool, came)
			if got := results.Spec.Parts[i].ToolResult; !got.IsError || !strings.HasPrefix(got.Output, want) {
				t.Errorf("%s: the result is %+v", name, got)
			}
		}
		c.commit(results, v1alpha1.ActionGenerateAssistant) // The model takes the history.
		if got := c.result().Spec.Generation; got.Outcome != v1alpha1.OutcomeCompleted {
			t.Errorf("%s: the next reply is %s, with %+v", name, got.Outcome, got.Error)
		}
	}
}
