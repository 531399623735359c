// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package reference

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/prometheus/client_golang/prometheus"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/hack/gen/markdown"
	"parley.dev/parley/internal/telemetry"
)

// Metrics renders the page of the metrics from what the programs register.
func Metrics() ([]byte, error) {
	all := &descriptions{rows: map[string][]string{}}
	all.program = "manager"
	telemetry.NewManager(all)
	err := errors.Join(telemetry.RegisterCapacity(all, telemetry.Capacity{}), telemetry.RegisterShards(all, 0),
		telemetry.RegisterPolicies(all, nil))
	all.program = "generator"
	telemetry.NewGenerator(all)
	all.program = "relay"
	telemetry.RegisterRelay(all, telemetry.Relay{})
	all.program = "gateway"
	telemetry.NewGateway(all)
	rows := make([][]string, 0, len(all.order))
	for _, name := range all.order {
		rows = append(rows, all.rows[name])
	}
	var b bytes.Buffer
	fmt.Fprintf(&b, generated, "internal/telemetry", "Metrics")
	b.WriteString("\n[How to collect them](../how-to/observability.md). Labels have closed sets of values: they never " +
		"name a chat, a namespace or a person. If a set exceeds 64 values, the rest counts as `other`.\n")
	markdown.Table(&b, []string{"metric", "type", "from", "labels", "meaning"}, rows)
	err = errors.Join(err, stateMetrics(&b), attributes(&b))
	return b.Bytes(), err
}

// attributes writes the attributes of spans.
func attributes(w io.Writer) error {
	all, err := constants("internal/telemetry/names.go")
	if err != nil {
		return err
	}
	var rows [][]string
	for _, c := range all {
		if spans, found := strings.CutPrefix(c.doc, "Of "); found && strings.HasPrefix(c.name, "Attr") {
			rows = append(rows, []string{markdown.Code(c.value), markdown.Prose(spans)})
		}
	}
	fmt.Fprint(w, "\n## Attributes of spans\n\nThe names are those of OpenTelemetry's conventions for generative AI, and "+
		"Parley's own. [How to switch traces on](../how-to/observability.md#switch-traces-on).\n")
	markdown.Table(w, []string{"attribute", "of"}, rows)
	return nil
}

const stateMetricsFile = "config/kube-state-metrics/metrics.yaml"

// stateMetrics writes the metrics of objects, from the configuration of kube-state-metrics.
func stateMetrics(w io.Writer) error {
	text, err := os.ReadFile(stateMetricsFile)
	if err != nil {
		return err
	}
	var config struct {
		Spec struct {
			Resources []struct {
				MetricNamePrefix string
				Metrics          []struct{ Name, Help string }
			}
		}
	}
	if err := yaml.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("reading %s: %w", stateMetricsFile, err)
	}
	var rows [][]string
	for _, resource := range config.Spec.Resources {
		for _, metric := range resource.Metrics {
			rows = append(rows, []string{markdown.Code(resource.MetricNamePrefix + "_" + metric.Name),
				markdown.Prose(metric.Help)})
		}
	}
	fmt.Fprint(w, "\n## Metrics of objects\n\nkube-state-metrics makes these from each object, with the labels "+
		"`namespace` and `name`. [How to install it](../how-to/dashboards.md#kube-state-metrics).\n")
	markdown.Table(w, []string{"metric", "meaning"}, rows)
	return nil
}

// descriptions is a registry that keeps only what describes metrics.
type descriptions struct {
	program string
	rows    map[string][]string
	order   []string
}

// description is the text of a prometheus.Desc, which has no other way to read it.
var description = regexp.MustCompile(
	`^Desc{fqName: "(.*?)", help: "(.*?)"(?:, unit: ".*")?, constLabels: {(.*?)}, variableLabels: {(.*?)}}$`)

// Register adds rows for the metrics of a collector.
func (d *descriptions) Register(c prometheus.Collector) error {
	for desc := range described(c) {
		found := description.FindStringSubmatch(desc.String())
		if found == nil {
			return fmt.Errorf("cannot read %s", desc)
		}
		name := found[1]
		if row := d.rows[name]; row != nil {
			if !strings.Contains(row[2], d.program) {
				row[2] += ", " + d.program
			}
			continue
		}
		d.order = append(d.order, name)
		d.rows[name] = []string{markdown.Code(name), kindOf(c, name), d.program, labels(found[3], found[4]),
			markdown.Prose(found[2])}
	}
	return nil
}

// MustRegister is Register for several.
func (d *descriptions) MustRegister(all ...prometheus.Collector) {
	for _, c := range all {
		if err := d.Register(c); err != nil {
			panic(err)
		}
	}
}

// Unregister does nothing.
func (*descriptions) Unregister(prometheus.Collector) bool { return false }

func described(c prometheus.Collector) <-chan *prometheus.Desc {
	all := make(chan *prometheus.Desc, 1)
	go func() {
		defer close(all)
		c.Describe(all)
	}()
	return all
}

// kindOf is the type of a metric. promlinter keeps counters to names that end with _total.
func kindOf(c prometheus.Collector, name string) string {
	if _, ok := c.(*prometheus.HistogramVec); ok {
		return "histogram"
	}
	if strings.HasSuffix(name, "_total") {
		return "counter"
	}
	return "gauge"
}

// labels are the names of constant labels, which are written with their values, and of others.
func labels(constant, variable string) string {
	var all []string
	for label := range strings.SplitSeq(constant+","+variable, ",") {
		if name, _, _ := strings.Cut(label, "="); name != "" {
			all = append(all, markdown.Code(name))
		}
	}
	return strings.Join(all, ", ")
}
