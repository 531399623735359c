// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/tools"
	"parley.dev/parley/internal/tools/arguments"
	"parley.dev/parley/internal/workspace/protocol"
	"parley.dev/parley/test/kit/check"
)

// Security (a model in mode Plan or Explore): cannot make a call run unapproved that was forbidden when it was made,
// once a mode or a policy is removed. Also TestPlanningNeedsApprovalUntilThePlanHasIt of internal/generation/step.
func TestToolFailuresBecomeErrorResultsForModel(t *testing.T) {
	returns := func(name, output string, err error) fake {
		return fake{name: name, run: func(context.Context, tools.Call) (string, error) { return output, err }}
	}
	long := strings.Repeat("x", tools.MaxResultBytes+1)
	registry := tools.NewRegistry(fake{name: "echo"}, returns("fails", "half", errors.New("no such city")),
		returns("talks", long, nil), returns("complains", "", errors.New(long)),
		fake{name: "panics", run: func(context.Context, tools.Call) (string, error) { panic("a secret of the program") }},
		tools.New(tools.Definition{Name: "typed", InputSchema: arguments.Object(map[string]any{"n": arguments.Integer(0, 9, 7, "n")})},
			func(_ context.Context, _ tools.Call, args struct{ N int }) (string, error) {
				return fmt.Sprint(args.N), nil
			}))
	for name, c := range map[string]struct {
		allow string
		call  v1beta1.ToolCall
		fails bool
		want  string // The output; behind …, a part of it.
	}{
		"a good call":       {call: v1beta1.ToolCall{Name: "echo", Input: `{"a":1}`}, want: `{"a":1}`},
		"an allowed tool":   {allow: "echo", call: v1beta1.ToolCall{Name: "echo", Input: `{}`}, want: "{}"},
		"default arguments": {call: v1beta1.ToolCall{Name: "typed", Input: `{}`}, want: "7"},
		"invalid arguments": {call: v1beta1.ToolCall{Name: "typed", Input: `{"n":10}`}, fails: true, want: "…/n: must be at most 9"},
		"an unknown tool":   {"echo fails", v1beta1.ToolCall{Name: "weather"}, true, `tool "weather" does not exist; the tools on offer are: echo, fails`},
		"a forbidden tool":  {"fails", v1beta1.ToolCall{Name: "echo"}, true, `tool "echo" is not active in this chat; the tools on offer are: fails`},
		"no tool at all":    {"other", v1beta1.ToolCall{Name: "echo"}, true, `tool "echo" is not active in this chat; the tools on offer are: none`},
		"an error":          {call: v1beta1.ToolCall{Name: "fails"}, fails: true, want: "no such city"},
		"a panic": {call: v1beta1.ToolCall{Name: "panics"}, fails: true,
			want: `tool "panics" failed unexpectedly`},
		"a long result": {call: v1beta1.ToolCall{Name: "talks"}, want: "…bytes left out"},
		"a long error":  {call: v1beta1.ToolCall{Name: "complains"}, fails: true, want: "…bytes left out"},
		"a long unknown name": {call: v1beta1.ToolCall{Name: strings.Repeat("n", 100_000)}, fails: true,
			want: "…bytes left out"},
		"a list as input": {call: v1beta1.ToolCall{Name: "echo", Input: ` ["a"]`, Refusal: v1beta1.RefusalInputInvalid}, fails: true,
			want: `tool "echo" was not run: its input must be a JSON object, but is a list; call it again with a JSON object, {} if there are no arguments`},
		"a number as input": {call: v1beta1.ToolCall{Name: "echo", Input: "7", Refusal: v1beta1.RefusalInputInvalid},
			fails: true,
			want:  "…but is a number"},
		"a call refused before": {call: v1beta1.ToolCall{Name: "echo", Input: "{}", Refusal: v1beta1.RefusalNotAllowed},
			fails: true,
			want:  "…was not active in this chat when it was called"},
		"a huge input": {call: v1beta1.ToolCall{Name: "echo", Input: "{}", Refusal: v1beta1.RefusalInputTooLarge},
			fails: true,
			want:  "…a person must approve it"},
	} {
		t.Run(name, func(t *testing.T) {
			c.call.ID = "call_1"
			got := execute(t, registry, allowing(c.allow), c.call)
			if part, ok := strings.CutPrefix(c.want, "…"); ok {
				check.Contains(t, got[0].Output, part)
			} else {
				check.Equal(t, "output", c.want, got[0].Output)
			}
			if len(got[0].Output) > tools.MaxResultBytes {
				t.Errorf("got %d bytes", len(got[0].Output))
			}
			got[0].Output = ""
			check.Equal(t, "results", []v1beta1.ToolResult{{ID: "call_1", Name: c.call.Name, IsError: c.fails}}, got)
		})
	}
}

func TestCallsRunConcurrentlyAndReturnResultsInOrder(t *testing.T) {
	// Each call waits for the next one, so that they end in reverse; run one after the other they would never end.
	const calls = 8
	ended := make([]chan struct{}, calls+1)
	for i := range ended {
		ended[i] = make(chan struct{})
	}
	close(ended[calls])
	waits := fake{name: "waits", run: func(ctx context.Context, call tools.Call) (string, error) {
		n := int(call.Input[0] - '0')
		select {
		case <-ended[n+1]:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		close(ended[n])
		return call.Input, nil
	}}
	var batch []v1beta1.ToolCall
	var want []v1beta1.ToolResult
	for i := range calls {
		n := fmt.Sprint(i)
		batch = append(batch, v1beta1.ToolCall{ID: n, Name: "waits", Input: n})
		want = append(want, v1beta1.ToolResult{ID: n, Name: "waits", Output: n})
	}
	check.Equal(t, "results", want, execute(t, tools.NewRegistry(waits), &v1beta1.Chat{}, batch...))
}

func TestNonrepeatableCallIsNotRepeatedAfterEarlierAttempt(t *testing.T) {
	registry := tools.NewRegistry(fake{name: "twice"}, fake{name: "once", Traits: tools.Traits{AtMostOnce: true}})
	batch := &tools.Batch{Chat: &v1beta1.Chat{}, Calls: callsOf("twice once")}
	for _, again := range []bool{false, true} {
		batch.Again = again
		results := registry.Execute(t.Context(), batch, nil)
		if results[0].IsError || results[1].IsError != again || again != strings.Contains(results[1].Output,
			"may have run or not") {
			t.Errorf("again: %v, the results are %+v", again, results)
		}
	}
	batch.Calls[1].Input, batch.Calls[1].Refusal = "7", v1beta1.RefusalInputInvalid // It never ran.
	check.Contains(t, registry.Execute(t.Context(), batch, nil)[1].Output, "but is a number")
}

func TestExclusiveToolMixedWithOtherCallsRunsNothing(t *testing.T) {
	const (
		ran      = "{}"
		alonePls = `tool "alone" must be called alone`
		skipped  = "this call was skipped"
		inactive = `tool "alone" is not active in this chat; the tools on offer are: other`
		unknown  = `tool "unknown" does not exist; the tools on offer are: alone, other`
	)
	registry := tools.NewRegistry(fake{name: "alone", Traits: alone}, fake{name: "other"})
	for calls, c := range map[string]struct {
		off      bool
		conflict string
		want     []string
	}{
		"":                    {},
		"alone":               {want: []string{ran}},
		"other " + "other":    {want: []string{ran, ran}},
		"other client":        {want: []string{ran, `tool "client" does not exist`}},
		"alone other":         {conflict: "alone", want: []string{alonePls, skipped}},
		"other unknown alone": {conflict: "alone", want: []string{skipped, skipped, alonePls}},
		"alone " + "alone":    {conflict: "alone", want: []string{alonePls, alonePls}},
		" alone":              {off: true, want: []string{inactive}},
		" alone other":        {off: true, conflict: "alone", want: []string{inactive, skipped}},
		"unknown":             {want: []string{unknown}},
	} {
		t.Run(calls, func(t *testing.T) {
			chat := allowing("other alone")
			if !c.off {
				chat.Spec.SystemPrompt = "on"
			}
			check.Equal(t, "conflict", c.conflict, registry.Conflict(callsOf(calls)))
			results := execute(t, registry, chat, callsOf(calls)...)
			check.Equal(t, "number of results", len(c.want), len(results))
			for i, r := range results {
				check.Contains(t, r.Output, c.want[i])
				check.Equal(t, "result", v1beta1.ToolResult{ID: strings.Fields(calls)[i], Name: strings.Fields(calls)[i],
					Output: r.Output, IsError: c.want[i] != ran}, r)
			}
		})
	}
}

func TestCallWithKnownResultIsNotExecuted(t *testing.T) {
	registry := tools.NewRegistry(fake{name: "a"}, fake{name: "b"}, fake{name: "c"}, fake{name: "alone", Traits: alone})
	known := map[string]v1beta1.ToolResult{"b": {ID: "b", Name: "b", Output: "known", IsError: true}}
	results := registry.Execute(t.Context(), &tools.Batch{Chat: &v1beta1.Chat{}, Calls: callsOf("a b c"), Known: known},
		func(ctx context.Context, call *tools.Call, run func(context.Context) v1beta1.ToolResult) v1beta1.ToolResult {
			if call.ID == "b" {
				t.Error("a call was observed that was not run")
			}
			return run(ctx)
		})
	check.Equal(t, "results", []v1beta1.ToolResult{{ID: "a", Name: "a", Output: "{}"}, known["b"],
		{ID: "c", Name: "c", Output: "{}"}}, results)
	results = registry.Execute(t.Context(),
		&tools.Batch{Chat: &v1beta1.Chat{}, Calls: callsOf("a b alone"), Known: known}, nil)
	if !results[0].IsError || !results[2].IsError {
		t.Errorf("calls in conflict were run: %+v", results)
	}
}

// keys are the keys of calls with these ids.
func keys(t *testing.T, uid string, reply int64, ids ...string) (keys []string) {
	t.Helper()
	batch := &tools.Batch{Chat: &v1beta1.Chat{}, Reply: reply}
	batch.Chat.UID = types.UID(uid)
	for _, id := range ids {
		batch.Calls = append(batch.Calls, v1beta1.ToolCall{ID: id, Name: "keyed"})
	}
	keyed := fake{name: "keyed", run: func(_ context.Context, call tools.Call) (string, error) {
		return call.ID + "|" + call.Key, nil
	}}
	for i, result := range tools.NewRegistry(keyed).Execute(t.Context(), batch, nil) {
		key, ok := strings.CutPrefix(result.Output, ids[i]+"|")
		if !ok {
			t.Errorf("call %q got %q", ids[i], result.Output)
		}
		keys = append(keys, key)
	}
	return keys
}

func TestCallKeyIsUniqueValidAndStable(t *testing.T) {
	const uid = "0f0f0f0f-0000-4000-8000-000000000001"
	check.Equal(t, "keys", []string{uid + ".7.call_1"}, keys(t, uid, 7, "call_1"))
	long := strings.Repeat("x", 65)
	ids := []string{"call_1", "call-1", "CALL_1", "a/b", "a b", "..", "", "\x00", "ключ", long, long + "y",
		"." + strings.Repeat("0", 64), fmt.Sprintf("%x", sha256.Sum256([]byte("a/b")))}
	seen := map[string]string{}
	for _, of := range []struct {
		uid   string
		reply int64
	}{{uid, 7}, {uid, 8}, {uid, 0}, {"another", 7}, {"", 7}, {strings.Repeat("u", 400), 1 << 62}} {
		for i, key := range keys(t, of.uid, of.reply, ids...) {
			if other := seen[key]; other != "" || !protocol.ValidKey(key) {
				t.Errorf("%q of %v has the key %q, invalid or that of %q", ids[i], of, key, other)
			}
			seen[key] = ids[i]
		}
	}
	check.Equal(t, "keys", keys(t, uid, 7, ids...), keys(t, uid, 7, ids...))
}

// patient is a tool that works for a while, reports progress, and ends with its context.
func patient(lasts, every time.Duration, report func(call tools.Call)) fake {
	return fake{name: "a", run: func(ctx context.Context, call tools.Call) (string, error) {
		over, tick := time.After(lasts), time.NewTicker(every)
		defer tick.Stop()
		for {
			select {
			case <-over:
				return "done", nil
			case <-tick.C:
				report(call)
			case <-ctx.Done():
				return "", ctx.Err()
			}
		}
	}}
}

func silent(tools.Call) {}

func TestIdleCallTimesOut(t *testing.T) {
	const long, often, seldom = 4 * time.Hour, tools.Silence / 2, 2 * tools.Silence
	alive, owns := func(c tools.Call) { c.Alive() }, patient(long, often, silent)
	owns.OwnsTimeout = true
	for name, c := range map[string]struct {
		tool fake
		want string
		took time.Duration
	}{
		"it reports progress":    {patient(long, often, alive), "done", long},
		"it shows output":        {patient(long, often, func(c tools.Call) { c.Show("x") }), "done", long},
		"it is silent":           {patient(long, often, silent), "the call timed out", tools.Silence},
		"it reports too late":    {patient(long, seldom, alive), "whether it was done is not known", tools.Silence},
		"it owns its timeout":    {owns, "done", long},
		"it ends with its batch": {patient(long, often, silent), "the call was interrupted", tools.Silence / 2},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if c.took < tools.Silence {
					time.AfterFunc(c.took, func() { cancel(tools.ErrInterrupted) })
				}
				began, over := time.Now(), false
				var calling context.Context
				result := tools.NewRegistry(c.tool).Execute(ctx, &tools.Batch{Chat: &v1beta1.Chat{}, Calls: callsOf("a"),
					Expect: func(ctx context.Context) func() {
						calling = ctx
						return func() { over = true }
					}}, nil)[0]
				check.Contains(t, result.Output, c.want)
				if took := time.Since(began); took != c.took || result.IsError != (c.want != "done") {
					t.Errorf("after %s the result is %+v", took, result)
				}
				if !over || !errors.Is(calling.Err(), context.Canceled) {
					t.Errorf("the watch ended: %t, %v", over, calling.Err())
				}
				cancel(nil)
			})
		})
	}
}

func TestCanceledCallReportsInterruption(t *testing.T) {
	registry := tools.NewRegistry(fake{name: "done"}, fake{name: "wait",
		run: func(ctx context.Context, _ tools.Call) (string, error) {
			<-ctx.Done()
			return "", ctx.Err()
		}})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.Equal(t, "results", []v1beta1.ToolResult{{ID: "done", Name: "done", Output: "{}"},
		{ID: "wait", Name: "wait", Output: "the call was interrupted before it produced a result", IsError: true},
	}, registry.Execute(ctx, &tools.Batch{Chat: &v1beta1.Chat{}, Calls: callsOf("done wait")}, nil))
}
