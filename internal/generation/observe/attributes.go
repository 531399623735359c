// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package observe

import (
	"net/url"
	"strconv"

	"charm.land/fantasy"
	"go.opentelemetry.io/otel/attribute"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
)

// ending is what the span says of the reply. The conventions count cached input as input.
func (c *call) ending(outcome string, u v1alpha1.TokenUsage) []attribute.KeyValue {
	attributes := []attribute.KeyValue{tracing.Outcome(outcome)}
	if c.first > 0 {
		attributes = append(attributes, attribute.Float64(telemetry.AttrTimeToFirstChunk, c.first.Seconds()))
	}
	if c.last.Reason != "" {
		attributes = append(attributes, attribute.StringSlice(telemetry.AttrFinishReasons, []string{c.last.Reason}))
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
	if c.said != nil {
		attributes = append(attributes, attribute.String(telemetry.AttrOutputMessages, c.said.message(c.last.Reason)))
	}
	return attributes
}

// attributes are what the span says of the call.
func (m *model) attributes(call *fantasy.Call) []attribute.KeyValue {
	spec := &m.target.Config.Spec
	attributes := []attribute.KeyValue{
		attribute.String(telemetry.AttrOperation, telemetry.OperationChat),
		attribute.String(telemetry.AttrProvider, tracing.ProviderName(string(spec.Provider))),
		attribute.String(telemetry.AttrRequestModel, spec.Model),
		attribute.String(telemetry.AttrConversation, m.purpose.chatUID),
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
	if m.observer.options.Tracer.Content() {
		instructions, conversation := promptAttributes(call.Prompt)
		attributes = append(attributes,
			attribute.String(telemetry.AttrSystemInstructions, instructions),
			attribute.String(telemetry.AttrInputMessages, conversation))
	}
	if m.purpose.action != "" {
		attributes = append(attributes, attribute.String(telemetry.AttrAction, string(m.purpose.action)))
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
