// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

// modelClients is the folder of the clients that npm has.
func modelClients(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("MODEL_CLIENTS")
	if dir == "" {
		t.Fatal("MODEL_CLIENTS must name the folder of the clients: run make test-e2e")
	}
	return dir
}

// runs has a program run to its end, and returns what it writes.
func runs(t *testing.T, program *exec.Cmd) string {
	t.Helper()
	var complaints bytes.Buffer
	program.Stderr = &complaints
	end := time.AfterFunc(2*time.Minute, func() { _ = program.Process.Kill() })
	defer end.Stop()
	out, err := program.Output()
	if err != nil {
		t.Fatalf("%v: %v\n%s\n%s", program.Args, err, out, complaints.String())
	}
	return strings.TrimSpace(string(out))
}

func TestJavaScriptClientsRunTheirOwnTools(t *testing.T) {
	dir := modelClients(t)
	for name, args := range map[string][]string{
		"openai, responses":   {"openai.mjs", "responses"},
		"openai, completions": {"openai.mjs", "completions"},
		"AI SDK":              {"ai.mjs"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, forecast)
			p := w.byGateway()
			program := exec.CommandContext(t.Context(), "node", args...)
			program.Dir = dir
			program.Env = append(os.Environ(), "BASE_URL="+p.openaiURL(), "API_KEY="+p.token)
			check.Equal(t, "the model said", "It rains in Rome.", runs(t, program))
			check.Equal(t, "calls of the model", 2, len(w.requests()))
			check.Contains(t, string(w.requests()[1].Body), "rain in Rome")
		})
	}
}

func TestClientsOfJavaScriptParseAnswersBySchema(t *testing.T) {
	dir := modelClients(t)
	const answer = `{"city":"Rome","days":[{"sky":"rain","degrees":null}]}`
	once := func(steps ...modelserver.Step) modelserver.Rule {
		return modelserver.Rule{Times: 1, Reply: modelserver.Reply{Steps: steps}}
	}
	for name, choice := range map[string]string{
		"completions": `"tool_choice":"required"`, "anthropic": `"tool_choice":"required"`,
		"responses": `"tool_choice":{"function":{"name":"weather"}`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
				once(modelserver.Say("Let me look."), modelserver.Call("weather", `{"city":"Rome"}`)),
				once(modelserver.Say("It rains in Rome.")), once(modelserver.Say(answer))}})
			at := w.byGateway()
			program := exec.CommandContext(t.Context(), "node", "structured.mjs", name)
			program.Dir = dir
			program.Env = append(os.Environ(), "OPENAI_URL="+at.openaiURL(), "ANTHROPIC_URL="+at.anthropicURL(),
				"API_KEY="+at.token)
			check.Equal(t, "the client has parsed", answer, runs(t, program))
			requests := w.requests()
			if n := len(requests); n != 3 {
				t.Fatalf("the model was called %d times", n)
			}
			first, second := string(requests[0].Body), string(requests[1].Body)
			if !strings.Contains(first, choice) || !strings.Contains(first, `"json_schema"`) ||
				strings.Contains(second, `"tool_choice"`) {
				t.Errorf("the model was asked with %s, then with %s", first, second)
			}
		})
	}
}

func TestClientsWaitForApprovalsOfOthers(t *testing.T) {
	dir := modelClients(t)
	for _, name := range []string{"responses", "completions", "ai", "anthropic"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
				{Match: modelserver.Match{MinToolResults: 1}, Reply: modelserver.Reply{
					Steps: []modelserver.Step{modelserver.Say("It is noon.")}}},
				{Reply: modelserver.Reply{Steps: []modelserver.Step{modelserver.Call("current_time", `{}`)}}},
			}})
			class := &v1beta1.ChatClass{ObjectMeta: w.meta("asks"), Spec: v1beta1.ChatClassSpec{Default: true,
				Restrictions: &v1beta1.ChatRestrictions{
					Tools: &v1beta1.ToolPolicy{Approval: []v1beta1.ToolPattern{"current_time"}}}}}
			w.create(class)
			w.inForce(class)
			at := w.byGateway()
			program := exec.CommandContext(t.Context(), "node", "again.mjs", name, "What time is it?")
			program.Dir = dir
			program.Env = append(os.Environ(), "OPENAI_URL="+at.openaiURL(), "ANTHROPIC_URL="+at.anthropicURL(),
				"API_KEY="+at.token)
			var said, losses bytes.Buffer
			program.Stdout, program.Stderr = &said, &losses
			check.OK(t, program.Start())
			w.approveOnly(w.waitingChat())
			if err := program.Wait(); err != nil {
				t.Fatalf("%v\n%s", err, losses.String())
			}
			if strings.TrimSpace(said.String()) != "It is noon." || !strings.Contains(losses.String(), "lost 0 times") {
				t.Errorf("the client heard %q, and says %s", said.String(), losses.String())
			}
		})
	}
}

// waitingChat is the name of the one chat, once it waits for people and has said so for two seconds: its followers are
// told by then.
func (w *world) waitingChat() (name string) {
	w.t.Helper()
	w.eventually("a chat waits for people", func() bool {
		var chats v1beta1.ChatList
		if err := c.List(w.t.Context(), &chats, client.InNamespace(w.ns)); err != nil || len(chats.Items) != 1 {
			return false
		}
		chat := &chats.Items[0]
		name = chat.Name
		wait := chat.Status.Wait
		return wait != nil && wait.For == v1beta1.WaitForApproval && time.Since(wait.Since.Time) > 2*time.Second
	})
	return name
}

// codex has Codex CLI talk to chats of the world, with a home folder.
func (w *world) codex(home string, args ...string) string {
	w.t.Helper()
	return runs(w.t, w.codexCommand(home, w.byGateway(), args...))
}

// codexCommand is Codex CLI that finds the chats there.
func (w *world) codexCommand(home string, p outside, args ...string) *exec.Cmd {
	w.t.Helper()
	config := fmt.Sprintf(`model = "default"
model_provider = "parley"
approval_policy = "never"
sandbox_mode = "danger-full-access"
check_for_update_on_startup = false
[analytics]
enabled = false
[model_providers.parley]
name = "Parley"
base_url = %q
wire_api = "responses"
env_key = "PARLEY_TOKEN"
`, p.openaiURL())
	check.OK(w.t, os.WriteFile(filepath.Join(home, "config.toml"), []byte(config), 0o600))
	program := exec.CommandContext(w.t.Context(),
		filepath.Join(modelClients(w.t), "node_modules", ".bin", "codex"), append([]string{"exec"}, args...)...)
	program.Dir = home
	program.Env = append(os.Environ(), "HOME="+home, "CODEX_HOME="+home, "PARLEY_TOKEN="+p.token)
	return program
}

func TestCodexWorksInOneChat(t *testing.T) {
	w := newWorld(t, modelserver.Script{Rules: []modelserver.Rule{
		{Match: modelserver.Match{LastUserText: "and now"}, Reply: modelserver.Reply{
			Steps: []modelserver.Step{modelserver.Say("Still ", "42.")}}},
		{Match: modelserver.Match{MinToolResults: 1}, Reply: modelserver.Reply{
			Steps: []modelserver.Step{modelserver.Say("It ", "is ", "42.")}}},
		{Match: modelserver.Match{ToolOffered: "exec_command"}, Reply: modelserver.Reply{Steps: []modelserver.Step{
			modelserver.Think("I compute."), modelserver.Say("Let me compute."),
			modelserver.Call("exec_command", `{"cmd":"echo is $((40+2))"}`)}}},
	}})
	home := t.TempDir()
	check.Equal(t, "Codex says", "It is 42.", w.codex(home, "--skip-git-repo-check", "What is 40+2?"))
	if n := len(w.requests()); n != 2 || !strings.Contains(string(w.requests()[1].Body), "is 42") {
		t.Errorf("the model was called %d times", n)
	}
	check.Equal(t, "Codex says", "Still 42.", w.codex(home, "resume", "--last", "--skip-git-repo-check", "And now?"))
	var chats v1beta1.ChatList
	if err := c.List(t.Context(), &chats, client.InNamespace(w.ns)); err != nil || len(chats.Items) != 1 {
		t.Fatalf("there are %d chats, %v", len(chats.Items), err)
	}
	w.ready(chats.Items[0].Name, 6)
	w.nothingLeft(chats.Items[0].Name)
}

// anthropicURL is the base URL of Anthropic's clients for the namespace.
func (o outside) anthropicURL() string { return strings.TrimSuffix(o.openaiURL(), "/v1") }

func TestAnthropicsClientTalksToChats(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, forecast)
	at := w.byGateway()
	client := anthropic.NewClient(option.WithBaseURL(at.anthropicURL()), option.WithAPIKey(at.token),
		option.WithoutEnvironmentDefaults())
	models, err := client.Models.List(t.Context(), anthropic.ModelListParams{})
	if err != nil || len(models.Data) == 0 || models.Data[0].ID != "default" {
		t.Fatalf("models are %v, %v", models, err)
	}
	ask := anthropic.MessageNewParams{Model: "default", MaxTokens: 1000,
		System:   []anthropic.TextBlockParam{{Text: "Be brief."}},
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock("How is the weather in Rome?"))},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: "weather",
			InputSchema: anthropic.ToolInputSchemaParam{Properties: weather["properties"]}}}}}
	call, err := client.Messages.New(t.Context(), ask)
	if err != nil || call.StopReason != anthropic.StopReasonToolUse || len(call.Content) != 2 {
		t.Fatalf("the call is %v, %v", call, err)
	}
	ask.Messages = append(ask.Messages, call.ToParam(),
		anthropic.NewUserMessage(anthropic.NewToolResultBlock(call.Content[1].ID, "rain", false)))
	for range 2 { // The second one is a client that has lost the answer.
		stream := client.Messages.NewStreaming(t.Context(), ask)
		var answer anthropic.Message
		for stream.Next() {
			check.OK(t, answer.Accumulate(stream.Current()))
		}
		if stream.Err() != nil || len(answer.Content) != 1 || answer.Content[0].Text != "It rains in Rome." ||
			answer.StopReason != anthropic.StopReasonEndTurn || answer.Usage.OutputTokens == 0 {
			t.Fatalf("the answer is %+v, %v", answer, stream.Err())
		}
	}
	check.Equal(t, "calls of the model", 2, len(w.requests()))
}

func TestAnthropicJavaScriptClientRunsItsOwnTools(t *testing.T) {
	dir := modelClients(t)
	w := newWorld(t, forecast)
	at := w.byGateway()
	program := exec.CommandContext(t.Context(), "node", "anthropic.mjs")
	program.Dir = dir
	program.Env = append(os.Environ(), "BASE_URL="+at.anthropicURL(), "API_KEY="+at.token)
	check.Equal(t, "the model said", "It rains in Rome.", runs(t, program))
	check.Equal(t, "calls of the model", 2, len(w.requests()))
	check.Contains(t, string(w.requests()[1].Body), "rain in Rome")
}
