// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/modelserver"
)

// scenario is what a model does, and what is committed of it.
type scenario struct {
	name  string
	reply modelserver.Reply
	// config is the ChatModelConfig to call; "": the right one.
	config string
	// committed is the outline of the ChatMessage, but for the differences of the wire form.
	committed string
	// interrupt ends the attempt once a part has come; silent lets the guard of silent calls end it.
	interrupt, silent bool
	// aborted is whether the server sees that the caller has gone away.
	aborted bool
}

// fault breaks a reply of two parts off: after the first one, or before it if the kind is of that sort.
func fault(f modelserver.Fault) modelserver.Reply {
	return modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Well", ", never.")}, Fault: &f}
}

var one = new(1)

var thought = modelserver.Think("h", "m")

var scenarios = []scenario{
	{
		name: "text", reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Par", "is.")}},
		committed: `Completed: Text "Paris."; Complete`,
	},
	{
		name:      "reasoning, then text",
		reply:     modelserver.Reply{Steps: []modelserver.Step{thought, modelserver.Say("Par", "is.")}},
		committed: `Completed: Reasoning "hm" with metadata; Text "Paris."; Complete`,
	},
	{
		name: "usage", reply: modelserver.Reply{
			Steps: []modelserver.Step{modelserver.Say("Paris.")}, Usage: &modelserver.Usage{Input: 100, Output: 50, Cached: 40,
				Reasoning: 20},
		},
		committed: `Completed: Text "Paris."; Complete; 60 in, 40 cached, 50 out of which 20 reasoning, 150 in all`,
	},
	{
		name: "too long", reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Paris.")},
			Finish: modelserver.FinishLength},
		committed: `Completed: Text "Paris."; CutByLength`,
	},
	{
		name: "too long within a call", reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Let me look."),
			{ToolCalls: []modelserver.ToolCall{clockCall,
				{Name: "launch", Arguments: json.RawMessage(`"{\"at\":1,\"force\":tr"`)}}}}, Finish: modelserver.FinishLength},
		committed: "Completed: " + lookLine + clockLine + "; ToolCall launch {}; CutByLength",
	},
	{
		name: "filtered", reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Say("Paris.")},
			Finish: modelserver.FinishContentFilter},
		committed: `Failed: ContentFiltered 0; Filtered`,
	},
	{
		name: "more than a message holds",
		reply: modelserver.Reply{Steps: []modelserver.Step{{Text: &modelserver.Text{
			Repeat: &modelserver.Repeat{Text: "and so on, ", Bytes: 8 << 20}, PieceBytes: 40_000,
		}}}},
		aborted: true, committed: `Completed: Text "and so on, and so on, …"; truncated; CutByLength`,
	},
	{name: "a wrong key", config: "wrong", committed: "Failed: AuthenticationFailed 401"},
	{
		name: "too many requests", config: "limited", // The others must not wait.
		reply: fault(modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429,
			RetryAfter: &modelserver.RetryAfter{Seconds: new(7)}}),
		committed: "Failed: RateLimited 429, again after 7 s",
	},
	{name: "a server error", reply: fault(modelserver.Fault{Kind: modelserver.FaultStatus, Status: 500}),
		committed: "Failed: ProviderError 500, again"},
	{
		name:      "an error within the stream",
		reply:     fault(modelserver.Fault{Kind: modelserver.FaultError, Status: 500, After: one}),
		committed: "Failed: ProviderError 0, again",
	},
	{name: "reset before the answer", reply: fault(modelserver.Fault{Kind: modelserver.FaultReset}),
		committed: "Failed: ProviderUnavailable 0, again"},
	{name: "cut", reply: fault(modelserver.Fault{Kind: modelserver.FaultCut, After: one}),
		committed: "Failed: ProviderUnavailable 0, again"},
	{name: "ended early", reply: fault(modelserver.Fault{Kind: modelserver.FaultEnd, After: one}),
		committed: "Failed: ProviderUnavailable 0, again"},
	{
		name: "interrupted", reply: fault(modelserver.Fault{Kind: modelserver.FaultHang, After: one}), interrupt: true,
		aborted:   true,
		committed: `Interrupted: Text "Well"`,
	},
	{name: "silent from the beginning", reply: fault(modelserver.Fault{Kind: modelserver.FaultHang}), config: "hasty",
		silent: true, aborted: true, committed: "Failed: ProviderSilent 0, again"},
	{name: "silent after a word", reply: fault(modelserver.Fault{Kind: modelserver.FaultHang, After: one}),
		config: "hasty", silent: true, aborted: true, committed: "Failed: ProviderSilent 0, again"},
}

// scriptOf lets the model follow the scenario that the user names.
func scriptOf(all []scenario) modelserver.Script {
	var script modelserver.Script
	for _, s := range all {
		script.Rules = append(script.Rules,
			modelserver.Rule{Name: s.name, Match: modelserver.Match{LastUserText: "Do: " + s.name + "!"}, Reply: s.reply})
	}
	return script
}

func slug(name string) string {
	return strings.NewReplacer(" ", "-", ",", "").Replace(name)
}

func TestEachWireFormCommitsWhatItsModelSaid(t *testing.T) {
	t.Parallel()
	for _, w := range wireForms {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			p := startWired(t, w, scriptOf(scenarios))
			// Calls that are silent are so together, since that takes its time.
			silent := map[string]*conversation{}
			for _, s := range scenarios {
				if !s.silent {
					t.Run(s.name, func(t *testing.T) { p.in(t).check(s, p.in(t).begin(s)) })
				}
			}
			for _, s := range scenarios {
				if s.silent {
					silent[s.name] = p.begin(s)
				}
			}
			for _, s := range scenarios {
				if s.silent {
					t.Run(s.name, func(t *testing.T) { p.in(t).check(s, silent[s.name]) })
				}
			}
		})
	}
}

// begin gives the pod a chat whose model follows the scenario.
func (w *wired) begin(s scenario) *conversation {
	w.t.Helper()
	c := w.newChat(slug(s.name), func(spec *v1alpha1.ChatSpec) { spec.SystemPrompt = "Be brief." })
	user := c.chat.Name + "-u"
	c.say(user, "Do: "+s.name+"!")
	c.write(func(status *v1alpha1.ChatStatus) {
		status.Turn = &v1alpha1.TurnStatus{Message: user}
		status.History = v1alpha1.HistoryStatus{Version: 1, Head: user, Length: 1}
		status.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
		status.Generation.ModelConfig = cmp.Or(s.config, "default")
	})
	return c
}

// check waits for what is committed, and looks at both ends of the wire.
func (w *wired) check(s scenario, c *conversation) {
	w.t.Helper()
	if s.interrupt {
		w.eventually("the model has said a word", func() bool {
			text, _ := w.relay.heard(c.fence())
			return text == "Well"
		})
		c.write(interrupt)
	}
	w.commits(c.result(), s.name, s.committed)
	w.got(s)
	w.nothingLeft()
}

// got checks what the server was sent, and how the request ended.
func (w *wired) got(s scenario) {
	t := w.t
	t.Helper()
	all := w.models.Requests()
	var requests []modelserver.Record
	for _, r := range all {
		if strings.Contains(string(r.Body), "Do: "+s.name+"!") {
			requests = append(requests, r)
		}
	}
	if len(requests) != 1 {
		t.Fatalf("%d requests were sent", len(requests))
	}
	r, key := requests[0], rightKey
	if s.config == "wrong" {
		key = "sk-wrong-0123456789"
	}
	if r.Path != w.path || r.Header.Get(w.keyHeader) != w.keyPrefix+key ||
		!strings.HasPrefix(r.Header.Get("User-Agent"), "parley/") {
		t.Errorf("sent to %s with %v", r.Path, r.Header)
	}
	for _, want := range []string{w.maxTokens, "Be brief.", `"current_time"`} {
		if !strings.Contains(squeezed(r.Body), want) {
			t.Errorf("no %s in %s", want, r.Body)
		}
	}
	if s.aborted {
		w.eventually("the request has ended at the server", func() bool {
			for _, now := range w.models.Requests() {
				if now.Arrived.Equal(r.Arrived) && now.Aborted {
					return true
				}
			}
			return false
		})
	}
}

func squeezed(body []byte) string { return strings.ReplaceAll(string(body), `": `, `":`) }

// outline is a generated message in one line.
func outline(m *v1alpha1.ChatMessage) string {
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

func failure(e *v1alpha1.GenerationError) string {
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
