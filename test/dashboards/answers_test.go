// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"context"
	"fmt"
	"math"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/common/model"
	"github.com/prometheus/prometheus/model/histogram"
	"github.com/prometheus/prometheus/model/labels"
	promvalue "github.com/prometheus/prometheus/model/value"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"
	"github.com/prometheus/prometheus/storage"
	"github.com/prometheus/prometheus/tsdb/chunkenc"
	"github.com/prometheus/prometheus/tsdb/chunks"
	"github.com/prometheus/prometheus/util/annotations"

	"parley.dev/parley/internal/pods/podstate"
	"parley.dev/parley/internal/telemetry"
)

// now is when questions are asked.
var now = time.Date(2026, 11, 23, 10, 30, 0, 0, time.UTC)

// sample is a number at a time.
type sample struct {
	at    int64
	value float64
}

func (s sample) T() int64                      { return s.at }
func (s sample) ST() int64                     { return 0 }
func (s sample) F() float64                    { return s.value }
func (s sample) H() *histogram.Histogram       { return nil }
func (s sample) FH() *histogram.FloatHistogram { return nil }
func (s sample) Type() chunkenc.ValueType      { return chunkenc.ValFloat }
func (s sample) Copy() chunks.Sample           { return s }

// scraped is what a Prometheus has scraped.
type scraped []storage.Series

// counts are the names of counters.
var counts = regexp.MustCompile("_(total|bucket|count|sum)$")

// scrape reads lines as programs serve them: the value is that of now, and a counter's grew by 1 each minute.
func scrape(t *testing.T, lines ...string) scraped {
	t.Helper()
	all := make(scraped, 0, len(lines))
	for _, line := range lines {
		at := strings.LastIndex(line, " ")
		metric, err := parser.NewParser(parser.Options{}).ParseMetric(line[:at])
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var value float64
		if _, err := fmt.Sscan(line[at+1:], &value); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		var samples []chunks.Sample
		for ago := 20; ago >= 0; ago-- {
			grown := value
			if counts.MatchString(metric.Get(model.MetricNameLabel)) {
				grown = value + float64(20-ago)
			}
			samples = append(samples, sample{now.Add(-time.Duration(ago) * time.Minute).UnixMilli(), grown})
		}
		all = append(all, storage.NewListSeries(metric, samples))
	}
	return all
}

// Querier implements storage.Queryable.
func (s scraped) Querier(int64, int64) (storage.Querier, error) {
	return &storage.MockQuerier{SelectMockFunction: func(_ bool, _ *storage.SelectHints,
		matchers ...*labels.Matcher) storage.SeriesSet {
		found := slices.Clone(s)
		return &set{left: slices.DeleteFunc(found, func(series storage.Series) bool {
			return slices.ContainsFunc(matchers, func(m *labels.Matcher) bool {
				return !m.Matches(series.Labels().Get(m.Name))
			})
		})}
	}}, nil
}

// set walks through series.
type set struct {
	left scraped
	at   storage.Series
}

func (s *set) Next() bool {
	if len(s.left) == 0 {
		return false
	}
	s.at, s.left = s.left[0], s.left[1:]
	return true
}
func (s *set) At() storage.Series                { return s.at }
func (s *set) Err() error                        { return nil }
func (s *set) Warnings() annotations.Annotations { return nil }

// answers are what Prometheus answers now.
func (s scraped) answers(t *testing.T, expr string) []string {
	t.Helper()
	return s.answersAt(t, expr, now)
}

// answersAt are what Prometheus answers at a time, sorted, with the labels in braces.
func (s scraped) answersAt(t *testing.T, expr string, at time.Time) []string {
	t.Helper()
	expr = strings.NewReplacer("$__rate_interval", "5m", "$namespace", ".*").Replace(expr)
	engine := promql.NewEngine(promql.EngineOpts{MaxSamples: 1e6, Timeout: time.Minute})
	t.Cleanup(func() { _ = engine.Close() })
	query, err := engine.NewInstantQuery(context.Background(), s, nil, expr, at)
	if err != nil {
		t.Fatalf("%s: %v", expr, err)
	}
	result := query.Exec(t.Context())
	vector, err := result.Vector()
	if err != nil || len(result.Warnings) > 0 {
		t.Fatalf("%s: %v, %v", expr, err, result.Warnings)
	}
	lines := make([]string, 0, len(vector))
	for _, answer := range vector {
		lines = append(lines, fmt.Sprintf("%s %v", answer.Metric, answer.F))
	}
	slices.Sort(lines)
	return lines
}

// waits is a scraped metric of a chat that waits, each time so long and then not for a minute, until now.
func waits(name, what string, long time.Duration) scraped {
	var samples []chunks.Sample
	step := 30 * time.Second
	for begun := now.Add(-time.Hour); begun.Before(now); begun = begun.Add(long + time.Minute) {
		end := begun.Add(long)
		for at := begun; at.Before(end) && !at.After(now); at = at.Add(step) {
			samples = append(samples, sample{at.UnixMilli(), float64(begun.Unix())})
		}
		samples = append(samples, sample{end.UnixMilli(), math.Float64frombits(promvalue.StaleNaN)})
	}
	return scraped{storage.NewListSeries(labels.FromStrings(model.MetricNameLabel, name, "for", what), samples)}
}

// TestAlertsSeeWaitsThatStartAgain holds that the alerts answer all the time while no pod and no workspace starts,
// although each single wait ends: a pod is replaced, and calls run, and fail, without the workspace.
func TestAlertsSeeWaitsThatStartAgain(t *testing.T) {
	all := alerts(t)
	for alert, c := range map[string]struct {
		what string
		long time.Duration
	}{
		"ParleyPodsDoNotStart":       {"Pod", podstate.DefaultStart},
		"ParleyWorkspacesDoNotStart": {"Workspace", 5 * time.Minute}, // life.StartPatience
	} {
		prometheus := waits(telemetry.MetricOldestWait, c.what, c.long)
		for ago := 15 * time.Minute; ago >= 0; ago -= 30 * time.Second {
			if len(prometheus.answersAt(t, all[alert].String(), now.Add(-ago))) == 0 {
				t.Fatalf("%s: nothing %s ago", alert, ago)
			}
		}
	}
}

// TestEveryPanelOfProgramsHasAnAnswer holds that every question about Parley's programs has an answer as soon as each
// metric has a value.
func TestEveryPanelOfProgramsHasAnAnswer(t *testing.T) {
	programs := ofPrograms()
	var lines []string
	for name, have := range programs {
		lines = append(lines, spread(name, have)...)
	}
	prometheus := scrape(t, lines...)
	for _, p := range readBoard(t).Panels {
		for _, target := range p.Targets {
			if _, of := programs[selectors(asked(t, target.Expr))[0].Name]; of &&
				len(prometheus.answers(t, target.Expr)) == 0 {
				t.Errorf("%s: nothing answers %s", p.Title, target.Expr)
			}
		}
	}
}

// spread is a line for each value that questions ask a label to have.
func spread(name string, have map[string]bool) []string {
	series := []string{""}
	for label := range have {
		said := values[label]
		switch {
		case label == "le":
			said = []string{"1", "+Inf"}
		case len(said) == 0:
			said = []string{"some"}
		}
		var longer []string
		for _, value := range said {
			for _, begun := range series {
				longer = append(longer, begun+fmt.Sprintf("%s=%q,", label, value))
			}
		}
		series = longer
	}
	for i := range series {
		series[i] = name + "{" + strings.TrimSuffix(series[i], ",") + "} 1"
	}
	return series
}

func TestPanelsOfObjectsSayWhichChats(t *testing.T) {
	prometheus := scrape(t, slices.Concat(
		told(t, "Chat", "asks", `status: {phase: RequiresAction, model: large, chatClass: {name: coder},
			conditions: [{type: Ready, status: Unknown, reason: RequiresAction}],
			wait: {for: Approval, since: "2026-11-23T10:15:00Z"}, requiresAction: {deadline: "2026-11-23T11:00:00Z"},
			turn: {startedAt: "2026-11-23T10:00:00Z"},
			usage: {outputTokens: 5}, cost: [{currency: USD, microUnits: 1500000}]}`),
		told(t, "Chat", "works", `status: {phase: Running, model: small, turn: {startedAt: "2026-11-23T10:20:00Z"},
			usage: {outputTokens: 7}, cost: [{currency: USD, microUnits: 500000}, {currency: EUR, microUnits: 1000000}]}`),
		told(t, "Chat", "fails", `status: {phase: Error, conditions: [{type: Ready, status: "False", reason: Overloaded}]}`),
		told(t, "Chat", "held", `status: {phase: Waiting, wait: {for: Resume, since: "2026-11-23T10:00:00Z"},
			conditions: [{type: Ready, status: Unknown, reason: Suspended}]}`),
		told(t, "ChatModelConfig", "broken", `status: {conditions: [{type: Ready, status: "False", reason: Broken}]}`),
		told(t, "Workspace", "works", `status: {phase: Ready}`),
	)...)
	for title, want := range map[string][]string{
		"Seconds that people have left": {`{name="asks", namespace="team"} 1800`},
		"Chats that need a person":      {`{name="fails", namespace="team", reason="Overloaded"} 1`},
		"Longest waits":                 {`{for="Approval", name="asks", namespace="team", reason="RequiresAction"} 900`},
		"Longest turns under way":       {`{model="small", name="works", namespace="team"} 600`},
		"Cost by namespace":             {`{currency="EUR", namespace="team"} 1`, `{currency="USD", namespace="team"} 2`},
		"Cost by model": {`{currency="EUR", model="small"} 1`, `{currency="USD", model="large"} 1.5`,
			`{currency="USD", model="small"} 0.5`},
		"Cost by class": {`{chat_class="coder", currency="USD"} 1.5`, `{currency="EUR"} 1`, `{currency="USD"} 0.5`},
		"Most expensive chats": {
			`{chat_class="coder", currency="USD", model="large", name="asks", namespace="team"} 1.5`,
			`{currency="EUR", model="small", name="works", namespace="team"} 1`,
			`{currency="USD", model="small", name="works", namespace="team"} 0.5`},
		"Output tokens of chats": {`{model="large", namespace="team"} 5`, `{model="small", namespace="team"} 7`,
			`{namespace="team"} 0`},
		"Models that cannot be used": {`{name="broken", namespace="team", reason="Broken"} 0`},
		"Workspaces by phase":        {`{phase="Ready"} 1`},
	} {
		panels := readBoard(t).Panels
		at := slices.IndexFunc(panels, func(p boardPanel) bool { return p.Title == title })
		if at < 0 {
			t.Errorf("there is no panel %s", title)
			continue
		}
		if got := prometheus.answers(t, panels[at].Targets[0].Expr); !slices.Equal(got, want) {
			t.Errorf("%s says %v, want %v", title, got, want)
		}
	}
}

// told is what kube-state-metrics tells of an object.
func told(t *testing.T, kind, name, content string) []string {
	t.Helper()
	o := object(t, kind, name, content)
	o.SetNamespace("team")
	resources := readStateMetrics(t).Spec.Resources
	at := slices.IndexFunc(resources, func(r stateResource) bool { return r.GroupVersionKind.Kind == kind })
	resources[at].Metrics = slices.DeleteFunc(resources[at].Metrics,
		func(m stateMetric) bool { return m.Name == "created" }) // Only the API server knows.
	return resources[at].samples(t, o)
}
