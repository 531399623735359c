// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tools_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/tools"
)

// tool is a tool whose work is a function.
type tool struct {
	name string
	run  func(ctx context.Context, input string) (string, error)
}

func (t tool) Definition() tools.Definition {
	return tools.Definition{Name: t.name, InputSchema: map[string]any{"type": "object"}}
}
func (t tool) Run(ctx context.Context, call tools.Call) (string, error) {
	return t.run(ctx, call.Input)
}

// with is a tool with these traits.
type with struct {
	tools.Traits
	tools.Tool
}

func (w with) Definition() tools.Definition {
	d := w.Tool.Definition()
	d.Traits = w.Traits
	return d
}

func echo(_ context.Context, input string) (string, error) { return input, nil }

func only(names ...v1alpha1.ToolPattern) *v1alpha1.ChatTools {
	return &v1alpha1.ChatTools{Allow: names}
}

// none allows no tool.
func none() *v1alpha1.ChatTools {
	return &v1alpha1.ChatTools{Deny: []v1alpha1.ToolPattern{"*"}}
}

// allowing is a chat that says this of tools.
func allowing(spec *v1alpha1.ChatTools) *v1alpha1.Chat {
	return &v1alpha1.Chat{Spec: v1alpha1.ChatSpec{Tools: spec}}
}

func TestToolFailuresBecomeErrorResultsForModel(t *testing.T) {
	registry := tools.NewRegistry(
		tool{"echo", echo},
		tool{"fails", func(context.Context, string) (string, error) { return "half", errors.New("no such city") }},
		tool{"panics", func(context.Context, string) (string, error) { panic("a secret of the program") }},
		tool{"talks", func(context.Context, string) (string, error) {
			return strings.Repeat("x", tools.MaxResultBytes+1), nil
		}},
		tool{"complains", func(context.Context, string) (string, error) {
			return "", errors.New(strings.Repeat("x", tools.MaxResultBytes+1))
		}},
	)
	cases := map[string]struct {
		spec    *v1alpha1.ChatTools
		call    v1alpha1.ToolCall
		want    string // the whole output, or
		has     string // a part of it
		isError bool
	}{
		"a good call": {call: v1alpha1.ToolCall{Name: "echo", Input: `{"a":1}`}, want: `{"a":1}`},
		"an allowed tool": {spec: only("echo"), call: v1alpha1.ToolCall{Name: "echo", Input: `{}`},
			want: "{}"},
		"an unknown tool": {
			spec: only("echo", "fails"), call: v1alpha1.ToolCall{Name: "weather", Input: `{}`},
			want: `tool "weather" does not exist; the tools on offer are: echo, fails`, isError: true,
		},
		"a tool that the chat does not allow": {
			spec: only("fails"), call: v1alpha1.ToolCall{Name: "echo", Input: `{}`},
			want: `tool "echo" is not active in this chat; the tools on offer are: fails`, isError: true,
		},
		"no tool allowed at all": {
			spec: none(), call: v1alpha1.ToolCall{Name: "echo", Input: `{}`},
			want: `tool "echo" is not active in this chat; the tools on offer are: none`, isError: true,
		},
		"an input that is no object": {
			call: v1alpha1.ToolCall{Name: "echo", Input: ` ["a"]`, Refusal: v1alpha1.RefusalInputInvalid},
			want: `tool "echo" was not run: its input must be a JSON object, but is a list; call it again with a JSON object, ` +
				`{} if there are no arguments`, isError: true,
		},
		"an error in the tool's words": {call: v1alpha1.ToolCall{Name: "fails"}, want: "no such city", isError: true},
		"a panic tells no secrets": {call: v1alpha1.ToolCall{Name: "panics"}, want: `tool "panics" failed unexpectedly`,
			isError: true},
		"a result that is too long": {call: v1alpha1.ToolCall{Name: "talks"}, has: "bytes left out"},
		"an error that is too long": {call: v1alpha1.ToolCall{Name: "complains"}, has: "bytes left out", isError: true},
		"an unknown name of great size": {call: v1alpha1.ToolCall{Name: strings.Repeat("n", 100_000)}, has: "bytes left out",
			isError: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			c.call.ID = "call_1"
			results := registry.Execute(t.Context(),
				&tools.Batch{Chat: allowing(c.spec), Calls: []v1alpha1.ToolCall{c.call}}, nil)
			if len(results) != 1 {
				t.Fatalf("got %d results", len(results))
			}
			got := results[0]
			if got.ID != c.call.ID || got.Name != c.call.Name || got.IsError != c.isError {
				t.Errorf("got id %q, name %.20q, isError %v", got.ID, got.Name, got.IsError)
			}
			if c.has == "" && got.Output != c.want || !strings.Contains(got.Output, c.has) {
				t.Errorf("got output %.200q", got.Output)
			}
			if len(got.Output) > tools.MaxResultBytes {
				t.Errorf("got %d bytes", len(got.Output))
			}
		})
	}
}

func TestAnUnknownToolNamesThoseOnOffer(t *testing.T) {
	registry := tools.NewRegistry(tool{"clock", echo}, with{waits, tool{"wait", echo}}, with{alone, tool{"alone", echo}})
	chat := allowing(&v1alpha1.ChatTools{Client: []v1alpha1.ClientTool{{Name: "open_ticket"}, {Name: "denied"}},
		Deny: []v1alpha1.ToolPattern{"denied"}})
	for subs, want := range map[bool]string{false: "clock, open_ticket", true: "clock, wait, open_ticket"} {
		chat.Status.Internal.Attempt.HasSubChats = subs
		got := registry.Execute(t.Context(), &tools.Batch{Chat: chat, Calls: callsOf("weather")}, nil)[0]
		if got.Output != `tool "weather" does not exist; the tools on offer are: `+want {
			t.Errorf("with sub-chats %t: %s", subs, got.Output)
		}
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
	waits := tool{"waits", func(ctx context.Context, input string) (string, error) {
		var n int
		if _, err := fmt.Sscanf(input, `{"n":%d}`, &n); err != nil {
			return "", err
		}
		select {
		case <-ended[n+1]:
		case <-ctx.Done():
			return "", ctx.Err()
		}
		close(ended[n])
		return fmt.Sprint(n), nil
	}}
	var batch []v1alpha1.ToolCall
	for i := range calls {
		batch = append(batch, v1alpha1.ToolCall{ID: fmt.Sprintf("call_%d", i), Name: "waits",
			Input: fmt.Sprintf(`{"n":%d}`, i)})
	}
	together := &tools.Batch{Chat: &v1alpha1.Chat{}, Calls: batch}
	for i, r := range tools.NewRegistry(waits).Execute(t.Context(), together, nil) {
		if r.ID != batch[i].ID || r.Output != fmt.Sprint(i) || r.IsError {
			t.Errorf("result %d: got %+v", i, r)
		}
	}
}

func TestSuitedToolsAreThoseAllowedSortedByName(t *testing.T) {
	registry := tools.NewRegistry(tool{"b", echo}, tool{"c", echo}, tool{"a", echo})
	cases := map[string]struct {
		spec *v1alpha1.ChatTools
		want string
	}{
		"nothing said":         {nil, "a b c"},
		"no choice made":       {&v1alpha1.ChatTools{}, "a b c"},
		"some":                 {only("c", "a"), "a c"},
		"none":                 {none(), ""},
		"one that is not here": {only("z", "b"), "b"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			var got []string
			for _, suited := range registry.Suited(allowing(c.spec)) {
				got = append(got, suited.Name)
			}
			if strings.Join(got, " ") != c.want {
				t.Errorf("got %v, want %s", got, c.want)
			}
		})
	}
}

func TestTwoToolsOfOneNameAreAFault(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("nothing happened")
		}
	}()
	tools.NewRegistry(tool{"a", echo}, tool{"a", echo})
}

func TestACallThatIsCutOffSaysSo(t *testing.T) {
	r := tools.NewRegistry(tool{"wait", func(ctx context.Context, _ string) (string, error) {
		<-ctx.Done()
		return "", ctx.Err()
	}}, tool{"done", func(context.Context, string) (string, error) { return "done", nil }})
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	got := r.Execute(ctx, &tools.Batch{Chat: &v1alpha1.Chat{},
		Calls: []v1alpha1.ToolCall{{ID: "1", Name: "wait"}, {ID: "2", Name: "done"}}}, nil)
	if !got[0].IsError || got[0].Output != "the call was interrupted before it produced a result" || got[1].IsError ||
		got[1].Output != "done" {
		t.Errorf("got %+v", got)
	}
}
