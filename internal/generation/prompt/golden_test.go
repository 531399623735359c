// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package prompt_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/prompt"
	"parley.dev/parley/test/kit/check"
)

var update = flag.Bool("update", false, "write what is sent into the golden files")

// difficult are histories that providers refuse, or misread, as they stand.
func difficult() map[string]prompt.Input {
	of := func(history ...v1alpha1.ChatMessage) prompt.Input { return prompt.Input{History: history} }
	withSystem := of(user("q"), assistant(text("a")), user("r"))
	withSystem.SystemPrompt, withSystem.Instructions, withSystem.SubChat, withSystem.Extra = "sys", []string{"one", "two"},
		true, []string{"advice"}
	claude := by(v1alpha1.ProviderAnthropic, "claude", assistant(
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
			by(v1alpha1.ProviderOpenAICompatible, "kimi", assistant(reasoning("hm"), text("a"), call("functions.t:0", "{}"))),
			tool(result("functions.t:0", "b"))),
		"from the responses API": of(user("q"), by(v1alpha1.ProviderOpenAI, "gpt", assistant(
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
			said(v1alpha1.RoleUser, text("t"), text("u"))),
		"several texts in one reply": of(user("q"), assistant(text("a"), call("x", "{}"), text("b")), tool(result("x", "1")),
			assistant(text("c"), text("d")), user("r")),
		"nothing from a user":     of(assistant(text("a"))),
		"an earlier conversation": of(priorTo(), user("s")),
		"a summary in front":      of(user("They spoke of x."), assistant(call("a", "{}")), tool(result("a", "1"))),
		"files": of(said(v1alpha1.RoleUser, text("see"), inPlace("a.png", "image/png", png),
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
