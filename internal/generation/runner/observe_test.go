// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package runner_test

import (
	"log/slog"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1alpha1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/stream/publish"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/test/kit/collector"
	"parley.dev/parley/test/modelserver"
)

// observedPod is a pod that is measured and traced.
type observedPod struct {
	*pod
	metrics *prometheus.Registry
	tracer  *tracing.Tracer
	spans   *collector.Collector
}

func startObserved(t *testing.T, script modelserver.Script) observedPod {
	t.Helper()
	o := observedPod{metrics: prometheus.NewRegistry(), spans: collector.Start(t)}
	o.pod = startPod(t, script, func(p *pod, options *runner.Options) {
		var err error
		if o.tracer, err = tracing.New(t.Context(), tracing.Service{Name: "parley-generator", Pod: p.name},
			options.Log); err != nil {
			t.Fatal(err)
		}
		options.Tracer, options.Metrics = o.tracer, telemetry.NewGenerator(o.metrics)
	})
	return o
}

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// askTraced begins a turn as the manager would, in somebody's trace.
func (o observedPod) askTraced(name, text string) *conversation {
	o.t.Helper()
	c := o.newChat(name, func(s *v1alpha1.ChatSpec) { s.SystemPrompt = "Be most secret." })
	c.say(name+"-prompt", text)
	c.write(func(s *v1alpha1.ChatStatus) {
		s.Turn = &v1alpha1.TurnStatus{Message: name + "-prompt", HistoryVersion: 1, StartedAt: new(metav1.NowMicro()),
			Traceparent: traceparent}
		s.History = v1alpha1.HistoryStatus{Version: 1, Head: name + "-prompt", Length: 1}
		s.Generation = c.assignment(v1alpha1.ActionGenerateAssistant, 1)
	})
	return c
}

// clockTurn lets the model look at the clock and answer: two steps of the model, one of tools.
func (o observedPod) clockTurn() *conversation {
	o.t.Helper()
	c := o.askTraced("clock", "What time is it in Tokyo?")
	c.commit(c.result(), v1alpha1.ActionExecuteTools)
	c.commit(c.result(), v1alpha1.ActionGenerateAssistant)
	c.commit(c.result(), "")
	o.stop()
	o.tracer.EndTurn(o.t.Context(), tracing.TurnEnd{ // The manager does.
		Turn: tracing.Turn{ChatUID: string(c.chat.UID), HistoryVersion: 1, Began: c.chat.Status.Turn.StartedAt.Time,
			Traceparent: c.chat.Status.Turn.Traceparent},
		Ended: time.Now(), Result: string(v1alpha1.TurnAnswered),
	})
	o.tracer.Close(o.t.Context())
	return c
}

func TestATurnIsATreeOfStepsAndCalls(t *testing.T) {
	o := startObserved(t, usesTool)
	c := o.clockTurn()
	names := map[string]string{"00f067aa0ba902b7": "the caller"}
	for _, s := range o.spans.Spans() {
		names[s.ID] = s.Name
	}
	conversation := string(c.chat.UID)
	want := []struct {
		name, parent, kind string
		attributes         map[string]string
	}{
		{"chat scripted", "parley.step GenerateAssistant", "SPAN_KIND_CLIENT", map[string]string{
			telemetry.AttrOperation: "chat", telemetry.AttrProvider: "openai-compatible", telemetry.AttrRequestModel: "scripted",
			telemetry.AttrMaxTokens: "77",
			telemetry.AttrStream:    "true", telemetry.AttrConversation: conversation, telemetry.AttrServerAddress: "127.0.0.1",
			telemetry.AttrOutcome: "Completed",
		}},
		{"parley.step GenerateAssistant", "invoke_agent", "SPAN_KIND_INTERNAL", map[string]string{
			telemetry.AttrConversation: conversation, telemetry.AttrHistoryVersion: "1", telemetry.AttrAttempt: "1",
			telemetry.AttrNamespace: o.ns,
			telemetry.AttrChat:      "clock", telemetry.AttrAction: "GenerateAssistant", telemetry.AttrOutcome: "Completed",
		}},
		{"execute_tool current_time", "parley.step ExecuteTools", "SPAN_KIND_INTERNAL", map[string]string{
			telemetry.AttrOperation: "execute_tool", telemetry.AttrToolName: "current_time", telemetry.AttrToolType: "function",
			telemetry.AttrOutcome: "Succeeded",
		}},
		{"execute_tool client", "parley.step ExecuteTools", "SPAN_KIND_INTERNAL", map[string]string{
			telemetry.AttrToolName: "launch", telemetry.AttrErrorType: "ToolError", telemetry.AttrOutcome: "Failed",
		}},
		{"parley.step ExecuteTools", "invoke_agent", "SPAN_KIND_INTERNAL",
			map[string]string{telemetry.AttrHistoryVersion: "2", telemetry.AttrAction: "ExecuteTools"}},
		{"chat scripted", "parley.step GenerateAssistant", "SPAN_KIND_CLIENT",
			map[string]string{telemetry.AttrOperation: "chat", telemetry.AttrFinishReasons: "*"}},
		{"parley.step GenerateAssistant", "invoke_agent", "SPAN_KIND_INTERNAL",
			map[string]string{telemetry.AttrHistoryVersion: "3"}},
		{"invoke_agent", "the caller", "SPAN_KIND_INTERNAL", map[string]string{telemetry.AttrOperation: "invoke_agent",
			telemetry.AttrTurnResult: "Answered"}},
	}
	got := o.spans.Spans()
	if len(got) != len(want) || len(names) != len(want)+1 {
		t.Fatalf("got the spans %v", got)
	}
	// The tools run at the same time.
	slices.SortFunc(got[2:4], func(a, b collector.Span) int { return strings.Compare(b.Name, a.Name) })
	for i, w := range want {
		s := got[i]
		if s.Name != w.name || names[s.ParentID] != w.parent || s.Kind.String() != w.kind ||
			s.TraceID != "4bf92f3577b34da6a3ce929d0e0e4736" || s.Failed != (w.attributes[telemetry.AttrErrorType] != "") {
			t.Errorf("span %d is %+v under %q", i, s, names[s.ParentID])
		}
		for key, value := range w.attributes {
			if s.Attributes[key] != value && (value != "*" || s.Attributes[key] == "") {
				t.Errorf("span %d, %s: %s is %q, not %q", i, s.Name, key, s.Attributes[key], value)
			}
		}
	}
	for _, key := range []string{telemetry.AttrInputTokens, telemetry.AttrOutputTokens, telemetry.AttrTimeToFirstChunk} {
		if got[5].Attributes[key] == "" {
			t.Errorf("the call's span has no %s: %v", key, got[5].Attributes)
		}
	}
}

// secrets are what nobody but the parties to the conversation may read.
var secrets = []string{"most secret", "time is it", "Asia/Tokyo", "1970-01-01", "I read"}

func TestSpansHoldContentOnlyWhereThatIsWantedAndNeverTheKey(t *testing.T) {
	for setting, want := range map[string]bool{"": false, "false": false, "true": true} {
		t.Run("content="+setting, func(t *testing.T) {
			t.Setenv(telemetry.EnvCaptureContent, setting)
			o := startObserved(t, usesTool)
			o.clockTurn()
			said, keys := "", map[string]bool{}
			for _, s := range o.spans.Spans() {
				said += s.Raw
				for key := range s.Attributes {
					keys[key] = true
				}
			}
			if len(said) < 1000 || strings.Contains(said, rightKey) {
				t.Fatalf("the spans hold %s", said)
			}
			for _, secret := range secrets {
				if strings.Contains(said, secret) != want {
					t.Errorf("%q is in the spans: %v", secret, !want)
				}
			}
			for _, key := range []string{
				telemetry.AttrInputMessages, telemetry.AttrOutputMessages, telemetry.AttrSystemInstructions,
				telemetry.AttrToolArguments, telemetry.AttrToolResult,
			} {
				if keys[key] != want {
					t.Errorf("there is %s: %v", key, keys[key])
				}
			}
		})
	}
}

func TestATurnIsMeasured(t *testing.T) {
	o := startObserved(t, usesTool)
	o.clockTurn()
	wantSeries(t, o.metrics, map[string]float64{
		`parley_attempts_running`: 0,
		`parley_time_to_first_part_seconds{provider="openai-compatible"}`:                                        2,
		`parley_model_call_duration_seconds{outcome="Completed",provider="openai-compatible",reply="Complete"}`:  1,
		`parley_model_call_duration_seconds{outcome="Completed",provider="openai-compatible",reply="ToolCalls"}`: 1,
		`parley_tool_calls_total{outcome="Succeeded",tool="current_time"}`:                                       1,
		`parley_tool_calls_total{outcome="Failed",tool="client"}`:                                                1,
		`parley_tool_call_duration_seconds{tool="current_time"}`:                                                 1,
		`parley_tool_call_duration_seconds{tool="client"}`:                                                       1,
		`parley_tool_result_size_bytes{tool="current_time"}`:                                                     1,
		`parley_tool_result_size_bytes{tool="client"}`:                                                           1,
		`parley_tokens_total{kind="input",provider="openai-compatible"}`:                                         -1,
		`parley_tokens_total{kind="output",provider="openai-compatible"}`:                                        -1,
	})
}

func TestAFailedCallIsMarkedWithItsReasonAlone(t *testing.T) {
	o := startObserved(t, modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{
		Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429, Message: "slow down, " + rightKey},
	}}}})
	c := o.askTraced("hurried", "hello")
	c.failure(v1alpha1.ErrorRateLimited)
	o.stop()
	o.tracer.Close(t.Context())
	spans := o.spans.Spans()
	if len(spans) != 2 {
		t.Fatalf("got %v", spans)
	}
	for _, s := range spans {
		if !s.Failed || s.Attributes[telemetry.AttrErrorType] != "RateLimited" ||
			s.Attributes[telemetry.AttrOutcome] != "Failed" || strings.Contains(s.Raw, "slow down") ||
			strings.Contains(s.Raw, rightKey) {
			t.Errorf("got %s", s.Raw)
		}
	}
	wantSeries(t, o.metrics, map[string]float64{
		`parley_attempts_running`: 0,
		`parley_model_call_duration_seconds{outcome="Failed",provider="openai-compatible",reply=""}`: 1,
	})
}

// TestARestartMakesNoSpanOfAnAttemptThatHasOne lets a second life of the generator meet an attempt whose result exists.
func TestARestartMakesNoSpanOfAnAttemptThatHasOne(t *testing.T) {
	o := startObserved(t, modelserver.Script{})
	c := o.askTraced("again", "hello")
	c.result()
	o.stop()
	o.tracer.Close(t.Context())
	before := len(o.spans.Spans())

	tracer, err := tracing.New(t.Context(), tracing.Service{Name: "second life"}, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	o.relay.fail = publish.ErrExists
	o.launch(func(_ *pod, options *runner.Options) { options.Tracer = tracer })
	o.drain()
	<-o.ended
	tracer.Close(t.Context())
	if got := o.spans.Spans(); before != 2 || len(got) != before {
		t.Errorf("after %d spans there are %v", before, got)
	}
}

// wantSeries compares all series of the registry: values, or the number of observations; -1 is any but 0.
func wantSeries(t *testing.T, registry *prometheus.Registry, want map[string]float64) {
	t.Helper()
	got := seriesOf(t, registry)
	for name, value := range want {
		if have, ok := got[name]; !ok || have != value && (value >= 0 || have == 0) {
			t.Errorf("%s is %v", name, have)
		}
	}
	if len(got) != len(want) {
		t.Errorf("there are %v", slices.Sorted(maps.Keys(got)))
	}
}

func seriesOf(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			all[seriesName(f.GetName(), m)] = m.Counter.GetValue() + m.Gauge.GetValue() + float64(m.Histogram.GetSampleCount())
		}
	}
	return all
}

func seriesName(name string, m *dto.Metric) string {
	var labels []string
	for _, l := range m.Label {
		labels = append(labels, l.GetName()+`="`+l.GetValue()+`"`)
	}
	if labels == nil {
		return name
	}
	return name + "{" + strings.Join(labels, ",") + "}"
}
