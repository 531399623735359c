// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// forEach tests a script with the client of each protocol.
func forEach(t *testing.T, script modelserver.Script,
	test func(t *testing.T, c client, server *modelserver.Server)) {
	t.Helper()
	for name, connect := range clients {
		t.Run(name, func(t *testing.T) {
			server, url := serve(t, script)
			test(t, connect(url), server)
		})
	}
}

// ask is the reply to a text, streamed.
func ask(ctx context.Context, c client, text string) reply {
	return c.stream(ctx, question{text: text}, func(string) {})
}

func TestTextIsStreamedPieceByPiece(t *testing.T) {
	forEach(t, modelserver.Always(modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Say("Hello", ", ", "world")},
		Usage: &modelserver.Usage{Input: 100, Output: 50, Cached: 40},
	}), func(t *testing.T, c client, server *modelserver.Server) {
		complete, _ := c.words()
		got := ask(t.Context(), c, "hi")
		want := reply{text: "Hello, world", pieces: 3, finish: complete, read: 60, cached: 40, output: 50}
		if got != want {
			t.Errorf("got %+v", got)
		}
		records := server.Requests()
		if len(records) != 1 || records[0].Aborted || records[0].FirstPart.IsZero() ||
			!strings.Contains(string(records[0].Body), "hi") {
			t.Errorf("records %+v", records)
		}
	})
}

func TestToolCallAndResultCompleteRoundTrip(t *testing.T) {
	script := modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{ToolOffered: clock, ToolResults: new(0)},
			Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Call(clock, `{"timezone":"UTC"}`)}}},
		{Reply: modelserver.Reply{
			Steps: []modelserver.Step{{Text: &modelserver.Text{Value: "It is {{.ToolResultsText}}.", PieceWords: 1}}}}},
	}}
	forEach(t, script, func(t *testing.T, c client, _ *modelserver.Server) {
		_, calls := c.words()
		got := ask(t.Context(), c, "time?")
		if got.err != nil || got.call != clock || got.input != `{"timezone":"UTC"}` || got.finish != calls {
			t.Fatalf("got %+v", got)
		}
		got = c.stream(t.Context(), question{text: "time?", input: got.input, result: "noon"}, func(string) {})
		if got.err != nil || got.text != "It is noon." {
			t.Errorf("got %+v", got)
		}
	})
}

func TestReasoningIsStreamed(t *testing.T) {
	script := modelserver.Always(modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Think("Hm. ", "Yes."), modelserver.Say("Yes.")}})
	forEach(t, script, func(t *testing.T, c client, _ *modelserver.Server) {
		if got := ask(t.Context(), c, "hi"); got.err != nil || got.text != "Yes." || got.reasoning != "Hm. Yes." {
			t.Errorf("got %+v", got)
		}
	})
}

func TestFaultsReachClientAsProviderErrors(t *testing.T) {
	status := func(code int) *modelserver.Fault {
		return &modelserver.Fault{Kind: modelserver.FaultStatus, Status: code,
			RetryAfter: &modelserver.RetryAfter{Seconds: new(7)}}
	}
	for name, c := range map[string]struct {
		fault *modelserver.Fault
		check func(status int, header http.Header, said string) bool
	}{
		"401": {status(401), func(status int, _ http.Header, _ string) bool { return status == 401 }},
		"429": {status(429), func(status int, header http.Header, _ string) bool {
			return status == 429 && header.Get("Retry-After") == "7"
		}},
		"500": {status(500), func(status int, _ http.Header, _ string) bool { return status == 500 }},
		"529": {status(529), func(status int, _ http.Header, _ string) bool { return status == 529 }},
		"context": {&modelserver.Fault{Kind: modelserver.FaultContextTooLong},
			func(status int, _ http.Header, said string) bool {
				return status == 400 &&
					(strings.Contains(said, "context_length_exceeded") || strings.Contains(said, "prompt is too long"))
			}},
	} {
		t.Run(name, func(t *testing.T) {
			forEach(t, modelserver.Always(modelserver.Reply{Fault: c.fault}),
				func(t *testing.T, from client, _ *modelserver.Server) {
					if got := ask(t.Context(), from, "hi"); !c.check(refusal(got.err)) {
						t.Errorf("error %v", got.err)
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
			forEach(t, modelserver.Always(modelserver.Reply{Steps: reply, Fault: fault}),
				func(t *testing.T, c client, _ *modelserver.Server) {
					got := ask(t.Context(), c, "hi")
					if got.err == nil {
						t.Errorf("got %+v", got)
					}
					if fault.After != nil && got.text != "ab" {
						t.Errorf("got %q before the fault", got.text)
					}
				})
		})
	}
}

func TestHangEndsAndRecordsClientDisconnect(t *testing.T) {
	script := modelserver.Always(modelserver.Reply{Fault: &modelserver.Fault{Kind: modelserver.FaultHang}})
	forEach(t, script, func(t *testing.T, c client, server *modelserver.Server) {
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan reply, 1)
		go func() { ended <- ask(ctx, c, "hi") }()
		check.OK(t, server.WaitForRequests(t.Context(), 1))
		cancel()
		<-ended
		check.OK(t, server.WaitUntil(t.Context(), func([]modelserver.Record) bool { return server.InFlight() == 0 }))
		if !server.Requests()[0].Aborted {
			t.Error("the record does not say that the client went away")
		}
	})
}

func TestTheDemosScriptIsValid(t *testing.T) {
	raw, err := os.ReadFile("testdata/demo.yaml")
	check.OK(t, err)
	script, err := modelserver.Parse(raw)
	check.OK(t, err)
	for i := range script.Rules {
		script.Rules[i].Reply.DelayBetween = 0
	}
	forEach(t, script, func(t *testing.T, c client, _ *modelserver.Server) {
		if got := ask(t.Context(), c, "What happened?"); got.err != nil ||
			!strings.Contains(got.text, "None\n   of them touches etcd") {
			t.Errorf("got %+v", got)
		}
		if got := ask(t.Context(), c, "What time is it?"); got.err != nil || got.call != clock {
			t.Errorf("got %+v", got)
		}
	})
}
