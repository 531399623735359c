// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package dashboards

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"parley.dev/parley/test/kit/testcluster"
)

// stateMetrics is as much of the configuration of kube-state-metrics as config/kube-state-metrics uses. Its own package
// cannot be had as a module, so that what it would make of an object is told here after its documentation:
// docs/metrics/extend/customresourcestate-metrics.md of its repository.
type stateMetrics struct {
	Kind string `json:"kind"`
	Spec struct {
		Resources []stateResource `json:"resources"`
	} `json:"spec"`
}

type stateResource struct {
	GroupVersionKind struct{ Group, Version, Kind string } `json:"groupVersionKind"`
	ResourcePlural   string                                `json:"resourcePlural"`
	MetricNamePrefix string                                `json:"metricNamePrefix"`
	LabelsFromPath   map[string][]string                   `json:"labelsFromPath"`
	ErrorLogV        int                                   `json:"errorLogV"`
	Metrics          []stateMetric                         `json:"metrics"`
}

type stateMetric struct {
	Name string `json:"name"`
	Help string `json:"help"`
	Each struct {
		Type     string      `json:"type"`
		Gauge    stateValues `json:"gauge"`
		StateSet stateValues `json:"stateSet"`
		Info     stateValues `json:"info"`
	} `json:"each"`
}

// stateValues says which values an object has.
type stateValues struct {
	Path           []string            `json:"path"`
	ValueFrom      []string            `json:"valueFrom"`
	LabelsFromPath map[string][]string `json:"labelsFromPath"`
	LabelName      string              `json:"labelName"`
	List           []string            `json:"list"`
	NilIsZero      bool                `json:"nilIsZero"`
}

func (m *stateMetric) values() stateValues {
	return map[string]stateValues{"Gauge": m.Each.Gauge, "StateSet": m.Each.StateSet, "Info": m.Each.Info}[m.Each.Type]
}

func readStateMetrics(t *testing.T) stateMetrics {
	t.Helper()
	text, err := os.ReadFile(testcluster.Path("config", "kube-state-metrics", "metrics.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var config stateMetrics
	if err := yaml.UnmarshalStrict(text, &config); err != nil {
		t.Fatal(err)
	}
	return config
}

// samples are the lines that the object makes, sorted.
func (r *stateResource) samples(t *testing.T, o *unstructured.Unstructured) []string {
	t.Helper()
	var lines []string
	for i := range r.Metrics {
		metric := &r.Metrics[i]
		values := metric.values()
		base := labelsOf(o.Object, r.LabelsFromPath)
		for _, item := range values.items(o.Object) {
			labels := maps.Clone(base)
			maps.Copy(labels, labelsOf(item, values.LabelsFromPath))
			name := r.MetricNamePrefix + "_" + metric.Name
			switch metric.Each.Type {
			case "Info":
				lines = append(lines, line(name, labels, 1))
			case "Gauge":
				if value := lookUp(item, values.ValueFrom); value != nil || values.NilIsZero {
					lines = append(lines, line(name, labels, number(t, value)))
				}
			case "StateSet":
				for _, state := range values.List {
					labels[values.LabelName] = state
					value := lookUp(item, values.ValueFrom)
					if value != nil {
						lines = append(lines, line(name, labels, number(t, value == state)))
					}
				}
			}
		}
	}
	slices.Sort(lines)
	return lines
}

// items are what the path leads to: each element of a list, and anything else as such.
func (v stateValues) items(o map[string]any) []any {
	at := lookUp(o, v.Path)
	if list, ok := at.([]any); ok {
		return list
	}
	return []any{at}
}

// lookUp follows a path through objects; nil if it leads nowhere.
func lookUp(at any, path []string) any {
	for _, part := range path {
		object, _ := at.(map[string]any)
		at = object[part]
	}
	return at
}

// labelsOf are the labels of those paths that lead somewhere.
func labelsOf(at any, paths map[string][]string) map[string]string {
	labels := map[string]string{}
	for label, path := range paths {
		if value := lookUp(at, path); value != nil {
			labels[label] = fmt.Sprint(value)
		}
	}
	return labels
}

// number is a value as kube-state-metrics reads it: absent and false are 0, times are seconds.
func number(t *testing.T, value any) float64 {
	t.Helper()
	switch v := value.(type) {
	case nil:
		return 0
	case bool:
		if v {
			return 1
		}
		return 0
	case int64:
		return float64(v)
	case string:
		at, err := time.Parse(time.RFC3339, v)
		if err != nil {
			t.Fatalf("%q is no number: %v", v, err)
		}
		return float64(at.Unix())
	}
	t.Fatalf("%v is no number", value)
	return 0
}

func line(name string, labels map[string]string, value float64) string {
	pairs := make([]string, 0, len(labels))
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		pairs = append(pairs, fmt.Sprintf("%s=%q", label, labels[label]))
	}
	return fmt.Sprintf("%s{%s} %.0f", name, strings.Join(pairs, ","), value)
}
