// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package gemini_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/collect"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/internal/generation/provider/gemini"
	"parley.dev/parley/internal/generation/provider/wire"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
)

var (
	weather = fantasy.FunctionTool{Name: "weather", InputSchema: map[string]any{"type": "object"}}
	search  = fantasy.ProviderDefinedTool{ID: wire.WebSearch, Name: wire.WebSearch,
		Args: map[string]any{wire.BlockedDomains: []string{"a.example"}, wire.City: "Bonn"}}
	code = fantasy.ProviderDefinedTool{ID: wire.CodeExecution, Name: wire.CodeExecution}
)

func ask(t *testing.T, model string, change func(*fantasy.Call), events ...string) (collect.Step, map[string]any) {
	t.Helper()
	server := &providertest.Scripted{Replies: providertest.Events(events...)}
	spec := v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderGoogle, Model: model}
	got, err := server.Ask(t, spec, change)
	if err != nil && len(events) > 0 {
		t.Fatal(err)
	}
	var sent map[string]any
	check.OK(t, json.Unmarshal([]byte(server.Sent[0]), &sent))
	return got, sent
}

func TestSettingsOfACallReachGemini(t *testing.T) {
	form := &wire.Output{Name: "city", Schema: map[string]any{"type": "object", "properties": map[string]any{}}}
	const (
		declared  = `{"functionDeclarations":[{"name":"weather","parametersJsonSchema":{"type":"object","properties":{}}}]}`
		withForm  = `{"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{}}}`
		onlyFor3  = "was left out: models before Gemini 3 do not take "
		notFilter = " was left out: Gemini does not take it"
	)
	choose := func(c fantasy.ToolChoice) *fantasy.ToolChoice { return &c }
	for name, c := range map[string]struct {
		model    string
		settings wire.Settings
		tools    []fantasy.Tool
		choice   *fantasy.ToolChoice
		// want are fields of the body.
		want     map[string]string
		warnings []string
	}{
		"stop": {model: "gemini-2.5-pro", settings: wire.Settings{Stop: []string{"END"}, CacheKey: "k"},
			want: map[string]string{"generationConfig": `{"stopSequences":["END"]}`}},
		"a schema": {model: "gemini-2.5-pro", settings: wire.Settings{Output: form},
			want: map[string]string{"generationConfig": withForm}},
		"a schema beside tools": {model: "gemini-3-pro", settings: wire.Settings{Output: form},
			tools: []fantasy.Tool{weather}, want: map[string]string{"generationConfig": withForm, "tools": "[" + declared + "]"}},
		"no call": {model: "m", tools: []fantasy.Tool{weather}, choice: choose(fantasy.ToolChoiceNone),
			want: map[string]string{"toolConfig": `{"functionCallingConfig":{"mode":"NONE"}}`}},
		"any call": {model: "m", tools: []fantasy.Tool{weather}, choice: choose(fantasy.ToolChoiceAuto),
			want: map[string]string{"toolConfig": `{"functionCallingConfig":{"mode":"AUTO"}}`}},
		"some call": {model: "m", tools: []fantasy.Tool{weather}, choice: choose(fantasy.ToolChoiceRequired),
			want: map[string]string{"toolConfig": `{"functionCallingConfig":{"mode":"ANY"}}`}},
		"one call": {model: "m", tools: []fantasy.Tool{weather}, choice: choose("weather"), want: map[string]string{
			"toolConfig": `{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["weather"]}}`}},
		"a choice without tools": {model: "m", choice: choose(fantasy.ToolChoiceRequired),
			want: map[string]string{"toolConfig": `null`}},
		"tools of Google": {model: "gemini-2.5-pro", tools: []fantasy.Tool{search, code},
			want:     map[string]string{"tools": `[{"googleSearch":{}},{"codeExecution":{}}]`, "toolConfig": `null`},
			warnings: []string{"webSearch.blockedDomains" + notFilter, "webSearch.city" + notFilter}},
		"tools of Google beside others": {model: "gemini-3-pro", tools: []fantasy.Tool{code, weather},
			choice: choose(fantasy.ToolChoiceAuto), want: map[string]string{"tools": "[" + declared + `,{"codeExecution":{}}]`,
				"toolConfig": `{"includeServerSideToolInvocations":true}`}},
		"tools of Google beside others of an earlier model": {model: "gemini-2.5-pro", tools: []fantasy.Tool{search, weather},
			want:     map[string]string{"tools": "[" + declared + "]", "toolConfig": `null`},
			warnings: []string{"webSearch " + onlyFor3 + "it together with other tools"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, sent := ask(t, c.model, func(call *fantasy.Call) {
				call.MaxOutputTokens, call.Tools, call.ToolChoice = nil, c.tools, c.choice
				call.ProviderOptions = c.settings.With()
			})
			for field, text := range c.want {
				var want any
				check.OK(t, json.Unmarshal([]byte(text), &want))
				check.Equal(t, field, want, sent[field])
			}
			check.Equal(t, "warnings", c.warnings, got.Warnings)
		})
	}
}

func TestToolsOfGoogleGoBackUnchanged(t *testing.T) {
	pieces := []string{
		`{"text":"hm","thought":true}`,
		`{"toolCall":{"id":"s1","toolType":"GOOGLE_SEARCH_WEB","args":{"queries":["x"]}},"thoughtSignature":"AQ=="}`,
		`{"toolResponse":{"id":"s1","toolType":"GOOGLE_SEARCH_WEB","response":{"found":12345678901234567}}}`,
		`{"executableCode":{"language":"PYTHON","code":"1+1"}}`, `{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"2"}}`,
		`{"text":"Two."}`, `{"text":"","thoughtSignature":"Ag=="}`,
		`{"functionCall":{"id":"f1","name":"weather","args":{"n":12345678901234567,"city":"<Bonn>"}},"thoughtSignature":"Aw=="}`,
	}
	var events []string
	for _, piece := range pieces {
		events = append(events, `{"candidates":[{"content":{"role":"model","parts":[`+piece+`]}}]}`)
	}
	got, _ := ask(t, "gemini-3-pro", nil, append(events, `{"candidates":[{"groundingMetadata":{"groundingChunks":[`+
		`{"web":{"uri":"https://a.example","title":"A"}}]},"finishReason":"STOP"}]}`)...)
	if want := []string{`s1 web_search {"queries":["x"]}`, `code_execution {"code":"1+1"}`,
		`f1 weather {"city":"\u003cBonn\u003e","n":12345678901234567}`}; len(providertest.Calls(got)) != 3 ||
		!slices.EqualFunc(providertest.Calls(got), want, strings.HasSuffix) || got.PendingCalls != 1 {
		t.Errorf("calls %q", providertest.Calls(got))
	}
	last := got.Parts[len(got.Parts)-1].Source
	check.Equal(t, "URL and title", []any{"https://a.example", "A"}, []any{last.URL, last.Title})
	spec := v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderGoogle, Model: "gemini-3-pro"}
	history := []v1beta1.ChatMessage{{Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleUser, Content: "q"}},
		{Spec: v1beta1.ChatMessageSpec{Role: v1beta1.RoleAssistant, Parts: got.Parts}}}
	_, sent := ask(t, spec.Model, func(call *fantasy.Call) {
		call.Prompt = prompt.Build(prompt.Input{History: history, Dialect: provider.DialectOf(&spec)})
	})
	back := sent["contents"].([]any)[1].(map[string]any)["parts"]
	var want any
	text := `{"text":"Two.","thoughtSignature":"Ag=="}`
	if err := json.Unmarshal([]byte("["+strings.Join(slices.Concat(pieces[1:5], []string{text}, pieces[7:]), ",")+"]"),
		&want); err != nil {
		t.Fatal(err)
	}
	check.Equal(t, "what goes back", want, back)
	config, _ := json.Marshal(sent["toolConfig"])
	check.Equal(t, "toolConfig", `{"includeServerSideToolInvocations":true}`, string(config))
}

func TestAnImageInAResultReachesGemini(t *testing.T) {
	for model, want := range map[string]string{
		"gemini-3-pro": `[{"functionResponse":{"id":"f1","name":"weather","parts":[{"inlineData":{"data":"AQ==",` +
			`"mimeType":"image/png"}}],"response":{"result":"see"}}}]`,
		"gemini-2.5-pro": `[{"functionResponse":{"id":"f1","name":"weather","response":{"result":"see"}}},` +
			`{"inlineData":{"data":"AQ==","mimeType":"image/png"}}]`,
	} {
		_, sent := ask(t, model, func(call *fantasy.Call) {
			call.Prompt = append(call.Prompt, fantasy.Message{Role: fantasy.MessageRoleAssistant, Content: []fantasy.MessagePart{
				fantasy.ToolCallPart{ToolCallID: "f1", ToolName: "weather", Input: "{}"}}},
				fantasy.Message{Role: fantasy.MessageRoleTool, Content: []fantasy.MessagePart{fantasy.ToolResultPart{
					ToolCallID: "f1", Output: fantasy.ToolResultOutputContentMedia{Data: "AQ==", MediaType: "image/png",
						Text: "see"}}}})
		})
		got, _ := json.Marshal(sent["contents"].([]any)[2].(map[string]any)["parts"])
		check.Equal(t, model, want, string(got))
	}
}

func TestVertexAIServesAModelAtItsLocation(t *testing.T) {
	for _, c := range []struct{ model, location, want string }{
		{"gemini-2.5-flash", "europe-west4", "https://europe-west4-aiplatform.googleapis.com/v1beta1/projects/p/" +
			"locations/europe-west4/publishers/google/models/gemini-2.5-flash:streamGenerateContent?alt=sse"},
		{"models/gemini-3-pro-preview", "global", "https://aiplatform.googleapis.com/v1beta1/projects/p/" +
			"locations/global/publishers/google/models/gemini-3-pro-preview:streamGenerateContent?alt=sse"},
		{"endpoints/123", "eu", "https://aiplatform.eu.rep.googleapis.com/v1beta1/projects/p/" +
			"locations/eu/endpoints/123:streamGenerateContent?alt=sse"},
	} {
		protocol, err := gemini.New(&v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderGoogle, Model: c.model,
			VertexAI: &v1beta1.VertexAI{Project: "p", Location: c.location}}, "")
		check.OK(t, err)
		request, _, err := protocol.Request(t.Context(), &fantasy.Call{Prompt: fantasy.Prompt{fantasy.NewUserMessage("?")}})
		check.Equal(t, "error, url, header", []any{nil, c.want, 0}, []any{err, request.URL, len(request.Header)})
	}
}

func TestVertexAITakesNoSearchBesideOtherTools(t *testing.T) {
	for vertex, want := range map[*v1beta1.VertexAI]bool{nil: true, {Project: "p", Location: "global"}: false} {
		protocol, err := gemini.New(&v1beta1.ChatModelConfigSpec{Provider: v1beta1.ProviderGoogle,
			Model: "gemini-3-pro-preview", VertexAI: vertex}, "")
		check.OK(t, err)
		request, warnings, err := protocol.Request(t.Context(), &fantasy.Call{
			Prompt: fantasy.Prompt{fantasy.NewUserMessage("?")},
			Tools: []fantasy.Tool{fantasy.ProviderDefinedTool{ID: "google." + wire.WebSearch, Name: wire.WebSearch},
				fantasy.FunctionTool{Name: "f", InputSchema: map[string]any{"type": "object"}}},
		})
		check.OK(t, err)
		body := string(request.Body)
		if strings.Contains(body, "googleSearch") != want || (len(warnings) == 0) != want ||
			strings.Contains(body, "includeServerSideToolInvocations") != want || !strings.Contains(body, `"name":"f"`) {
			t.Errorf("with %v: %v, %s", vertex, warnings, body)
		}
	}
}
