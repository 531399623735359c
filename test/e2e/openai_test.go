// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/packages/param"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/localnode"
	"parley.dev/parley/test/modelserver"
)

// openaiURL is the base URL of OpenAI's clients for the namespace.
func (o outside) openaiURL() string {
	return o.gateway + "/namespaces/" + o.namespace + "/v1"
}

// byOpenAI is OpenAI's own client for Go.
func (o outside) byOpenAI() openai.Client {
	return openai.NewClient(option.WithBaseURL(o.openaiURL()), option.WithAPIKey(o.token))
}

// weather is a function that a client runs.
var weather = shared.FunctionParameters{"type": "object",
	"properties": map[string]any{"city": map[string]any{"type": "string"}}, "required": []string{"city"}}

// forecast has a model ask for the weather, and say what it was told.
var forecast = modelserver.Script{Rules: []modelserver.Rule{
	{Match: modelserver.Match{MinToolResults: 1}, Reply: modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Say("It ", "rains ", "in Rome.")}}},
	{Match: modelserver.Match{LastUserText: "weather", ToolOffered: "weather"}, Reply: modelserver.Reply{
		Steps: []modelserver.Step{modelserver.Say("Let me ", "look."), modelserver.Call("weather", `{"city":"Rome"}`)}}},
	{Match: modelserver.Match{LastUserText: "story"}, Reply: words(300, 100*time.Millisecond)},
	{Reply: modelserver.Reply{DelayBetween: modelserver.Duration(20 * time.Millisecond),
		Steps: []modelserver.Step{modelserver.Say("Hello", ", ", "who ", "are ", "you?")}}},
}}

func TestOpenAIsClientCompletesChats(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, forecast)
	client := w.byGateway().byOpenAI()
	models, err := client.Models.List(t.Context())
	if err != nil || len(models.Data) == 0 || models.Data[0].ID != "default" {
		t.Fatalf("models are %v, %v", models, err)
	}
	ask := openai.ChatCompletionNewParams{Model: "default", Messages: []openai.ChatCompletionMessageParamUnion{
		openai.SystemMessage("Be brief."), openai.UserMessage("How is the weather in Rome?")},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(
			shared.FunctionDefinitionParam{Name: "weather", Parameters: weather})}}
	calls, err := client.Chat.Completions.New(t.Context(), ask)
	if err != nil || calls.Choices[0].FinishReason != "tool_calls" || len(calls.Choices[0].Message.ToolCalls) != 1 {
		t.Fatalf("the calls are %v, %v", calls, err)
	}
	call := calls.Choices[0].Message.ToolCalls[0]
	ask.Messages = append(ask.Messages, calls.Choices[0].Message.ToParam(), openai.ToolMessage("rain", call.ID))
	ask.StreamOptions.IncludeUsage = param.NewOpt(true)
	for range 2 { // The second one is a client that has lost the answer.
		stream := client.Chat.Completions.NewStreaming(t.Context(), ask)
		var answer openai.ChatCompletionAccumulator
		for stream.Next() {
			answer.AddChunk(stream.Current())
		}
		if stream.Err() != nil || answer.Choices[0].Message.Content != "It rains in Rome." || answer.Usage.TotalTokens == 0 {
			t.Fatalf("the answer is %+v, %v", answer.ChatCompletion, stream.Err())
		}
	}
	check.Equal(t, "calls of the model", 2, len(w.requests()))
}

func TestTurnOverBudgetIsReportedAndCancelled(t *testing.T) {
	t.Parallel()
	w := newWorld(t, forecast)
	class := &v1beta1.ChatClass{ObjectMeta: w.meta("thrifty"), Spec: v1beta1.ChatClassSpec{Default: true,
		Defaults: v1beta1.ChatSettings{Limits: &v1beta1.ChatLimits{
			Budget: &v1beta1.Budget{Currency: "USD", Amount: "0"}}}}}
	w.create(class)
	w.inForce(class)
	models := w.byGateway().byOpenAI()
	_, err := models.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "default", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("Hello.")}},
		option.WithMaxRetries(0))
	refused, ok := errors.AsType[*openai.Error](err)
	if !ok || refused.StatusCode != http.StatusTooManyRequests || refused.Code != "insufficient_quota" ||
		!strings.Contains(refused.Message, "Raise spec.limits.budget") {
		t.Fatalf("the client gets %v", err)
	}
	w.eventually("the turn is cancelled", func() bool {
		var chats v1beta1.ChatList
		if err := c.List(t.Context(), &chats, client.InNamespace(w.ns)); err != nil || len(chats.Items) != 1 {
			return false
		}
		turn := chats.Items[0].Status.Turn
		return turn != nil && turn.Result == v1beta1.TurnInterrupted
	})
	if n := len(w.requests()); n > 0 {
		t.Errorf("the model was called %d times", n)
	}
}

func TestResentConversationContinuesInNewChat(t *testing.T) {
	w := newWorld(t, forecast)
	client := w.byGateway().byOpenAI()
	answer, err := client.Chat.Completions.New(t.Context(), openai.ChatCompletionNewParams{
		Model: "default", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("My name is Zoe."),
			openai.AssistantMessage("Nice to meet you."), openai.UserMessage("Hi again.")}})
	if err != nil || answer.Choices[0].Message.Content != "Hello, who are you?" {
		t.Fatalf("the answer is %v, %v", answer, err)
	}
	asked := w.requests()
	if len(asked) != 1 || !strings.Contains(string(asked[0].Body), "My name is Zoe.") ||
		!strings.Contains(string(asked[0].Body), "Nice to meet you.") {
		t.Errorf("the model was told %s", asked[0].Body)
	}
}

func TestOpenAIsClientFindsItsResponseAgain(t *testing.T) {
	localnode.Needed(t)
	w := newWorld(t, forecast)
	client := w.byGateway().byOpenAI()
	first, err := client.Responses.New(t.Context(), responses.ResponseNewParams{Model: "default",
		Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("Hi.")}})
	if err != nil || first.OutputText() != "Hello, who are you?" {
		t.Fatalf("the response is %v, %v", first, err)
	}
	long, err := client.Responses.New(t.Context(), responses.ResponseNewParams{Model: "default",
		PreviousResponseID: param.NewOpt(first.ID), Background: param.NewOpt(true),
		Input: responses.ResponseNewParamsInputUnion{OfString: param.NewOpt("Tell me a long story.")}})
	check.OK(t, err)
	stream := client.Responses.GetStreaming(t.Context(), long.ID, responses.ResponseGetParams{})
	var last int64
	var told strings.Builder
	for told.Len() < 20 && stream.Next() {
		e := stream.Current()
		last = e.SequenceNumber
		told.WriteString(e.AsResponseOutputTextDelta().Delta)
	}
	if told.Len() < 20 || stream.Close() != nil {
		t.Fatalf("the stream ended: %v", stream.Err())
	}
	rest := client.Responses.GetStreaming(t.Context(), long.ID,
		responses.ResponseGetParams{StartingAfter: param.NewOpt(last)})
	for told.Len() < 60 && rest.Next() {
		if e := rest.Current(); e.SequenceNumber <= last {
			t.Errorf("event %d comes again", e.SequenceNumber)
		}
		told.WriteString(rest.Current().AsResponseOutputTextDelta().Delta)
	}
	if told.Len() < 60 {
		t.Fatalf("the stream ended: %v", rest.Err())
	}
	cancelled, err := client.Responses.Cancel(t.Context(), long.ID)
	if err != nil || cancelled.Status != "cancelled" || !strings.HasPrefix(cancelled.OutputText(), told.String()) {
		t.Fatalf("cancelled is %v, %v; told was %q", cancelled.RawJSON(), err, told.String())
	}
	wanted := map[string]string{first.ID: "Hello, who are you?", long.ID: told.String()}
	for id := range wanted {
		again, err := client.Responses.Get(t.Context(), id, responses.ResponseGetParams{})
		if err != nil || again.ID != id || !strings.HasPrefix(again.OutputText(), wanted[id]) {
			t.Fatalf("response %s is %v, %v", id, again, err)
		}
	}
	check.Equal(t, "calls of the model", 2, len(w.requests()))
	if err := client.Responses.Delete(t.Context(), first.ID); err == nil {
		t.Error("a response is deleted behind which the conversation has gone on")
	}
	if err := client.Responses.Delete(t.Context(), long.ID); err != nil {
		t.Error(err)
	}
	if gone, err := client.Responses.Get(t.Context(), long.ID, responses.ResponseGetParams{}); err == nil {
		t.Errorf("a deleted response is still %s", gone.Status)
	}
}
