// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package telemetry_test

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/internal/telemetry/traceparent"
	"parley.dev/parley/test/kit/check"
)

// programs are the registries of all programs after something of everything has happened.
// say is what callers call things.
func programs(say string) map[string]*prometheus.Registry {
	all := map[string]*prometheus.Registry{}
	registry := func(program string) *prometheus.Registry {
		all[program] = prometheus.NewRegistry()
		return all[program]
	}
	m := telemetry.NewManager(registry("manager"))
	m.Chats("", 1)
	m.WaitBegan("Retry", "chat", time.Unix(1, 0))
	m.TurnBegan(time.Second)
	m.TurnEnded("Failed", say, time.Second)
	m.CapacityCame(time.Second)
	m.AttemptEnded("ExecuteTools", "Lost", say)
	m.StepCommitted("ExecuteTools", time.Second, time.Second)
	m.MessageRejected(say)
	m.ResultRefused(say)
	m.Retried(say, say)
	m.Archived(telemetry.ArchiveFailed)
	m.Compacted(say, say, telemetry.CompactionFailed, say)
	m.ClientCalls(telemetry.CallCancelled, 2)

	g := telemetry.NewGenerator(registry("generator"))
	g.AttemptBegan()
	g.FirstPart(say, time.Second)
	g.CallEnded(say, "Completed", "Complete", time.Second)
	g.Tokens(say, telemetry.TokensInput, 7)
	g.ToolCalled(say, telemetry.CallSucceeded, 100, time.Second)
	g.ToolDenied(say)
	g.ResultRefused(say)
	g.PartsDropped(3)
	g.RecordingLost(say)

	telemetry.RegisterRelay(registry("relay"), telemetry.Relay{Dropped: count(1), Held: count(2), Streams: count(3),
		Refused: count(4)})
	gateway := telemetry.NewGateway(registry("gateway"))
	gateway.StreamOpened()(say)
	gateway.Refused(say)
	return all
}

func TestEveryMetricKeepsPrometheusRules(t *testing.T) {
	for program, registry := range programs("openai") {
		problems, err := testutil.GatherAndLint(registry)
		check.OK(t, err)
		for _, p := range problems {
			t.Errorf("%s: %s: %s", program, p.Metric, p.Text)
		}
		families, err := registry.Gather()
		check.OK(t, err)
		for _, f := range families {
			if !strings.HasPrefix(f.GetName(), "parley_") || !strings.HasSuffix(f.GetHelp(), ".") {
				t.Errorf("%s has %s, %q", program, f.GetName(), f.GetHelp())
			}
		}
	}
}

// TestWhateverCallersSayThereAreFewSeries holds that a set of values which is not closed after all does no harm.
func TestWhateverCallersSayThereAreFewSeries(t *testing.T) {
	registry := prometheus.NewRegistry()
	g, m := telemetry.NewGenerator(registry), telemetry.NewManager(prometheus.NewRegistry())
	for i := range 1000 {
		g.Tokens(fmt.Sprintf("provider-%d", i), telemetry.TokensInput, 1)
		g.ToolDenied(fmt.Sprintf("tool-%d", i))
		m.MessageRejected(fmt.Sprintf("reason-%d", i))
	}
	for _, name := range []string{telemetry.MetricTokens, telemetry.MetricToolCalls} {
		if n, err := testutil.GatherAndCount(registry, name); err != nil || n != 65 {
			t.Errorf("%s has %d series, %v", name, n, err)
		}
	}
	families, err := registry.Gather()
	check.OK(t, err)
	for _, f := range families {
		for _, series := range f.Metric {
			for _, label := range series.Label {
				if label.GetValue() == telemetry.Other && series.Counter.GetValue() != 1000-64 {
					t.Errorf("%s counts %v as other", f.GetName(), series.Counter.GetValue())
				}
			}
		}
	}
}

func TestNobodyHasToMeasure(*testing.T) {
	var m *telemetry.Manager
	m.Chats("Waiting", 1)
	m.WaitBegan("", "", time.Time{})
	m.WaitEnded("", "")
	m.TurnBegan(1)
	m.TurnEnded("", "", 1)
	m.CapacityCame(1)
	m.AttemptEnded("", "", "")
	m.StepCommitted("", 1, 1)
	m.MessageRejected("")
	m.ResultRefused("")
	m.ClientCalls("", 1)
	m.Retried("", "")
	m.Archived("")
	m.Compacted("", "", "", "")
	var g *telemetry.Generator
	g.AttemptBegan()()
	g.FirstPart("", 1)
	g.CallEnded("", "", "", 1)
	g.Tokens("", "", 1)
	g.ToolCalled("", "", 1, 1)
	g.ToolDenied("")
	g.ClientResult(1)
	g.ResultRefused("")
	g.PartsDropped(1)
	g.RecordingLost("")
	var w *telemetry.Gateway
	w.StreamOpened()("")
	w.Refused("")
	w.RelayFailed()
}

func TestOldestWaitIsShownUntilItEnds(t *testing.T) {
	registry := prometheus.NewRegistry()
	m := telemetry.NewManager(registry)
	m.WaitBegan("Pod", "a", time.Unix(100, 0))
	m.WaitBegan("Pod", "b", time.Unix(50, 0))
	m.WaitBegan("Secret", "c", time.Unix(70, 0))
	oldest := func(want string) {
		t.Helper()
		if want != "" {
			want = "# HELP parley_chat_oldest_wait_timestamp_seconds When the chat began to wait that has waited longest, by " +
				"what ends the wait; absent while none waits.\n# TYPE parley_chat_oldest_wait_timestamp_seconds gauge\n" + want
		}
		if err := testutil.GatherAndCompare(registry, strings.NewReader(want), telemetry.MetricOldestWait); err != nil {
			t.Error(err)
		}
	}
	oldest("parley_chat_oldest_wait_timestamp_seconds{for=\"Pod\"} 50\n" +
		"parley_chat_oldest_wait_timestamp_seconds{for=\"Secret\"} 70\n")
	m.WaitEnded("Pod", "b")
	m.WaitEnded("Secret", "c")
	oldest("parley_chat_oldest_wait_timestamp_seconds{for=\"Pod\"} 100\n")
	m.WaitEnded("Pod", "a")
	oldest("")
}

func TestAStreamIsOpenUntilItIsClosed(t *testing.T) {
	registry := prometheus.NewRegistry()
	w := telemetry.NewGateway(registry)
	first := w.StreamOpened()
	w.StreamOpened()
	first("ShuttingDown")
	w.Refused("TooManyStreams")
	w.RelayFailed()
	want := "# HELP parley_gateway_refusals_total Requests for streams that were refused.\n# TYPE " +
		"parley_gateway_refusals_total counter\nparley_gateway_refusals_total{reason=\"TooManyStreams\"} 1\n" +
		"# HELP parley_gateway_relay_failures_total Reads of live parts from relays that failed. The gateway repeats " +
		"them.\n# TYPE parley_gateway_relay_failures_total counter\nparley_gateway_relay_failures_total 1\n" +
		"# HELP parley_gateway_streams_ended_total Streams that ended: Over with their chat, ClientLeft, ClientTooSlow, or " +
		"a reason of closing.\n# TYPE parley_gateway_streams_ended_total " +
		"counter\nparley_gateway_streams_ended_total{reason=\"ShuttingDown\"} 1\n" +
		"# HELP parley_gateway_streams_open Streams that clients are following.\n# TYPE parley_gateway_streams_open " +
		"gauge\nparley_gateway_streams_open 1\n" +
		"# HELP parley_gateway_streams_total Streams that were begun.\n" +
		"# TYPE parley_gateway_streams_total counter\nparley_gateway_streams_total 2\n"
	if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
		t.Error(err)
	}
}

func TestTheMetricsPortServesMetricsAndNothingElse(t *testing.T) {
	registry := telemetry.NewRegistry()
	telemetry.RegisterRelay(registry, telemetry.Relay{Dropped: count(7), Held: count(0), Streams: count(0),
		Refused: count(0)})
	server := httptest.NewServer(telemetry.Handler(registry, false))
	defer server.Close()
	profiled := httptest.NewServer(telemetry.Handler(registry, true))
	defer profiled.Close()
	if resp, err := http.Get(profiled.URL + "/debug/pprof/heap"); err != nil || resp.StatusCode != http.StatusOK ||
		resp.Body.Close() != nil {
		t.Errorf("where profiles are asked for, got %v, %v", resp, err)
	}
	for path, want := range map[string]int{"/metrics": http.StatusOK, "/": http.StatusNotFound,
		"/debug/pprof/": http.StatusNotFound} {
		resp, err := http.Get(server.URL + path)
		check.OK(t, err)
		body, _ := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		check.Equal(t, path, want, resp.StatusCode)
		if path == "/metrics" && (!strings.Contains(string(body), `parley_relay_dropped_parts_total{by="relay"} 7`) ||
			!strings.Contains(string(body), "go_goroutines")) {
			t.Errorf("the metrics are %s", body)
		}
	}
	if err := telemetry.Serve(t.Context(), server.Listener.Addr().String(), registry, false); err == nil {
		t.Error("an address that is taken is no error")
	}
	if err := telemetry.Serve(t.Context(), "0", registry, false); err != nil {
		t.Error(err)
	}
}

func TestATraceparentIsReadStrictly(t *testing.T) {
	const good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
	if c, ok := traceparent.Parse(good); !ok || !c.Sampled || c.TraceID[0] != 0x4b || c.SpanID[7] != 0xb7 {
		t.Errorf("got %+v, %v", c, ok)
	}
	if c, ok := traceparent.Parse(strings.TrimSuffix(good, "1") + "0"); !ok || c.Sampled {
		t.Errorf("got %+v, %v", c, ok)
	}
	for name, bad := range map[string]string{
		"nothing": "", "too long": good + "0", "another version": "01" + good[2:], "capitals": strings.ToUpper(good),
		"not hexadecimal":  strings.Replace(good, "f", "g", 1),
		"no trace":         "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
		"no span":          "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
		"dashes elsewhere": "00-4bf92f3577b34da6a3ce929d0e0e473-600f067aa0ba902b7-01",
		"five fields":      "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b-01-",
	} {
		if c, ok := traceparent.Parse(bad); ok {
			t.Errorf("%s is read as %+v", name, c)
		}
	}
}

// count is a number that never changes.
func count(n int64) func() int64 { return func() int64 { return n } }
