// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/anthropics/anthropic-sdk-go"
	"github.com/anthropics/anthropic-sdk-go/option"

	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
)

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
