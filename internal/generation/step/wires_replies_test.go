// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/modeltest"
	"parley.dev/parley/test/modelserver"
)

// difference is what some wire forms commit in place of what the others do, and why.
type difference struct {
	wires []string
	// scenario is the one that it is in; "": any.
	scenario string
	from, to string
	protocol string // what of the provider's protocol it comes from
}

var differences = []difference{
	{
		wires: []string{"openai-compatible", "openai chat", "azure chat"}, from: `"hm" with metadata`, to: `"hm"`,
		protocol: "reasoning has no proof here",
	},
	{
		wires: []string{"anthropic", "bedrock"}, scenario: "usage", from: "20 reasoning", to: "0 reasoning",
		protocol: "reasoning is not counted apart",
	},
	{
		wires: []string{"google"}, from: clockLine, to: clockLine + " with metadata",
		protocol: "the first call has a signature",
	},
	{
		wires: []string{"google"}, scenario: "reasoning, then two calls", from: `"hm" with metadata`, to: `"hm"`,
		protocol: "the first call has the signature, not the reasoning",
	},
	{
		wires: []string{"google"}, scenario: "reasoning, text, then a call", from: `"hm" with metadata; Text "Let me look."`,
		to:       `"hm"; Text "Let me look." with metadata`,
		protocol: "the text has a signature, not the reasoning",
	},
	{
		wires: []string{"google"}, scenario: "reasoning, then text", from: `"hm" with metadata; Text "Paris."`,
		to:       `"hm"; Text "Paris." with metadata`,
		protocol: "the text has a signature, not the reasoning",
	},
	{wires: []string{"google"}, scenario: "a wrong key", from: "401", to: "400", protocol: "a wrong key is a bad request"},
	{wires: []string{"bedrock"}, scenario: "a wrong key", from: "401", to: "403", protocol: "a wrong key is forbidden"},
	{
		wires: []string{"google", "openrouter", "vercel"}, scenario: "an error within the stream", from: "ProviderError 0",
		to:       "ProviderError 500",
		protocol: "the error has a status of its own",
	},
}

// expects is what the wire form commits in the scenario, and why it differs from what others do.
func (w wireForm) expects(scenario, committed string) (string, []string) {
	var because []string
	for _, d := range differences {
		if !slices.Contains(d.wires, w.name) || d.scenario != "" && d.scenario != scenario ||
			!strings.Contains(committed, d.from) {
			continue
		}
		committed = strings.Replace(committed, d.from, d.to, 1)
		because = append(because, d.protocol)
	}
	return committed, because
}

// commits checks what was committed in the scenario.
func (w *wired) commits(m *v1beta1.ChatMessage, scenario, committed string) {
	w.t.Helper()
	want, because := w.expects(scenario, committed)
	check.Equal(w.t, fmt.Sprint("committed, since ", because), want, outline(m))
}

// scenario is what a model does, and what is committed of it.
type scenario struct {
	name  string
	reply modelserver.Reply
	// config is the ChatModelConfig to call; "": the default one.
	config string
	// committed is the outline of the ChatMessage, but for the differences of the wire form.
	committed string
	// interrupt ends the step once a part has come; aborted is whether the server sees that the caller has gone away.
	interrupt, aborted bool
}

// said is a reply.
func said(steps ...modelserver.Step) modelserver.Reply { return modelserver.Reply{Steps: steps} }

// endedBy is a reply that ends for that reason.
func endedBy(finish modelserver.Finish, steps ...modelserver.Step) modelserver.Reply {
	return modelserver.Reply{Steps: steps, Finish: finish}
}

// breaks is a reply of two parts that breaks off: after the first one, or before it if the kind is of that sort.
func breaks(f modelserver.Fault) modelserver.Reply {
	return modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Well", ", never.")}, Fault: &f}
}

var (
	one     = new(1)
	thought = modelserver.Think("h", "m")
)

var scenarios = []scenario{
	{name: "text", reply: said(modelserver.Say("Par", "is.")), committed: `Completed: Text "Paris."; Complete`},
	{name: "reasoning, then text", reply: said(thought, modelserver.Say("Par", "is.")),
		committed: `Completed: Reasoning "hm" with metadata; Text "Paris."; Complete`},
	{name: "usage", reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Paris.")},
		Usage: &modelserver.Usage{Input: 100, Output: 50, Cached: 40, Reasoning: 20}},
		committed: `Completed: Text "Paris."; Complete; 60 in, 40 cached, 50 out of which 20 reasoning, 150 in all`},
	{name: "too long", reply: endedBy(modelserver.FinishLength, modelserver.Say("Paris.")),
		committed: `Completed: Text "Paris."; MaxTokensReached`},
	{name: "too long within a call", reply: endedBy(modelserver.FinishLength, modelserver.Say("Let me look."),
		modelserver.Step{ToolCalls: []modelserver.ToolCall{clockCall, call("launch", `"{\"at\":1,\"force\":tr"`)}}),
		committed: "Completed: " + lookLine + clockLine + "; ToolCall launch {}; MaxTokensReached"},
	{name: "filtered", reply: endedBy(modelserver.FinishContentFilter, modelserver.Say("Paris.")),
		committed: `Failed: ContentFiltered 0; Filtered`},
	{name: "more than a message holds", reply: said(modelserver.Step{Text: &modelserver.Text{
		Repeat: &modelserver.Repeat{Text: "größer, <b>", Bytes: 8 << 20}, PieceBytes: 40_000}}),
		aborted: true, committed: `Completed: Text "größer, <b>größer,…"; truncated; MaxTokensReached`},
	{name: "a wrong key", config: "wrong", committed: "Failed: AuthenticationFailed 401"},
	{name: "too many requests", reply: breaks(modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429,
		RetryAfter: &modelserver.RetryAfter{Seconds: new(7)}}), committed: "Failed: RateLimited 429, again after 7 s"},
	{name: "a server error", reply: breaks(modelserver.Fault{Kind: modelserver.FaultStatus, Status: 500}),
		committed: "Failed: ProviderError 500, again"},
	{name: "an error within the stream",
		reply:     breaks(modelserver.Fault{Kind: modelserver.FaultError, Status: 500, After: one}),
		committed: "Failed: ProviderError 0, again"},
	{name: "reset before the answer", reply: breaks(modelserver.Fault{Kind: modelserver.FaultReset}),
		committed: "Failed: ProviderUnavailable 0, again"},
	{name: "cut", reply: breaks(modelserver.Fault{Kind: modelserver.FaultCut, After: one}),
		committed: "Failed: ProviderUnavailable 0, again"},
	{name: "ended early", reply: breaks(modelserver.Fault{Kind: modelserver.FaultEnd, After: one}),
		committed: "Failed: ProviderUnavailable 0, again"},
	{name: "interrupted", reply: breaks(modelserver.Fault{Kind: modelserver.FaultHang, After: one}), interrupt: true,
		aborted: true, committed: `Interrupted: Text "Well"`},
}

func TestEachWireFormCommitsWhatItsModelSaid(t *testing.T) {
	onEach(t, wireForms, func(t *testing.T, form wireForm) {
		for _, s := range scenarios {
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				w := newWired(t, form, modelserver.Script{Rules: []modelserver.Rule{{Reply: s.reply}}}, debugged)
				w.chat.Spec.SystemPrompt = "Be brief."
				w.say("What is the capital?")
				w.on(cmp.Or(s.config, "default"))
				begun := func() bool { return s.interrupt && w.shown.text() == "Well" }
				w.commits(w.interrupted(v1beta1.ActionGenerateAssistant, begun), s.name, s.committed)
				w.sent(s)
				w.closed()
				for _, step := range w.recorded() {
					check.Lacks(t, jsonOf(t, step)+w.log.String(), strings.TrimPrefix(modeltest.Key, "sk-"),
						strings.TrimPrefix(modeltest.WrongKey, "sk-"))
				}
			})
		}
	})
}

func TestEachWireFormEndsASilentCall(t *testing.T) {
	var calls sync.WaitGroup // Together, since silence takes its time.
	var all []*wired
	for _, form := range wireForms {
		for name, after := range map[string]*int{"from the beginning": nil, "after a word": one} {
			w := newWired(t, form, modelserver.Script{Rules: []modelserver.Rule{
				{Reply: breaks(modelserver.Fault{Kind: modelserver.FaultHang, After: after})}}})
			w.say("What is the capital?")
			w.on("hasty")
			calls.Go(func() { check.Equal(t, form.name+", "+name, "Failed: ProviderTimeout 0, again", outline(w.reply())) })
			all = append(all, w)
		}
	}
	calls.Wait()
	for _, w := range all {
		w.closed()
		check.Equal(t, "the call was aborted", true, w.Server.Requests()[0].Aborted)
	}
}

// sent checks what the server was sent, and how the request ended.
func (w *wired) sent(s scenario) {
	w.t.Helper()
	all := w.Server.Requests()
	if len(all) != 1 || len(w.recorded()) != 1 {
		w.t.Fatalf("%d requests were sent, and %d calls recorded", len(all), len(w.recordings))
	}
	r, key := all[0], modeltest.Key
	if s.config == "wrong" {
		key = modeltest.WrongKey
	}
	if r.Path != w.path || r.Header.Get(w.keyHeader) != w.keyPrefix+key ||
		!strings.HasPrefix(r.Header.Get("User-Agent"), "parley/") {
		w.t.Errorf("sent to %s with %v", r.Path, r.Header)
	}
	check.Contains(w.t, squeezed(string(r.Body)), w.maxTokens, "Be brief.", `"current_time"`)
	if s.aborted {
		w.eventually("the request has ended at the server", func() bool { return w.Server.Requests()[0].Aborted })
	}
}

func squeezed(body string) string { return strings.ReplaceAll(body, `": `, `":`) }

func jsonOf(t *testing.T, v any) string {
	t.Helper()
	raw, err := json.Marshal(v)
	check.OK(t, err)
	return string(raw)
}

// outline is a generated message in one line.
func outline(m *v1beta1.ChatMessage) string {
	g := m.Spec.Generation
	var said []string
	for _, p := range m.Spec.Parts {
		line := string(p.Type)
		switch {
		case p.Text != nil:
			line += fmt.Sprintf(" %q", clipped(*p.Text))
		case p.ToolCall != nil:
			line += fmt.Sprintf(" %s %s", p.ToolCall.Name, p.ToolCall.Input)
		}
		if p.ProviderMetadata != "" {
			line += " with metadata"
		}
		said = append(said, line)
	}
	if g.Error != nil {
		said = append(said, failure(g.Error))
	}
	if g.Truncated {
		said = append(said, "truncated")
	}
	if g.ReplyOutcome != "" {
		said = append(said, string(g.ReplyOutcome))
	}
	if u := g.Usage; u != nil && u.CacheReadTokens > 0 {
		said = append(said, fmt.Sprintf("%d in, %d cached, %d out of which %d reasoning, %d in all",
			u.InputTokens, u.CacheReadTokens, u.OutputTokens, u.ReasoningTokens, u.TotalTokens))
	}
	return string(g.Outcome) + ": " + strings.Join(said, "; ")
}

func failure(e *v1beta1.GenerationError) string {
	line := fmt.Sprintf("%s %d", e.Reason, e.StatusCode)
	if e.Retryable {
		line += ", again"
	}
	if e.RetryAfterSeconds != nil {
		line += fmt.Sprintf(" after %d s", *e.RetryAfterSeconds)
	}
	return line
}

func clipped(text string) string {
	if len(text) <= 30 {
		return text
	}
	return text[:22] + "…"
}
