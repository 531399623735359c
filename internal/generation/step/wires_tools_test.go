// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package step

import (
	"fmt"
	"regexp"
	"strings"
	"testing"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/modelserver"
)

// toolScenario is a reply with calls, whose results are sent back.
type toolScenario struct {
	name  string
	steps []modelserver.Step
	// committed is the outline of the reply, and results are pieces of the results, in the order of the calls.
	committed string
	results   []string
}

var (
	clockCall  = modelserver.ToolCall{Name: "current_time", Arguments: []byte(`{"timezone":"Asia/Tokyo"}`), PieceBytes: 7}
	launchCall = call("launch", `{"at":1}`)
	clockStep  = modelserver.Step{ToolCalls: []modelserver.ToolCall{clockCall}}
	bothStep   = modelserver.Step{ToolCalls: []modelserver.ToolCall{clockCall, launchCall}}
)

const (
	clockLine  = `ToolCall current_time {"timezone":"Asia/Tokyo"}`
	launchLine = `ToolCall launch {"at":1}`
	reasonLine = `Reasoning "hm" with metadata; `
	lookLine   = `Text "Let me look."; `
	tokyo      = "1970-01-01T09:00:00+09:00"
)

var toolScenarios = []toolScenario{
	{"one call", []modelserver.Step{clockStep}, clockLine, []string{tokyo}},
	{"two calls", []modelserver.Step{bothStep}, clockLine + "; " + launchLine, []string{tokyo, "launch"}},
	{"reasoning, then two calls", []modelserver.Step{thought, bothStep},
		reasonLine + clockLine + "; " + launchLine, []string{tokyo, "launch"}},
	{"reasoning, text, then a call", []modelserver.Step{thought, modelserver.Say("Let me ", "look."), clockStep},
		reasonLine + lookLine + clockLine, []string{tokyo}},
}

// gateways are the other ways in which OpenRouter and Vercel word reasoning, each that of the model's maker.
func gateways() (forms []wireForm) {
	for _, w := range wireForms {
		if w.provider != v1beta1.ProviderOpenRouter && w.provider != v1beta1.ProviderVercel {
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

func TestEachWireFormAnswersCallsOfItsModel(t *testing.T) {
	onEach(t, append(gateways(), wireForms...), func(t *testing.T, form wireForm) {
		for _, s := range toolScenarios {
			t.Run(s.name, func(t *testing.T) {
				script := readsBack()
				script.Rules[0].Reply.Steps = s.steps
				w := newWired(t, form, script)
				calls := w.ask("What time is it?")
				w.commits(calls, s.name, "Completed: "+s.committed+"; ToolCalls")
				check.Equal(t, "pending calls", len(s.results), int(calls.Spec.Generation.PendingCalls))
				w.execute()
				answer := w.reply()
				check.Equal(t, "the outcome", v1beta1.OutcomeCompleted, answer.Spec.Generation.Outcome)
				check.InOrder(t, answer.Spec.Text(), s.results...)
				w.replayed(calls)
				w.closed()
			})
		}
	})
}

// replayed checks what the request with the results says of the reply before it: each call as it was, and the reasoning
// as the wire form wants it.
func (w *wired) replayed(calls *v1beta1.ChatMessage) {
	w.t.Helper()
	body, committed := squeezed(w.LastBody()), outline(calls)
	check.Contains(w.t, body, "Asia/Tokyo", tokyo)
	thoughtful := strings.Contains(committed, "Reasoning") || strings.Contains(committed, "with metadata")
	if w.replays == "" {
		check.Lacks(w.t, body, `"hm"`, `\nhm"`) // Random ids can end in it, too.
	} else if strings.Contains(body, w.replays) != thoughtful {
		w.t.Errorf("sent back with %s: %v, want %v: %s", w.replays, !thoughtful, thoughtful, body)
	}
	for _, p := range calls.Spec.Parts {
		for _, signature := range signature.FindAllStringSubmatch(p.ProviderMetadata, -1) {
			check.Equal(w.t, "times that a signature is sent back as it was", 1, strings.Count(body, signature[1]))
		}
	}
}

// signature is that of a reasoning in its metadata.
var signature = regexp.MustCompile(`"signature":"([^"]+)"`)

func TestEachWireFormContinuesAfterAStoppingTool(t *testing.T) {
	onEach(t, append(gateways(), wireForms...), func(t *testing.T, form wireForm) {
		w := newWired(t, form, modelserver.Script{Rules: []modelserver.Rule{
			{Match: modelserver.Match{LastUserText: "What time is it?", ToolResults: new(0)}, Reply: said(clockStep)},
			{Match: modelserver.Match{LastUserText: "And in words?"}, Reply: said(modelserver.Say("Nine."))},
		}}, func(s *v1beta1.ChatSpec) { s.Tools = &v1beta1.ChatTools{StopAfter: []string{"current_time"}} })
		w.ask("What time is it?")
		check.Equal(t, "the tool that ends the turn", "current_time", w.execute().Spec.Generation.StoppedBy)
		check.Equal(t, "the next turn", `Completed: Text "Nine."; Complete`, outline(w.ask("And in words?")))
		check.Contains(t, w.LastBody(), tokyo, "And in words?")
		w.closed()
	})
}

// searching lets the provider search the web.
func searching(s *v1beta1.ChatSpec) {
	s.Tools = &v1beta1.ChatTools{Provider: []v1beta1.ProviderTool{v1beta1.ProviderWebSearch}}
}

func TestProviderSearchesTheWebWhereItCan(t *testing.T) {
	searches := map[string]string{"anthropic": `"web_search_20250305"`, "openai responses": `"type":"web_search"`,
		"azure responses": `"type":"web_search"`, "google": `"googleSearch":{}`}
	onEach(t, wireForms, func(t *testing.T, form wireForm) {
		w := newWired(t, form, modelserver.Script{}, searching)
		g := w.ask("What is new?").Spec.Generation
		want, can := searches[form.name]
		if can {
			check.Contains(t, w.LastBody(), want)
			check.Equal(t, "missing", []v1beta1.ProviderToolUnavailable(nil), g.ProviderToolsUnavailable)
			return
		}
		check.Lacks(t, w.LastBody(), "web_search")
		check.Equal(t, "missing", []v1beta1.ProviderToolUnavailable{
			{Tool: v1beta1.ProviderWebSearch, Reason: v1beta1.ProviderToolNotSupported}}, g.ProviderToolsUnavailable)
	})
}

// searches is a model that searches the web for its first answer in a conversation.
var searches = modelserver.Script{Rules: []modelserver.Rule{
	{Match: modelserver.Match{LastUserText: "how many"}, Reply: said(
		modelserver.Say("I look. "),
		modelserver.SearchFor("population of Tokyo",
			modelserver.Found{URL: "https://stat.example/tokyo", Title: "Tokyo Population"},
			modelserver.Found{URL: "https://wiki.example/tokyo", Title: "Tokyo"}),
		modelserver.Say("14 million."))},
	{Reply: said(modelserver.Say("You are welcome."))},
}}

// kinds are what the parts of a message are, calls and results by the name of the tool.
func kinds(m *v1beta1.ChatMessage) (kinds []string) {
	for _, p := range m.Spec.Parts {
		switch {
		case p.ToolCall != nil && p.ToolCall.ProviderExecuted:
			kinds = append(kinds, "call "+p.ToolCall.Name)
		case p.ToolResult != nil && p.ToolResult.ProviderExecuted:
			kinds = append(kinds, "result "+p.ToolResult.Name)
		default:
			kinds = append(kinds, string(p.Type))
		}
	}
	return kinds
}

// The scripted model refuses what the providers refuse: a search without its result, or one that is not as it was.
//
// Security (a search of a provider): can output any text to the model; the resulting calls wait for approval like
// others.
//
// Security (a search of a provider): cannot pass as a tool of Parley or of a client, or make Parley run something.
func TestProvidersSearchIsReplayedToEveryProvider(t *testing.T) {
	for name, want := range map[string]struct {
		parts []string
		// replayed is what the provider gets back of its own search, and told what others read of it.
		replayed, told []string
	}{
		"anthropic": {
			[]string{"Text", "call web_search", "Source", "Source", "result web_search", "Text"},
			[]string{`"type":"server_tool_use"`, `"query":"population of Tokyo"`, `"encrypted_content":"c2NyaXB0ZWQ6Zm91bmQ6`},
			[]string{"Tokyo Population https://stat.example/tokyo", "Tokyo https://wiki.example/tokyo"},
		},
		// OpenAI has it in store or nowhere: Parley stores nothing there unless it is told to.
		"openai responses": {[]string{"Text", "call web_search", "result web_search", "Text"}, nil, nil},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWired(t, wiredForm(name), searches, searching)
			reply := w.ask("So how many live in Tokyo?")
			check.Equal(t, "the parts", want.parts, kinds(reply))
			check.Equal(t, "calls to answer", 0, int(reply.Spec.Generation.PendingCalls))
			for _, other := range append(wireForms, wireForms...) {
				w.Put(other.config(other.name, w.URL))
				w.say("Thanks.")
				w.on(other.name)
				check.Equal(t, other.name, `Completed: Text "You are welcome."; Complete`, outline(w.reply()))
				pieces := want.told
				if other.name == name {
					pieces = want.replayed
				}
				check.Contains(t, w.LastBody(), append(pieces, "14 million.")...)
			}
		})
	}
}

// The scripted model refuses a search whose result is missing, unless the reply that asked for it comes last.
func TestPausedReplyGoesBackUnchanged(t *testing.T) {
	w := newWired(t, wiredForm("anthropic"), modelserver.Script{Rules: []modelserver.Rule{
		{Times: 1, Reply: modelserver.Reply{FinishReason: "pause_turn", Steps: searches.Rules[0].Reply.Steps[:2]}},
		{Times: 1, Reply: said(modelserver.Say("14 million."))},
		searches.Rules[1],
	}}, searching)
	g := w.ask("So how many live in Tokyo?").Spec.Generation
	check.Equal(t, "the reply", fmt.Sprint(v1beta1.ReplyPaused, " pause_turn"),
		fmt.Sprint(g.ReplyOutcome, " ", g.FinishReason))
	check.Equal(t, "its continuation", `Completed: Text "14 million."; Complete`, outline(w.reply()))
	body := w.LastBody()
	check.Contains(t, body, `"server_tool_use"`)
	check.Lacks(t, body, "Go on.")
	check.InOrder(t, body, `"role":"user"`, `"role":"assistant"`)
	check.Equal(t, "the next turn", `Completed: Text "You are welcome."; Complete`, outline(w.ask("Thanks.")))
	check.Contains(t, w.LastBody(), `"server_tool_use"`)
	check.Equal(t, "replies that it is told", 1, strings.Count(w.LastBody(), `"role":"assistant"`))
}
