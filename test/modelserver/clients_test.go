// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package modelserver_test

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"

	"github.com/anthropics/anthropic-sdk-go"
	anthropicoption "github.com/anthropics/anthropic-sdk-go/option"
	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"github.com/openai/openai-go/v3/responses"
	"github.com/openai/openai-go/v3/shared"
)

// client is the provider's own client of a protocol.
type client interface {
	// stream asks a question. It hands each piece of text to onText.
	stream(ctx context.Context, q question, onText func(string)) reply
	// words are how the protocol says that a reply is complete, and that it ends with calls of tools.
	words() (complete, calls string)
}

var clients = map[string]func(url string) client{
	"openai chat": func(url string) client {
		return chatClient{openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("k"), option.WithMaxRetries(0))}
	},
	"openai responses": func(url string) client {
		return responsesClient{openai.NewClient(option.WithBaseURL(url+"/v1"), option.WithAPIKey("k"),
			option.WithMaxRetries(0))}
	},
	"anthropic": func(url string) client {
		return anthropicClient{anthropic.NewClient(anthropicoption.WithBaseURL(url), anthropicoption.WithAPIKey("k"),
			anthropicoption.WithMaxRetries(0))}
	},
}

// question is what a client asks: a text, and if result is set also a call of the clock with its result.
type question struct{ text, input, result string }

// clock is the tool that each question offers.
const clock = "current_time"

var clockSchema = map[string]any{"type": "object", "properties": map[string]any{}}

// reply is what a client reads. An end without a finish reason is an error.
type reply struct {
	text, reasoning, call, input, finish string
	// pieces is how many pieces of text came.
	pieces int
	// read and cached are the tokens of the input that were not in the cache, and those that were.
	read, cached, output int64
	err                  error
}

// say adds a piece of text.
func (r *reply) say(text string, onText func(string)) {
	if text != "" {
		r.text += text
		r.pieces++
		onText(text)
	}
}

// end is the reply at the end of its stream.
func (r *reply) end(err error) reply {
	if r.err = cmp.Or(r.err, err); r.err == nil && r.finish == "" {
		r.err = io.ErrUnexpectedEOF
	}
	return *r
}

// refusal is the answer to a request that was an error: its status, its headers and its words.
func refusal(err error) (status int, header http.Header, said string) {
	if e, ok := errors.AsType[*openai.Error](err); ok {
		return e.StatusCode, e.Response.Header, e.RawJSON()
	}
	if e, ok := errors.AsType[*anthropic.Error](err); ok {
		return e.StatusCode, e.Response.Header, e.RawJSON()
	}
	return 0, nil, ""
}

// chatClient speaks Chat Completions.
type chatClient struct{ openai.Client }

func (chatClient) words() (complete, calls string) { return "stop", "tool_calls" }

func (chatClient) params(q question) openai.ChatCompletionNewParams {
	p := openai.ChatCompletionNewParams{Model: "m",
		Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage(q.text)},
		Tools: []openai.ChatCompletionToolUnionParam{openai.ChatCompletionFunctionTool(
			shared.FunctionDefinitionParam{Name: clock, Parameters: clockSchema})}}
	if q.result != "" {
		call := openai.ChatCompletionMessageFunctionToolCallParam{ID: "c1",
			Function: openai.ChatCompletionMessageFunctionToolCallFunctionParam{Name: clock, Arguments: q.input}}
		p.Messages = append(p.Messages,
			openai.ChatCompletionMessageParamUnion{OfAssistant: &openai.ChatCompletionAssistantMessageParam{
				ToolCalls: []openai.ChatCompletionMessageToolCallUnionParam{{OfFunction: &call}}}},
			openai.ToolMessage(q.result, "c1"))
	}
	return p
}

func (c chatClient) stream(ctx context.Context, q question, onText func(string)) reply {
	p, r := c.params(q), &reply{}
	p.StreamOptions.IncludeUsage = openai.Bool(true)
	stream := c.Chat.Completions.NewStreaming(ctx, p)
	for stream.Next() {
		chunk := stream.Current()
		if usage := chunk.Usage; usage.TotalTokens > 0 {
			r.cached, r.output = usage.PromptTokensDetails.CachedTokens, usage.CompletionTokens
			r.read = usage.PromptTokens - r.cached
		}
		for _, choice := range chunk.Choices {
			r.finish = cmp.Or(choice.FinishReason, r.finish)
			r.say(choice.Delta.Content, onText)
			var reasoning string // OpenAI's library does not know the field.
			_ = json.Unmarshal([]byte(choice.Delta.JSON.ExtraFields["reasoning_content"].Raw()), &reasoning)
			r.reasoning += reasoning
			for _, call := range choice.Delta.ToolCalls {
				r.call, r.input = r.call+call.Function.Name, r.input+call.Function.Arguments
			}
		}
	}
	return r.end(stream.Err())
}

// responsesClient speaks Responses.
type responsesClient struct{ openai.Client }

func (responsesClient) words() (complete, calls string) { return "completed", "completed" }

func (responsesClient) params(q question) responses.ResponseNewParams {
	input := responses.ResponseInputParam{
		responses.ResponseInputItemParamOfMessage(q.text, responses.EasyInputMessageRoleUser)}
	if q.result != "" {
		input = append(input, responses.ResponseInputItemParamOfFunctionCall(q.input, "c1", clock),
			responses.ResponseInputItemParamOfFunctionCallOutput(q.result))
		input[2].OfFunctionCallOutput.CallID = openai.String("c1")
	}
	return responses.ResponseNewParams{Model: "m", Input: responses.ResponseNewParamsInputUnion{OfInputItemList: input},
		Tools: []responses.ToolUnionParam{responses.ToolParamOfFunction(clock, clockSchema, false)}}
}

func (c responsesClient) stream(ctx context.Context, q question, onText func(string)) reply {
	stream, r := c.Responses.NewStreaming(ctx, c.params(q)), &reply{}
	for stream.Next() {
		switch event := stream.Current(); event.Type {
		case "response.output_text.delta":
			r.say(event.Delta, onText)
		case "response.reasoning_summary_text.delta":
			r.reasoning += event.Delta
		case "response.output_item.done":
			if event.Item.Type == "function_call" {
				r.call, r.input = event.Item.Name, event.Item.Arguments.OfString
			}
		case "response.completed", "response.incomplete":
			usage := event.Response.Usage
			r.finish, r.output = string(event.Response.Status), usage.OutputTokens
			r.cached = usage.InputTokensDetails.CachedTokens
			r.read = usage.InputTokens - r.cached
		case "error":
			r.err = errors.New(event.Message)
		}
	}
	return r.end(stream.Err())
}

// anthropicClient speaks Messages.
type anthropicClient struct{ anthropic.Client }

func (anthropicClient) words() (complete, calls string) { return "end_turn", "tool_use" }

func (anthropicClient) params(q question) anthropic.MessageNewParams {
	p := anthropic.MessageNewParams{Model: "m", MaxTokens: 100,
		Messages: []anthropic.MessageParam{anthropic.NewUserMessage(anthropic.NewTextBlock(q.text))},
		Tools: []anthropic.ToolUnionParam{{OfTool: &anthropic.ToolParam{Name: clock,
			InputSchema: anthropic.ToolInputSchemaParam{Properties: clockSchema["properties"]}}}}}
	if q.result != "" {
		p.Messages = append(p.Messages,
			anthropic.NewAssistantMessage(anthropic.NewToolUseBlock("c1", json.RawMessage(q.input), clock)),
			anthropic.NewUserMessage(anthropic.NewToolResultBlock("c1", q.result, false)))
	}
	return p
}

func (c anthropicClient) stream(ctx context.Context, q question, onText func(string)) reply {
	stream, r := c.Messages.NewStreaming(ctx, c.params(q)), &reply{}
	for stream.Next() {
		switch event := stream.Current(); event.Type {
		case "message_start":
			r.read, r.cached = event.Message.Usage.InputTokens, event.Message.Usage.CacheReadInputTokens
		case "content_block_start":
			r.call += event.ContentBlock.Name
		case "content_block_delta":
			r.say(event.Delta.Text, onText)
			r.reasoning, r.input = r.reasoning+event.Delta.Thinking, r.input+event.Delta.PartialJSON
		case "message_delta":
			r.finish, r.output = string(event.Delta.StopReason), event.Usage.OutputTokens
		}
	}
	return r.end(stream.Err())
}
