// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package integration

import (
	"log/slog"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"parley.dev/parley/api/v1beta1"
	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/tracing"
	"parley.dev/parley/test/kit/chattest"
	"parley.dev/parley/test/kit/check"
	"parley.dev/parley/test/kit/collector"
	"parley.dev/parley/test/kit/testmanager"
)

const traceparent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

// observedManager replaces the manager by one that is measured and traced, until the test ends.
func observedManager(t *testing.T) (*prometheus.Registry, *collector.Collector) {
	t.Helper()
	spans, metrics := collector.Start(t), prometheus.NewRegistry()
	tracer, err := tracing.New(t.Context(), tracing.Service{Name: "parley-manager"}, slog.New(slog.DiscardHandler))
	check.OK(t, err)
	stopManager(t)(func(o *testmanager.Options) { o.Controllers.Metrics, o.Controllers.Tracer = metrics, tracer })
	t.Cleanup(func() { stopManager(t)() })
	return metrics, spans
}

// seriesOf are the values of a registry's series, of histograms the number of observations.
func seriesOf(t *testing.T, registry *prometheus.Registry) map[string]float64 {
	t.Helper()
	families, err := registry.Gather()
	check.OK(t, err)
	all := map[string]float64{}
	for _, f := range families {
		for _, m := range f.Metric {
			labels := []string{f.GetName()}
			for _, l := range m.Label {
				labels = append(labels, l.GetValue())
			}
			all[strings.TrimSpace(strings.Join(labels, " "))] = m.Counter.GetValue() + m.Gauge.GetValue() +
				float64(m.Histogram.GetSampleCount())
		}
	}
	return all
}

func TestWhatTurnsDidIsCountedOnceAndTraced(t *testing.T) {
	metrics, spans := observedManager(t)
	before := seriesOf(t, metrics)
	ns := namespace(t)

	chat := newChat(ns, "c", "hello")
	chat.Annotations = map[string]string{v1beta1.AnnotationTraceparent: traceparent}
	create(t, chat)
	answers(t, assigned(t, ns, "c", 1, 1), chattest.Calls("call_1"))
	answers(t, assigned(t, ns, "c", 2, 1), chattest.Results("call_1"))
	answers(t, assigned(t, ns, "c", 3, 1), chattest.Says("Fine."))
	waitForPhase(t, ns, "c", v1beta1.ChatWaiting)
	first := chatIn(t, ns, "c").Status.Turn
	if first.Traceparent != traceparent || first.StartedAt.IsZero() {
		t.Errorf("the turn's record is %+v", first)
	}

	create(t, say(ns, "c", "second"))
	second := assigned(t, ns, "c", 5, 1)
	answers(t, second, chattest.Fails(v1beta1.ErrorAuthenticationFailed))
	waitForPhase(t, ns, "c", v1beta1.ChatError)

	eventually(t, "two turns are traced", func() bool { return len(spans.Spans()) == 2 })
	answered, broken := spans.Spans()[0], spans.Spans()[1]
	if answered.TraceID != traceparent[3:35] || answered.ParentID != traceparent[36:52] ||
		answered.Name != telemetry.SpanTurn || answered.Service != "parley-manager" ||
		answered.Attributes[telemetry.AttrTurnResult] != "Answered" || answered.Attributes[telemetry.AttrTurnSteps] != "2" ||
		answered.Attributes[telemetry.AttrChat] != "c" ||
		answered.Attributes[telemetry.AttrMessage] != "c-prompt" ||
		answered.Attributes[telemetry.AttrRequestModel] != "scripted" || answered.Failed || answered.Nanoseconds <= 0 {
		t.Errorf("the first turn is %+v", answered)
	}
	if broken.TraceID == answered.TraceID || broken.ParentID != "" || !broken.Failed ||
		broken.Attributes[telemetry.AttrErrorType] != "AuthenticationFailed" {
		t.Errorf("the second turn is %+v", broken)
	}
	for _, want := range []struct {
		series string
		n      float64
	}{
		{"parley_turns_total  Answered", 1},
		{"parley_turns_total AuthenticationFailed Failed", 1},
		{"parley_turn_duration_seconds Answered", 1},
		{"parley_turn_duration_seconds Failed", 1},
		{"parley_queue_wait_seconds", 2},
		{"parley_attempts_total GenerateAssistant Completed", 2},
		{"parley_attempts_total ExecuteTools Completed", 1},
		{"parley_attempts_total GenerateAssistant Failed AuthenticationFailed", 1},
		{"parley_step_duration_seconds GenerateAssistant", 2},
		{"parley_step_duration_seconds ExecuteTools", 1},
		{"parley_commit_latency_seconds", 3},
		{"parley_capacity_wait_seconds", 0},
	} {
		check.Equal(t, want.series, want.n, seriesOf(t, metrics)[want.series]-before[want.series])
	}
	eventually(t, "the chats are counted by phase", func() bool { return phasesAre(t, metrics) })
	check.OK(t, cluster.Client.Delete(t.Context(), chatIn(t, ns, "c")))
	eventually(t, "one that is gone is counted no more", func() bool { return phasesAre(t, metrics) })
}

// phasesAre reports whether the metric agrees with the API server, on the chats of all tests.
func phasesAre(t *testing.T, metrics *prometheus.Registry) bool {
	t.Helper()
	var chats v1beta1.ChatList
	check.OK(t, cluster.Client.List(t.Context(), &chats))
	want := map[string]float64{}
	for i := range chats.Items {
		want["parley_chats "+string(chats.Items[i].Status.Phase)]++
	}
	for series, n := range seriesOf(t, metrics) {
		if strings.HasPrefix(series, "parley_chats ") && want[series] != n {
			return false
		}
		delete(want, series)
	}
	return len(want) == 0
}

func TestWhatIsRefusedIsCounted(t *testing.T) {
	metrics, _ := observedManager(t)
	ns := namespace(t)
	chat := newChat(ns, "c", "hello")
	chat.Spec.Limits = &v1beta1.ChatLimits{MaxQueue: new(int32(1))}
	create(t, chat)
	late := chattest.Answer(assigned(t, ns, "c", 1, 1), chattest.Says("Fine."))
	create(t, say(ns, "c", "queued"))
	eventually(t, "a message is queued", func() bool { return len(chatIn(t, ns, "c").Status.Queue) == 1 })
	create(t, say(ns, "c", "too-many"))
	waitForMessage(t, ns, "too-many", metav1.ConditionFalse, v1beta1.ReasonQueueFull)

	prompt := messageIn(t, ns, "c-prompt")
	prompt.Spec.Content = "goodbye"
	check.OK(t, cluster.Client.Update(t.Context(), prompt))
	eventually(t, "the turn begins again", func() bool { return chatIn(t, ns, "c").Status.History.Version > 1 })
	create(t, late)
	eventually(t, "a late result is refused",
		func() bool { return seriesOf(t, metrics)["parley_refused_results_total FenceMovedOn"] == 1 })
	for series, n := range map[string]float64{
		"parley_rejected_messages_total QueueFull":          1,
		"parley_turns_total  Superseded":                    1,
		"parley_attempts_total GenerateAssistant Abandoned": 1,
		"parley_queue_wait_seconds":                         1,
	} {
		eventually(t, series+" is counted", func() bool { return seriesOf(t, metrics)[series] == n })
	}
}

func TestCallsOfClientsAreCounted(t *testing.T) {
	metrics, _ := observedManager(t)
	ns := namespace(t)
	chat := newChat(ns, "c", "hello")
	chat.Spec.Tools = &v1beta1.ChatTools{Client: []v1beta1.ClientTool{{Name: "open_ticket"}}}
	create(t, chat)
	answers(t, assigned(t, ns, "c", 1, 1), chattest.CallsOf(ticket("call_1")))
	waitForPhase(t, ns, "c", v1beta1.ChatRequiresAction)
	create(t, resultsOf(ns, "results", "call_1", `"4711"`))
	waitForPhase(t, ns, "c", v1beta1.ChatRunning)
	eventually(t, "the call is counted",
		func() bool { return seriesOf(t, metrics)["parley_tool_calls_total Succeeded client"] == 1 })
}
