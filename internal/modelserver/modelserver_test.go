// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"context"
	"errors"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"charm.land/fantasy"
	"charm.land/fantasy/providers/anthropic"
	"charm.land/fantasy/providers/openai"
	"charm.land/fantasy/providers/openaicompat"

	"parley.dev/parley/internal/modelserver"
)

// protocols are fantasy's real clients, one for each protocol.
var protocols = map[string]func(url string) (fantasy.Provider, error){
	"openai chat": func(url string) (fantasy.Provider, error) {
		return openai.New(openai.WithBaseURL(url+"/v1"), openai.WithAPIKey("k"))
	},
	"openai-compatible": func(url string) (fantasy.Provider, error) {
		return openaicompat.New(openaicompat.WithBaseURL(url+"/v1"), openaicompat.WithAPIKey("k"))
	},
	"openai responses": func(url string) (fantasy.Provider, error) {
		return openai.New(openai.WithBaseURL(url+"/v1"), openai.WithAPIKey("k"), openai.WithUseResponsesAPI(),
			openai.WithResponsesAPIFunc(func(string) bool { return true }))
	},
	"anthropic": func(url string) (fantasy.Provider, error) {
		return anthropic.New(anthropic.WithBaseURL(url), anthropic.WithAPIKey("k"))
	},
}

func forEach(t *testing.T, script modelserver.Script,
	test func(t *testing.T, model fantasy.LanguageModel, server *modelserver.Server)) {
	t.Helper()
	for name, provider := range protocols {
		t.Run(name, func(t *testing.T) {
			server, err := modelserver.New(script)
			if err != nil {
				t.Fatal(err)
			}
			listener := httptest.NewServer(server)
			defer listener.Close()
			p, err := provider(listener.URL)
			if err != nil {
				t.Fatal(err)
			}
			model, err := p.LanguageModel(t.Context(), "m")
			if err != nil {
				t.Fatal(err)
			}
			test(t, model, server)
		})
	}
}

var clock = fantasy.FunctionTool{Name: "current_time", Description: "d",
	InputSchema: map[string]any{"type": "object", "properties": map[string]any{}}}

func ask(text string) fantasy.Call {
	return fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage(text)}, Tools: []fantasy.Tool{clock},
		MaxOutputTokens: new(int64(100))}
}

// heard is what a client made of a stream.
type heard struct {
	text, reasoning, call, input string
	parts                        int
	finish                       fantasy.FinishReason
	usage                        fantasy.Usage
	err                          error
}

func listen(ctx context.Context, t *testing.T, model fantasy.LanguageModel, call fantasy.Call) (h heard) {
	t.Helper()
	stream, err := model.Stream(ctx, call)
	if err != nil {
		return heard{err: err}
	}
	for part := range stream {
		switch part.Type {
		case fantasy.StreamPartTypeTextDelta:
			h.text += part.Delta
			h.parts++
		case fantasy.StreamPartTypeReasoningDelta:
			h.reasoning += part.Delta
		case fantasy.StreamPartTypeToolCall:
			h.call, h.input = part.ToolCallName, part.ToolCallInput
		case fantasy.StreamPartTypeFinish:
			h.finish, h.usage = part.FinishReason, part.Usage
		case fantasy.StreamPartTypeError:
			h.err = part.Error
		}
	}
	return h
}

func TestTextIsStreamedPartByPart(t *testing.T) {
	forEach(t, modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Say("Hello", ", ", "world")},
		Usage: &modelserver.Usage{Input: 100, Output: 50, Cached: 40},
	}}}}, func(t *testing.T, model fantasy.LanguageModel, server *modelserver.Server) {
		h := listen(t.Context(), t, model, ask("hi"))
		if h.err != nil || h.text != "Hello, world" || h.parts != 3 || h.finish != fantasy.FinishReasonStop {
			t.Errorf("heard %+v", h)
		}
		if h.usage.InputTokens != 60 || h.usage.CacheReadTokens != 40 || h.usage.OutputTokens != 50 {
			t.Errorf("usage %+v", h.usage)
		}
		records := server.Requests()
		if len(records) != 1 || records[0].Aborted || records[0].FirstPart.IsZero() ||
			!strings.Contains(string(records[0].Body), "hi") {
			t.Errorf("records %+v", records)
		}
	})
}

func TestAToolCallAndItsResultMakeARound(t *testing.T) {
	script := modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{ToolOffered: "current_time", ToolResults: new(0)},
			Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Call("current_time", `{"timezone":"UTC"}`)}}},
		{Reply: modelserver.Reply{
			Steps: []modelserver.Step{{Text: &modelserver.Text{Value: "It is {{.ToolResultsText}}.", PieceWords: 1}}}}},
	}}
	forEach(t, script, func(t *testing.T, model fantasy.LanguageModel, _ *modelserver.Server) {
		call := ask("time?")
		h := listen(t.Context(), t, model, call)
		if h.err != nil || h.call != "current_time" || !strings.Contains(h.input, "UTC") ||
			h.finish != fantasy.FinishReasonToolCalls {
			t.Fatalf("heard %+v", h)
		}
		call.Prompt = append(call.Prompt,
			fantasy.Message{Role: fantasy.MessageRoleAssistant,
				Content: []fantasy.MessagePart{fantasy.ToolCallPart{ToolCallID: "c1", ToolName: h.call, Input: h.input}}},
			fantasy.Message{Role: fantasy.MessageRoleTool,
				Content: []fantasy.MessagePart{fantasy.ToolResultPart{ToolCallID: "c1",
					Output: fantasy.ToolResultOutputContentText{Text: "noon"}}}},
		)
		if h := listen(t.Context(), t, model, call); h.err != nil || h.text != "It is noon." {
			t.Errorf("heard %+v", h)
		}
	})
}

func TestReasoningIsStreamed(t *testing.T) {
	script := modelserver.Script{
		Rules: []modelserver.Rule{
			{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Think("Hm. ", "Yes."), modelserver.Say("Yes.")}}}}}
	forEach(t, script, func(t *testing.T, model fantasy.LanguageModel, _ *modelserver.Server) {
		h := listen(t.Context(), t, model, ask("hi"))
		if h.err != nil || h.text != "Yes." {
			t.Fatalf("heard %+v", h)
		}
		if !strings.HasSuffix(t.Name(), "openai_chat") && !strings.Contains(h.reasoning, "Hm. Yes.") {
			t.Errorf("reasoning %q", h.reasoning)
		}
	})
}

func TestAReplyThatIsNotStreamedSaysTheSame(t *testing.T) {
	script := modelserver.Script{
		Rules: []modelserver.Rule{
			{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Hello", ", world"),
				modelserver.Call("current_time", `{}`)}}}}}
	forEach(t, script, func(t *testing.T, model fantasy.LanguageModel, _ *modelserver.Server) {
		response, err := model.Generate(t.Context(), ask("hi"))
		if err != nil {
			t.Fatal(err)
		}
		if response.Content.Text() != "Hello, world" || len(response.Content.ToolCalls()) != 1 {
			t.Errorf("content %+v", response.Content)
		}
	})
}

func TestFaultsReachTheClientAsThoseOfTheProvider(t *testing.T) {
	status := func(code int) *modelserver.Fault {
		return &modelserver.Fault{Kind: modelserver.FaultStatus, Status: code,
			RetryAfter: &modelserver.RetryAfter{Seconds: new(7)}}
	}
	for name, c := range map[string]struct {
		fault *modelserver.Fault
		check func(*fantasy.ProviderError) bool
	}{
		"401": {status(401), func(e *fantasy.ProviderError) bool { return e.StatusCode == 401 }},
		"429": {status(429), func(e *fantasy.ProviderError) bool {
			return e.StatusCode == 429 && e.IsRetryable() && e.ResponseHeaders["Retry-After"] == "7"
		}},
		"500": {status(500), func(e *fantasy.ProviderError) bool { return e.StatusCode == 500 }},
		"529": {status(529), func(e *fantasy.ProviderError) bool { return e.StatusCode == 529 }},
		"context": {&modelserver.Fault{Kind: modelserver.FaultContextTooLong}, func(e *fantasy.ProviderError) bool {
			return e.StatusCode == 400 && e.IsContextTooLarge()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			forEach(t, modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{Fault: c.fault}}}},
				func(t *testing.T, model fantasy.LanguageModel, _ *modelserver.Server) {
					h := listen(t.Context(), t, model, ask("hi"))
					provider, ok := errors.AsType[*fantasy.ProviderError](h.err)
					if !ok || !c.check(provider) {
						t.Errorf("error %v", h.err)
					}
				})
		})
	}
}

func TestBrokenConnectionsAreErrors(t *testing.T) {
	reply := []modelserver.Step{modelserver.Say("a", "b", "c", "d")}
	for name, fault := range map[string]*modelserver.Fault{
		"reset":       {Kind: modelserver.FaultReset},
		"cut":         {Kind: modelserver.FaultCut, After: new(2)},
		"end":         {Kind: modelserver.FaultEnd, After: new(2)},
		"error event": {Kind: modelserver.FaultError, After: new(2)},
	} {
		t.Run(name, func(t *testing.T) {
			forEach(t, modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{Steps: reply, Fault: fault}}}},
				func(t *testing.T, model fantasy.LanguageModel, _ *modelserver.Server) {
					h := listen(t.Context(), t, model, ask("hi"))
					if h.err == nil {
						t.Errorf("heard %+v", h)
					}
					if fault.After != nil && h.text != "ab" {
						t.Errorf("heard %q before the fault", h.text)
					}
				})
		})
	}
}

func TestAHangLastsUntilTheClientGoesAwayAndThatIsRecorded(t *testing.T) {
	script := modelserver.Script{
		Rules: []modelserver.Rule{{Reply: modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultHang}}}}}
	forEach(t, script, func(t *testing.T, model fantasy.LanguageModel, server *modelserver.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan heard, 1)
		go func() { ended <- listen(ctx, t, model, ask("hi")) }()
		if err := server.WaitForRequests(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		cancel()
		<-ended
		for deadline := time.After(10 * time.Second); server.InFlight() > 0; {
			select {
			case <-deadline:
				t.Fatal("the request is still in flight")
			case <-time.After(time.Millisecond):
			}
		}
		if !server.Requests()[0].Aborted {
			t.Error("the record does not say that the client went away")
		}
	})
}

func TestTheDemosScriptIsValid(t *testing.T) {
	raw, err := os.ReadFile("testdata/demo.yaml")
	if err != nil {
		t.Fatal(err)
	}
	script, err := modelserver.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	for i := range script.Rules {
		script.Rules[i].Reply.DelayBetween = 0
	}
	forEach(t, script, func(t *testing.T, model fantasy.LanguageModel, _ *modelserver.Server) {
		if h := listen(t.Context(), t, model, ask("What happened?")); h.err != nil ||
			!strings.Contains(h.text, "None\n   of them touches etcd") {
			t.Errorf("heard %+v", h)
		}
		if h := listen(t.Context(), t, model, ask("What time is it?")); h.err != nil || h.call != "current_time" {
			t.Errorf("heard %+v", h)
		}
	})
}
