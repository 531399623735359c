// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"net/url"
	"slices"
	"strconv"

	"charm.land/fantasy"
	"go.opentelemetry.io/otel/attribute"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/text/clip"
)

// maxContentText limits the characters of one part in a span, and maxContentBytes all of its input, newest first, or
// all of its output.
const maxContentText, maxContentBytes = 8192, 64 << 10

// attributes are those of the span when the call begins.
func (c *ModelCall) attributes() []attribute.KeyValue {
	spec, call := &c.Target.Config.Spec, &c.Request
	attributes := []attribute.KeyValue{
		attribute.String(telemetry.AttrOperation, telemetry.OperationChat),
		attribute.String(telemetry.AttrProvider, tracing.ProviderName(string(spec.Provider))),
		attribute.String(telemetry.AttrRequestModel, spec.Model),
		attribute.String(telemetry.AttrConversation, string(c.caller.chat.UID)),
		attribute.Bool(telemetry.AttrStream, true),
	}
	for key, value := range map[string]*int64{
		telemetry.AttrMaxTokens: call.MaxOutputTokens, telemetry.AttrTopK: call.TopK,
	} {
		if value != nil {
			attributes = append(attributes, attribute.Int64(key, *value))
		}
	}
	for key, value := range map[string]*float64{
		telemetry.AttrTemperature: call.Temperature, telemetry.AttrTopP: call.TopP,
		telemetry.AttrPresencePenalty: call.PresencePenalty, telemetry.AttrFrequencyPenalty: call.FrequencyPenalty,
	} {
		if value != nil {
			attributes = append(attributes, attribute.Float64(key, *value))
		}
	}
	attributes = append(attributes, serverAttributes(spec.BaseURL)...)
	if c.caller.observer.options.Tracer.Content() {
		attributes = append(attributes, promptAttributes(call.Prompt)...)
	}
	if c.caller.isSideCall {
		attributes = append(attributes, attribute.String(telemetry.AttrAction, string(c.caller.action)))
	}
	return attributes
}

// serverAttributes hold only host and port of a base URL, because it may have credentials.
func serverAttributes(base string) []attribute.KeyValue {
	at, err := url.Parse(base)
	if err != nil || at.Hostname() == "" {
		return nil
	}
	attributes := []attribute.KeyValue{attribute.String(telemetry.AttrServerAddress, at.Hostname())}
	if port, err := strconv.Atoi(at.Port()); err == nil {
		attributes = append(attributes, attribute.Int(telemetry.AttrServerPort, port))
	}
	return attributes
}

// endSpan ends the span with the outcome of the call. The conventions count cached input as input.
func (c *ModelCall) endSpan() {
	errorType, u := "", &c.Content.Usage
	if c.Outcome == v1beta1.OutcomeFailed {
		errorType = string(c.Failure.Reason)
	}
	attributes := []attribute.KeyValue{tracing.Outcome(string(c.Outcome))}
	if c.firstPart > 0 {
		attributes = append(attributes, attribute.Float64(telemetry.AttrTimeToFirstChunk, c.firstPart.Seconds()))
	}
	if reason := c.Content.FinishReason; reason != "" {
		attributes = append(attributes, attribute.StringSlice(telemetry.AttrFinishReasons, []string{reason}))
	}
	if u.TotalTokens > 0 {
		attributes = append(attributes,
			attribute.Int64(telemetry.AttrInputTokens, u.InputTokens+u.CacheReadTokens+u.CacheWriteTokens),
			attribute.Int64(telemetry.AttrOutputTokens, u.OutputTokens),
			attribute.Int64(telemetry.AttrCacheReadTokens, u.CacheReadTokens),
			attribute.Int64(telemetry.AttrCacheCreateTokens, u.CacheWriteTokens),
			attribute.Int64(telemetry.AttrReasoningTokens, u.ReasoningTokens),
		)
	}
	if c.caller.observer.options.Tracer.Content() && c.span.Recording() {
		attributes = append(attributes, attribute.String(telemetry.AttrOutputMessages, c.replyMessage()))
	}
	c.span.Set(attributes...)
	c.span.End(errorType)
}

// spanMessage and spanPart follow the GenAI conventions.
type spanMessage struct {
	Role         string     `json:"role"`
	Parts        []spanPart `json:"parts"`
	FinishReason string     `json:"finish_reason,omitempty"`
}

type spanPart struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Response  string `json:"response,omitempty"`
}

// toSpanPart converts a part. Files and sources are omitted.
func toSpanPart(part v1beta1.DebugPart) (p spanPart, ok bool) {
	text := clip.Ellipsis(part.Text, maxContentText)
	switch part.Type {
	case v1beta1.DebugText:
		return spanPart{Type: "text", Content: text}, true
	case v1beta1.DebugReasoning:
		return spanPart{Type: "reasoning", Content: text}, true
	case v1beta1.DebugToolCall:
		return spanPart{Type: "tool_call", ID: part.ID, Name: part.Name, Arguments: text}, true
	case v1beta1.DebugToolResult:
		return spanPart{Type: "tool_call_response", ID: part.ID, Response: text}, true
	}
	return p, false
}

func (p *spanPart) size() int { return len(p.Content) + len(p.Arguments) + len(p.Response) }

// promptAttributes are the system instructions, and the conversation.
func promptAttributes(prompt fantasy.Prompt) []attribute.KeyValue {
	system, conversation, size := []spanPart{}, []spanMessage{}, 0
	for _, message := range slices.Backward(prompt) {
		m := spanMessage{Role: string(message.Role)}
		for _, content := range message.Content {
			if p, ok := toSpanPart(promptPart(content)); ok {
				m.Parts = append(m.Parts, p)
				size += p.size()
			}
		}
		switch {
		case message.Role == fantasy.MessageRoleSystem:
			system = append(m.Parts, system...)
		case size <= maxContentBytes:
			conversation = append(conversation, m)
		}
	}
	slices.Reverse(conversation)
	return []attribute.KeyValue{
		attribute.String(telemetry.AttrSystemInstructions, toJSON(system)),
		attribute.String(telemetry.AttrInputMessages, toJSON(conversation)),
	}
}

// replyMessage is the reply without the results of tools that its provider ran.
func (c *ModelCall) replyMessage() string {
	m, size := spanMessage{Role: "assistant", FinishReason: c.Content.FinishReason, Parts: []spanPart{}}, 0
	for i := range c.Content.Parts {
		p, ok := toSpanPart(replyPart(&c.Content.Parts[i]))
		if size += p.size(); ok && p.Response == "" && size <= maxContentBytes {
			m.Parts = append(m.Parts, p)
		}
	}
	return toJSON([]spanMessage{m})
}
