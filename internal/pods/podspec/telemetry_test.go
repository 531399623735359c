// Copyright The Parley Authors.
// SPDX-License-Identifier: Apache-2.0

package podspec

import (
	"flag"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"parley.dev/parley/test/kit/check"
)

var update = flag.Bool("update", false, "write the golden files again")

func TestProfilesAreServedWhereTheManagerIsTold(t *testing.T) {
	s := settings()
	for _, profiling := range []bool{false, true} {
		s.Profiling = profiling
		pod := Generation(s, "p")
		for _, c := range pod.Spec.Containers {
			check.Equal(t, c.Name, profiling, slices.Contains(c.Args, "--profiling"))
		}
	}
}

func traced() Settings {
	s := settings()
	s.Tracing = Tracing([]string{
		"OTEL_TRACES_SAMPLER=parentbased_traceidratio", "OTEL_EXPORTER_OTLP_ENDPOINT=http://collector.observability:4318",
		"OTEL_RESOURCE_ATTRIBUTES=team=$team",
	})
	return s
}

// golden is the pod without the hash of its settings, which each new setting changes.
func golden(s Settings) any {
	pod := Generation(s, "p")
	delete(pod.Labels, LabelTemplate)
	return pod
}

func TestTheObjectsAreThoseOfTheGoldenFiles(t *testing.T) {
	for name, object := range map[string]any{
		"generation.yaml":         golden(settings()),
		"generation-traced.yaml":  golden(traced()),
		"generation-proxied.yaml": golden(proxied()),
		"networkpolicy.yaml":      NetworkPolicy("demo", "parley-system"),
	} {
		got, err := yaml.Marshal(object)
		check.OK(t, err)
		file := filepath.Join("testdata", name)
		if *update {
			check.OK(t, os.WriteFile(file, got, 0o600))
		}
		want, err := os.ReadFile(file)
		check.OK(t, err)
		check.Equal(t, name+" (run the test with -update if that is right)", string(want), string(got))
	}
}

func TestOnlyWhatIsNoSecretIsHandedOn(t *testing.T) {
	got := Tracing([]string{
		"PATH=/bin", "OTEL_SERVICE_NAME=parley-manager", "OTEL_BSP_SCHEDULE_DELAY=100",
		"OTEL_EXPORTER_OTLP_HEADERS=authorization=Bearer secret",
		"OTEL_EXPORTER_OTLP_TRACES_HEADERS=x=secret", "OTEL_EXPORTER_OTLP_CLIENT_KEY=/key",
		"OTEL_EXPORTER_OTLP_CERTIFICATE=/ca", "OTEL_TRACES_SAMPLER=",
		"OTEL_EXPORTER_OTLP_ENDPOINT=http://a=b", "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT=true",
	})
	want := []Variable{
		{"OTEL_BSP_SCHEDULE_DELAY", "100"}, {"OTEL_EXPORTER_OTLP_ENDPOINT", "http://a=b"},
		{"OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT", "true"},
	}
	check.Equal(t, "got", want, got)
	if Tracing([]string{"PATH=/bin"}) != nil {
		t.Error("without anything to hand on the template changes")
	}
}

func TestTracingChangesTemplateHashButNotRelay(t *testing.T) {
	if traced().Hash() == settings().Hash() {
		t.Error("the hash did not change")
	}
	pod := Generation(traced(), "p")
	for _, variable := range pod.Spec.Containers[1].Env {
		if strings.HasPrefix(variable.Name, "OTEL_") {
			t.Errorf("the relay has %s", variable.Name)
		}
	}
}
