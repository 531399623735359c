// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"encoding/json"
	"net/url"
	"slices"
	"strconv"

	"charm.land/fantasy"
	"go.opentelemetry.io/otel/attribute"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/internal/text/clip"
)

// Bounds of the content in a span: characters of one part, and bytes of all input or all output. The newest messages
// are kept.
const (
	maxContentText  = 8192
	maxContentBytes = 64 << 10
)

// attributes are what the span says of the call when it begins.
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
	if c.caller.aside {
		attributes = append(attributes, attribute.String(telemetry.AttrAction, string(c.caller.action)))
	}
	return attributes
}

// serverAttributes name the host of a base URL, and nothing else of it: it may hold credentials.
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

// endSpan ends the span with how the call ended. The conventions count cached input as input.
func (c *ModelCall) endSpan() {
	errorType, u := "", &c.Content.Usage
	if c.Outcome == v1alpha1.OutcomeFailed {
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
		attributes = append(attributes, attribute.String(telemetry.AttrOutputMessages, c.spokenReply()))
	}
	c.span.Set(attributes...)
	c.span.End(errorType)
}

// spokenMessage and spokenPart are a message as the GenAI conventions write it.
type spokenMessage struct {
	Role         string       `json:"role"`
	Parts        []spokenPart `json:"parts"`
	FinishReason string       `json:"finish_reason,omitempty"`
}

type spokenPart struct {
	Type      string `json:"type"`
	Content   string `json:"content,omitempty"`
	ID        string `json:"id,omitempty"`
	Name      string `json:"name,omitempty"`
	Arguments string `json:"arguments,omitempty"`
	Response  string `json:"response,omitempty"`
}

// spoken is a part of a message as a span holds it. Files and sources are left out.
func spoken(part v1alpha1.DebugPart) (p spokenPart, ok bool) {
	text := clip.Ellipsis(part.Text, maxContentText)
	switch part.Type {
	case v1alpha1.DebugText:
		return spokenPart{Type: "text", Content: text}, true
	case v1alpha1.DebugReasoning:
		return spokenPart{Type: "reasoning", Content: text}, true
	case v1alpha1.DebugToolCall:
		return spokenPart{Type: "tool_call", ID: part.ID, Name: part.Name, Arguments: text}, true
	case v1alpha1.DebugToolResult:
		return spokenPart{Type: "tool_call_response", ID: part.ID, Response: text}, true
	}
	return p, false
}

func (p *spokenPart) size() int { return len(p.Content) + len(p.Arguments) + len(p.Response) }

// promptAttributes are the instructions of the system, and the conversation.
func promptAttributes(prompt fantasy.Prompt) []attribute.KeyValue {
	system, said, size := []spokenPart{}, []spokenMessage{}, 0
	for _, message := range slices.Backward(prompt) {
		m := spokenMessage{Role: string(message.Role)}
		for _, content := range message.Content {
			if p, ok := spoken(promptPart(content)); ok {
				m.Parts = append(m.Parts, p)
				size += p.size()
			}
		}
		switch {
		case message.Role == fantasy.MessageRoleSystem:
			system = append(m.Parts, system...)
		case size <= maxContentBytes:
			said = append(said, m)
		}
	}
	slices.Reverse(said)
	return []attribute.KeyValue{
		attribute.String(telemetry.AttrSystemInstructions, encoded(system)),
		attribute.String(telemetry.AttrInputMessages, encoded(said)),
	}
}

// spokenReply is what the model said, without the results of tools that its provider ran.
func (c *ModelCall) spokenReply() string {
	m, size := spokenMessage{Role: "assistant", FinishReason: c.Content.FinishReason, Parts: []spokenPart{}}, 0
	for i := range c.Content.Parts {
		p, ok := spoken(replyPart(&c.Content.Parts[i]))
		if size += p.size(); ok && p.Response == "" && size <= maxContentBytes {
			m.Parts = append(m.Parts, p)
		}
	}
	return encoded([]spokenMessage{m})
}

func encoded(v any) string {
	raw, err := json.Marshal(v)
	if err != nil { // It holds strings only.
		return ""
	}
	return string(raw)
}
