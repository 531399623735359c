// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"io"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"charm.land/fantasy"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/internal/generation/provider"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/providertest"
	"parley.dev/parley/test/modelserver"
)

var update = flag.Bool("update", false, "write what is sent into the golden files")

// difficult are histories that providers refuse, or misread, as they stand.
func difficult() map[string]prompt.Input {
	of := func(history ...v1beta1.ChatMessage) prompt.Input { return prompt.Input{History: history} }
	withSystem := of(user("q"), assistant(text("a")), user("r"))
	withSystem.SystemPrompt, withSystem.Instructions, withSystem.SubChat, withSystem.Extra = "sys", []string{"one", "two"},
		true, []string{"advice"}
	claude := by(v1beta1.ProviderAnthropic, "claude", assistant(
		with(signature, reasoning("hm")), text("I look it up."),
		with("", byProvider(callOf("srvtoolu_1", "web_search", `{"query":"x"}`))),
		with(found, byProvider(result("srvtoolu_1", "it says y"))),
		text("It says y."), call("toolu_1", `{"y":1}`),
	))
	failed := result("toolu_1", "no such y")
	failed.ToolResult.IsError = true
	return map[string]prompt.Input{
		"all blocks of the system message": withSystem,
		"from Anthropic":                   of(user("q"), claude, tool(failed), user("r")),
		"from a compatible server": of(user("q"),
			by(v1beta1.ProviderOpenAICompatible, "kimi", assistant(reasoning("hm"), text("a"), call("functions.t:0", "{}"))),
			tool(result("functions.t:0", "b"))),
		"from the responses API": of(user("q"), by(v1beta1.ProviderOpenAI, "gpt", assistant(
			with(`{"parley":{"type":"parley.state","data":{"protocol":"Responses","item":{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"sealed"}}}}`, reasoning("hm")), text("a"))), user("r")),
		"from nobody knows whom": of(user("q"), assistant(reasoning("hm"), text("a")), user("r")),
		"calls without results": of(user("q"), assistant(call("a", "{}"), call("b", "{}")), tool(result("b", "1")),
			user("r"), assistant(call("c", "{}"))),
		"results without calls": of(tool(result("a", "1")), assistant(call("b", "{}")),
			tool(result("b", "2"), result("x", "3"), byProvider(result("y", "4")))),
		"results that came late": of(user("q"), assistant(call("a", "{}"), call("b", "{}")), tool(result("b", "2")),
			user("r"), tool(result("a", "1"))),
		"ids that are used again": of(user("q"), assistant(call("tool-call-0", "{}")),
			tool(result("tool-call-0", "1")), assistant(call("tool-call-0", "{}")), tool(result("tool-call-0", "2"))),
		"ids and names that are not valid": of(user("q"), assistant(callOf(strings.Repeat("é", 60), "mcp:a.b", "{}"),
			callOf("a:1", strings.Repeat("n", 100), `{"x":`)), tool(result("a:1", ""))),
		"texts that are none": of(user("a\x00b"), assistant(text(""), reasoning(" ")), user("\xff"),
			assistant(text("\n")), user(" ")),
		"a turn that a result ended": of(user("q"), assistant(text("I look."), call("x", "{}"), call("y", "{}")),
			tool(result("x", "1"), result("y", "2")), user("r")),
		"two users in a row": of(user("q"), user("r"), assistant(text("a")), user("s"),
			said(v1beta1.RoleUser, text("t"), text("u"))),
		"several texts in one reply": of(user("q"), assistant(text("a"), call("x", "{}"), text("b")), tool(result("x", "1")),
			assistant(text("c"), text("d")), user("r")),
		"nothing from a user":     of(assistant(text("a"))),
		"an earlier conversation": of(priorTo(), user("s")),
		"a summary in front":      of(user("They spoke of x."), assistant(call("a", "{}")), tool(result("a", "1"))),
		"files": of(said(v1beta1.RoleUser, text("see"), inPlace("a.png", "image/png", png),
			inPlace("b.pdf", "application/pdf", pdf), inPlace("c.txt", "text/plain", "c"),
			inPlace("d.zip", "application/zip", "PK"))),
	}
}

// TestWhatIsSent holds what each provider is really sent, as golden files; -update writes them.
func TestWhatIsSent(t *testing.T) {
	for name, spec := range wires {
		t.Run(name, func(t *testing.T) {
			w, sent := newWire(t, spec), map[string]json.RawMessage{}
			for history, in := range difficult() {
				if err := w.send(t, in); err != nil {
					t.Errorf("%s: %v", history, err)
				}
				sent[history] = w.sent
			}
			golden(t, filepath.Join("testdata", "wire", name+".json"), sent)
		})
	}
}

// golden compares what the documents mean: the order of keys is the libraries' own.
func golden(t *testing.T, path string, value any) {
	t.Helper()
	raw, err := json.Marshal(value)
	check.OK(t, err)
	got := ordered(t, raw)
	if *update {
		check.OK(t, os.MkdirAll(filepath.Dir(path), 0o755))
		check.OK(t, os.WriteFile(path, []byte(got), 0o644))
		return
	}
	want, err := os.ReadFile(path)
	check.OK(t, err)
	check.Equal(t, path+", run the test with -update if this is right", ordered(t, want), got)
}

// ordered is a JSON document with the keys of its objects in order, and every value as it was.
func ordered(t *testing.T, raw []byte) string {
	t.Helper()
	var value any
	decoder := json.NewDecoder(bytes.NewReader(raw))
	decoder.UseNumber()
	check.OK(t, decoder.Decode(&value))
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", "  ")
	check.OK(t, encoder.Encode(value))
	return out.String()
}

// TestNoPromptIsRefused sends wild histories, the same in each run.
func TestNoPromptIsRefused(t *testing.T) {
	for name, spec := range wires {
		t.Run(name, func(t *testing.T) {
			w, random := newWire(t, spec), rand.New(rand.NewPCG(3, 4))
			for n := range 150 {
				data := bytesOf(random)
				if err := w.send(t, prompt.Input{SystemPrompt: "sys", History: historyOf(data)}); err != nil {
					t.Fatalf("history %d: %v\n%s", n, err, w.sent)
				}
			}
		})
	}
}

// wire is a provider as it is called: the real client, and a server that refuses what the real one refuses.
type wire struct {
	spec  v1beta1.ChatModelConfigSpec
	model fantasy.LanguageModel
	// sent is the body of the last request.
	sent []byte
}

var wires = map[string]v1beta1.ChatModelConfigSpec{
	"anthropic":         {Provider: v1beta1.ProviderAnthropic, Model: "claude"},
	"openai-chat":       {Provider: v1beta1.ProviderOpenAI, Model: "gpt"},
	"openai-responses":  {Provider: v1beta1.ProviderOpenAI, Model: "gpt", Transport: v1beta1.TransportResponses},
	"openai-compatible": {Provider: v1beta1.ProviderOpenAICompatible, Model: "kimi"},
	"google":            {Provider: v1beta1.ProviderGoogle, Model: "gemini-3-pro"},
	"openrouter":        {Provider: v1beta1.ProviderOpenRouter, Model: "anthropic/claude"},
	"vercel":            {Provider: v1beta1.ProviderVercel, Model: "anthropic/claude"},
}

func newWire(t *testing.T, spec v1beta1.ChatModelConfigSpec) *wire {
	t.Helper()
	models, err := modelserver.New(
		modelserver.Script{
			Rules: []modelserver.Rule{
				{Reply: modelserver.Reply{Steps: []modelserver.Step{{Text: &modelserver.Text{Value: "ok"}}}}}}})
	check.OK(t, err)
	w := &wire{spec: spec}
	server := httptest.NewServer(http.HandlerFunc(func(out http.ResponseWriter, r *http.Request) {
		var err error
		if w.sent, err = io.ReadAll(r.Body); err != nil {
			t.Error(err)
		}
		if spec.Provider == v1beta1.ProviderGoogle {
			gemini(out, w.sent)
			return
		}
		r.Body = io.NopCloser(bytes.NewReader(w.sent))
		r.URL.Path = r.URL.Path[strings.LastIndex(r.URL.Path, "/v1"):]
		models.ServeHTTP(out, r)
	}))
	t.Cleanup(server.Close)
	w.spec.BaseURL = server.URL + "/v1"
	if spec.Provider == v1beta1.ProviderAnthropic || spec.Provider == v1beta1.ProviderGoogle {
		w.spec.BaseURL = server.URL
	}
	if w.model, err = provider.New(&w.spec, "sk-test", providertest.Redirect(t, server.URL)); err != nil {
		t.Fatal(err)
	}
	return w
}

// send sends the prompt and returns what the server did not like.
func (w *wire) send(t *testing.T, in prompt.Input) error {
	t.Helper()
	in.Dialect = provider.DialectOf(&w.spec)
	stream, err := w.model.Stream(t.Context(), fantasy.Call{Prompt: prompt.Build(in), MaxOutputTokens: new(int64(100))})
	if err != nil {
		return err
	}
	for part := range stream {
		if part.Type == fantasy.StreamPartTypeError {
			return part.Error
		}
	}
	return nil
}
