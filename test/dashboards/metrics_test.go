// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"parley.dev/parley/internal/telemetry"
	"parley.dev/parley/test/kit/testcluster"
)

// metrics are the labels of each metric that there is to ask for, by its name.
type metrics map[string]map[string]bool

// everything that Parley's programs and kube-state-metrics tell.
func everything(t *testing.T) metrics {
	t.Helper()
	all := metrics{}
	maps.Copy(all, ofPrograms())
	maps.Copy(all, ofObjects(t))
	return all
}

// ofPrograms are the metrics that Parley's programs register.
func ofPrograms() metrics {
	all := metrics{}
	telemetry.NewManager(all)
	telemetry.NewGenerator(all)
	telemetry.NewGateway(all)
	telemetry.RegisterRelay(all, telemetry.Relay{})
	for _, name := range []string{telemetry.MetricGenerating, telemetry.MetricWaiting, telemetry.MetricGeneratingLimit} {
		all.add(name, "level") // The manager registers these once it has a cluster.
	}
	_ = telemetry.RegisterPolicies(all, nil)
	for _, name := range []string{telemetry.MetricChats, telemetry.MetricWaits, telemetry.MetricGenerating,
		telemetry.MetricWaiting, telemetry.MetricShards} {
		all.add(name, telemetry.LabelShard) // Where there are several.
	}
	for _, name := range []string{"controller_runtime_reconcile_errors_total", "controller_runtime_reconcile_total"} {
		all.add(name, "controller") // Of controller-runtime.
	}
	return all
}

// ofObjects are the metrics that config/kube-state-metrics asks for.
func ofObjects(t *testing.T) metrics {
	t.Helper()
	all := metrics{}
	for _, r := range readStateMetrics(t).Spec.Resources {
		for i := range r.Metrics {
			values := r.Metrics[i].values()
			name := r.MetricNamePrefix + "_" + r.Metrics[i].Name
			all.add(name)
			for _, paths := range []map[string][]string{r.LabelsFromPath, values.LabelsFromPath} {
				for label := range paths {
					all[name][label] = true
				}
			}
			if values.LabelName != "" {
				all[name][values.LabelName] = true
			}
		}
	}
	return all
}

func (m metrics) add(name string, labels ...string) {
	if m[name] == nil {
		m[name] = map[string]bool{}
	}
	for _, label := range labels {
		m[name][label] = true
	}
}

var described = regexp.MustCompile(`fqName: "(\w+)".*constLabels: \{([^{}]*)\}, variableLabels: \{([^{}]*)\}`)

// Register implements prometheus.Registerer.
func (m metrics) Register(c prometheus.Collector) error {
	found := make(chan *prometheus.Desc)
	go func() { c.Describe(found); close(found) }()
	_, histogram := c.(*prometheus.HistogramVec)
	for desc := range found {
		parts := described.FindStringSubmatch(desc.String())
		labels := strings.FieldsFunc(parts[3], func(r rune) bool { return r == ',' })
		if label, _, ok := strings.Cut(parts[2], "="); ok {
			labels = append(labels, label)
		}
		if !histogram {
			m.add(parts[1], labels...)
			continue
		}
		m.add(parts[1]+"_count", labels...)
		m.add(parts[1]+"_sum", labels...)
		m.add(parts[1]+"_bucket", append(labels, "le")...)
	}
	return nil
}

// MustRegister implements prometheus.Registerer.
func (m metrics) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		_ = m.Register(c) // It cannot fail.
	}
}

// Unregister implements prometheus.Registerer.
func (m metrics) Unregister(prometheus.Collector) bool { return false }

// named are the metrics that internal/telemetry has names for.
func named(t *testing.T) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), testcluster.Path("internal", "telemetry", "names.go"), nil, 0)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	ast.Inspect(file, func(n ast.Node) bool {
		constant, ok := n.(*ast.ValueSpec)
		if !ok || !strings.HasPrefix(constant.Names[0].Name, "Metric") {
			return true
		}
		name, err := strconv.Unquote(constant.Values[0].(*ast.BasicLit).Value)
		if err != nil {
			t.Fatal(err)
		}
		names = append(names, name)
		return true
	})
	return names
}
