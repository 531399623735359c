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

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/generation/runner"
	"parley.dev/parley/internal/stream/publish"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/collector"
	"parley.dev/parley/test/kit/modeltest"
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

// close ends the pod and hands its spans over.
func (o observedPod) close() {
	o.stop()
	o.tracer.Close(o.t.Context())
}

// askTraced begins a turn as the manager would, in somebody's trace.
func (o observedPod) askTraced(name, text string) *conversation {
	o.t.Helper()
	c := o.newChat(name, func(s *v1beta1.ChatSpec) { s.SystemPrompt = "Be most secret." })
	c.config = "captioned"
	c.ask(name+"-prompt", text, func(s *v1beta1.ChatStatus) {
		s.Turn.HistoryVersion, s.Turn.StartedAt, s.Turn.Traceparent = 1, new(metav1.NowMicro()), traceparent
	})
	return c
}

// clockTurn lets the model look at the clock, answer, and write a title: two steps of the model, one of tools.
func (o observedPod) clockTurn() *conversation {
	o.t.Helper()
	c := o.askTraced("clock", "What time is it in Tokyo?")
	c.commit(c.result(), v1beta1.ActionExecuteTools)
	c.commit(c.result(), v1beta1.ActionGenerateAssistant)
	c.commit(c.result(), "")
	o.eventually("all calls are over", func() bool { return len(o.models.Requests()) == 3 && o.models.InFlight() == 0 })
	o.stop()
	o.tracer.EndTurn(o.t.Context(), tracing.TurnEnd{ // The manager does.
		Turn: tracing.Turn{ChatUID: string(c.chat.UID), HistoryVersion: 1, Began: c.chat.Status.Turn.StartedAt.Time,
			Traceparent: c.chat.Status.Turn.Traceparent},
		Ended: time.Now(), Result: string(v1beta1.TurnAnswered),
	})
	o.close()
	return c
}

// tree are the spans, by their names and those of the spans above them.
func (o observedPod) tree() map[string]collector.Span {
	spans, tree := map[string]collector.Span{}, map[string]collector.Span{}
	for _, s := range o.spans.Spans() {
		spans[s.ID] = s
	}
	for _, s := range spans {
		var path []string
		for at, ok := s, true; ok; at, ok = spans[at.ParentID] {
			name := strings.TrimSpace(at.Name + " " + at.Attributes[telemetry.AttrHistoryVersion])
			if at.Attributes[telemetry.AttrAction] == "WriteTitle" {
				name = "title"
			}
			path = append([]string{name}, path...)
		}
		tree[strings.Join(path, "/")] = s
	}
	return tree
}

func TestTurnIsATreeOfStepsAndCalls(t *testing.T) {
	o := startObserved(t, usesTool)
	uid := string(o.clockTurn().chat.UID)
	const first, tools, second = "invoke_agent/parley.step GenerateAssistant 1", "invoke_agent/parley.step ExecuteTools 2",
		"invoke_agent/parley.step GenerateAssistant 3"
	want := map[string]map[string]string{
		"invoke_agent": {telemetry.AttrOperation: "invoke_agent", telemetry.AttrTurnResult: "Answered"},
		first: {telemetry.AttrConversation: uid, telemetry.AttrAttempt: "1", telemetry.AttrNamespace: o.ns,
			telemetry.AttrChat: "clock", telemetry.AttrAction: "GenerateAssistant", telemetry.AttrOutcome: "Completed"},
		first + "/chat scripted": {telemetry.AttrOperation: "chat", telemetry.AttrProvider: "openai-compatible",
			telemetry.AttrRequestModel: "scripted", telemetry.AttrMaxTokens: "77", telemetry.AttrStream: "true",
			telemetry.AttrConversation: uid, telemetry.AttrServerAddress: "127.0.0.1", telemetry.AttrOutcome: "Completed"},
		first + "/title": {telemetry.AttrStream: "true", telemetry.AttrInputTokens: "*", telemetry.AttrOutcome: "Completed"},
		tools:            {telemetry.AttrAction: "ExecuteTools"},
		tools + "/execute_tool current_time": {telemetry.AttrOperation: "execute_tool",
			telemetry.AttrToolName: "current_time", telemetry.AttrToolType: "function", telemetry.AttrOutcome: "Succeeded"},
		tools + "/execute_tool client": {telemetry.AttrToolName: "launch", telemetry.AttrErrorType: "ToolError",
			telemetry.AttrOutcome: "Failed"},
		second: {},
		second + "/chat scripted": {telemetry.AttrFinishReasons: "*", telemetry.AttrInputTokens: "*",
			telemetry.AttrOutputTokens: "*", telemetry.AttrTimeToFirstChunk: "*"},
	}
	got := o.tree()
	check.Equal(t, "the spans", slices.Sorted(maps.Keys(want)), slices.Sorted(maps.Keys(got)))
	for path, attributes := range want {
		s, kind := got[path], "SPAN_KIND_INTERNAL"
		if attributes[telemetry.AttrStream] != "" || path == second+"/chat scripted" {
			kind = "SPAN_KIND_CLIENT"
		}
		check.Equal(t, path, []any{"4bf92f3577b34da6a3ce929d0e0e4736", kind, attributes[telemetry.AttrErrorType] != ""},
			[]any{s.TraceID, s.Kind.String(), s.Failed})
		for key, value := range attributes {
			if s.Attributes[key] != value && (value != "*" || s.Attributes[key] == "") {
				t.Errorf("%s: %s is %q, not %q", path, key, s.Attributes[key], value)
			}
		}
	}
	check.Equal(t, "the caller", "00f067aa0ba902b7", got["invoke_agent"].ParentID)
	wantSeries(t, o.metrics, map[string]float64{
		`parley_attempts_running`: 0,
		`parley_time_to_first_part_seconds{provider="openai-compatible"}`:                                        3,
		`parley_model_call_duration_seconds{outcome="Completed",provider="openai-compatible",reply="Complete"}`:  1,
		`parley_model_call_duration_seconds{outcome="Completed",provider="openai-compatible",reply="ToolCalls"}`: 2,
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

func TestSpansHoldContentOnlyWhereWanted(t *testing.T) {
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
			check.Contains(t, said, "GenerateAssistant")
			check.Lacks(t, said, modeltest.Key)
			for _, secret := range []string{"most secret", "time is it", "Asia/Tokyo", "1970-01-01", "I read"} {
				check.Equal(t, secret, want, strings.Contains(said, secret))
			}
			for _, key := range []string{
				telemetry.AttrInputMessages, telemetry.AttrOutputMessages, telemetry.AttrSystemInstructions,
				telemetry.AttrToolArguments, telemetry.AttrToolResult,
			} {
				check.Equal(t, key, want, keys[key])
			}
		})
	}
}

func TestFailedCallIsMarkedWithItsReasonAlone(t *testing.T) {
	o := startObserved(t, modelserver.Script{Rules: []modelserver.Rule{{Reply: modelserver.Reply{
		Fault: &modelserver.Fault{Kind: modelserver.FaultStatus, Status: 429, Message: "slow down, " + modeltest.Key},
	}}}})
	c := o.askTraced("hurried", "hello")
	c.ended("Failed RateLimited")
	o.close()
	spans := o.tree()
	for _, path := range []string{"parley.step GenerateAssistant 1", "parley.step GenerateAssistant 1/chat scripted"} {
		s := spans[path]
		check.Equal(t, path, []any{true, "RateLimited", "Failed"},
			[]any{s.Failed, s.Attributes[telemetry.AttrErrorType], s.Attributes[telemetry.AttrOutcome]})
		check.Lacks(t, s.Raw, "slow down", modeltest.Key)
	}
	failed := `parley_model_call_duration_seconds{outcome="Failed",provider="openai-compatible",reply=""}`
	got := seriesOf(t, o.metrics)
	check.Equal(t, "attempts, failed calls", []any{0, true}, []any{got[`parley_attempts_running`], got[failed] > 0})
}

// A second life of the generator meets an attempt whose result exists.
func TestRestartMakesNoSecondSpan(t *testing.T) {
	o := startObserved(t, paris)
	o.askTraced("again", "hello").result()
	o.eventually("the title is there", func() bool { return len(o.models.Requests()) == 2 && o.models.InFlight() == 0 })
	o.close()
	before := len(o.spans.Spans())
	tracer, err := tracing.New(t.Context(), tracing.Service{Name: "second life"}, slog.New(slog.DiscardHandler))
	check.OK(t, err)
	o.relay.fail = publish.ErrExists
	o.launch(func(_ *pod, options *runner.Options) { options.Tracer = tracer })
	o.drain()
	<-o.ended
	tracer.Close(t.Context())
	check.Equal(t, "spans before and after", []int{3, 3}, []int{before, len(o.spans.Spans())})
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
	check.Equal(t, "series", len(want), len(got))
}

func seriesOf(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	check.OK(t, err)
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
