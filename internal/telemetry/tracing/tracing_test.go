// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package tracing

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"strings"
	"testing"
	"time"

	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"

	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/collector"
)

const caller = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func newTracer(t *testing.T, service string) *Tracer {
	t.Helper()
	tracer, err := New(t.Context(), Service{Name: service, Pod: "pod-0"}, slog.New(slog.DiscardHandler))
	check.OK(t, err)
	return tracer
}

// began has more digits than a status holds.
var began = time.Unix(1767225600, 123456789)

func turnOf(parent string) Turn {
	return Turn{ChatUID: "uid", HistoryVersion: 3, Began: began, Traceparent: parent}
}

// makeTurn makes a turn of one step, the step in one process and the turn in another.
func makeTurn(t *testing.T, turn Turn) {
	t.Helper()
	pod, manager := newTracer(t, "pod"), newTracer(t, "manager")
	_, step := pod.StartStep(t.Context(), Step{Turn: turn, Fence: Fence{"uid", 3, 1}, Action: "GenerateAssistant"})
	step.End("")
	turn.Began = turn.Began.Truncate(time.Microsecond)
	manager.EndTurn(t.Context(), TurnEnd{Turn: turn, Ended: turn.Began.Add(time.Minute), Result: "Failed",
		ErrorType: "RateLimited", Provider: "google", Model: "m"})
	pod.Close(t.Context())
	manager.Close(t.Context())
}

func TestManagerAndPodSpansShareOneTurnTrace(t *testing.T) {
	for name, parent := range map[string]string{"a trace of its own": "", "somebody's trace": caller} {
		t.Run(name, func(t *testing.T) {
			spans := collector.Start(t)
			makeTurn(t, turnOf(parent))
			makeTurn(t, turnOf(parent)) // A repetition is the same span.
			turns, steps := spans.Named(telemetry.SpanTurn), spans.Named("parley.step GenerateAssistant")
			if len(turns) != 2 || len(steps) != 2 || turns[0].ID != turns[1].ID || steps[0].ID != steps[1].ID {
				t.Fatalf("got turns %v and steps %v", turns, steps)
			}
			turn, step := turns[0], steps[0]
			check.Equal(t, "turn", []any{turn.ID, turn.TraceID, "manager", "pod", time.Minute.Nanoseconds()},
				[]any{step.ParentID, step.TraceID, turn.Service, step.Service, turn.Nanoseconds})
			if !turn.Failed || turn.Attributes[telemetry.AttrErrorType] != "RateLimited" ||
				turn.Attributes[telemetry.AttrProvider] != "gcp.gemini" || turn.Kind != tracepb.Span_SPAN_KIND_INTERNAL {
				t.Errorf("the turn says %+v", turn)
			}
			if parent != "" && (turn.TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" || turn.ParentID != "00f067aa0ba902b7") ||
				parent == "" && turn.ParentID != "" {
				t.Errorf("the turn is under %s %s", turn.TraceID, turn.ParentID)
			}
		})
	}
}

func TestTurnAndStepIDsAreUnique(t *testing.T) {
	seen := map[any]bool{}
	for _, turn := range []Turn{
		{ChatUID: "a", HistoryVersion: 1}, {ChatUID: "a", HistoryVersion: 1, Began: began}, {ChatUID: "a", HistoryVersion: 2},
		{ChatUID: "b", HistoryVersion: 1},
		{ChatUID: "b1", HistoryVersion: 1}, {ChatUID: "b", HistoryVersion: 11},
	} {
		for _, id := range []any{turn.ids().trace, turn.ids().span} {
			if seen[id] {
				t.Errorf("%v of %v is taken", id, turn)
			}
			seen[id] = true
		}
		for _, id := range []any{Fence{turn.ChatUID, turn.HistoryVersion, 1}.span(),
			Fence{turn.ChatUID, turn.HistoryVersion, 2}.span()} {
			if turn.Began.Equal(began) { // The same chat and history as the one before.
				continue
			}
			if seen[id] {
				t.Errorf("%v of %v is taken", id, turn)
			}
			seen[id] = true
		}
	}
}

func TestTraceSamplingFollowsParentAndConfiguredSampler(t *testing.T) {
	for name, c := range map[string]struct {
		sampler, parent string
		want            int
	}{
		"as a rule everything is":              {"", "", 2},
		"the sampler's no counts":              {"parentbased_always_off", "", 0},
		"a caller's yes counts":                {"parentbased_always_off", caller, 2},
		"a caller's no counts":                 {"", strings.TrimSuffix(caller, "1") + "0", 0},
		"the sampler may ask nobody":           {"always_on", strings.TrimSuffix(caller, "1") + "0", 2},
		"turn and steps share a sampler's lot": {"parentbased_traceidratio", "", -1},
	} {
		t.Run(name, func(t *testing.T) {
			spans := collector.Start(t)
			if c.sampler != "" {
				t.Setenv("OTEL_TRACES_SAMPLER", c.sampler)
				t.Setenv("OTEL_TRACES_SAMPLER_ARG", "0.5")
			}
			if c.want >= 0 {
				makeTurn(t, turnOf(c.parent))
				if got := spans.Spans(); len(got) != c.want {
					t.Errorf("got %v", got)
				}
				return
			}
			traces := map[string]int{}
			for version := range int64(16) {
				makeTurn(t, Turn{ChatUID: "uid", HistoryVersion: version, Began: began})
			}
			for _, s := range spans.Spans() {
				traces[s.TraceID]++
			}
			for trace, n := range traces {
				if n != 2 {
					t.Errorf("trace %s has %d of 2 spans", trace, n)
				}
			}
			if len(traces) == 0 || len(traces) == 16 {
				t.Errorf("of 16 turns %d are recorded", len(traces))
			}
		})
	}
}

func TestTracingIsOffUnlessAnEndpointIsNamed(t *testing.T) {
	for name, env := range map[string][2]string{
		"nothing is set":          {"OTEL_SERVICE_NAME", "x"},
		"the SDK is disabled":     {"OTEL_SDK_DISABLED", "true"},
		"no exporter is wanted":   {"OTEL_TRACES_EXPORTER", "none"},
		"an endpoint is named":    {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1"},
		"one for traces is named": {"OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "http://127.0.0.1:1/v1/traces"},
	} {
		t.Run(name, func(t *testing.T) {
			if strings.HasPrefix(name, "the SDK") || strings.HasPrefix(name, "no exporter") {
				t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
			}
			t.Setenv(env[0], env[1])
			if tracer := newTracer(t, "x"); tracer.On() != strings.Contains(env[0], "ENDPOINT") || tracer.Content() {
				t.Errorf("on %v, content %v", tracer.On(), tracer.Content())
			}
		})
	}
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
	t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
	if _, err := New(t.Context(), Service{}, nil); err == nil || !strings.Contains(err.Error(), "4318") {
		t.Errorf("a protocol that is not spoken is refused with %v", err)
	}
}

// TestACollectorThatHangsHoldsNobodyUp takes the 5 seconds that a program waits for it at its end.
func TestACollectorThatHangsHoldsNobodyUp(t *testing.T) {
	hanging, err := net.Listen("tcp", "127.0.0.1:0")
	check.OK(t, err)
	defer func() { _ = hanging.Close() }()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://"+hanging.Addr().String())
	t.Setenv("OTEL_BSP_SCHEDULE_DELAY", "1")
	for _, name := range []string{"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_BSP_EXPORT_TIMEOUT"} {
		t.Setenv(name, "3600000") // Who waits for the collector waits longer than a test may take.
	}
	var log bytes.Buffer
	tracer, err := New(t.Context(), Service{Name: "x"}, slog.New(slog.NewTextHandler(&log, nil)))
	check.OK(t, err)
	for attempt := range int32(10000) { // More than the queue holds.
		_, step := tracer.StartStep(t.Context(), Step{Turn: turnOf(""), Fence: Fence{"uid", 3, attempt}})
		step.End("")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	tracer.Close(ctx)
	if lines := strings.Count(log.String(), "\n"); lines > 1 {
		t.Errorf("the log has %d lines", lines)
	}
}

// TestAttributesAreSpelledAsTheConventionsSpellThem compares with the last version of the conventions that holds them.
func TestAttributesAreSpelledAsTheConventionsSpellThem(t *testing.T) {
	for ours, theirs := range map[string]string{
		telemetry.AttrOperation:          string(semconv.GenAIOperationNameKey),
		telemetry.AttrProvider:           string(semconv.GenAIProviderNameKey),
		telemetry.AttrRequestModel:       string(semconv.GenAIRequestModelKey),
		telemetry.AttrMaxTokens:          string(semconv.GenAIRequestMaxTokensKey),
		telemetry.AttrTemperature:        string(semconv.GenAIRequestTemperatureKey),
		telemetry.AttrTopP:               string(semconv.GenAIRequestTopPKey),
		telemetry.AttrTopK:               string(semconv.GenAIRequestTopKKey),
		telemetry.AttrPresencePenalty:    string(semconv.GenAIRequestPresencePenaltyKey),
		telemetry.AttrFrequencyPenalty:   string(semconv.GenAIRequestFrequencyPenaltyKey),
		telemetry.AttrStream:             string(semconv.GenAIRequestStreamKey),
		telemetry.AttrFinishReasons:      string(semconv.GenAIResponseFinishReasonsKey),
		telemetry.AttrTimeToFirstChunk:   string(semconv.GenAIResponseTimeToFirstChunkKey),
		telemetry.AttrConversation:       string(semconv.GenAIConversationIDKey),
		telemetry.AttrInputTokens:        string(semconv.GenAIUsageInputTokensKey),
		telemetry.AttrOutputTokens:       string(semconv.GenAIUsageOutputTokensKey),
		telemetry.AttrCacheReadTokens:    string(semconv.GenAIUsageCacheReadInputTokensKey),
		telemetry.AttrCacheCreateTokens:  string(semconv.GenAIUsageCacheCreationInputTokensKey),
		telemetry.AttrReasoningTokens:    string(semconv.GenAIUsageReasoningOutputTokensKey),
		telemetry.AttrToolName:           string(semconv.GenAIToolNameKey),
		telemetry.AttrToolType:           string(semconv.GenAIToolTypeKey),
		telemetry.AttrToolCallID:         string(semconv.GenAIToolCallIDKey),
		telemetry.AttrAgentName:          string(semconv.GenAIAgentNameKey),
		telemetry.AttrErrorType:          string(semconv.ErrorTypeKey),
		telemetry.AttrServerAddress:      string(semconv.ServerAddressKey),
		telemetry.AttrServerPort:         string(semconv.ServerPortKey),
		telemetry.AttrInputMessages:      string(semconv.GenAIInputMessagesKey),
		telemetry.AttrOutputMessages:     string(semconv.GenAIOutputMessagesKey),
		telemetry.AttrSystemInstructions: string(semconv.GenAISystemInstructionsKey),
		telemetry.AttrToolArguments:      string(semconv.GenAIToolCallArgumentsKey),
		telemetry.AttrToolResult:         string(semconv.GenAIToolCallResultKey),
		telemetry.AttrNamespace:          string(semconv.K8SNamespaceNameKey),
		telemetry.AttrPod:                string(semconv.K8SPodNameKey),
		telemetry.OperationChat:          semconv.GenAIOperationNameChat.Value.AsString(),
		telemetry.OperationInvokeAgent:   semconv.GenAIOperationNameInvokeAgent.Value.AsString(),
		telemetry.OperationExecuteTool:   semconv.GenAIOperationNameExecuteTool.Value.AsString(),
		ProviderName("google"):           semconv.GenAIProviderNameGCPGemini.Value.AsString(),
		ProviderName("azure"):            semconv.GenAIProviderNameAzureAIOpenAI.Value.AsString(),
		ProviderName("bedrock"):          semconv.GenAIProviderNameAWSBedrock.Value.AsString(),
		ProviderName("openai"):           semconv.GenAIProviderNameOpenAI.Value.AsString(),
		ProviderName("anthropic"):        semconv.GenAIProviderNameAnthropic.Value.AsString(),
	} {
		check.Equal(t, "is called", theirs, ours)
	}
}
