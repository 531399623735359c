// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// LabelMetrics marks the namespaces, with the value "true", whose pods may read the metrics of generation pods.
const LabelMetrics = "parley.dev/metrics"

const (
	// MetricsPort is where the generator serves its metrics, and nothing else.
	MetricsPort = 8082
	// RelayMetricsPort is where the relay does.
	RelayMetricsPort = 7071
)

// Variable is an environment variable of the generator.
type Variable struct {
	Name, Value string
}

// handedOn are the OTEL_* variables that generation pods get, besides those that begin with handedOnPrefixes. Those
// with headers, keys and certificates are not among them: a Pod shows its environment to whoever may read Pods.
var handedOn = []string{
	"OTEL_EXPORTER_OTLP_COMPRESSION", "OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_INSECURE",
	"OTEL_EXPORTER_OTLP_PROTOCOL",
	"OTEL_EXPORTER_OTLP_TIMEOUT", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
	"OTEL_EXPORTER_OTLP_TRACES_INSECURE", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_TIMEOUT",
	"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "OTEL_RESOURCE_ATTRIBUTES", "OTEL_SDK_DISABLED",
	"OTEL_TRACES_EXPORTER",
	"OTEL_TRACES_SAMPLER", "OTEL_TRACES_SAMPLER_ARG",
}

var handedOnPrefixes = []string{"OTEL_ATTRIBUTE_", "OTEL_BSP_", "OTEL_SPAN_"}

// Tracing picks from an environment, NAME=value each, what generation pods need to trace as this process does, sorted.
func Tracing(environ []string) []Variable {
	var picked []Variable
	for _, entry := range environ {
		name, value, _ := strings.Cut(entry, "=")
		begins := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if value != "" && (slices.Contains(handedOn, name) || slices.ContainsFunc(handedOnPrefixes, begins)) {
			picked = append(picked, Variable{name, value})
		}
	}
	slices.SortFunc(picked, func(a, b Variable) int { return strings.Compare(a.Name, b.Name) })
	return picked
}

func profilingArgs(s Settings) []string {
	if s.Profiling {
		return []string{"--profiling"}
	}
	return nil
}

func tracingEnv(s Settings) []corev1.EnvVar {
	env := make([]corev1.EnvVar, 0, len(s.Tracing))
	for _, v := range s.Tracing {
		// Dollar signs would refer to other variables.
		env = append(env, corev1.EnvVar{Name: v.Name, Value: strings.ReplaceAll(v.Value, "$", "$$")})
	}
	return env
}
