// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"encoding/json"
	"regexp"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/test/modelserver"
)

// toolScenario is a reply with calls, whose results are sent back.
type toolScenario struct {
	name  string
	steps []modelserver.Step
	// committed is the outline of the reply.
	committed string
	// results are pieces of the results, in the order of the calls.
	results []string
}

var (
	clockCall = modelserver.ToolCall{Name: "current_time", Arguments: json.RawMessage(`{"timezone":"Asia/Tokyo"}`),
		PieceBytes: 7}
	launchCall = modelserver.ToolCall{Name: "launch", Arguments: json.RawMessage(`{"at":1}`)}
)

const (
	clockLine  = `ToolCall current_time {"timezone":"Asia/Tokyo"}`
	launchLine = `ToolCall launch {"at":1}`
	reasonLine = `Reasoning "hm" with metadata; `
	lookLine   = `Text "Let me look."; `
	tokyo      = "1970-01-01T09:00:00+09:00"
)

var toolScenarios = []toolScenario{
	{
		name: "one call", steps: []modelserver.Step{{ToolCalls: []modelserver.ToolCall{clockCall}}},
		committed: clockLine, results: []string{tokyo},
	},
	{
		name: "two calls", steps: []modelserver.Step{{ToolCalls: []modelserver.ToolCall{clockCall, launchCall}}},
		committed: clockLine + "; " + launchLine, results: []string{tokyo, "launch"},
	},
	{
		name:      "reasoning, then two calls",
		steps:     []modelserver.Step{thought, {ToolCalls: []modelserver.ToolCall{clockCall, launchCall}}},
		committed: reasonLine + clockLine + "; " + launchLine, results: []string{tokyo, "launch"},
	},
	{
		name: "reasoning, text, then a call", steps: []modelserver.Step{thought, modelserver.Say("Let me ", "look."),
			{ToolCalls: []modelserver.ToolCall{clockCall}}},
		committed: reasonLine + lookLine + clockLine, results: []string{tokyo},
	},
}

// toolScript answers each scenario's request with its calls, and the request with the results with what it read there.
func toolScript() modelserver.Script {
	var script modelserver.Script
	for _, s := range toolScenarios {
		script.Rules = append(script.Rules, modelserver.Rule{
			Match: modelserver.Match{LastUserText: "Do: " + s.name + "!", ToolResults: new(0)},
			Reply: modelserver.Reply{Steps: s.steps},
		})
	}
	script.Rules = append(script.Rules, modelserver.Rule{Reply: modelserver.Reply{Steps: []modelserver.Step{
		{Text: &modelserver.Text{Value: "I read: {{.ToolResultsText}}"}},
	}}})
	return script
}

// gateways are the other ways in which OpenRouter and Vercel word reasoning, each that of the model's maker.
func gateways() (forms []wireForm) {
	for _, w := range wireForms {
		if w.provider != v1alpha1.ProviderOpenRouter && w.provider != v1alpha1.ProviderVercel {
			continue
		}
		for _, model := range []string{"openai/gpt-5", "google/gemini-3-pro", "deepseek/deepseek-r1"} {
			form := w
			form.name, form.model, form.replays = w.name+" "+model, model, `"data":"`+proof
			if model == "deepseek/deepseek-r1" {
				form.replays = `"reasoning_details":[{`
			}
			forms = append(forms, form)
		}
	}
	return forms
}

func TestEachWireFormAnswersTheCallsOfItsModel(t *testing.T) {
	t.Parallel()
	for _, w := range append(gateways(), wireForms...) {
		t.Run(w.name, func(t *testing.T) {
			t.Parallel()
			p := startWired(t, w, toolScript())
			for _, s := range toolScenarios {
				t.Run(s.name, func(t *testing.T) { p.in(t).round(s) })
			}
		})
	}
}

// round plays a reply with calls, their results, and the answer.
func (w *wired) round(s toolScenario) {
	t := w.t
	t.Helper()
	c := w.newChat(slug(s.name), nil)
	c.ask(c.chat.Name+"-u", "Do: "+s.name+"!")
	calls := c.result()
	if !w.commits(calls, s.name, "Completed: "+s.committed+"; ToolCalls") {
		return
	}
	if n := calls.Spec.Generation.PendingCalls; int(n) != len(s.results) {
		t.Errorf("%d calls are pending", n)
	}
	c.commit(calls, v1alpha1.ActionExecuteTools)
	results := c.result()
	c.commit(results, v1alpha1.ActionGenerateAssistant)
	answer := c.result()
	if answer.Spec.Generation.Outcome != v1alpha1.OutcomeCompleted {
		t.Fatalf("the results were refused: %+v", answer.Spec.Generation.Error)
	}
	text, at := textOf(t, answer), -1
	for _, piece := range s.results {
		i := strings.Index(text, piece)
		if i <= at {
			t.Errorf("the model read %q, with %s missing or out of order", text, piece)
		}
		at = i
	}
	w.replayed(calls)
	w.nothingLeft()
}

// replayed checks what the request with the results says of the reply before it: each call as it was, and the reasoning
// as the wire form wants it.
func (w *wired) replayed(calls *v1alpha1.ChatMessage) {
	t := w.t
	t.Helper()
	all := w.models.Requests()
	body := squeezed(all[len(all)-1].Body)
	for _, piece := range []string{"Asia/Tokyo", tokyo} {
		if !strings.Contains(body, piece) {
			t.Errorf("no %s in %s", piece, body)
		}
	}
	committed := outline(calls)
	thoughtful := strings.Contains(committed, "Reasoning") || strings.Contains(committed, "with metadata")
	// Random ids can end in it, too.
	if w.replays == "" && (strings.Contains(body, `"hm"`) || strings.Contains(body, `\nhm"`)) {
		t.Errorf("the reasoning was sent back: %s", body)
	}
	if w.replays != "" && strings.Contains(body, w.replays) != thoughtful {
		t.Errorf("sent back with %s: %v, want %v: %s", w.replays, !thoughtful, thoughtful, body)
	}
	for _, p := range calls.Spec.Parts {
		for _, signature := range signature.FindAllStringSubmatch(p.ProviderMetadata, -1) {
			if strings.Count(body, signature[1]) != 1 {
				t.Errorf("signature %s is not sent back once as it was committed: %s", signature[1], body)
			}
		}
	}
}

// signature is that of a reasoning in its metadata.
var signature = regexp.MustCompile(`"signature":"([^"]+)"`)
